/**
 * Reductions that are requested one by one but read together: those of one turn of the event loop become one scan. Results are remembered
 * by record.
 */

import { ReductionUndefined, TrialscanError, withFullPath } from '../../base/errors.js'
import { NO_OPTIONS } from '../../base/options.js'
import type { MomentName, StatisticName } from '../../base/types.js'
import { KnownMoments } from '../../core/border/abi.js'
import { isDefined, Moments, momentsOf, type ReductionValue, setFor, undefinedReduction } from '../../core/moments.js'
import {
  elementStatistics,
  isMomentName,
  isReductionName,
  isSketchName,
  type StatisticValue,
} from '../../core/statistics/statistic.js'
import type { Store } from '../../storage/store.js'
import type { SavedTensor } from '../catalog/columns/tensor-lists.js'
import { STAMP_LENGTH } from '../catalog/load/index-cache.js'
import type { KnownReductions } from '../catalog/remembered.js'
import type { TrialState } from '../catalog/state.js'
import type { WorkerStep } from '../catalog/worker-steps.js'
import { recordPlace } from '../catalog/worker-steps.js'
import type { RecordPlace } from '../job/plan/coalesce.js'
import { checkLevelNumber } from '../job/plan/coalesce.js'
import { Interner } from '../job/plan/interner.js'
import { DEFAULT_MEMORY, JOB_BYTES, JOB_RECORDS, windowByteLength } from '../job/plan/memory.js'
import type { ScanRow } from '../job/row.js'
import { type PlanContext, planScan } from '../job/scan.js'
import type { ReadOptions } from '../runner/access.js'
import { runWhole } from '../runner/failed-job.js'
import { isFaultOfJob } from '../runner/runner.js'
import { Gathered } from './gathered.js'
import { RecordResults } from './record-result.js'
import { groupsOf, type ScanItem } from './row-groups.js'
import { OF_SCALAR, savedNumber } from './saved-number.js'
import { Scan } from './scan.js'

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
  reduction: MomentName,
  options: ReadOptions,
): Promise<ReductionValue>
export function readOneReduction(
  state: TrialState,
  workerStep: WorkerStep,
  saved: SavedTensor,
  reduction: StatisticName,
  options: ReadOptions,
): Promise<StatisticValue>
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
    const read = isMoment ? readBatch : readStatistics
    const request = { item, reduction, isSaved: location !== undefined, resolve, reject }
    gathered.add(state, key, request, batch => read(state, batch, options))
  })
}

async function readBatch(state: TrialState, batch: readonly ReductionRequest[], options: ReadOptions): Promise<void> {
  const { access, remembered } = state
  const { threads, memory = DEFAULT_MEMORY } = options
  const checkLevel = checkLevelNumber(options.checkLevel ?? 'minimal')
  const unread: RecordRequests[] = []
  for (const asked of await byRecord(batch, checkLevel, access.store)) {
    const knownReductions = remembered.get(asked.key, asked.stamp)
    if (knownReductions !== undefined && asked.requests.every(request => isAnswered(knownReductions, request)))
      answer(asked, knownReductions)
    else unread.push(asked)
  }
  if (unread.length > 0) await read(unread)

  async function read(records: RecordRequests[]): Promise<void> {
    let byteLength = 0
    let needed: KnownMoments = 0
    for (const { place, requests } of records) {
      byteLength += place.byteLength
      for (const { reduction, isSaved } of requests) needed |= isSaved ? OF_SCALAR : knownFor(reduction)
    }
    if (byteLength <= SMALL_BYTES * records.length) needed = KnownMoments.all
    const context = { store: access.spec, checkLevel, memory, known: needed }
    const take = (asked: RecordRequests, told: KnownReductions): void => {
      remembered.set(asked.key, asked.stamp, told)
      answer(asked, told)
    }
    const results = await readInOneJob(state, records, byteLength, context, threads)
    if (results !== null) {
      for (const [i, asked] of records.entries()) {
        const found = results.outcome(i)
        if (found instanceof TrialscanError) {
          const error = withFullPath(found, access.store.url(asked.place.file))
          for (const { reject } of asked.requests) reject(error)
        } else if (!(found instanceof Moments)) take(asked, found.reductions)
        else take(asked, records.length === 1 ? found : ofItsOwn(found))
      }
      return
    }
    await scanRecords(state, records, options, context, (asked, { moments, reductions }) =>
      take(asked, moments ? ofItsOwn(moments) : reductions),
    )
  }
}

/**
 * Reads records in one job: a scan's work around its jobs would take longer than this job.
 * @returns null if there are too many, or if the job failed as a whole, which doesn't concern each record
 */
async function readInOneJob(
  { access }: TrialState,
  records: readonly RecordRequests[],
  byteLength: number,
  context: PlanContext,
  threads: number | undefined,
): Promise<RecordResults | null> {
  const isOne = records.length === 1
  const longest = windowByteLength(context.memory)
  if (records.length > JOB_RECORDS || byteLength > (isOne ? longest : Math.min(longest, JOB_BYTES))) return null
  const places = records.map(({ place }) => place)
  const runner = await access.runner(threads, byteLength, context.memory)
  try {
    const reply = await runWhole(runner, planScan(places, context), path => access.store.url(path))
    return new RecordResults(reply)
  } catch (error) {
    if (isOne || !isFaultOfJob(error)) throw error
    return null
  }
}

/** A copy of the moments, so that the rows read with them can be freed. */
function ofItsOwn({ dtype, row }: Moments): Moments {
  return momentsOf(dtype, row.slice())
}

/** Reads statistics other than moments, which are not remembered. */
async function readStatistics(
  state: TrialState,
  batch: readonly ReductionRequest[],
  options: ReadOptions,
): Promise<void> {
  const { access } = state
  const checkLevel = checkLevelNumber(options.checkLevel ?? 'minimal')
  const records = [...(await byRecord(batch, checkLevel, access.store))]
  const names = [...new Set(batch.map(({ reduction }) => reduction))]
  const context = {
    store: access.spec,
    checkLevel,
    memory: options.memory ?? DEFAULT_MEMORY,
    known: 0,
    statistics: elementStatistics(names),
    sketched: names.some(isSketchName),
  }
  await scanRecords(state, records, options, context, ({ requests }, { moments, reductions }) => {
    for (const { reduction, resolve, reject } of requests) {
      const value = reductions[reduction]
      if (value !== undefined) resolve(value)
      else reject(moments ? undefinedReduction(reduction, moments.dtype) : notInHistogram(reduction))
    }
  })
}

/** Resolves the requests of each record with its row, or rejects them. */
async function scanRecords(
  { access }: TrialState,
  records: RecordRequests[],
  { threads }: ReadOptions,
  context: PlanContext,
  take: (asked: RecordRequests, row: ScanRow) => void,
): Promise<void> {
  records.sort((a, b) => a.place.step - b.place.step || a.place.startByte - b.place.startByte)
  const scan = new Scan({
    problems: () => [],
    groups: groupsOf(records.map(({ requests }) => requests[0]!.item)),
    reductions: [...new Set(records.flatMap(({ requests }) => requests.map(({ reduction }) => reduction)))],
    strict: false,
    context,
    runner: totalBytes => access.runner(threads, totalBytes, context.memory),
    url: path => access.store.url(path),
    signal: undefined,
    onProgress: undefined,
  })
  let at = 0
  for await (const row of scan) {
    const asked = records[at++]!
    if (row.error) for (const { reject } of asked.requests) reject(row.error)
    else take(asked, row)
  }
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

function answer({ requests }: RecordRequests, known: KnownReductions): void {
  for (const { reduction, isSaved, resolve, reject } of requests) {
    if (!(known instanceof Moments)) {
      const value = known[reduction]
      if (value !== undefined) resolve(value)
      else reject(notInHistogram(reduction))
    } else if (isSaved && isReductionName(reduction)) {
      const value = savedNumber(known, reduction)
      if (value instanceof ReductionUndefined) reject(value)
      else resolve(value)
    } else if (isMomentName(reduction) && isDefined(reduction, known.dtype)) resolve(known.reduction(reduction))
    else reject(undefinedReduction(reduction, known.dtype))
  }
}
