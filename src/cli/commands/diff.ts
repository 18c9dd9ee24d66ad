/** `trialscan diff`: the first difference of two runs of a training. */

import { UsageError } from '../../base/errors.js'
import { type DiffWorkersOptions, diff, diffWorkers, type TrialDiff } from '../../compare/diff.js'
import { lowRankChanges } from '../../compare/rank.js'
import type { DifferenceAt } from '../../compare/records.js'
import { DIFFERENCE_COLUMNS, DifferenceTable } from '../../compare/table.js'
import { isParameter } from '../../format/checkpoint/names.js'
import type { Trial } from '../../trial/trial.js'
import { EXIT, heavier } from '../exit.js'
import { type Case, tellVerdict, type Verdict, verdictCase, verdictFields, verdictOf } from '../format/ci/report.js'
import { Answers, isForPrograms } from '../format/ci/text.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine } from '../format/lines.js'
import { counted, countText, jsonNumber, shortList } from '../format/number.js'
import { mostChanged } from '../format/view/changes.js'
import { differenceTable, differenceText, halvingText, mapText, wayNotes } from '../format/view/difference.js'
import { defined, readingOptions, settle, waitingOptions } from '../options/given.js'
import { expectS3 } from '../options/s3.js'
import { Lines, type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { isSelective, nothingSelected, selectionOf, selectionText, unscannedParts } from '../scan/selection.js'
import { partitionIn, tensorMapIn } from '../scan/tensor-map.js'
import { openTrial } from '../scan/trials.js'
import { colorsFor, note, safeJson, safeName } from '../terminal.js'
import type { DiffFlags } from './diff-digests.js'

/** The number of reported tensors that only one of the runs has. */
const MAX_MISSING = 100_000
const MAX_PROBLEMS = 8
const MAX_NAMED = 4
const DEFAULT_TOP = 16
const COLUMN_NAMES = DIFFERENCE_COLUMNS.map(({ name }) => name)

/** @returns the exit code */
export async function runDiff(paths: readonly string[], given: DiffFlags, signal: AbortSignal): Promise<number> {
  const { digests } = given
  if (digests !== undefined) {
    const { diffDigests } = await import('./diff-digests.js')
    return diffDigests(paths, { ...given, digests }, signal)
  }
  expectUse(paths, given)
  const flags = settle('diff', paths[0]!, given)
  const { out, onTerminal, format, first, all, noise = [], rtol, atol, tolerance, bisect, follow } = flags
  const places = [...paths, ...noise]
  expectS3(flags, places)
  if (out !== undefined) await expectReplaceableIn(places, out)
  const names = defined({
    map: flags.map === undefined ? undefined : await tensorMapIn(flags.map),
    unify: flags.unify === undefined ? undefined : await partitionIn(flags.unify),
  })
  const trials: Trial[] = []
  const progress = new Progress(onTerminal, 'rows', follow)
  const isSilent = flags.quiet === true && out === undefined
  const isLine = format !== 'table' && !isForPrograms(format)
  let code: number = EXIT.ok
  let verdict = verdictOf(code, '')
  try {
    for (const path of places) trials.push(await openTrial(path, flags))
    const [a, b] = trials as [Trial, Trial]
    const diffResult = await writeTo(
      out,
      async output => {
        const writer = isLine && !isSilent ? writerOf(output, format, onTerminal, follow === true) : null
        const lacking: DifferenceAt[] = []
        const common: DiffWorkersOptions = {
          ...selectionOf(flags),
          ...defined({ rtol, atol, tolerance, stopAtFirst: first }),
          ...readingOptions(flags),
          keepDifferences: !isLine,
          onDifference: difference => writer?.add(difference),
          onNotCompared: missing => {
            if (writer !== null) writer.addMissing(missing)
            else if (missing.kind === 'missing' && lacking.length < MAX_MISSING) lacking.push(missing)
          },
          callerWorks: true,
          signal,
          onProgress: done => progress.update(done),
        }
        const result = flags.workers
          ? await diffWorkers(a, common)
          : await diff(a, b, {
              ...common,
              ...names,
              ...defined({ bisect, follow }),
              ...waitingOptions(flags),
              noise: trials.slice(2),
            })
        progress.stop()
        await writer?.end(result)
        code = codeOf(result)
        const runs = flags.workers ? ([a.name] as const) : ([a.name, b.name] as const)
        const selection = selectionText(flags)
        const answer = differenceText(runs, result)
        const omitted = result.logged.length > 0 ? `; not compared: ${result.logged.map(safeName).join(', ')}` : ''
        const tied =
          result.tied.length > 0 ? `; tied: ${result.tied.map(({ tensor }) => safeName(tensor)).join(', ')}` : ''
        verdict = verdictOf(code, (selection === null ? answer : `${answer}; only ${selection}`) + omitted + tied)
        if (isSilent) return result
        if (isForPrograms(format)) {
          const cases = () => [caseOf(verdict, result)]
          const json = () => jsonObject(paths, verdict, result, lacking)
          await output.write(new Answers(format, 'diff').add({ trial: paths.at(-1)!, verdict, cases, json }).text())
        } else if (format === 'table') {
          const columns = process.stdout.columns ?? Number(process.env.COLUMNS || 0)
          const colors = colorsFor(onTerminal ? process.stdout : null)
          await output.write(
            differenceTable(runs, result, lacking, {
              columns,
              colors,
              isFull: all === true,
              isFirst: first === true,
              top: flags.top ?? DEFAULT_TOP,
              lowRank:
                result.areCheckpoints && names.unify === undefined
                  ? await lowRankChanges(a, b, mostChanged(result.differences))
                  : [],
            }),
          )
        } else if (result.compared > 0) for (const message of lackNotes(result)) note(message)
        return result
      },
      { signal },
    )
    for (const message of unscannedParts(a, flags, diffResult.compared > 0)) note(message)
    const { problems } = diffResult
    for (const problem of problems.slice(0, MAX_PROBLEMS)) note(problem)
    if (problems.length > MAX_PROBLEMS)
      note(`and ${countText(problems.length - MAX_PROBLEMS)} more that could not be read`)
    if (diffResult.compared === 0 && problems.length === 0) {
      note(nothingCompared(a, b, flags, diffResult))
    }
    if (flags.quiet || isForPrograms(format)) tellVerdict(verdict)
    return code
  } finally {
    progress.stop()
    for (const trial of trials) await trial.close()
  }
}

function codeOf({ compared, divergence, problems }: TrialDiff): number {
  if (compared === 0 && problems.length === 0) return EXIT.query
  const code = divergence === null ? EXIT.ok : EXIT.findings
  return problems.length > 0 ? heavier(code, EXIT.format) : code
}

function caseOf(verdict: Verdict, { differences, problems }: TrialDiff): Case {
  const results = differences.map(({ tensor, step, worker, message }) => ({
    message: `step ${step}: ${tensor}: ${message}`,
    ...{ tensor, step, worker },
  }))
  return verdictCase('no difference', verdict, results, problems.join('\n'))
}

/** One JSON object: the verdict, every difference, and the tensors that only one run has. */
function jsonObject(
  trials: readonly string[],
  verdict: Verdict,
  { divergence, differences, problems, compared, equal, reduced, logged, tied }: TrialDiff,
  lacking: readonly DifferenceAt[],
): string {
  const head = JSON.stringify({
    trials,
    ...verdictFields(verdict),
    compared,
    equal,
    reduced,
    not_compared: logged,
  }).slice(0, -1)
  const list = (differences: readonly DifferenceAt[]) => `[${differences.map(objectOf).join(',')}]`
  const first = divergence === null ? 'null' : objectOf(divergence)
  const heads = tied.map(({ tensor, only, tiedTo, count }) => ({ tensor, only, tied_to: tiedTo, count }))
  const tail = `"missing":${list(lacking)},"tied":${JSON.stringify(heads)},"problems":${JSON.stringify(problems)}`
  return `${head},"divergence":${first},"differences":${list(differences)},${tail}}`
}

/** @throws UsageError for options that don't go together */
function expectUse(paths: readonly string[], { workers, follow, timeout, poll, ...flags }: DiffFlags): void {
  const expected = workers ? 1 : 2
  if (paths.length !== expected) {
    throw new UsageError(`expected ${workers ? 'one trial beside --workers' : 'two trials'}, got ${paths.length}`)
  }
  const others = (['map', 'noise', 'unify', 'bisect'] as const).filter(name => flags[name] !== undefined)
  if (workers && (follow || others.length > 0)) {
    throw new UsageError(`expected --workers without --${follow ? 'follow' : others[0]}, which is about two runs`)
  }
  if ((timeout !== undefined || poll !== undefined) && !follow) {
    throw new UsageError(`expected --follow beside --${timeout === undefined ? 'poll' : 'timeout'}: nothing else waits`)
  }
  if (flags.tolerance !== undefined && (flags.rtol ?? flags.atol) !== undefined) {
    throw new UsageError('expected either --tolerance, or --rtol and --atol, got both')
  }
}

function nothingCompared(a: Trial, b: Trial, flags: DiffFlags, { suggestions, steps }: TrialDiff): string {
  if (isSelective(flags)) return nothingSelected(a, flags)
  if (flags.workers) return 'no two workers have a tensor in common'
  const [ofA, ofB] = [a.workers(), b.workers()]
  if (ofA.length * ofB.length > 1 && flags.unify === undefined && !ofA.some(worker => ofB.includes(worker))) {
    return `the workers of the two have no name in common: the first has ${shortList(ofA, MAX_NAMED)}, the second ${shortList(ofB, MAX_NAMED)}. --unify FILE puts together what is split among workers, and takes copies once`
  }
  if (isAdapter(a) !== isAdapter(b)) {
    return `the ${isAdapter(a) ? 'first' : 'second'} is an adapter, which has none of the tensors of a model: merge it into its base (peft: merge_and_unload), or compare two adapters`
  }
  if (steps.both === 0) {
    const hint = a.checkpoint && b.checkpoint ? '; of a run, name the checkpoint that is meant: RUN/checkpoint-500' : ''
    return `no step is in both: the first has ${shortList(a.steps())}, the second ${shortList(b.steps())}${hint}`
  }
  const hint = suggestions.length === 0 ? '' : `, such as ${mapText(suggestions.slice(0, 3))}`
  return `the trials have no tensor at a step in common. If names differ, use --map${hint}.`
}

/** True if all weights of a trial are those of an adapter. */
function isAdapter(trial: Trial): boolean {
  const adapters = new Set(trial.collections().get('adapters')?.members)
  const logged = new Set(trial.collections().get('scalars')?.members)
  const weights = trial.tensorNames().filter(name => isParameter(name) && !logged.has(name))
  return adapters.size > 0 && weights.every(name => adapters.has(name))
}

/** Notes on facts that the lines and columns of differences lack. */
function* lackNotes(result: TrialDiff): Generator<string> {
  const { missing, steps, bisection, problems } = result
  if (missing > 0) {
    const rest = missing - MAX_MISSING
    const more = rest > 0 ? `; ${countText(rest)} of them are not listed` : ''
    yield `${counted(missing, 'tensor value')} ${missing === 1 ? 'was' : 'were'} not compared (kind: missing)${more}`
  }
  yield* wayNotes(result)
  const { onlyA, onlyB } = steps
  if (onlyA.length > 0) yield `only the first run has ${counted(onlyA.length, 'more step')}`
  if (onlyB.length > 0) yield `only the second run has ${counted(onlyB.length, 'more step')}`
  if (bisection !== null) yield halvingText(bisection, problems.length > 0)
}

function writerOf(
  output: Output,
  format: FormatOf<'diff'>,
  onTerminal: boolean,
  isPrompt: boolean,
): Writer | TableWriter {
  if (format === 'parquet' || format === 'arrow') return new TableWriter(output, format)
  return new Writer(output, format, onTerminal, isPrompt)
}

/** The writer of differences as a table, while they are found. */
class TableWriter {
  #missing = 0
  readonly #table = new DifferenceTable()
  readonly #written: Promise<void>

  constructor(output: Output, format: 'parquet' | 'arrow') {
    const write = async () => {
      for await (const bytes of this.#table.bytes(format)) await output.writeBytes(bytes)
    }
    this.#written = write()
    this.#written.catch(() => {})
  }

  add(difference: DifferenceAt): void {
    this.#table.add(difference)
  }

  addMissing(missing: DifferenceAt): void {
    if (this.#missing++ < MAX_MISSING) this.#table.add(missing)
  }

  end(): Promise<void> {
    this.#table.end()
    return this.#written
  }
}

/** The writer of differences as they come. The first is the divergence. */
class Writer {
  readonly #lines: Lines
  readonly #format: FormatOf<'diff'>
  readonly #onTerminal: boolean
  #isBegun = false
  /** The differences before the divergence, which are written after it. */
  readonly #held: DifferenceAt[] = []
  #missing = 0

  constructor(output: Output, format: FormatOf<'diff'>, onTerminal: boolean, isPrompt: boolean) {
    this.#lines = new Lines(output, isPrompt)
    this.#format = format
    this.#onTerminal = onTerminal
  }

  add(difference: DifferenceAt): void {
    this.#begin(difference)
    this.#line(difference)
    for (const missing of this.#held.splice(0)) this.#line(missing)
  }

  addMissing(missing: DifferenceAt): void {
    if (this.#missing++ >= MAX_MISSING) return
    if (this.#isBegun) this.#line(missing)
    else this.#held.push(missing)
  }

  #line(difference: DifferenceAt): void {
    this.#write(
      this.#format === 'csv' ? csvLine(cellsOf(difference), this.#onTerminal) : this.#json(objectOf(difference)),
    )
  }

  async end(result: TrialDiff): Promise<void> {
    this.#begin(null, result)
    for (const missing of this.#held.splice(0)) this.#line(missing)
    await this.#lines.done()
  }

  /** @param result without a divergence, how much was compared */
  #begin(divergence: DifferenceAt | null, result?: TrialDiff): void {
    if (this.#isBegun) return
    this.#isBegun = true
    const reduced = result?.reduced ? `,"reduced":${result.reduced}` : ''
    const tally = result === undefined ? '' : `,"compared":${result.compared},"equal":${result.equal}${reduced}`
    this.#write(
      this.#format === 'csv'
        ? csvLine(COLUMN_NAMES, this.#onTerminal)
        : this.#json(`{"divergence":${divergence ? objectOf(divergence) : 'null'}${tally}}`),
    )
  }

  #json(json: string): string {
    return `${this.#onTerminal ? safeJson(json) : json}\n`
  }

  #write(text: string): void {
    // `end` reports the error.
    this.#lines.write(text).catch(() => {})
  }
}

/** A difference as JSON, with NaN and infinities as texts. */
function objectOf(difference: DifferenceAt): string {
  let json = ''
  for (const { name, of } of DIFFERENCE_COLUMNS) {
    const cell = of(difference)
    const isSame =
      (name === 'other_tensor' && cell === difference.tensor) ||
      (name === 'other_worker' && cell === difference.worker) ||
      (name === 'other_step' && cell === difference.step) ||
      (name === 'other_dtype' && cell === difference.difference?.dtype)
    // `element` is written as null where there is no element, so that each line has the key.
    const isLeftOut =
      isSame || (cell === null && (name === 'noise' || difference.difference === null) && name !== 'element')
    if (isLeftOut) continue
    json += `${json === '' ? '{' : ','}"${name}":${typeof cell === 'number' ? jsonNumber(cell) : JSON.stringify(cell)}`
  }
  return `${json}}`
}

function cellsOf(difference: DifferenceAt): string[] {
  return DIFFERENCE_COLUMNS.map(({ of }) => {
    const cell = of(difference)
    return cell === null ? '' : typeof cell === 'object' ? cell.join('x') : String(cell)
  })
}
