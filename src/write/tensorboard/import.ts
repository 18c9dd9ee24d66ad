/** Imports TensorBoard runs as an smdebug trial with an index. docs/tensorboard.md describes the mapping. */

import { EngineError, FormatError, type TrialscanError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { REDUCTIONS, type ReductionName, type Worker } from '../../base/types.js'
import { isTensorBoardFile } from '../../format/paths.js'
import type { ScanRow } from '../../scan/job/row.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { Store } from '../../storage/store.js'
import { damageAmong, type ScanSelection, SELECTION_KINDS, selectItems } from '../../trial/scan-selection.js'
import { expectTrial, stateOf, type Trial } from '../../trial/trial.js'
import { readValues, type SavedValue } from '../../trial/values.js'
import type { WriterOptions } from '../options.js'
import { createWriter, type TrialWriter } from '../writer.js'
import { bucketsName, HISTOGRAMS } from './buckets.js'
import { addLeftOut, LeftOut, type LeftOutSummary, mediaOf } from './left-out.js'
import { Problems } from './problems.js'
import { type PartOfTrial, partsOfTrial } from './workers.js'

export interface ImportOptions extends ScanSelection {
  /** True for true checksums of records. Default: false, which writes smdebug's constant. */
  readonly checksums?: boolean
  /** Region, endpoint and credentials for a trial on S3. */
  readonly s3?: S3Options | undefined
}

/** The result for one run. */
export interface ImportedRun extends PartOfTrial {
  readonly run: string
}

/** The result of an import. */
export interface TensorBoardImport {
  readonly runs: readonly ImportedRun[]
  readonly steps: number
  readonly tensors: number
  /** The values that a trial can't hold, by kind; for a selection, only those written as tensors. */
  readonly leftOut: readonly LeftOutSummary[]
  /** The first hundred values that could not be read or saved, with the reason. */
  readonly problems: readonly TrialscanError[]
  readonly problemCount: number
}

const IMPORT_OPTIONS = optionsOf<ImportOptions>({ ...SELECTION_KINDS, checksums: kinds.flag, s3: S3_OPTIONS })

/** The collections of an imported trial, by patterns of tags. Scalars belong to `scalars`, buckets to `histograms`. */
const COLLECTIONS: Readonly<Record<string, RegExp>> = {
  gradients: /^gradient/,
  weights: /^(?!gradient).*(weight|kernel)/,
  biases: /^(?!gradient).*bias/,
  losses: /^(?!gradient).*loss/i,
}

/**
 * Writes TensorBoard runs as a trial with an index: each step with its tensors and wall times. What can't be read is a problem, and
 * everything else is written.
 * @param runs a log directory or a run, opened with `createTrial`
 * @param out a directory, or `s3://bucket/prefix`
 * @param options the selection, as for `trial.scan`; all checksums are verified, unless `checkLevel` says otherwise
 * @throws what `trial.scan` and `createWriter` throw; UsageError for a trial that is not TensorBoard's; StoreError
 */
export async function importTensorBoard(runs: Trial, out: string, options?: ImportOptions): Promise<TensorBoardImport> {
  expectTrial('importTensorBoard', runs)
  // Damaged data must not get an index that presents them as intact.
  const settings = checkOptions('importTensorBoard', IMPORT_OPTIONS, options)
  const { checksums = false, checkLevel = 'full', s3, ...given } = settings
  const selection: ScanSelection = { ...given, checkLevel }
  const state = stateOf(runs)
  if (!state.contents.isTensorBoard) {
    throw new UsageError(`${runs.path}: expected event files of TensorBoard, got a trial`, { path: runs.path })
  }
  // Runs may grow during the import.
  return runs.withoutRefresh(async () => {
    const steps = new Map<string, Set<number>>()
    for (const { workerStep } of selectItems(state, runs.name, selection)) {
      const { worker, step } = workerStep
      const known = steps.get(worker)
      if (known === undefined) steps.set(worker, new Set([step]))
      else known.add(step)
    }
    const writing = { checksums, s3 }
    const importer = new Importer(out, partsOfTrial(steps, runs.name), writing, state.access.store.url(''))
    try {
      await importer.addAll(runs, selection)
      if (!isSelective(selection)) {
        await addLeftOut(importer.leftOut, state.access, await eventFilesOf(state.access.store))
      }
      return await importer.finish()
    } catch (error) {
      await importer.giveUp()
      throw error
    }
  })
}

function isSelective(selection: ScanSelection): boolean {
  const { signal: _s, checkLevel: _c, threads: _t, memory: _m, ...places } = selection
  return Object.values(places).some(value => value !== undefined)
}

async function eventFilesOf(store: Store): Promise<readonly string[]> {
  return (await store.list('', { recursive: true })).filter(isTensorBoardFile)
}

class Importer {
  readonly #out: string
  readonly #parts: ReadonlyMap<string, PartOfTrial>
  readonly #options: WriterOptions
  readonly #url: string
  readonly #writers = new Map<Worker, TrialWriter>()
  readonly leftOut = new LeftOut()
  readonly #problems = new Problems()
  #steps = 0
  #tensors = 0

  constructor(out: string, parts: ReadonlyMap<string, PartOfTrial>, options: WriterOptions, url: string) {
    this.#url = url
    this.#out = out
    this.#parts = parts
    this.#options = options
  }

  async addAll(runs: Trial, selection: ScanSelection): Promise<void> {
    // Both have the same tensors in the same order.
    const values = readValues(runs, selection)
    const rows = runs.scan({ ...selection, reductions: 'all', wallTimes: true })
    for await (const row of rows) {
      const { value } = await values.next()
      if (value?.tensor !== row.tensor || value.step !== row.step || value.worker !== row.worker) {
        throw new EngineError(`expected the value of ${row.tensor} at step ${row.step}, got another`)
      }
      await this.#add(row, value)
    }
    for (const problem of damageAmong(rows.problems)) this.#problems.add(problem)
  }

  async finish(): Promise<TensorBoardImport> {
    // The first that is closed ends the trial: the steps of all are there before.
    for (const writer of this.#writers.values()) await writer.flush()
    for (const writer of this.#writers.values()) await writer.close()
    const runs = [...this.#parts].map(([run, part]) => ({ run, ...part }))
    const [steps, tensors] = [this.#steps, this.#tensors]
    return { runs, steps, tensors, leftOut: this.leftOut.summaries, ...this.#problems.report }
  }

  async #add(row: ScanRow, { value, error }: SavedValue): Promise<void> {
    const { tensor, step } = row
    const fault = error ?? row.error
    if (fault !== undefined) this.#problems.add(fault)
    if (tensor === null || value === null) return
    const isBytes = value.dtype === 'string' && (value.data as readonly string[]).some(text => text.includes('\ufffd'))
    const media = isBytes ? mediaOf(value.data as readonly string[]) : null
    if (media !== null) {
      this.leftOut.add(media, tensor)
      return
    }
    if (step < 0) {
      const message = `${this.#url}, ${tensor} at step ${step}: expected a step from 0 on, as trials have, got one below`
      this.#problems.add(new FormatError('BadStep', message, { url: this.#url, tensor, step }))
      return
    }
    const { worker, mode } = this.#parts.get(row.worker)!
    const writer = this.#writers.get(worker) ?? (await this.#begin(worker))
    if (writer.globalStep !== step) {
      writer.setMode(mode)
      await writer.step({ step, saveAll: true })
      this.#steps++
    }
    try {
      if (isBytes) {
        const message = `${this.#url}, ${tensor} at step ${step}: expected texts, got bytes that are none`
        throw new FormatError('BadText', message, { url: this.#url, tensor, step })
      }
      await saveValue(writer, tensor, value, row)
      this.#tensors++
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof FormatError)) throw error
      this.#problems.add(error)
    }
  }

  /** Ends the import after a failure. What came before is a trial that has not ended; an error of closing it is ignored. */
  async giveUp(): Promise<void> {
    for (const writer of this.#writers.values()) {
      await writer.giveUpStep().catch(() => {})
      await writer.flush().catch(() => {})
    }
  }

  async #begin(worker: Worker): Promise<TrialWriter> {
    const numWorkers = new Set([...this.#parts.values()].map(({ worker }) => worker)).size
    const names = [...Object.keys(COLLECTIONS), 'scalars', HISTOGRAMS]
    const writer = await createWriter(this.#out, {
      ...this.#options,
      // This framework has no patterns that could match names of buckets.
      framework: 'tfjs',
      collections: Object.fromEntries(names.map(name => [name, {}])),
      worker,
      numWorkers,
    })
    this.#writers.set(worker, writer)
    return writer
  }
}

async function saveValue(writer: TrialWriter, tensor: string, value: TensorValue, row: ScanRow): Promise<void> {
  const { wallTime: timestamp = 0 } = row
  const isNumber = value.shape.length === 0 && value.dtype !== 'string'
  const collection = Object.keys(COLLECTIONS).filter(
    name => (name !== 'losses' || isNumber) && COLLECTIONS[name]!.test(tensor),
  )
  if (row.saved) {
    // The reductions of a histogram are those of the numbers that it was made from.
    const known = realOf(row)
    if (Object.keys(known).length > 0) await writer.saveReductions(tensor, known, { collection, timestamp })
    await writer.save(bucketsName(tensor), value, { collection: HISTOGRAMS, timestamp })
  } else await writer.save(tensor, value, { collection: isNumber ? ['scalars', ...collection] : collection, timestamp })
}

function realOf({ reductions }: ScanRow): Partial<Record<ReductionName, number>> {
  return Object.fromEntries(
    REDUCTIONS.flatMap(name => (typeof reductions[name] === 'number' ? [[name, reductions[name]] as const] : [])),
  )
}
