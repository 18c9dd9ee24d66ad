/**
 * From the places of records to jobs of coalesced byte ranges. Pure: no bytes are read here.
 *
 * The figures are from the project's performance study: file and checksum are read from the L2 cache when what is read
 * at once stays within about 1 MiB, a job should carry several milliseconds of work, since a thread's round trip takes
 * about 50 µs, and a gap of 64 KiB costs less to read over than a second read.
 */

import { type ReadShape, readShape, type StoreSpec } from './store/store.js'
import { MODES, type Mode, type ReductionName } from './types.js'

/** Records longer than this are cut into parts of about this size, one job each, so that threads can share them. */
export const PART_BYTES = 16 << 20
/** A batch is closed when it is this long; a single longer record is a batch of its own. */
const BATCH_BYTES = 1 << 20
const BATCH_RECORDS = 4096
/** Neighbours further apart than this are read separately. */
const GAP_BYTES = 64 << 10
const LOCAL_SHAPE: ReadShape = { gapByteLength: GAP_BYTES, batchByteLength: BATCH_BYTES }
const JOB_BYTES = 8 << 20
const JOB_RECORDS = 16384
/** No record is longer: a protobuf message holds less than 2 GiB, and the core counts in 32 bits. */
export const RECORD_LIMIT = 0xffffffff

/** Smallest memory a thread can work in. */
export const MIN_MEMORY = 4 << 20
export const DEFAULT_MEMORY = 64 << 20

/** Records to read, in the order of their rows; one entry a record in each column. */
export interface RecordColumns {
  /** Index into the job's files. */
  readonly file: Int32Array
  /** Index into the job's tags. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
  /** The global step. */
  readonly step: Float64Array
  /** 1 where the trial is Tornasole's, which called float16 int32. */
  readonly tornasole: Uint8Array
}

/** Neighbouring records that are read at once: `order[first .. first + count)` of the job. */
export interface ReadBatch {
  readonly file: number
  readonly startByte: number
  readonly endByte: number
  readonly first: number
  readonly count: number
}

interface RecordJob {
  readonly store: StoreSpec
  readonly checkLevel: number
  readonly files: readonly string[]
  readonly tags: readonly string[]
  readonly records: RecordColumns
}

/** Reduce records to moments. */
export interface ScanJob extends RecordJob {
  readonly kind: 'scan'
  /** Indices into `records`, so that each batch is a run of them. */
  readonly order: Int32Array
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, where several are read at once. */
  readonly aheadByteLength: number
  /** What rows are written with; null where numbers are wanted. */
  readonly lines: LinesJob | null
  /** Whether to tell where the time goes. It takes a second walk over the records. */
  readonly timed: boolean
  /** How much the rows of moments have to know, by the core's numbers. */
  readonly known: number
}

/** How rows are to be written. */
export interface LinesRequest {
  readonly format: 'csv' | 'jsonl'
  readonly reductions: readonly ReductionName[]
  /** Whether a row without a reduction that was asked for is one with an error, and so not written here. */
  readonly strict: boolean
}

/** What a row tells beside its record: one entry a record in each column. */
export interface LinesJob extends LinesRequest {
  /** Whether it has to be known where each line ends, since some records are no rows of their own. */
  readonly apart: boolean
  readonly workers: readonly string[]
  /** Index into the workers; -1 where the record is no row of its own. */
  readonly worker: Int32Array
  /** Index into MODES. */
  readonly mode: Uint8Array
  readonly modeStep: Float64Array
}

/** Reduce one part of a record too large to be read at once. */
export interface PartJob extends RecordJob {
  readonly kind: 'part'
  /** As in ScanJob. */
  readonly known: number
  readonly part: number
  readonly parts: number
  /** Bytes of file that may be in memory at once. */
  readonly windowByteLength: number
  readonly aheadByteLength: number
}

/** Tell dtype and shape of records, reading no more of them than that takes. */
export interface DescribeJob extends RecordJob {
  readonly kind: 'describe'
  readonly windowByteLength: number
}

/** Hand out the values of records. */
export interface ValueJob extends RecordJob {
  readonly kind: 'value'
  readonly windowByteLength: number
  /** What values may take whose records don't hold them element by element, all of them together. */
  readonly unfoldLimit: number
}

/** What every job of a scan shares. */
export interface PlanContext {
  readonly store: StoreSpec
  readonly checkLevel: number
  /** Bytes a thread may use for file contents. */
  readonly memory: number
  /** How rows are to be written where they are made. Default: not at all. */
  readonly lines?: LinesRequest | undefined
  /** Whether jobs tell where their time goes. */
  readonly timed?: boolean | undefined
  /** How much the rows of moments have to know: see the engine's KNOWN. */
  readonly known: number
}

/** A record to read: where it lies and what it must be. */
export interface RecordPlace {
  readonly file: string
  readonly tag: string
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  /** Whether the trial is Tornasole's, which called float16 int32. */
  readonly tornasole?: boolean
  /** The row that the record alone makes. */
  readonly row?: RowPlace | null
}

/** Where a row belongs. */
export interface RowPlace {
  readonly worker: string
  readonly mode: Mode
  readonly modeStep: number
}

/** A job, and the records it is about; `first` of them in the plan. */
export interface PlannedJob {
  readonly job: ScanJob | PartJob
  readonly places: readonly RecordPlace[]
  readonly first: number
  readonly count: number
}

/** The longest record that is read into memory at once. */
export function wholeRecordLimit(memory: number): number {
  return Math.min(PART_BYTES, memory >> 1)
}

/**
 * The most that is held of a record besides the elements that stream. No less than a whole record that a scan reads at
 * once, so that whatever can be scanned can be described and handed out, too.
 */
export function windowByteLength(memory: number): number {
  return wholeRecordLimit(memory)
}

/** Jobs at once on one thread, where they wait for answers. */
export function jobsAtOnce(memory: number): number {
  return Math.max(1, Math.min(4, Math.floor(memory / PART_BYTES)))
}

/** What each of these jobs may hold of what is read ahead. */
export function aheadByteLength(memory: number): number {
  return Math.floor(memory / jobsAtOnce(memory))
}

/** How to read from stores of which some make requests; one of these decides, since it has more to lose. */
function shapeOf(stores: readonly StoreSpec[], memory: number): ReadShape {
  const shape = stores.map(readShape).find(shape => shape !== null)
  if (!shape) return LOCAL_SHAPE
  return { ...shape, batchByteLength: Math.min(shape.batchByteLength, aheadByteLength(memory)) }
}

/**
 * Cuts records, which are in the order of their rows, into jobs in the same order. Lazy: no more records are asked for than
 * the next job takes. At null, where a row without a record stands, a job ends.
 */
export function* planJobs(records: Iterable<RecordPlace | null>, context: PlanContext): Generator<PlannedJob> {
  const limit = wholeRecordLimit(context.memory)
  let first = 0
  let open: RecordPlace[] = []
  let bytes = 0
  function* close(): Generator<PlannedJob> {
    const places = open
    if (places.length === 0) return
    const at = first
    first += places.length
    open = []
    bytes = 0
    yield { job: planScan(places, context), places, first: at, count: places.length }
  }
  for (const record of records) {
    if (record === null) {
      yield* close()
      continue
    }
    const { byteLength } = record
    if (byteLength > limit && byteLength <= RECORD_LIMIT) {
      yield* close()
      yield* planParts(record, first, context)
      first++
      continue
    }
    open.push(record)
    // A length that can't be is not read either.
    bytes += byteLength > limit ? 0 : byteLength
    if (open.length === JOB_RECORDS || bytes >= JOB_BYTES) yield* close()
  }
  yield* close()
}

function* planParts(record: RecordPlace, first: number, context: PlanContext): Generator<PlannedJob> {
  const parts = Math.ceil(record.byteLength / PART_BYTES)
  for (let part = 0; part < parts; part++) {
    const { files, tags, records } = columnsOf([record])
    const { store, checkLevel, known } = context
    yield {
      job: {
        kind: 'part',
        known,
        store,
        checkLevel,
        files,
        tags,
        records,
        part,
        parts,
        windowByteLength: windowByteLength(context.memory),
        aheadByteLength: aheadByteLength(context.memory),
      },
      places: [record],
      first,
      count: 1,
    }
  }
}

/** One job of records that can be read whole. */
export function planScan(
  places: readonly RecordPlace[],
  { store, checkLevel, memory, lines, timed = false, known }: PlanContext,
): ScanJob {
  const { files, tags, records } = columnsOf(places)
  const order = Int32Array.from(places.keys())
  // Index order is nearly always file order, which the sort then leaves as it is.
  order.sort((a, b) => records.file[a]! - records.file[b]! || records.startByte[a]! - records.startByte[b]! || a - b)
  const batches = planBatches(records, order, wholeRecordLimit(memory), shapeOf([store], memory))
  return {
    kind: 'scan',
    store,
    checkLevel,
    files,
    tags,
    records,
    order,
    batches,
    aheadByteLength: aheadByteLength(memory),
    lines: lines ? planLines(places, lines) : null,
    timed,
    known,
  }
}

function planLines(places: readonly RecordPlace[], request: LinesRequest): LinesJob {
  const workers = new Interner()
  const count = places.length
  const worker = new Int32Array(count).fill(-1)
  const mode = new Uint8Array(count)
  const modeStep = new Float64Array(count)
  places.forEach(({ row }, i) => {
    if (!row) return
    worker[i] = workers.number(row.worker)
    mode[i] = MODES.indexOf(row.mode)
    modeStep[i] = row.modeStep
  })
  return { ...request, apart: worker.includes(-1), workers: workers.names, worker, mode, modeStep }
}

function planBatches(
  records: RecordColumns,
  order: Int32Array,
  limit: number,
  { gapByteLength, batchByteLength }: ReadShape,
): ReadBatch[] {
  const batches: ReadBatch[] = []
  let open: { file: number; startByte: number; endByte: number; first: number; count: number } | undefined
  for (let i = 0; i < order.length; i++) {
    const record = order[i]!
    const file = records.file[record]!
    const startByte = records.startByte[record]!
    // A length that can't be (the job refuses the record unread) must not make the batch longer.
    const byteLength = records.byteLength[record]!
    const endByte = startByte + (byteLength > limit ? 0 : byteLength)
    if (
      open !== undefined &&
      open.file === file &&
      startByte - open.endByte <= gapByteLength &&
      Math.max(endByte, open.endByte) - open.startByte <= batchByteLength &&
      open.count < BATCH_RECORDS
    ) {
      open.endByte = Math.max(endByte, open.endByte)
      open.count++
      continue
    }
    open = { file, startByte, endByte, first: i, count: 1 }
    batches.push(open)
  }
  return batches
}

/** Records as columns, with every file and tag named once. */
export function columnsOf(places: readonly RecordPlace[]): {
  readonly files: string[]
  readonly tags: string[]
  readonly records: RecordColumns
} {
  const files = new Interner()
  const tags = new Interner()
  const count = places.length
  const records: RecordColumns = {
    file: new Int32Array(count),
    tag: new Int32Array(count),
    startByte: new Float64Array(count),
    byteLength: new Float64Array(count),
    step: new Float64Array(count),
    tornasole: new Uint8Array(count),
  }
  places.forEach((place, i) => {
    records.file[i] = files.number(place.file)
    records.tag[i] = tags.number(place.tag)
    records.startByte[i] = place.startByte
    records.byteLength[i] = place.byteLength
    records.step[i] = place.step
    records.tornasole[i] = place.tornasole ? 1 : 0
  })
  return { files: files.names, tags: tags.names, records }
}

/** Numbers names in the order they first come. */
export class Interner {
  readonly names: string[] = []
  readonly #numbers = new Map<string, number>()
  /** The number that was told last: of files, one is asked for many times in a row. */
  #last = -1

  number(name: string): number {
    if (this.names[this.#last] === name) return this.#last
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.names.length
      this.names.push(name)
      this.#numbers.set(name, number)
    }
    this.#last = number
    return number
  }
}

/** What is asked of elements beside their moments. Plain numbers, since it crosses a thread. */
export interface Task {
  readonly kind: 'value' | 'allclose' | 'change' | 'activity' | 'count' | 'channels' | 'percentiles'
  /** The record it is about; of two that are compared, the first. */
  readonly first: number
  /** The record it is compared with; -1 where it is about one only. */
  readonly second: number
  readonly numbers: readonly number[]
}

/** Tasks as they cross a thread. What is asked is told once, however many records it is asked of. */
export interface TaskColumns {
  readonly asked: readonly Pick<Task, 'kind' | 'numbers'>[]
  /** Of each task an index into `asked`, and its records, of the job. */
  readonly what: Int32Array
  readonly first: Int32Array
  readonly second: Int32Array
}

/** A record to measure. */
export interface MeasuredPlace extends RecordPlace {
  /** Index into the stores. */
  readonly store: number
  /** Records of one tensor, over the steps, share a number. */
  readonly series: number
}

/** Moments of records, and what else is asked of them and of pairs of them; of records in any number of trials. */
export interface MeasureJob {
  readonly kind: 'measure'
  /** As in ScanJob. */
  readonly known: number
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly files: readonly string[]
  readonly tags: readonly string[]
  /** In the order they are read. */
  readonly records: RecordColumns
  readonly tasks: TaskColumns
  /** Empty where records are too large to be read at once. */
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, where several are read at once. */
  readonly aheadByteLength: number
  /** Which part of each record, of how many; 0 of 1: all of it. */
  readonly part: number
  readonly parts: number
  readonly windowByteLength: number
}

/** A job, and which records and tasks of the plan are its own, in its order. */
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
  /** How much the rows of moments have to know: see the engine's KNOWN. */
  readonly known: number
}

/** What can be put together from parts of a record; for the rest it has to be in memory as a whole. */
const MERGEABLE: ReadonlySet<Task['kind']> = new Set(['allclose', 'change', 'count'])
/** Neighbours in a file that one job follows over the steps: enough for a read worth its call. */
const LANE_BYTES = 64 << 10

/**
 * Cuts records and what is asked of them into jobs, so that each byte is read once. Where records are compared over the
 * steps, a job is a lane: neighbouring tensors over all steps, so that no more than a lane's last values are held.
 * @param records no two of one place
 */
export function* planMeasures(
  records: readonly MeasuredPlace[],
  tasks: readonly Task[],
  context: MeasureContext,
): Generator<PlannedMeasure> {
  const limit = wholeRecordLimit(context.memory)
  // A length that can't be is refused unread.
  const byteLengths = Float64Array.from(records, ({ byteLength }) => (byteLength > RECORD_LIMIT ? 0 : byteLength))
  const order = readingOrder(records)
  const rank = new Int32Array(records.length)
  order.forEach((record, at) => {
    rank[record] = at
  })
  const lanes = tasks.some(({ second }) => second >= 0)
  const groups = groupsOf(records, tasks, order, lanes)
  const total = byteLengths.reduce((sum, byteLength) => sum + byteLength, 0)
  const steps = new Set(records.map(({ step }) => step)).size
  const shape = shapeOf(context.stores, context.memory)
  // Where every read is a request, the lanes are as few as may be.
  const lanesAtOnce = shape === LOCAL_SHAPE ? 4 * Math.max(1, context.threads) : 1
  const laneBytes = Math.max(LANE_BYTES, Math.min(shape.batchByteLength, total / steps / lanesAtOnce))
  const jobBytes = lanes ? laneBytes * steps : JOB_BYTES
  const tasksOf = tasksByRecord(records.length, tasks)
  /** Where each record is in its job. */
  const local = new Int32Array(records.length)
  const build = (members: readonly number[], isWhole: boolean, part = 0, parts = 1): PlannedMeasure => {
    const ranks = new Int32Array(members.length)
    members.forEach((record, i) => {
      ranks[i] = rank[record]!
    })
    ranks.sort()
    const own: number[] = []
    const ownTasks: number[] = []
    for (const at of ranks) {
      const record = order[at]!
      local[record] = own.push(record) - 1
      tasksOf(record, ownTasks)
    }
    const { files, storeOf, tags, columns } = measuredColumns(own.map(record => records[record]!))
    return {
      records: own,
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
        batches: isWhole ? planMeasureBatches(columns, own, rank, limit, shape) : [],
        aheadByteLength: aheadByteLength(context.memory),
        part,
        parts,
        windowByteLength: windowByteLength(context.memory),
      },
    }
  }
  let open: number[] = []
  let openBytes = 0
  for (const group of groups) {
    let [bytes, largest] = [0, 0]
    for (const record of group) {
      const byteLength = byteLengths[record]!
      bytes += byteLength
      if (byteLength > limit) largest = Math.max(largest, byteLength)
    }
    if (largest > 0) {
      const isMergeable = group.every(record => tasksOf(record, []).every(task => MERGEABLE.has(tasks[task]!.kind)))
      const parts = isMergeable ? Math.ceil(largest / PART_BYTES) : 1
      for (let part = 0; part < parts; part++) yield build(group, false, part, parts)
      continue
    }
    if (open.length > 0 && (openBytes + bytes > jobBytes || open.length + group.length > JOB_RECORDS)) {
      yield build(open, true)
      open = []
      openBytes = 0
    }
    for (const record of group) open.push(record)
    openBytes += bytes
  }
  if (open.length > 0) yield build(open, true)
}

/** @returns what adds to a list, in order, the tasks that have a record as their first */
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

/** @param own the tasks of a job @param local where each record is in it */
function taskColumns(tasks: readonly Task[], own: readonly number[], local: Int32Array): TaskColumns {
  const asked: Pick<Task, 'kind' | 'numbers'>[] = []
  const what = new Int32Array(own.length)
  const firsts = new Int32Array(own.length)
  const seconds = new Int32Array(own.length)
  own.forEach((task, i) => {
    const { kind, numbers, first, second } = tasks[task]!
    const known = asked.findIndex(one => one.kind === kind && one.numbers === numbers)
    what[i] = known < 0 ? asked.push({ kind, numbers }) - 1 : known
    firsts[i] = local[first]!
    seconds[i] = second < 0 ? -1 : local[second]!
  })
  return { asked, what, first: firsts, second: seconds }
}

/** Step by step, and within a step in the order of the files. */
function readingOrder(records: readonly MeasuredPlace[]): number[] {
  const files = new Interner()
  const file = new Int32Array(records.length)
  const step = new Float64Array(records.length)
  const startByte = new Float64Array(records.length)
  records.forEach((record, i) => {
    file[i] = files.number(record.file)
    step[i] = record.step
    startByte[i] = record.startByte
  })
  return Array.from(file.keys()).sort(
    (a, b) =>
      step[a]! - step[b]! ||
      records[a]!.store - records[b]!.store ||
      file[a]! - file[b]! ||
      startByte[a]! - startByte[b]! ||
      a - b,
  )
}

/** Numbers in sets that are joined, each known by one of its numbers. */
export class DisjointSets {
  readonly #parent: Int32Array

  /** @param count of numbers, each in a set of its own */
  constructor(count: number) {
    this.#parent = new Int32Array(count).map((_, i) => i)
  }

  rootOf(number: number): number {
    const parent = this.#parent
    let at = number
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!
      at = parent[at]!
    }
    return at
  }

  /** The first one's root is that of both. */
  join(a: number, b: number): void {
    this.#parent[this.rootOf(b)] = this.rootOf(a)
  }
}

/** Records that have to be in one job, in the order of the first of each group: all of the series that are compared. */
function groupsOf(
  records: readonly MeasuredPlace[],
  tasks: readonly Task[],
  order: readonly number[],
  lanes: boolean,
): number[][] {
  if (!lanes) return order.map(record => [record])
  const sets = new DisjointSets(records.reduce((count, { series }) => Math.max(count, series + 1), 0))
  for (const { first, second } of tasks) {
    if (second < 0) continue
    sets.join(records[first]!.series, records[second]!.series)
  }
  const groups = new Map<number, number[]>()
  for (const record of order) {
    const own = sets.rootOf(records[record]!.series)
    const group = groups.get(own)
    if (group === undefined) groups.set(own, [record])
    else group.push(record)
  }
  return [...groups.values()]
}

/** Neighbours are read at once; what lies between two may be read over only if no other job wants it. */
function planMeasureBatches(
  { file, startByte, byteLength }: RecordColumns,
  own: readonly number[],
  rank: Int32Array,
  limit: number,
  { gapByteLength, batchByteLength }: ReadShape,
): ReadBatch[] {
  const batches: ReadBatch[] = []
  let open: { file: number; startByte: number; endByte: number; first: number; count: number } | undefined
  own.forEach((record, i) => {
    const start = startByte[i]!
    // A length that can't be (the job refuses the record unread) must not make the batch longer.
    const end = start + (byteLength[i]! > limit ? 0 : byteLength[i]!)
    if (
      open !== undefined &&
      open.file === file[i] &&
      rank[record] === rank[own[i - 1]!]! + 1 &&
      start - open.endByte <= gapByteLength &&
      Math.max(end, open.endByte) - open.startByte <= batchByteLength &&
      open.count < BATCH_RECORDS
    ) {
      open.endByte = Math.max(end, open.endByte)
      open.count++
      return
    }
    open = { file: file[i]!, startByte: start, endByte: end, first: i, count: 1 }
    batches.push(open)
  })
  return batches
}

/** Records as columns; a file is one of a store. */
function measuredColumns(places: readonly MeasuredPlace[]): {
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
