/** The rows of a scan: which rows there will be, from which records, and how they are made once these are read. */

import { ReductionUndefined, type TrialscanError, withFullPath } from '../../base/errors.js'
import { type GlobalStep, MODES, type ModeStep, type ReductionName, type StatisticName } from '../../base/types.js'
import { type ReductionValue, undefinedReduction } from '../../core/moments.js'
import {
  elementStatistics,
  isReductionName,
  type StatisticColumn,
  statisticColumns,
  statisticsIn,
  type Values,
} from '../../core/statistics/statistic.js'
import type { SavedTensor } from '../catalog/columns/tensor-lists.js'
import { recordPlace, recordRun, type WorkerStep } from '../catalog/worker-steps.js'
import type { CombinedRow, RecordPlace, RecordRun } from '../job/plan/coalesce.js'
import type { ScanRow } from '../job/row.js'
import { answersLength, type PlannedJob } from '../job/scan-job.js'
import type { ReadJob } from './read-jobs.js'
import { type RecordResult, RecordResults } from './record-results.js'
import { itemsOf, type RowGroup, type ScanItem } from './row-groups.js'
import { savedNumber } from './saved-number.js'

/** The requested rows. */
export interface RowsRequest {
  /** The groups; iterated more than once. */
  readonly groups: Iterable<RowGroup>
  /** The reductions. Those of `all` that a dtype lacks are left out; for one requested by name that is an error. */
  readonly reductions: readonly StatisticName[]
  readonly strict: boolean
  readonly url: (path: string) => string
}

/** The cost of a number that answers a statistic of elements, in bytes that are read and reduced. */
const NUMBER_COST = 64

/** The total amount of work, and whether it includes saved reductions. */
export function totals({ groups, reductions }: Pick<RowsRequest, 'groups' | 'reductions'>): {
  totalRows: number
  totalBytes: number
  /** The total cost, in bytes that are read and reduced. */
  totalCost: number
  hasSaved: boolean
} {
  let totalRows = 0
  let totalBytes = 0
  let hasSaved = false
  for (const group of groups) {
    const places = group.list?.records
    if (places) {
      totalRows += places.tags.length
      totalBytes += places.bytesBefore[places.tags.length]!
      continue
    }
    for (const { saved } of itemsOf([group])) {
      if (saved === null || saved.value !== null || saved.reductions.size > 0) totalRows++
      if (saved === null) continue
      if (saved.value !== null) totalBytes += saved.value.byteLength
      else {
        hasSaved ||= saved.reductions.size > 0
        for (const name of savedNames(saved, reductions)) totalBytes += saved.reductions.get(name)!.byteLength
      }
    }
  }
  const numbers = totalRows * answersLength(elementStatistics(reductions))
  return { totalRows, totalBytes, totalCost: totalBytes + numbers * NUMBER_COST, hasSaved }
}

/** A row of saved reductions, each of which is a record; or that of an index file that can't be read, which has none. */
export class SavedReductions implements CombinedRow {
  readonly workerStep: WorkerStep
  readonly saved: SavedTensor | null
  readonly names: readonly ReductionName[]
  /** The results of the records that were read so far. */
  readonly results: RecordResult[] = []

  constructor({ workerStep, saved }: ScanItem, names: readonly ReductionName[]) {
    this.workerStep = workerStep
    this.saved = saved
    this.names = names
  }

  get recordCount(): number {
    return this.names.length
  }
}

/** Yields the records to read, in the order of their rows, and the rows that have none. */
export function* planRecords({
  groups,
  reductions,
}: RowsRequest): Generator<RecordPlace | RecordRun | SavedReductions> {
  for (const group of groups) {
    const { workerStep, list } = group
    if (list?.records) {
      yield recordRun(workerStep, list.records)
      continue
    }
    for (const item of itemsOf([group])) {
      const { saved } = item
      if (saved?.value) yield recordPlace(workerStep, saved.value, workerStep)
      else if (saved === null || saved.reductions.size > 0) {
        const names = saved === null ? [] : savedNames(saved, reductions)
        const row = new SavedReductions(item, names)
        if (names.length === 0) yield row
        for (const name of names) yield { ...recordPlace(workerStep, saved!.reductions.get(name)!), combined: row }
      }
    }
  }
}

/** The names among these under which the hook has saved a reduction. */
function savedNames({ reductions }: SavedTensor, names: readonly StatisticName[]): ReductionName[] {
  return names.filter(name => isReductionName(name)).filter(name => reductions.has(name))
}

/** Yields what the rows of a job are made of, in their order: the record of each, or the saved reductions, if all of them were read. */
export function* sourcesOf(
  { combined, count }: PlannedJob,
  results: RecordResults,
): Generator<number | SavedReductions> {
  if (count === 0) for (const { row } of combined) yield row as SavedReductions
  let next = 0
  for (let record = 0; record < count; record++) {
    if (combined[next]?.at !== record) {
      yield record
      continue
    }
    const row = combined[next++]!.row as SavedReductions
    row.results.push(results.at(record))
    if (row.results.length === row.recordCount) yield row
  }
}

/** Makes rows from what was read of their records. */
export class RowMaker {
  readonly #request: RowsRequest
  readonly #columns: readonly StatisticColumn[]
  /** Event files that an earlier error has named in full. */
  readonly #named = new Set<string>()

  constructor(request: RowsRequest) {
    this.#request = request
    this.#columns = statisticColumns(request.reductions)
  }

  /** All rows of a job. */
  rows({ plan, reply }: ReadJob): ScanRow[] {
    const results = new RecordResults(reply)
    return Array.from(sourcesOf(plan, results), source => this.row(plan, source, results))
  }

  /** The row of one record, or of saved reductions. */
  row({ job, rows }: PlannedJob, source: number | SavedReductions, results: RecordResults): ScanRow {
    if (typeof source !== 'number') return this.#combinedRow(source)
    const [record, result] = [source, results.at(source)]
    const { files, tags, records } = job
    const place = {
      tensor: tags[records.tag[record]!]!,
      step: records.step[record] as GlobalStep,
      mode: MODES[rows.mode[record]!]!,
      modeStep: rows.modeStep[record] as ModeStep,
      worker: rows.workers[rows.worker[record]!]!,
    }
    if ('error' in result) {
      const error = this.#naming(result.error, files[records.file[record]!]!)
      return { ...place, dtype: null, shape: null, reductions: {}, saved: false, error }
    }
    const { wallTime } = result
    const start = wallTime === undefined ? place : { ...place, wallTime }
    if ('histogram' in result) {
      const reductions: Values = {}
      const { shape, reductions: known } = result.histogram
      for (const name of this.#request.reductions) {
        if (isReductionName(name) && known[name] !== undefined) reductions[name] = known[name]
      }
      return { ...start, dtype: 'float64', shape, reductions, saved: true }
    }
    const { moments, shape } = result
    const { dtype, exact } = moments
    const { values, missing } = statisticsIn(this.#columns, result)
    const row = { ...start, dtype, shape, reductions: values, saved: false, moments, ...(exact && { exact }) } as const
    const isError = missing !== undefined && this.#request.strict && dtype !== 'string'
    return isError ? { ...row, error: undefinedReduction(missing, dtype) } : row
  }

  /** The row of saved reductions, all of whose records were read. */
  #combinedRow({ workerStep, saved, names, results }: SavedReductions): ScanRow {
    const { step, mode, modeStep, worker, error: indexError } = workerStep
    const [first] = results
    const wallTime = first && 'wallTime' in first ? first.wallTime : undefined
    const place = { step, mode, modeStep, worker, ...(wallTime !== undefined && { wallTime }) }
    if (saved === null) {
      return { tensor: null, ...place, dtype: null, shape: null, reductions: {}, saved: false, error: indexError! }
    }
    const reductions: Partial<Record<ReductionName, ReductionValue>> = {}
    const exact: Partial<Record<ReductionName, bigint>> = {}
    let error: TrialscanError | undefined
    for (const [i, name] of names.entries()) {
      const result = results[i]!
      if ('error' in result) error ??= result.error
      else if ('moments' in result) {
        const { moments } = result
        const value = savedNumber(moments, name)
        if (value instanceof ReductionUndefined) error ??= value
        else {
          reductions[name] = value
          if (moments.exact) exact[name] = moments.exact.min
        }
      }
    }
    const { tensor } = saved
    const shape = saved.shape?.shape ?? null
    const hasExact = Object.keys(exact).length > 0
    const row = { tensor, ...place, dtype: null, shape, reductions, saved: true, ...(hasExact && { exact }) } as const
    const file = saved.reductions.values().next().value?.eventFile ?? workerStep.eventFile
    return error ? { ...row, error: this.#naming(error, file) } : row
  }

  /** The error of a row. The first one about an event file has its full path: see `withShortPath`. */
  #naming(error: TrialscanError, file: string): TrialscanError {
    if (this.#named.has(file) || error.fields.url === undefined) return error
    this.#named.add(file)
    return withFullPath(error, this.#request.url(file))
  }
}
