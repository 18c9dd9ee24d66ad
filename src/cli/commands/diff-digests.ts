/** `trialscan diff --digests`: compares a trial with a list of digests made elsewhere. */

import { UsageError } from '../../base/errors.js'
import {
  compareDigests,
  type DigestComparison,
  type DigestDifference,
  type DigestDifferenceKind,
} from '../../compare/digests/digests.js'
import { EXIT, heavier } from '../exit.js'
import { type Case, tellVerdict, type Verdict, verdictCase, verdictFields, verdictOf } from '../format/ci/report.js'
import { Answers, isForPrograms, writerIn } from '../format/ci/text.js'
import { csvLine, jsonLine } from '../format/lines.js'
import { counted, countText } from '../format/number.js'
import { inputPieces, noteInput } from '../input-file.js'
import { type OutputFlags, type ReadingFlags, readingOptions, settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import { nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { withTrial } from '../scan/trials.js'
import { type Colors, colorsFor, columns, note, safe, safeName, wrapped } from '../terminal.js'

/** The options of diff. */
export interface DiffFlags extends SelectionFlags, S3Flags, ReadingFlags, OutputFlags<'diff'> {
  readonly digests?: string
  readonly map?: string
  readonly rtol?: number
  readonly atol?: number
  readonly tolerance?: 'exact' | 'dtype' | 'numpy'
  readonly noise?: readonly string[]
  readonly workers?: boolean
  readonly unify?: string
  readonly bisect?: boolean
  readonly follow?: boolean
  readonly timeout?: number
  readonly poll?: number
  readonly first?: boolean
  readonly all?: boolean
  readonly top?: number
  readonly quiet?: boolean
}

/** The options of diff that apply to two runs, or to numbers. */
const OF_RUNS = [
  'map',
  'noise',
  'unify',
  'bisect',
  'workers',
  'follow',
  'timeout',
  'poll',
  'first',
  'rtol',
  'atol',
  'tolerance',
] as const

const DEFAULT_TOP = 16
const MAX_NAMES = 3
const MAX_FAULTS = 8
/** The number of digits of a SHA-256 in a table, enough to tell two apart. */
const MAX_DIGITS = 16
const MIN_WIDTH = 80
const MAX_WIDTH = 100

/** @returns the exit code */
export async function diffDigests(
  paths: readonly string[],
  given: DiffFlags & { readonly digests: string },
  signal: AbortSignal,
): Promise<number> {
  const [path] = paths
  if (path === undefined || paths.length > 1) {
    throw new UsageError(`expected one trial beside --digests, got ${paths.length}`)
  }
  const other = OF_RUNS.find(name => given[name] !== undefined)
  if (other !== undefined) throw new UsageError(`expected --digests without --${other}, which is about two runs`)
  const flags = settle('diff', path, given)
  const { digests, out, onTerminal, format } = flags
  if (format === 'parquet' || format === 'arrow') {
    throw new UsageError(`expected --digests with jsonl, csv or table, got --format ${format}`)
  }
  expectS3(flags, [path, digests])
  if (out !== undefined) await expectReplaceable(path, out)
  await noteInput(digests)
  const progress = new Progress(onTerminal)
  let verdict = verdictOf(EXIT.ok, '')
  return withTrial(path, flags, async trial => {
    const comparison = await writeTo(out, async output => {
      const result = await compareDigests(trial, inputPieces(digests, '--digests', flags), {
        ...selectionOf(flags),
        ...readingOptions(flags),
        callerWorks: true,
        signal,
        onProgress: progress.update,
      })
      progress.stop()
      const colors = colorsFor(onTerminal ? process.stdout : null)
      const top = flags.all ? Number.POSITIVE_INFINITY : (flags.top ?? DEFAULT_TOP)
      const code = codeOf(result)
      verdict = verdictOf(code, answerOf(trial.name, digests, result))
      if (flags.quiet && out === undefined) return result
      await output.writeAll(
        writerIn<typeof format, Iterable<string>>(
          format,
          {
            table: () => tableOf(trial.name, digests, result, { top, colors }),
            csv: () => csvOf(result, onTerminal),
            jsonl: () => jsonOf(result, onTerminal),
          },
          format => {
            const cases = () => [caseOf(verdict, result)]
            const json = () => jsonObject(path, digests, verdict, result)
            return [new Answers(format, 'diff').add({ trial: path, verdict, cases, json }).text()]
          },
        ),
      )
      return result
    })
    const { problems } = trial
    for (const { message } of problems.slice(0, MAX_FAULTS)) note(message)
    if (problems.length > MAX_FAULTS) note(`and ${countText(problems.length - MAX_FAULTS)} more problems`)
    const code = reportFaults(comparison, digests, () => [
      ...(isNothing(comparison) ? [nothingSelected(trial, flags)] : []),
      ...unscannedParts(trial, flags, !isNothing(comparison)),
    ])
    const whole = problems.length > 0 ? heavier(code, EXIT.format) : code
    if (flags.quiet || isForPrograms(format)) tellVerdict(verdictOf(whole, verdict.text))
    return whole
  })
}

/**
 * Reports faults of the list.
 * @returns the exit code
 */
function reportFaults(comparison: DigestComparison, list: string, notes: () => readonly string[]): number {
  const { faults, faultCount } = comparison
  for (const { line, expected, got } of faults.slice(0, MAX_FAULTS)) {
    note(`${list}, line ${line}: expected ${expected}, got ${got}`)
  }
  if (faultCount > MAX_FAULTS) note(`and ${countText(faultCount - MAX_FAULTS)} more lines that are wrong`)
  for (const message of comparison.notes) note(message)
  const code = codeOf(comparison)
  if (comparison.digests.length > 0) for (const message of notes()) note(message)
  else if (code === EXIT.query) note(`${list} lists no digest`)
  return code
}

function codeOf(comparison: DigestComparison): number {
  const isBad = comparison.faultCount > 0 || (comparison.counts.unreadable ?? 0) > 0
  if (comparison.digests.length === 0 || isNothing(comparison)) return isBad ? EXIT.format : EXIT.query
  const code = differing(comparison) > 0 ? EXIT.findings : EXIT.ok
  return isBad ? heavier(code, EXIT.format) : code
}

function answerOf(trial: string, list: string, { compared, equal, counts }: DigestComparison): string {
  const rest = Object.entries(counts).map(([kind, count]) => `${kind} ${countText(count)}`)
  return [`${trial} and ${list}: ${countText(equal)} of ${counted(compared, 'tensor')} equal`, ...rest].join('; ')
}

function caseOf(verdict: Verdict, { differences }: DigestComparison): Case {
  const results = differences.map(({ tensor, step, worker, kind, expected, got }) => ({
    message: `${tensor ?? 'all of the step'}: ${kind}, expected ${expected}, got ${got}`,
    ...{ tensor, step, worker },
  }))
  return verdictCase('as the list says', verdict, results)
}

function jsonObject(trial: string, list: string, verdict: Verdict, comparison: DigestComparison): string {
  const { compared, equal, differences } = comparison
  const counts = { compared, equal, differences: differences.map(objectOf) }
  return JSON.stringify({ trial, list, ...verdictFields(verdict), ...counts })
}

/** True if neither the trial nor the list has anything selected. */
function isNothing({ compared, counts }: DigestComparison): boolean {
  return compared === 0 && Object.keys(counts).length === 0
}

/** The number of tensors that differ in any way, without those that can't be read. */
function differing({ counts }: DigestComparison): number {
  return Object.entries(counts).reduce((sum, [kind, count]) => sum + (kind === 'unreadable' ? 0 : count), 0)
}

const FIELDS = ['kind', 'tensor', 'step', 'worker', 'line', 'expected', 'got'] as const

function objectOf(difference: DigestDifference) {
  return Object.fromEntries(FIELDS.map(name => [name, difference[name]]))
}

/** The first difference in the form of diff, then all. */
function* jsonOf({ differences, compared, equal }: DigestComparison, onTerminal: boolean): Generator<string> {
  const first = differences.find(({ kind }) => kind !== 'unreadable')
  yield jsonLine({ divergence: first ? objectOf(first) : null, compared, equal }, onTerminal)
  for (const difference of differences) yield jsonLine(objectOf(difference), onTerminal)
}

function* csvOf({ differences }: DigestComparison, onTerminal: boolean): Generator<string> {
  yield csvLine(FIELDS, onTerminal)
  for (const difference of differences) {
    yield csvLine(
      FIELDS.map(name => difference[name]),
      onTerminal,
    )
  }
}

function* tableOf(
  trial: string,
  list: string,
  comparison: DigestComparison,
  { top, colors }: { readonly top: number; readonly colors: Colors },
): Generator<string> {
  const { differences, compared, equal, digests, counts, faultCount } = comparison
  const screen = process.stdout.columns ?? (Number(process.env.COLUMNS) || null)
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, screen ?? MAX_WIDTH))
  const text = (sentences: string): string => `${wrapped(safe(sentences), width, '', '  ')}\n`
  if (digests.length === 0) {
    yield text(`${trial} and ${list}: nothing was compared, since the list has no digest.`)
    return
  }
  const differ = compared - equal
  const names = differences.filter(({ kind }) => kind !== 'missing' && kind !== 'unlisted' && kind !== 'unreadable')
  const many = (count: number, what: string): string[] => (count > 0 ? [`${countText(count)} ${what}`] : [])
  const rest = [
    ...many(equal, `${equal === 1 ? 'is' : 'are'} equal by ${digests.join(' and ')}`),
    ...many(counts.missing ?? 0, `of the list ${counts.missing === 1 ? 'is' : 'are'} not in ${trial}`),
    ...many(counts.unlisted ?? 0, `${counts.unlisted === 1 ? 'is' : 'are'} not in the list`),
    ...many(counts.unreadable ?? 0, 'could not be read'),
    ...many(faultCount, `${faultCount === 1 ? 'line' : 'lines'} of the list ${faultCount === 1 ? 'is' : 'are'} wrong`),
  ]
  const lead = `${trial} and ${list}: ${countText(differ)} of ${counted(compared, 'tensor')} ${differ === 1 ? 'differs' : 'differ'}`
  const which = differ > 0 ? `: ${namesText(names, differ)}` : ''
  const isFine = differing(comparison) === 0 && faultCount === 0 && counts.unreadable === undefined
  const sentence = text([`${lead}${which}`, ...rest].join('; ').concat('.'))
  yield isFine ? sentence : colors.bold(colors.red(sentence))
  if (differences.length === 0) return
  const shown = differences.slice(0, top)
  const hasPlaces = new Set(differences.map(({ step, worker }) => `${step} ${worker}`)).size > 1
  const rows = [
    ['  tensor', ...(hasPlaces ? ['step', 'worker'] : []), 'differs', 'by the list', 'in the trial'],
    ...shown.map(difference => [
      `  ${safeName(difference.tensor ?? '(all of the step)')}`,
      ...(hasPlaces ? [`${difference.step ?? ''}`, safe(difference.worker ?? '')] : []),
      WORDS[difference.kind] ?? difference.kind,
      safe(short(difference.expected)),
      safe(short(difference.got)),
    ]),
  ]
  yield `\n${columns(rows, [], screen)}`
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (all > shown.length) yield `  and ${countText(all - shown.length)} more: --all lists them\n`
}

const WORDS: Partial<Record<DigestDifferenceKind, string>> = { unlisted: 'not in the list', missing: 'missing' }

/** A SHA-256 cut short; any other text as it is. */
function short(text: string): string {
  return text.replace(/[0-9a-f]{64}/, digest => `${digest.slice(0, MAX_DIGITS)}…`)
}

function namesText(differences: readonly DigestDifference[], count: number): string {
  const names = [...new Set(differences.map(({ tensor }) => safeName(tensor ?? '')))].slice(0, MAX_NAMES)
  const more = count - names.length
  return more > 0 ? `${names.join(', ')} and ${countText(more)} more` : names.join(' and ')
}
