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
  /** Whether it has to be known where each line ends. */
  readonly apart: boolean
}

/** What a row tells beside its record: one entry a record in each column. */
export interface LinesJob extends LinesRequest {
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

/** A job, and which of the plan's records it is about: `records[first .. first + count)`. */
export interface PlannedJob {
  readonly job: ScanJob | PartJob
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

/** Cuts records, which are in the order of their rows, into jobs in the same order. Lazy: a job is built when asked for. */
export function* planJobs(records: readonly RecordPlace[], context: PlanContext): Generator<PlannedJob> {
  const limit = wholeRecordLimit(context.memory)
  let first = 0
  while (first < records.length) {
    const head = records[first]!
    if (head.byteLength > limit && head.byteLength <= RECORD_LIMIT) {
      yield* planParts(head, first, context)
      first++
      continue
    }
    let end = first
    let bytes = 0
    while (end < records.length && end - first < JOB_RECORDS && bytes < JOB_BYTES) {
      const { byteLength } = records[end]!
      if (byteLength > limit && byteLength <= RECORD_LIMIT) break
      // A length that can't be is not read either.
      bytes += byteLength > limit ? 0 : byteLength
      end++
    }
    yield { job: planScan(records.slice(first, end), context), first, count: end - first }
    first = end
  }
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
      first,
      count: 1,
    }
  }
}

function planScan(
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
  return { ...request, workers: workers.names, worker, mode, modeStep }
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

  number(name: string): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.names.length
      this.names.push(name)
      this.#numbers.set(name, number)
    }
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
  readonly tasks: readonly Task[]
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
  const isLarge = ({ byteLength }: RecordPlace): boolean => byteLength > limit && byteLength <= RECORD_LIMIT
  const sizeOf = (place: RecordPlace): number => (place.byteLength > RECORD_LIMIT ? 0 : place.byteLength)
  const order = readingOrder(records)
  const rank = new Int32Array(records.length)
  order.forEach((record, at) => {
    rank[record] = at
  })
  const lanes = tasks.some(({ second }) => second >= 0)
  const groups = groupsOf(records, tasks, order, lanes)
  const total = records.reduce((sum, place) => sum + sizeOf(place), 0)
  const steps = new Set(records.map(({ step }) => step)).size
  const shape = shapeOf(context.stores, context.memory)
  // Where every read is a request, the lanes are as few as may be.
  const lanesAtOnce = shape === LOCAL_SHAPE ? 4 * Math.max(1, context.threads) : 1
  const laneBytes = Math.max(LANE_BYTES, Math.min(shape.batchByteLength, total / steps / lanesAtOnce))
  const jobBytes = lanes ? laneBytes * steps : JOB_BYTES
  const tasksOf = new Map<number, number[]>()
  tasks.forEach(({ first }, task) => {
    const own = tasksOf.get(first)
    if (own === undefined) tasksOf.set(first, [task])
    else own.push(task)
  })
  const build = (members: readonly number[], isWhole: boolean, part = 0, parts = 1): PlannedMeasure => {
    const own = [...members].sort((a, b) => rank[a]! - rank[b]!)
    const local = new Map(own.map((record, i) => [record, i]))
    const ownTasks = own.flatMap(record => tasksOf.get(record) ?? [])
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
        tasks: ownTasks.map(task => {
          const { first, second } = tasks[task]!
          return { ...tasks[task]!, first: local.get(first)!, second: second < 0 ? -1 : local.get(second)! }
        }),
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
    const largest = group.reduce(
      (most, record) => (isLarge(records[record]!) ? Math.max(most, records[record]!.byteLength) : most),
      0,
    )
    if (largest > 0) {
      const isMergeable = group.every(record =>
        (tasksOf.get(record) ?? []).every(task => MERGEABLE.has(tasks[task]!.kind)),
      )
      const parts = isMergeable ? Math.ceil(largest / PART_BYTES) : 1
      for (let part = 0; part < parts; part++) yield build(group, false, part, parts)
      continue
    }
    const bytes = group.reduce((sum, record) => sum + sizeOf(records[record]!), 0)
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

/** Step by step, and within a step in the order of the files. */
function readingOrder(records: readonly MeasuredPlace[]): number[] {
  const files = new Interner()
  const file = records.map(({ file }) => files.number(file))
  return [...records.keys()].sort((a, b) => {
    const [x, y] = [records[a]!, records[b]!]
    return x.step - y.step || x.store - y.store || file[a]! - file[b]! || x.startByte - y.startByte || a - b
  })
}

/** Records that have to be in one job, in the order of the first of each group. */
function groupsOf(
  records: readonly MeasuredPlace[],
  tasks: readonly Task[],
  order: readonly number[],
  lanes: boolean,
): number[][] {
  if (!lanes) return order.map(record => [record])
  const parent = Int32Array.from(records.keys())
  const root = (record: number): number => {
    let at = record
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!
      at = parent[at]!
    }
    return at
  }
  const firstOf = new Map<number, number>()
  records.forEach(({ series }, record) => {
    const first = firstOf.get(series)
    if (first === undefined) firstOf.set(series, record)
    else parent[root(record)] = root(first)
  })
  for (const { first, second } of tasks) if (second >= 0) parent[root(second)] = root(first)
  const groups = new Map<number, number[]>()
  for (const record of order) {
    const group = groups.get(root(record))
    if (group === undefined) groups.set(root(record), [record])
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
  const { files, tags, records } = columnsOf(places.map(place => ({ ...place, file: `${place.store}\n${place.file}` })))
  return {
    files: files.map(file => file.slice(file.indexOf('\n') + 1)),
    storeOf: Int32Array.from(files, file => Number.parseInt(file, 10)),
    tags,
    columns: records,
  }
}
