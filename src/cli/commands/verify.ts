/** `trialscan verify`: the problems in the files of trials. */

import { nearestNames, suggest, UsageError } from '../../base/errors.js'
import { VERIFY_CODES, type VerifyProblem } from '../../integrity/verify/problem.js'
import { verifyTrial } from '../../integrity/verify/verify.js'
import { type FailOn, verdictOfFiles, verifyAnswers } from '../format/ci/of-verify.js'
import { tellVerdict, type Verdict, verdictOf } from '../format/ci/report.js'
import { isForPrograms, writerIn } from '../format/ci/text.js'
import type { FormatOf } from '../format/formats.js'
import { counted, countText } from '../format/number.js'
import { type VerifyFormat, verifyCsv, verifyJsonl } from '../format/verify-lines.js'
import { verifyTable } from '../format/verify-table.js'
import { inputPieces, noteInput } from '../input-file.js'
import { readingOptions, settle } from '../options/given.js'
import { expectS3, placeOptions, type S3Flags } from '../options/s3.js'
import { Lines, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectOutside, expectReplaceable } from '../real-path.js'
import { Losses, trialsAt } from '../scan/trials.js'
import { colorsFor } from '../terminal.js'

export interface VerifyFlags extends S3Flags {
  readonly deep?: boolean
  readonly values?: boolean
  readonly digests?: string
  readonly record?: string
  readonly format?: FormatOf<'verify'>
  readonly threads?: number
  readonly memory?: number
  readonly failFast?: boolean
  readonly failOn?: readonly string[]
  readonly quiet?: boolean
  readonly out?: string
}

/** @returns the exit code */
export async function verify(places: readonly string[], given: VerifyFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('verify', places[0]!, given)
  const { out } = flags
  const { digests, record } = flags
  expectS3(flags, digests === undefined ? places : [...places, digests])
  const paths = await trialsAt(places, flags)
  if (paths.length > 1 && (digests ?? record) !== undefined) {
    throw new UsageError(
      `expected one trial beside --${digests === undefined ? 'record' : 'digests'}, got ${paths.length}`,
    )
  }
  if (digests !== undefined) await noteInput(digests)
  if (record !== undefined) await expectReplaceable(paths[0]!, record, '--record')
  const failOn = codesOf(flags)
  const isOnly = paths.length === 1
  const isSilent = flags.quiet === true && out === undefined
  const format = isSilent ? SILENT : verifyFormat(isOnly, flags.format, flags.onTerminal, failOn)
  const verdicts: Verdict[] = []
  if (out !== undefined) for (const path of paths) await expectOutside(path, out, 'a file')
  const losses = new Losses(paths, flags.failFast)
  const progress = new Progress(flags.onTerminal, 'trials')
  let verdict: Verdict | undefined
  const code = await writeTo(out, async output => {
    const lines = new Lines(output)
    try {
      await lines.write(format.head)
      for (const [i, path] of paths.entries()) {
        try {
          const verifyWith = (listed: Lines | null) =>
            verifyOne(path, { ...flags, failOn }, format, lines, listed, signal)
          const trialVerdict =
            record === undefined
              ? await verifyWith(null)
              : await writeTo(
                  record,
                  async listed => {
                    const digests = new Lines(listed)
                    const result = await verifyWith(digests)
                    await digests.done()
                    return result
                  },
                  { isPlain: true },
                )
          verdicts.push(trialVerdict)
          losses.outcome(trialVerdict.exitCode)
        } catch (error) {
          signal.throwIfAborted()
          await lines.done()
          losses.trial(path, error)
        }
        if (paths.length > 1) progress.update({ doneRows: i + 1, totalRows: paths.length })
      }
      losses.expectSome()
      verdict = isOnly ? verdicts[0]! : ofTrials(verdicts, losses)
      await lines.write(format.tail?.(verdict, losses.lost) ?? '')
    } finally {
      await lines.done().catch(() => {})
    }
    await output.flush()
    progress.stop()
    return losses.tell()
  })
  if (verdict !== undefined && (flags.quiet || isForPrograms(flags.format))) tellVerdict(verdict)
  return code
}

const SILENT: VerifyFormat = { head: '', line: () => '', end: () => '' }

/**
 * The codes of `--fail-on`.
 * @throws UsageError for an unknown code
 */
function codesOf({ failOn }: VerifyFlags): FailOn {
  if (failOn === undefined) return undefined
  for (const code of failOn) {
    if (!VERIFY_CODES.some(known => known === code))
      throw new UsageError(
        `expected --fail-on with codes of problems, such as ${VERIFY_CODES[0]} (docs/verify.md has all), got ${code}${suggest(nearestNames(code, VERIFY_CODES))}`,
      )
  }
  return new Set(failOn)
}

function ofTrials(verdicts: readonly Verdict[], losses: Losses): Verdict {
  const count = verdicts.length + losses.lost.length
  const failed = verdicts.filter(({ word }) => word === 'failed').length
  const unjudged = verdicts.filter(({ word }) => word === 'unjudged').length
  const unread = losses.lost.length > 0 ? `, ${countText(losses.lost.length)} could not be read` : ''
  const unreadText = unjudged > 0 ? `, of ${countText(unjudged)} nothing was read` : ''
  const text = `${countText(failed)} of ${counted(count, 'trial')} failed${unreadText}${unread}`
  if (failed > 0) return { word: 'failed', exitCode: losses.code, text }
  return verdictOf(losses.code, text)
}

async function verifyOne(
  path: string,
  flags: Omit<VerifyFlags, 'failOn'> & { readonly failOn: FailOn },
  format: VerifyFormat,
  lines: Lines,
  listed: Lines | null,
  signal: AbortSignal,
): Promise<Verdict> {
  const { deep = false, values = false, digests } = flags
  const verification = await verifyTrial(path, {
    ...placeOptions(path, flags),
    ...readingOptions(flags),
    deep,
    values,
    ...(digests !== undefined && { digests: inputPieces(digests, '--digests', flags) }),
    // `listed.done` reports the error.
    ...(listed && { onDigest: (line: string) => void listed.write(line).catch(() => {}) }),
    signal,
    onProblem: (problem: VerifyProblem) => {
      // `lines.done` reports the error.
      lines.write(format.line(path, problem)).catch(() => {})
    },
  })
  const verdict = verdictOfFiles(verification, flags.failOn)
  await lines.write(format.end(path, verification, verdict))
  return verdict
}

function verifyFormat(isOnly: boolean, format: FormatOf<'verify'>, onTerminal: boolean, failOn: FailOn): VerifyFormat {
  const columns = onTerminal ? process.stdout.columns : undefined
  return writerIn<FormatOf<'verify'>, VerifyFormat>(
    format,
    {
      jsonl: () => verifyJsonl(isOnly, onTerminal),
      csv: () => verifyCsv(isOnly, onTerminal),
      table: () => verifyTable(isOnly, columns, colorsFor(onTerminal ? process.stdout : null)),
    },
    format => verifyAnswers(format, isOnly, failOn),
  )
}
