/** Exports a trial for TensorBoard: scalars, and histograms of everything else. docs/tensorboard.md describes the mapping. */

import { QueryError, ReductionUndefined, type TrialscanError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { type Mode, REDUCTIONS, type StatisticName, type Worker } from '../../base/types.js'
import { isDefined } from '../../core/moments.js'
import { Distribution } from '../../core/statistics/distribution.js'
import { isDigestName, isHistogramName } from '../../core/statistics/statistic.js'
import type { ScanRow } from '../../scan/job/row.js'
import type { ScanProgress } from '../../scan/rows/scan.js'
import { Destination } from '../../storage/destination.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import { parseReductions } from '../../trial/reduction.js'
import { damageAmong, isNames, type ScanSelection, SELECTION_KINDS } from '../../trial/scan-selection.js'
import { expectTrial, type Trial } from '../../trial/trial.js'
import { HISTOGRAMS, isBuckets, tagOfBuckets } from './buckets.js'
import { type HistogramSums, histogramOf, histogramOfRows } from './histogram.js'
import { imagesOf, imageTag, layoutOf } from './image.js'
import { Problems } from './problems.js'
import { RunFile, runDirectory } from './run.js'
import type { Summary } from './summary.js'

export interface TensorBoardOptions extends ScanSelection {
  /** Reductions, counts and percentiles of each tensor over the steps, as scalars `NAME/REDUCTION`. Default: none. */
  readonly reductions?: readonly StatisticName[] | 'all'
  /** True to write tensors of several elements as histograms. Default: true. */
  readonly histograms?: boolean
  /** True to also write tensors with the shape of pictures as images, as `NAME/image/0` and so on. Default: false. */
  readonly images?: boolean
  /** Region, endpoint and credentials for runs on S3. */
  readonly s3?: S3Options | undefined
  readonly onProgress?: (progress: ScanProgress) => void
}

/** A run: the tensors of a worker in a mode. */
export interface TensorBoardRun {
  /** The run's name in TensorBoard. */
  readonly run: string
  readonly worker: Worker
  readonly mode: Mode
  /** The run's event file, relative to the directory. */
  readonly path: string
  readonly byteLength: number
  readonly scalars: number
  readonly histograms: number
  readonly images: number
}

/** The result of an export. */
export interface TensorBoardExport {
  readonly runs: readonly TensorBoardRun[]
  /** The number of tensors (counted per step) that TensorBoard has no form for: texts, complex numbers, nothing but NaN. */
  readonly leftOutCount: number
  /** The first hundred read errors; an unreadable file is listed once, with the number of tensors in it. */
  readonly problems: readonly TrialscanError[]
  readonly problemCount: number
}

const TENSORBOARD_OPTIONS = optionsOf<TensorBoardOptions>({
  ...SELECTION_KINDS,
  reductions: kinds.that("names of reductions in an array, or 'all'", isNames),
  histograms: kinds.flag,
  images: kinds.flag,
  s3: S3_OPTIONS,
  onProgress: kinds.callback(),
})

/**
 * Writes a trial as TensorBoard runs: one for each worker and mode. They appear when all of it has been read.
 * @param directory the log directory, or `s3://bucket/prefix`; it must not contain such runs
 * @param options the selection, as for `trial.scan`. A tensor that can't be read is a problem, and all others are written
 * @throws what `trial.scan` throws; UsageError if a run exists; StoreError
 */
export async function exportTensorBoard(
  trial: Trial,
  directory: string,
  options?: TensorBoardOptions,
): Promise<TensorBoardExport> {
  expectTrial('exportTensorBoard', trial)
  const settings = checkOptions('exportTensorBoard', TENSORBOARD_OPTIONS, options)
  const { reductions: given = [], histograms = true, images = false, s3, ...selection } = settings
  const reductions = parseReductions(given)
  const wrong = reductions.find(name => name === 'sketch' || isHistogramName(name) || isDigestName(name))
  if (wrong !== undefined) {
    throw new UsageError(`exportTensorBoard: expected reductions that are numbers, got ${wrong}`, { reduction: wrong })
  }
  const names = new Set<StatisticName>([...REDUCTIONS, ...reductions, ...(histograms ? (['sketch'] as const) : [])])
  const rows = trial.scan({ ...selection, reductions: [...names], wallTimes: true })
  const destination = Destination.at(directory, s3)
  const runs = new Runs(trial, destination, { reductions, histograms, images })
  try {
    for await (const row of rows) await runs.add(row)
    return await runs.finish(damageAmong(rows.problems))
  } catch (error) {
    await runs.abandon()
    throw error
  } finally {
    await destination.close()
  }
}

type SummaryKind = 'scalar' | 'histogram' | 'reduction' | 'image'

/** The event for a row. */
interface RowSummary {
  readonly kind: SummaryKind
  readonly tag: string
  readonly summary: Summary
}

/** A run that is being written. */
interface OpenRun {
  readonly run: string
  readonly worker: Worker
  readonly mode: Mode
  readonly file: RunFile
  /** The kind of each tag. TensorBoard shows only one kind per tag. */
  readonly kinds: Map<string, SummaryKind>
  scalars: number
  histograms: number
  images: number
}

interface RunSettings {
  readonly reductions: readonly StatisticName[]
  readonly histograms: boolean
  readonly images: boolean
}

class Runs {
  readonly #trial: Trial
  readonly #destination: Destination
  readonly #settings: RunSettings
  readonly #isSingle: boolean
  /** The tensors with histogram buckets, in an imported trial. */
  readonly #buckets: ReadonlySet<string>
  readonly #runs = new Map<string, OpenRun>()
  readonly #problems = new Problems()
  #leftOutCount = 0

  constructor(trial: Trial, destination: Destination, settings: RunSettings) {
    this.#trial = trial
    this.#destination = destination
    this.#settings = settings
    this.#isSingle = trial.workersWithData().length === 1
    const imported = trial.collections().get(HISTOGRAMS)
    this.#buckets = new Set([...(imported?.members ?? [])].filter(isBuckets))
  }

  async add(row: ScanRow): Promise<void> {
    const { tensor, step, wallTime = 0, error } = row
    // A reduction that is undefined for complex numbers is no problem.
    const isFault = error !== undefined && !(error instanceof ReductionUndefined)
    if (isFault) this.#problems.add(error)
    if (tensor === null) return
    const summaries = await this.#summariesOf(row, tensor)
    if (summaries.length === 0 && !isFault) this.#leftOutCount++
    for (const { kind, tag, summary } of summaries) {
      const run = await this.#runOf(row)
      if (kind === 'histogram') run.histograms++
      else if (kind === 'image') run.images++
      else run.scalars++
      const known = run.kinds.get(tag)
      if (known === undefined) run.kinds.set(tag, kind)
      const place = { wallTime, step, tag: known === undefined || known === kind ? tag : `${tag}/${kind}` }
      const written = run.file.add(place, summary)
      if (written !== null) await written
    }
  }

  async finish(problems: readonly TrialscanError[]): Promise<TensorBoardExport> {
    for (const problem of problems) this.#problems.add(problem)
    const runs: TensorBoardRun[] = []
    for (const { run, worker, mode, file, scalars, histograms, images } of this.#runs.values()) {
      const byteLength = await file.finish()
      runs.push({ run, worker, mode, path: file.path, byteLength, scalars, histograms, images })
    }
    return { runs, leftOutCount: this.#leftOutCount, ...this.#problems.report }
  }

  async abandon(): Promise<void> {
    for (const { file } of this.#runs.values()) await file.abandon()
  }

  /** The summaries that TensorBoard can show of a row. */
  async #summariesOf(row: ScanRow, tensor: string): Promise<readonly RowSummary[]> {
    const { reductions, saved, moments, dtype } = row
    const summaries: RowSummary[] = []
    if (moments !== undefined && moments.count === 1 && isDefined('max', moments.dtype)) {
      summaries.push({ kind: 'scalar', tag: tensor, summary: { scalar: Number(reductions.max) } })
    } else if (this.#settings.histograms) {
      const histogram = await this.#histogramOf(row, tensor)
      const tag = this.#buckets.has(tensor) ? tagOfBuckets(tensor) : tensor
      if (histogram !== null) summaries.push({ kind: 'histogram', tag, summary: { histogram } })
    }
    if (this.#settings.images && moments !== undefined) summaries.push(...(await this.#imagesOf(row, tensor)))
    // If only reductions of a tensor were saved, these are exported.
    const isReduced = saved && dtype === null
    const wanted = this.#settings.reductions
    const names = wanted.length === 0 && isReduced ? REDUCTIONS : wanted
    for (const name of names) {
      const value = reductions[name]
      if (typeof value !== 'number') continue
      summaries.push({ kind: 'reduction', tag: `${tensor}/${name}`, summary: { scalar: value } })
    }
    return summaries
  }

  async #histogramOf({ reductions, saved, moments, dtype, step, worker }: ScanRow, tensor: string) {
    const isImported = this.#buckets.has(tensor)
    if (moments !== undefined && !isImported) {
      return reductions.sketch instanceof Distribution ? histogramOf(moments, reductions.sketch) : null
    }
    // Rows of another dtype are no imported buckets.
    if ((!saved && !isImported) || dtype !== 'float64') return null
    const [{ data }, sums] = await Promise.all([
      this.#trial.tensor(tensor).value(step, { worker }),
      isImported ? this.#sumsOf(tagOfBuckets(tensor), step, worker) : (reductions as HistogramSums),
    ])
    return data instanceof Float64Array ? histogramOfRows(data, sums) : null
  }

  /** The sums that were imported beside the buckets. */
  async #sumsOf(tag: string, step: number, worker: Worker): Promise<HistogramSums> {
    try {
      const saved = await this.#trial.tensor(tag).reductionValues(step, { worker })
      return { sum: saved.get('sum') as number | undefined, l2: saved.get('l2') as number | undefined }
    } catch (error) {
      if (error instanceof QueryError) return {}
      throw error
    }
  }

  async #imagesOf({ shape, step, worker }: ScanRow, tensor: string): Promise<readonly RowSummary[]> {
    const layout = shape === null || this.#buckets.has(tensor) ? null : layoutOf(shape)
    if (layout === null) return []
    const images = imagesOf(layout, await this.#trial.tensor(tensor).value(step, { worker }))
    return images.map((image, i) => ({ kind: 'image', tag: imageTag(tensor, i), summary: { image } }))
  }

  async #runOf({ worker, mode, wallTime = 0 }: ScanRow): Promise<OpenRun> {
    const run = runDirectory(this.#isSingle ? null : worker, mode)
    const open = this.#runs.get(run)
    if (open !== undefined) return open
    const file = await RunFile.create(this.#destination, run, wallTime)
    const added = {
      run,
      worker,
      mode,
      file,
      kinds: new Map<string, SummaryKind>(),
      scalars: 0,
      histograms: 0,
      images: 0,
    }
    this.#runs.set(run, added)
    return added
  }
}
