/** The rows of a scan: which rows there will be, from which records, and how they are made once these are read. */

import { ReductionUndefined, type TrialscanError, withFullPath } from '../../base/errors.js'
import type { ReductionName, StatisticName } from '../../base/types.js'
import { isDefined, type ReductionValue, undefinedReduction } from '../../core/moments.js'
import {
  elementStatistics,
  isReductionName,
  type StatisticColumn,
  statisticColumns,
  type Values,
} from '../../core/statistics/statistic.js'
import type { TensorLocation } from '../../format/index-file.js'
import type { SavedTensor } from '../catalog/columns/tensor-lists.js'
import { recordPlace, recordRun, type WorkerStep } from '../catalog/worker-steps.js'
import type { RecordPlace, RecordRun } from '../job/plan/coalesce.js'
import type { ScanRow } from '../job/row.js'
import { answersLength } from '../job/scan.js'
import type { RecordResult } from './record-result.js'
import { itemsOf, type RowGroup, type Rows, type ScanItem } from './row-groups.js'
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

/** Yields the records to read, null for a row that needs none. Appends the rows to `rows`. */
export function* planRecords(
  { groups, reductions }: RowsRequest,
  rows: Rows,
): Generator<RecordPlace | RecordRun | null> {
  for (const group of groups) {
    const { workerStep, list } = group
    if (list?.records) {
      rows.add(workerStep, list.saved)
      yield recordRun(workerStep, list.records)
      continue
    }
    for (const { saved } of itemsOf([group])) {
      if (saved === null) {
        rows.add(workerStep, null)
        yield null
      } else if (saved.value !== null) {
        rows.add(workerStep, [saved])
        yield recordPlace(workerStep, saved.value, workerStep)
      } else if (saved.reductions.size > 0) {
        rows.add(workerStep, [saved])
        const names = savedNames(saved, reductions)
        if (names.length === 0) yield null
        for (const name of names) yield recordPlace(workerStep, saved.reductions.get(name)!)
      }
    }
  }
}

/** The number of records that a row is made from. */
export function recordCountOf({ saved }: ScanItem, reductions: readonly StatisticName[]): number {
  if (saved === null) return 0
  return saved.value === null ? savedNames(saved, reductions).length : 1
}

/** The names among these under which the hook has saved a reduction. */
function savedNames({ reductions }: SavedTensor, names: readonly StatisticName[]): ReductionName[] {
  return names.filter(name => isReductionName(name)).filter(name => reductions.has(name))
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

  row({ workerStep, saved }: ScanItem, results: readonly RecordResult[]): ScanRow {
    const { step, mode, modeStep, worker, error } = workerStep
    const [first] = results
    const wallTime = first !== undefined && 'wallTime' in first ? first.wallTime : undefined
    const place = { step, mode, modeStep, worker, ...(wallTime !== undefined && { wallTime }) }
    if (saved === null) {
      return { tensor: null, ...place, dtype: null, shape: null, reductions: {}, saved: false, error: error! }
    }
    const { tensor } = saved
    if (saved.value === null) {
      const rowOfSaved = savedRow(savedNames(saved, this.#request.reductions), results, saved, place)
      const { error } = rowOfSaved
      if (!error) return rowOfSaved
      return { ...rowOfSaved, error: this.#naming(error, workerStep, saved.reductions.values().next().value!) }
    }
    const result = first!
    if ('error' in result) {
      const error = this.#naming(result.error, workerStep, saved.value)
      return { tensor, ...place, dtype: null, shape: null, reductions: {}, saved: false, error }
    }
    const reductions: Values = {}
    if ('histogram' in result) {
      const { shape, reductions: told } = result.histogram
      for (const name of this.#request.reductions) {
        if (isReductionName(name) && told[name] !== undefined) reductions[name] = told[name]
      }
      return { tensor, ...place, dtype: 'float64', shape, reductions, saved: true }
    }
    const { moments, shape, answers, sketched } = result
    const { dtype, exact } = moments
    let undefinedFor: TrialscanError | undefined
    for (const { name, read } of this.#columns) {
      if (isDefined(name, dtype)) read(reductions, moments, answers, sketched)
      else if (this.#request.strict && dtype !== 'string') undefinedFor ??= undefinedReduction(name, dtype)
    }
    const read = { tensor, ...place, dtype, shape, reductions, saved: false, moments, ...(exact && { exact }) } as const
    return undefinedFor ? { ...read, error: undefinedFor } : read
  }

  /** The error of a row. The first one about an event file has its full path: see `withShortPath`. */
  #naming(error: TrialscanError, workerStep: WorkerStep, location: TensorLocation): TrialscanError {
    const file = location.eventFile ?? workerStep.eventFile
    if (this.#named.has(file) || error.fields.url === undefined) return error
    this.#named.add(file)
    return withFullPath(error, this.#request.url(file))
  }
}

/** The row of a tensor with only saved reductions. */
function savedRow(
  names: readonly ReductionName[],
  results: readonly RecordResult[],
  saved: SavedTensor,
  place: Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker' | 'wallTime'>,
): ScanRow {
  const reductions: Partial<Record<ReductionName, ReductionValue>> = {}
  const exact: Partial<Record<ReductionName, bigint>> = {}
  let error: TrialscanError | undefined
  names.forEach((name, i) => {
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
  })
  const { tensor } = saved
  const shape = saved.shape?.shape ?? null
  const hasExact = Object.keys(exact).length > 0
  const row = { tensor, ...place, dtype: null, shape, reductions, saved: true, ...(hasExact && { exact }) } as const
  return error ? { ...row, error } : row
}
