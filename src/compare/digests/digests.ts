/** A trial beside a list of digests that was made elsewhere. */

import { quote, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { DIGESTS, type DigestName } from '../../base/types.js'
import { isSameShape } from '../../format/index-file.js'
import { type ScanRow, shapeText } from '../../scan/job/row.js'
import type { ScanProgress } from '../../scan/rows/scan.js'
import { type ScanSelection, SELECTION_KINDS, selectItems } from '../../trial/scan-selection.js'
import { expectTrial, stateOf, type Trial } from '../../trial/trial.js'
import { type DigestListFault, type DigestListSource, digestLines, isDigestSource, type ListedTensor } from './list.js'

/**
 * - crc32c, sha256: elements differ
 * - dtype, shape: these differ, whatever the elements
 * - missing: the list has it, the trial doesn't
 * - unlisted: the trial has it, the list doesn't
 * - unreadable: it can't be read
 */
export type DigestDifferenceKind = DigestName | 'dtype' | 'shape' | 'missing' | 'unlisted' | 'unreadable'

/** A tensor that is not as a list says. */
export interface DigestDifference {
  readonly kind: DigestDifferenceKind
  /** Null for an index file that can't be read. */
  readonly tensor: string | null
  /** The trial's; of a missing tensor the list's, null where it says nothing of them. */
  readonly step: number | null
  readonly worker: string | null
  /** The line of the list, from 1 on; null for none. */
  readonly line: number | null
  /** By the list, and by the trial. */
  readonly expected: string
  readonly got: string
}

export interface DigestComparison {
  /** The digests that the list has. */
  readonly digests: readonly DigestName[]
  /** Tensors, each at each step and of each worker, that list and trial have; and how many of them are equal. */
  readonly compared: number
  readonly equal: number
  /** The number of differences of each kind. */
  readonly counts: Readonly<Partial<Record<DigestDifferenceKind, number>>>
  /** In the order of the scan, then what is missing: 10,000 at most. */
  readonly differences: readonly DigestDifference[]
  /** Lines that are wrong: 100 at most, and how many there are. */
  readonly faults: readonly DigestListFault[]
  readonly faultCount: number
  /** Facts that are no differences: a list of another step, for one. */
  readonly notes: readonly string[]
}

export interface DigestOptions extends ScanSelection {
  /** Called with every difference, also those beyond 10,000. */
  readonly onDifference?: (difference: DigestDifference) => void
  readonly callerWorks?: boolean
  readonly onProgress?: (progress: ScanProgress) => void
}

const OPTIONS = optionsOf<DigestOptions>({
  ...SELECTION_KINDS,
  onDifference: kinds.callback(),
  callerWorks: kinds.flag,
  onProgress: kinds.callback(),
})

const MAX_DIFFERENCES = 10_000
const MAX_FAULTS = 100

/**
 * Compares the tensors of a trial with a list of digests. Each is read once.
 * @param list its text: see docs/checkpoints.md. Lines that are wrong are told, and count for nothing
 * @throws as `trial.scan`
 */
export async function compareDigests(
  trial: Trial,
  list: DigestListSource,
  options?: DigestOptions,
): Promise<DigestComparison> {
  expectTrial('compareDigests', trial)
  const { onDifference, callerWorks, onProgress, ...selection } = checkOptions('compareDigests', OPTIONS, options)
  const check = await DigestCheck.open(trial, list, selection, onDifference)
  if (check.digests.length > 0) {
    const reading = { ...(callerWorks && { callerWorks }), ...(onProgress && { onProgress }) }
    for await (const row of trial.scan({ ...selection, ...reading, reductions: check.digests })) check.check(row)
    check.finish()
  }
  return check.result
}

/** The rows of a scan, held against a list. */
export class DigestCheck {
  /** The digests that a scan must compute. */
  readonly digests: readonly DigestName[]
  readonly #list: Listed
  readonly #selected: Selected
  readonly #onDifference: ((difference: DigestDifference) => void) | undefined
  readonly #counts: Partial<Record<DigestDifferenceKind, number>> = {}
  readonly #differences: DigestDifference[] = []
  #equal = 0
  #compared = 0

  private constructor(list: Listed, selected: Selected, onDifference?: (difference: DigestDifference) => void) {
    this.digests = DIGESTS.filter(name => list.digests.has(name))
    this.#list = list
    this.#selected = selected
    this.#onDifference = onDifference
  }

  /** Reads a list. Of tensors that the trial does not have, the first are kept. */
  static async open(
    trial: Trial,
    source: DigestListSource,
    selection: ScanSelection = {},
    onDifference?: (difference: DigestDifference) => void,
  ): Promise<DigestCheck> {
    if (!isDigestSource(source)) {
      throw new UsageError(`expected the text of a digest list, or pieces of it, got ${quote(String(source))}`)
    }
    const selected = new Selected(trial, selection)
    return new DigestCheck(await listedIn(source, selected), selected, onDifference)
  }

  check(row: ScanRow): void {
    const { tensor, step, worker, dtype, shape, reductions, error } = row
    const key = this.#selected.keyOf(tensor ?? '', step, worker)
    const listed = tensor === null ? undefined : this.#list.tensors.get(key)
    this.#list.tensors.delete(key)
    const tell = (kind: DigestDifferenceKind, expected: string, got: string): void =>
      this.#tell({ kind, tensor, step, worker, line: listed?.line ?? null, expected, got })
    if (error !== undefined) {
      tell('unreadable', listed ? digestText(listed.digests) : 'none', error.message)
      return
    }
    const has = this.digests.some(name => reductions[name] !== undefined)
    if (listed === undefined) {
      // Strings and saved reductions have none, in lists neither.
      if (has) tell('unlisted', 'none', digestText(reductions))
      return
    }
    this.#compared++
    const wrong = STRONGEST_FIRST.find(name => (listed.digests[name] ?? reductions[name]) !== reductions[name])
    if (dtype !== listed.dtype || !has) tell('dtype', listed.dtype, dtype ?? 'saved reductions')
    else if (!isSameShape(shape!, listed.shape)) tell('shape', shapeText(listed.shape), shapeText(shape))
    else if (wrong !== undefined) tell(wrong, listed.digests[wrong]!, reductions[wrong]!)
    else this.#equal++
  }

  /** Tells what the scan had no row of. Called when it has ended. */
  finish(): void {
    for (const listed of [...this.#list.tensors.values(), ...this.#list.unknown]) {
      if (this.#selected.means(listed)) this.#tell(missing(listed))
    }
    const untold = this.#list.unknownCount - this.#list.unknown.length
    if (untold > 0) this.#counts.missing = (this.#counts.missing ?? 0) + untold
  }

  get result(): DigestComparison {
    const { faults, faultCount } = this.#list
    return {
      digests: this.digests,
      compared: this.#compared,
      equal: this.#equal,
      counts: this.#counts,
      differences: this.#differences,
      faults,
      faultCount,
      notes: this.#selected.notes,
    }
  }

  #tell(difference: DigestDifference): void {
    this.#counts[difference.kind] = (this.#counts[difference.kind] ?? 0) + 1
    if (this.#differences.length < MAX_DIFFERENCES) this.#differences.push(difference)
    this.#onDifference?.(difference)
  }
}

const STRONGEST_FIRST = [...DIGESTS].reverse()

function missing({ tensor, step, worker, line, digests }: ListedTensor): DigestDifference {
  return { kind: 'missing', tensor, step, worker, line, expected: digestText(digests), got: 'none' }
}

/** The strongest of digests, and its name. */
function digestText(digests: Readonly<Partial<Record<DigestName, string>>>): string {
  const name = STRONGEST_FIRST.find(name => digests[name] !== undefined)
  return name === undefined ? 'none' : `${name} ${digests[name]}`
}

/** A list, as far as it is held against a trial. */
type Listed = Awaited<ReturnType<typeof listedIn>>

async function listedIn(source: DigestListSource, selected: Selected) {
  const known: ListedTensor[] = []
  // The first of the tensors that the trial does not have.
  const unknown: ListedTensor[] = []
  const digests = new Set<DigestName>()
  const faults: DigestListFault[] = []
  const [steps, workers] = [new Set<number>(), new Set<string>()]
  let [unknownCount, faultCount] = [0, 0]
  const fault = (entry: DigestListFault): void => {
    if (faultCount++ < MAX_FAULTS) faults.push(entry)
  }
  for await (const line of digestLines(source)) {
    if ('expected' in line) {
      fault(line)
      continue
    }
    for (const name of DIGESTS) if (line.digests[name] !== undefined) digests.add(name)
    // It matters only if there are several.
    if (line.step !== null && steps.size < 2) steps.add(line.step)
    if (line.worker !== null && workers.size < 2) workers.add(line.worker)
    if (selected.names.has(line.tensor)) known.push(line)
    else if (!selected.isPart && unknownCount++ < MAX_DIFFERENCES) unknown.push(line)
  }
  selected.pair(steps, workers)
  const tensors = new Map<string, ListedTensor>()
  for (const digest of known) {
    const { line, tensor } = digest
    const lacking = selected.lacks(digest)
    if (lacking !== null) {
      fault({ line, expected: `${lacking}, since the trial has several`, got: 'none' })
      continue
    }
    const key = selected.keyOf(tensor, digest.step, digest.worker)
    const first = tensors.get(key)
    if (first === undefined) tensors.set(key, digest)
    else fault({ line, expected: 'each tensor once', got: `${quote(tensor)} again, as in line ${first.line}` })
  }
  return { tensors, unknown, unknownCount, digests, faults, faultCount }
}

/** The selection of a trial, and the way in which steps and workers of a list are matched with its own. */
class Selected {
  readonly names = new Set<string>()
  readonly notes: string[] = []
  /** True if the trial may have more than is selected. */
  readonly isPart: boolean
  readonly #steps = new Set<number>()
  readonly #workers = new Set<string>()
  /** True if these tell nothing: there is one in the list, or none, and one in the trial. */
  #isAnyStep = false
  #isAnyWorker = false

  constructor(trial: Trial, selection: ScanSelection) {
    const { tensors, collection, steps, modeSteps, mode, workers } = selection
    this.isPart = [tensors, collection, steps, modeSteps, mode, workers].some(Boolean)
    for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
      if (saved === null) continue
      this.names.add(saved.tensor)
      this.#steps.add(workerStep.step)
      this.#workers.add(workerStep.worker)
    }
  }

  /** Decides how to match, once the steps and workers of the list are known, two of each if there are several. */
  pair(steps: ReadonlySet<number>, workers: ReadonlySet<string>): void {
    this.#isAnyStep = this.#steps.size === 1 && steps.size < 2
    this.#isAnyWorker = this.#workers.size === 1 && workers.size < 2
    const [[step], [worker], [listedStep], [listedWorker]] = [this.#steps, this.#workers, steps, workers] as const
    if (this.#isAnyStep && listedStep !== undefined && listedStep !== step) {
      this.notes.push(`the list is of step ${listedStep}, the trial of step ${step}`)
    }
    if (this.#isAnyWorker && listedWorker !== undefined && listedWorker !== worker) {
      this.notes.push(`the list is of ${quote(listedWorker)}, the trial of ${quote(worker!)}`)
    }
  }

  /** The place that a line must name and does not; null for none. */
  lacks({ step, worker }: ListedTensor): 'step' | 'worker' | null {
    if (step === null && !this.#isAnyStep && this.#steps.size > 1) return 'step'
    return worker === null && !this.#isAnyWorker && this.#workers.size > 1 ? 'worker' : null
  }

  keyOf(tensor: string, step: number | null, worker: string | null): string {
    const ofStep = this.#isAnyStep ? '' : (step ?? [...this.#steps][0])
    const ofWorker = this.#isAnyWorker ? '' : (worker ?? [...this.#workers][0])
    return JSON.stringify([ofStep, ofWorker, tensor])
  }

  /** True for a line that is about something selected. */
  means({ step, worker }: ListedTensor): boolean {
    if (!this.isPart) return true
    const isStep = this.#isAnyStep || step === null || this.#steps.has(step)
    return isStep && (this.#isAnyWorker || worker === null || this.#workers.has(worker))
  }
}
