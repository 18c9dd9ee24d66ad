/**
 * Reductions that are requested one by one but read together: those of one turn of the event loop become one scan. Results are remembered
 * by record.
 */

import { ReductionUndefined, withFullPath } from '../../base/errors.js'
import { NO_OPTIONS } from '../../base/options.js'
import type { DType, StatisticName } from '../../base/types.js'
import { KnownMoments } from '../../core/border/abi.js'
import { isDefined, Moments, momentsOf, setFor, undefinedReduction } from '../../core/moments.js'
import {
  elementStatistics,
  isMomentName,
  isReductionName,
  isSketchName,
  type StatisticValue,
  statisticColumns,
  statisticsIn,
} from '../../core/statistics/statistic.js'
import { STAMP_LENGTH, type Store } from '../../storage/store.js'
import type { SavedTensor } from '../catalog/columns/tensor-lists.js'
import type { KnownReductions } from '../catalog/remembered.js'
import type { TrialState } from '../catalog/state.js'
import { recordPlace, type WorkerStep } from '../catalog/worker-steps.js'
import { checkLevelNumber, type RecordPlace } from '../job/plan/coalesce.js'
import { Interner } from '../job/plan/interner.js'
import { DEFAULT_MEMORY } from '../job/plan/memory.js'
import type { ReadOptions } from '../runner/access.js'
import { Gathered } from './gathered.js'
import { readJobs } from './read-jobs.js'
import { type RecordResult, RecordResults } from './record-results.js'
import type { ScanItem } from './row-groups.js'
import { OF_SCALAR, savedNumber } from './saved-number.js'

interface ReductionRequest {
  readonly item: ScanItem & { readonly saved: SavedTensor }
  readonly reduction: StatisticName
  /** True if the item's value is the saved reduction itself. */
  readonly isSaved: boolean
  readonly resolve: (value: StatisticValue) => void
  readonly reject: (error: unknown) => void
}

/** The requests about one record. */
interface RecordRequests {
  readonly key: string
  /** The stamp of its file. */
  readonly stamp: Float64Array
  readonly place: RecordPlace
  readonly requests: ReductionRequest[]
}

/** The mean size of records up to which all their reductions are computed, since that takes no time and another may be requested next. */
const SMALL_BYTES = 64 << 10

const gathered = new Gathered<ReductionRequest>()

/** The reduction of one saved tensor, read together with all others of the same turn of the event loop. */
export function readOneReduction(
  state: TrialState,
  workerStep: WorkerStep,
  saved: SavedTensor,
  reduction: StatisticName,
  options: ReadOptions,
): Promise<StatisticValue> {
  const location = isReductionName(reduction) ? saved.reductions.get(reduction) : undefined
  // A saved reduction is read as a tensor of one element.
  const item = { workerStep, saved: location ? { ...saved, value: location } : saved }
  return new Promise((resolve, reject) => {
    const isMoment = isMomentName(reduction)
    const { checkLevel, threads, memory } = options
    const key = options === NO_OPTIONS ? `${isMoment}` : `${isMoment} ${checkLevel} ${threads} ${memory}`
    const request = { item, reduction, isSaved: location !== undefined, resolve, reject }
    gathered.add(state, key, request, batch => readBatch(state, batch, options))
  })
}

async function readBatch(state: TrialState, batch: readonly ReductionRequest[], options: ReadOptions): Promise<void> {
  const { access, remembered } = state
  const { threads, memory = DEFAULT_MEMORY } = options
  const checkLevel = checkLevelNumber(options.checkLevel ?? 'minimal')
  const unread: RecordRequests[] = []
  let byteLength = 0
  let known: KnownMoments = 0
  for (const record of await byRecord(batch, checkLevel, access.store)) {
    const remembers = remembered.get(record.key, record.stamp)
    if (remembers !== undefined && record.requests.every(request => isAnswered(remembers, request))) {
      answer(record, remembers)
      continue
    }
    unread.push(record)
    byteLength += record.place.byteLength
    for (const { reduction, isSaved } of record.requests) known |= isSaved ? OF_SCALAR : knownFor(reduction)
  }
  if (unread.length === 0) return
  const names = [...new Set(batch.map(({ reduction }) => reduction))]
  // Statistics other than moments are not remembered.
  const isOfMoments = names.every(isMomentName)
  const columns = statisticColumns(names)
  if (isOfMoments && byteLength <= SMALL_BYTES * unread.length) known = KnownMoments.all
  const url = (path: string) => access.store.url(path)
  const runner = await access.runner(threads, byteLength, memory)
  const context = {
    store: access.spec,
    checkLevel,
    memory,
    known,
    statistics: elementStatistics(names),
    sketched: names.some(isSketchName),
  }
  if (unread.length > 1) unread.sort((a, b) => a.place.step - b.place.step || a.place.startByte - b.place.startByte)
  let at = 0
  for await (const { plan, reply } of readJobs(
    unread.map(({ place }) => place),
    { context, runner, url },
  )) {
    const results = new RecordResults(reply)
    for (let i = 0; i < plan.count; i++) take(unread[at++]!, results.at(i))
  }

  function take(record: RecordRequests, result: RecordResult): void {
    if ('error' in result) {
      const error = withFullPath(result.error, url(record.place.file))
      for (const { reject } of record.requests) reject(error)
    } else if (isOfMoments || 'histogram' in result) {
      const reductions = 'histogram' in result ? result.histogram.reductions : ofItsOwn(result.moments)
      if (isOfMoments) remembered.set(record.key, record.stamp, reductions)
      answer(record, reductions)
    } else {
      answer(record, statisticsIn(columns, result).values, result.moments.dtype)
    }
  }
}

/** A copy of moments that were read with others, so that the rows of those can be freed. */
function ofItsOwn(moments: Moments): Moments {
  const { dtype, row } = moments
  return row.length === row.buffer.byteLength / row.BYTES_PER_ELEMENT ? moments : momentsOf(dtype, row.slice())
}

/** The moments that a reduction needs. */
function knownFor(reduction: StatisticName): KnownMoments {
  return isMomentName(reduction) ? setFor([reduction]) : KnownMoments.none
}

function notInHistogram(reduction: StatisticName): ReductionUndefined {
  return new ReductionUndefined(reduction, 'a histogram', 'a histogram does not record that')
}

/** Groups requests by record: several reductions of one value need one read. */
async function byRecord(
  batch: readonly ReductionRequest[],
  checkLevel: number,
  store: Store,
): Promise<Iterable<RecordRequests>> {
  // Stamps are taken before the files are read, so that a file that changes meanwhile is read again next time.
  const files = new Interner()
  for (const request of batch) files.number(fileOf(request))
  const all = await store.stamps(files.names)
  // Making a view takes longer than most else here.
  const stamps = files.names.map((_, i, { length }) =>
    length === 1 ? all : all.subarray(i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH),
  )
  const records = new Map<string, RecordRequests>()
  for (const request of batch) {
    const { workerStep, saved } = request.item
    const place = recordPlace(workerStep, saved.value!)
    // The step is part of what a record is checked against.
    const key = `${place.step} ${place.startByte} ${place.byteLength} ${checkLevel} ${place.file}\n${place.tag}`
    const known = records.get(key)
    if (known) known.requests.push(request)
    else records.set(key, { key, stamp: stamps[files.number(place.file)]!, place, requests: [request] })
  }
  return records.values()
}

function fileOf({ item: { workerStep, saved } }: ReductionRequest): string {
  return saved.value!.eventFile ?? workerStep.eventFile
}

function isAnswered(known: KnownReductions, { reduction, isSaved }: ReductionRequest): boolean {
  if (!(known instanceof Moments)) return known[reduction] !== undefined
  return isSaved || (isMomentName(reduction) && known.knows(reduction))
}

/** @param dtype that of the elements, unless they are those of a histogram */
function answer({ requests }: RecordRequests, known: KnownReductions, dtype?: DType): void {
  for (const { reduction, isSaved, resolve, reject } of requests) {
    if (!(known instanceof Moments)) {
      const value = known[reduction]
      if (value !== undefined) resolve(value)
      else reject(dtype ? undefinedReduction(reduction, dtype) : notInHistogram(reduction))
    } else if (isSaved && isReductionName(reduction)) {
      const value = savedNumber(known, reduction)
      if (value instanceof ReductionUndefined) reject(value)
      else resolve(value)
    } else if (isMomentName(reduction) && isDefined(reduction, known.dtype)) resolve(known.reduction(reduction))
    else reject(undefinedReduction(reduction, known.dtype))
  }
}
