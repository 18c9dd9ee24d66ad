/** `trialscan nan`: the origin of NaN and infinities. */

import type { NonFiniteCheckpoint } from '../../compare/non-finite/at-checkpoint.js'
import { type NonFiniteTrace, traceNonFinite } from '../../compare/non-finite/trace.js'
import type { NonFiniteRecord } from '../../compare/records.js'
import { EXIT, heavier } from '../exit.js'
import { type Case, tellVerdict, type Verdict, verdictCase, verdictFields, verdictOf } from '../format/ci/report.js'
import { Answers, isForPrograms, writerIn } from '../format/ci/text.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine, jsonOf } from '../format/lines.js'
import { nonFiniteTable, nonFiniteText } from '../format/view/non-finite.js'
import { type OutputFlags, type ReadingFlags, readingOptions, settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import {
  isSelective,
  nothingSelected,
  type SelectionFlags,
  selectionOf,
  selectionText,
  unscannedParts,
} from '../scan/selection.js'
import { withTrial } from '../scan/trials.js'
import { colorsFor, note, safeJson } from '../terminal.js'

export interface NanFlags extends SelectionFlags, S3Flags, ReadingFlags, OutputFlags<'nan'> {
  readonly all?: boolean
  readonly quiet?: boolean
}

/** @returns the exit code */
export async function nan(path: string, given: NanFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('nan', path, given)
  const { out, onTerminal, format, all } = flags
  expectS3(flags, [path])
  if (out !== undefined) await expectReplaceable(path, out)
  const progress = new Progress(onTerminal)
  return withTrial(path, flags, async trial => {
    const trace = await traceNonFinite(trial, {
      ...selectionOf(flags),
      ...readingOptions(flags),
      signal,
      onProgress: done => progress.update(done),
    })
    progress.stop()
    for (const message of unscannedParts(trial, flags, trace.records > 0)) note(message)
    const isEmpty = trace.records === 0 && isSelective(flags)
    if (isEmpty) note(nothingSelected(trial, flags))
    const outcome = trace.origin === null ? EXIT.ok : EXIT.findings
    const code = isEmpty ? EXIT.query : trace.problems.length > 0 ? heavier(outcome, EXIT.format) : outcome
    const selection = selectionText(flags)
    const answer = isEmpty ? 'nothing was looked at' : nonFiniteText(trace)
    const verdict = verdictOf(code, selection === null ? answer : `${answer}; only ${selection}`)
    const isSilent = isEmpty && !isForPrograms(format)
    const columns = process.stdout.columns ?? Number(process.env.COLUMNS || 0)
    const table = () => {
      const colors = colorsFor(onTerminal ? process.stdout : null)
      return [nonFiniteTable(trial.name, trace, { columns, colors, isFull: all === true })]
    }
    const lines = writerIn<FormatOf<'nan'>, Iterable<string>>(
      format,
      { jsonl: () => jsonLines(trace, onTerminal), csv: () => csvLines(trace, onTerminal), table },
      format => {
        const cases = () => [caseOf(verdict, trace)]
        const json = () => jsonObject(path, verdict, trace)
        return [new Answers(format, 'nan').add({ trial: path, verdict, cases, json }).text()]
      },
    )
    if (!isSilent && !(flags.quiet && out === undefined)) await writeTo(out, output => output.writeAll(lines))
    for (const problem of trace.problems) note(problem)
    if (flags.quiet || isForPrograms(format)) tellVerdict(verdict)
    return code
  })
}

function caseOf(verdict: Verdict, { origin, later, problems }: NonFiniteTrace): Case {
  const results = (origin === null ? [] : [origin, ...later]).map(({ tensor, step, worker }) => ({
    message: `step ${step}: ${tensor} of ${worker} is not finite`,
    ...{ tensor, step, worker },
  }))
  const isPartial = verdict.word === 'unread' && origin !== null
  return verdictCase('finite', verdict, results, [...(isPartial ? [verdict.text] : []), ...problems].join('\n'))
}

function jsonObject(trial: string, verdict: Verdict, trace: NonFiniteTrace): string {
  const [first, ...later] = [...jsonLines(trace, false)].map(line => line.trimEnd())
  const head = JSON.stringify({ trial, ...verdictFields(verdict) }).slice(0, -1)
  const problems = JSON.stringify(trace.problems)
  return `${head},${first!.slice(1, -1)},"later":[${later.join(',')}],"problems":${problems}}`
}

/** The origin, then a line for each other tensor of a worker. */
function* jsonLines(
  { origin, warning, later, chain, passed, checkpoint, isUncertain, records, unread, leftOut }: NonFiniteTrace,
  onTerminal: boolean,
): Generator<string> {
  const checkpointOf = ({ wholeStep: whole_step, logged, ...rest }: NonFiniteCheckpoint) => ({
    ...rest,
    whole_step,
    logged,
  })
  const shown = (value: object) => {
    const json = jsonOf(value)
    return `${onTerminal ? safeJson(json) : json}\n`
  }
  const placed = <P extends { readonly modeStep: number }>({ modeStep, ...place }: P) => ({
    ...place,
    mode_step: modeStep,
  })
  const recordOf = ({ fromWorker, reason, ...record }: NonFiniteRecord) => ({
    ...placed(record),
    ...(reason !== null && { reason }),
    ...(fromWorker !== null && fromWorker !== record.worker && { from_worker: fromWorker }),
  })
  yield shown({
    origin:
      origin === null
        ? null
        : (({ class: originClass, from: _, fromWorker: _w, reason, ...rest }) => ({
            ...placed(rest),
            class: originClass,
            ...(reason !== null && { reason }),
          }))(origin),
    warning: warning && placed(warning),
    chain: chain.map(({ tensor }) => tensor),
    passed: passed.map(({ lastStep, ...place }) => ({ ...place, last_step: lastStep })),
    ...(checkpoint && { checkpoint: checkpointOf(checkpoint) }),
    uncertain: isUncertain,
    records,
    unread,
    left_out: leftOut,
  })
  for (const record of later) yield shown(recordOf(record))
}

function* csvLines({ origin, later }: NonFiniteTrace, onTerminal: boolean): Generator<string> {
  yield csvLine(
    ['tensor', 'step', 'mode', 'mode_step', 'worker', 'class', 'from', 'from_worker', 'nan', 'infinite'],
    onTerminal,
  )
  const records = origin ? [origin, ...later] : []
  for (const { tensor, step, mode, modeStep, worker, class: kind, from, fromWorker, nan, infinite } of records) {
    yield csvLine([tensor, step, mode, modeStep, worker, kind, from, fromWorker, nan, infinite], onTerminal)
  }
}
