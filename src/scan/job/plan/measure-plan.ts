/** Cuts records, and what is asked about them, into jobs. */

import { entryOf } from '../../../base/maps.js'
import { countInTurns } from '../../../base/turns.js'
import type { StoreSpec } from '../../../storage/store.js'
import type { MeasuredPlace, MeasureJob, Task, TaskColumns } from '../measure-job.js'
import { coalesce, columnsOf, LOCAL_SHAPE, type RecordColumns, requestShape } from './coalesce.js'
import { DisjointSets } from './disjoint-sets.js'
import { Interner } from './interner.js'
import {
  aheadByteLength,
  JOB_BYTES,
  JOB_RECORDS,
  jobByteLength,
  PART_BYTES,
  recordLimit,
  windowByteLength,
} from './memory.js'

/** A job, and the records and tasks of the plan that belong to it, in its order. */
export interface PlannedMeasure {
  readonly job: MeasureJob
  readonly records: readonly number[]
  readonly tasks: readonly number[]
}

export interface MeasureContext {
  readonly stores: readonly StoreSpec[]
  readonly checkLevel: number
  readonly memory: number
  readonly threads: number
  /** The moments that rows must have, as KnownMoments. */
  readonly known: number
}

export interface ReadingOrders {
  readonly byStep: Int32Array
  readonly byPlace: Int32Array
}

/** Tasks whose answers from parts of a record can be merged. The others need the whole record in memory. */
const MERGEABLE: ReadonlySet<Task['kind']> = new Set(['allclose', 'change', 'squares', 'count', 'rows'])
/** Bytes of neighbours in a file that one job follows over the steps: enough to be worth a read. */
const LANE_BYTES = 64 << 10

/**
 * Cuts records, and what is asked about them, into jobs that read each byte once. Where records are compared, a job is a
 * lane, or several short ones: neighbouring tensors over all steps if these are compared, so that only the last values of one lane are held.
 * @param records no two at the same place
 * @param series if any are compared: for each the number of its series, whose records are read by one job
 * @param orders `readingOrders` of the records
 */
export function* planMeasures(
  records: readonly MeasuredPlace[],
  series: Int32Array | null,
  tasks: readonly Task[],
  { byStep, byPlace }: ReadingOrders,
  context: MeasureContext,
): Generator<PlannedMeasure> {
  const limit = windowByteLength(context.memory)
  // An impossible length is refused unread.
  const limits = context.stores.map(recordLimit)
  const byteLengths = Float64Array.from(records, ({ byteLength, store }) => {
    return byteLength > limits[store]! ? 0 : byteLength
  })
  // Where each record stands among all, as they lie in the files.
  const rank = new Int32Array(records.length)
  byPlace.forEach((record, at) => {
    rank[record] = at
  })
  const total = byteLengths.reduce((sum, byteLength) => sum + byteLength, 0)
  // A record whose number is its own is a series of its own: none is compared with one of another step.
  const isByStep = series?.every((number, record) => number === record) === true
  const steps = isByStep ? 1 : new Set(records.map(({ step }) => step)).size
  const shape = requestShape(context.stores, context.memory)
  // Where every read is a request, there are as few lanes as possible.
  const lanesAtOnce = shape === null ? 4 * Math.max(1, context.threads) : 1
  // Batches of two steps, or runs, that are compared lie in a cache together.
  const longestLane = (shape?.batchByteLength ?? LOCAL_SHAPE.batchByteLength) / (shape === null ? 2 : 1)
  const laneBytes = Math.max(LANE_BYTES, Math.min(longestLane, total / steps / lanesAtOnce))
  let remaining = total
  const jobBytes = () => {
    const most = jobByteLength(remaining, context.threads)
    return series ? Math.max(wholeLaneBytes, Math.min(most, total / lanesAtOnce)) : most
  }
  const wholeLaneBytes = series ? laneBytes * steps : JOB_BYTES
  const tasksOf = tasksByRecord(records.length, tasks)
  /** The index of each record in its job. */
  const local = new Int32Array(records.length)
  const build = (lanes: readonly (readonly number[])[], isWhole: boolean, part = 0, parts = 1): PlannedMeasure => {
    const ranks = lanes.flatMap(lane => [...Int32Array.from(lane, record => rank[record]!).sort()])
    const indices: number[] = []
    const ownTasks: number[] = []
    for (const at of ranks) {
      const record = byPlace[at]!
      local[record] = indices.push(record) - 1
      tasksOf(record, ownTasks)
    }
    // The bytes between two records may be read over only if no other job needs them.
    const mayJoin = (at: number): boolean => ranks[at] === ranks[at - 1]! + 1
    const { files, storeOf, tags, columns } = measuredColumns(indices.map(record => records[record]!))
    return {
      records: indices,
      tasks: ownTasks,
      job: {
        kind: 'measure',
        stores: context.stores,
        storeOf,
        checkLevel: context.checkLevel,
        known: context.known,
        files,
        tags,
        records: columns,
        tasks: taskColumns(tasks, ownTasks, local),
        batches: isWhole ? coalesce(columns, null, { shape, longest: limit, mayJoin }) : [],
        aheadByteLength: aheadByteLength(context.memory),
        part,
        parts,
        windowByteLength: windowByteLength(context.memory),
      },
    }
  }
  /** The lanes of a job. */
  let open: number[][] = []
  let lane: number[] = []
  let [jobLength, jobRecords, laneLength] = [0, 0, 0]
  for (const group of groupsOf(series, tasks, byStep)) {
    let [bytes, largest] = [0, 0]
    for (const record of group) {
      const byteLength = byteLengths[record]!
      bytes += byteLength
      if (byteLength > limit) largest = Math.max(largest, byteLength)
    }
    if (largest > 0) {
      const isMergeable = group.every(record => tasksOf(record, []).every(task => MERGEABLE.has(tasks[task]!.kind)))
      const parts = isMergeable ? Math.ceil(largest / PART_BYTES) : 1
      for (let part = 0; part < parts; part++) yield build([group], false, part, parts)
      continue
    }
    if (jobRecords > 0 && (jobLength + bytes > jobBytes() || jobRecords + group.length > JOB_RECORDS)) {
      yield build(open, true)
      open = []
      jobLength = 0
      jobRecords = 0
    }
    if (open.length === 0 || laneLength + bytes > wholeLaneBytes) {
      lane = []
      laneLength = 0
      open.push(lane)
    }
    for (const record of group) lane.push(record)
    laneLength += bytes
    jobLength += bytes
    remaining -= bytes
    jobRecords += group.length
  }
  if (jobRecords > 0) yield build(open, true)
}

/** @returns a function that appends the tasks with a given first record to a list, in order */
function tasksByRecord(count: number, tasks: readonly Task[]): (record: number, to: number[]) => readonly number[] {
  const firstOf = new Int32Array(count).fill(-1)
  const next = new Int32Array(tasks.length)
  for (let task = tasks.length - 1; task >= 0; task--) {
    const { first } = tasks[task]!
    next[task] = firstOf[first]!
    firstOf[first] = task
  }
  return (record, to) => {
    for (let task = firstOf[record]!; task >= 0; task = next[task]!) to.push(task)
    return to
  }
}

/** @param selected the tasks of a job @param local the index of each record in it */
function taskColumns(tasks: readonly Task[], selected: readonly number[], local: Int32Array): TaskColumns {
  const distinct: Pick<Task, 'kind' | 'numbers'>[] = []
  const what = new Int32Array(selected.length)
  const firsts = new Int32Array(selected.length)
  const seconds = new Int32Array(selected.length)
  selected.forEach((task, i) => {
    const { kind, numbers, first, second } = tasks[task]!
    const known = distinct.findIndex(entry => entry.kind === kind && entry.numbers === numbers)
    what[i] = known < 0 ? distinct.push({ kind, numbers }) - 1 : known
    firsts[i] = local[first]!
    seconds[i] = second < 0 ? -1 : local[second]!
  })
  return { requests: distinct, what, first: firsts, second: seconds }
}

/**
 * Two orders of the records: by step, in which jobs are filled, so that early steps are answered early; and as they lie, in which a job
 * reads them. There the files are in the order of their lowest steps, and each of them is read from its beginning to its end: records of
 * TensorBoard's may lie in any order of steps.
 */
export async function readingOrders(records: readonly MeasuredPlace[]): Promise<ReadingOrders> {
  const files = new Interner()
  const file = new Int32Array(records.length)
  const step = new Float64Array(records.length)
  const startByte = new Float64Array(records.length)
  const lowest: number[] = []
  await countInTurns(records.length, i => {
    const record = records[i]!
    const number = files.number(`${record.store} ${record.file}`)
    file[i] = number
    step[i] = record.step
    startByte[i] = record.startByte
    lowest[number] = Math.min(lowest[number] ?? record.step, record.step)
  })
  const compareFiles = (a: number, b: number): number => records[a]!.store - records[b]!.store || file[a]! - file[b]!
  const comparePlaces = (a: number, b: number): number => compareFiles(a, b) || startByte[a]! - startByte[b]! || a - b
  const indices = Int32Array.from(file.keys())
  return {
    byStep: indices.toSorted((a, b) => step[a]! - step[b]! || comparePlaces(a, b)),
    byPlace: indices.sort((a, b) => lowest[file[a]!]! - lowest[file[b]!]! || comparePlaces(a, b)),
  }
}

/** Records that have to be in one job, since their series are compared; groups are in the order of their first records. */
function* groupsOf(
  series: Int32Array | null,
  tasks: readonly Task[],
  order: Iterable<number>,
): Generator<readonly number[]> {
  if (series === null) {
    for (const record of order) yield [record]
    return
  }
  const sets = new DisjointSets(series.reduce((count, number) => Math.max(count, number + 1), 0))
  for (const { first, second } of tasks) if (second >= 0) sets.join(series[first]!, series[second]!)
  const groups = new Map<number, number[]>()
  for (const record of order) {
    const root = sets.rootOf(series[record]!)
    entryOf(groups, root, () => []).push(record)
  }
  yield* groups.values()
}

/** Records as columns; a file belongs to one store. */
export function measuredColumns(places: readonly MeasuredPlace[]): {
  readonly files: readonly string[]
  readonly storeOf: Int32Array
  readonly tags: readonly string[]
  readonly columns: RecordColumns
} {
  const files: string[] = []
  const storeOf: number[] = []
  const numbers: Map<string, number>[] = []
  const { tags, records } = columnsOf(places)
  places.forEach(({ store, file }, i) => {
    numbers[store] ??= new Map()
    let number = numbers[store].get(file)
    if (number === undefined) {
      number = files.push(file) - 1
      storeOf.push(store)
      numbers[store].set(file, number)
    }
    records.file[i] = number
  })
  return { files, storeOf: Int32Array.from(storeOf), tags, columns: records }
}
