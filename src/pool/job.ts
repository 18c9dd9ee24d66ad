/**
 * What a thread does with a job: read ▸ decode ▸ reduce ▸ reply. One bad record is one failure in the reply; the rest
 * of the job stands.
 */

import { dtypeNumber, dtypeOf } from '../engine/dtype.js'
import { type Batch, type Engine, type SlotReader, UnfoldRoom } from '../engine/engine.js'
import type { LineTable } from '../engine/lines.js'
import type { Address } from '../engine/memory.js'
import { isDefined, isPlainRow, Moments, numberFrom, type ReductionValue } from '../engine/moments.js'
import { type ErrorData, FormatError, StoreError, TrialscanError } from '../errors.js'
import type { Histogram } from '../format/histogram.js'
import { IndexFileReader } from '../format/index-file.js'
import { parseIndexFileName } from '../format/paths.js'
import { parseTornasoleIndex } from '../format/tornasole.js'
import type { DescribeJob, DescribeReply } from '../job/describe.js'
import type { HistogramResult, RecordFailure, Spent } from '../job/reply.js'
import type { LinesJob, PartJob, PartReply, ScanJob, ScanReply, WrittenLines } from '../job/scan.js'
import type { RawValue, ValueJob, ValueReply } from '../job/value.js'
import { eachFile, type Store, type StoreSpec } from '../store/store.js'
import { type DType, type GlobalStep, MODES, type ModeStep, type ReductionName } from '../types.js'
import { scanEventFiles, withModeOfEvents } from './events.js'
import { HEAD_BYTES, type LargeRecord } from './large.js'
import { measure } from './measure.js'
import type { IndexJob, IndexReply, Job, Reply } from './message.js'
import { ReadAhead } from './read-ahead.js'
import {
  askedOf,
  DescriptionWriter,
  failureData,
  impossibleLength,
  openLarge,
  placeOf,
  rawValue,
  readHistogram,
  shapeOf,
  withHeads,
} from './record.js'
import { type RowFormat, rowFormat, type ScanRow, TextWriter, type ValueRow } from './row.js'

/** Index files larger than this are refused: a step's index takes about 100 bytes a tensor. */
const MAX_INDEX_BYTES = 256 << 20

/** Runs a job on this thread's engine. */
export async function runJob(job: Job, engine: Engine, storeOf: (spec: StoreSpec) => Store): Promise<Reply> {
  if (job.kind === 'measure') return measure(job, engine, job.stores.map(storeOf))
  const store = storeOf(job.store)
  switch (job.kind) {
    case 'scan':
      return scan(job, engine, store)
    case 'part':
      return reducePart(job, engine, store)
    case 'describe':
      return describe(job, engine, store)
    case 'value':
      return values(job, engine, store)
    case 'index':
      return readIndexFiles(job, store)
    case 'events':
      return scanEventFiles(job, engine, store)
    case 'copy':
      return (await import('./copy.js')).copyRecords(job, engine, store)
    case 'verify':
      // Few need it, and a scan should not load it.
      return (await import('./verify.js')).verifyEventFiles(job, engine, store)
  }
}

async function scan(job: ScanJob, engine: Engine, store: Store): Promise<ScanReply> {
  const { records, order, batches } = job
  const total = order.length
  const rowLength = engine.layout.moments.doubles
  // Made when the first record needs it: rows that are written down need no moments.
  let moments = new Float64Array(0)
  const described = new DescriptionWriter(total)
  const failures: RecordFailure[] = []
  const fail = (record: number, error: unknown): void => {
    failures.push({ record, error: failureData(error) })
  }
  let readBytes = 0
  const clock = new Clock(job.timed)

  engine.reset()
  const lines = job.lines && new LinesWriter(job, job.lines, engine)
  const tags = engine.writeTags(job.tags)
  const room = engine.reserveBatch(batches.reduce((most, { count }) => Math.max(most, count), 1))
  const reads = new ReadAhead(
    engine,
    batches.map(({ file, startByte, endByte }) => ({
      store,
      path: job.files[file]!,
      startByte,
      byteLength: endByte - startByte,
    })),
    job.aheadByteLength,
  )
  try {
    for (const { startByte, endByte, first, count } of batches) {
      let window: Address
      let there: number
      clock.lap('writeMs')
      try {
        const arrival = reads.next()
        window = arrival.window
        there = typeof arrival.there === 'number' ? arrival.there : await arrival.there
        clock.lap('readMs')
      } catch (error) {
        for (let i = 0; i < count; i++) fail(order[first + i]!, error)
        continue
      }
      readBytes += there
      const recordOf = (i: number): number => order[first + i]!
      engine.ask(
        room,
        count,
        tags,
        i => askedOf(records, recordOf(i)),
        i => {
          const at = records.startByte[recordOf(i)]! - startByte
          const byteLength = Math.max(0, Math.min(records.byteLength[recordOf(i)]!, there - at))
          return { address: window + Math.min(at, endByte - startByte), byteLength }
        },
      )
      engine.scoped(() => {
        clock.lap('writeMs')
        if (job.timed) engine.decode(room, count, job.checkLevel)
        const decodeMs = clock.lap('decodeMs')
        engine.scan(room, count, job.checkLevel, job.known)
        // The core does both at once; what it takes beyond the walk alone is the reducing.
        clock.lap('reduceMs', decodeMs)
        const slots = engine.slots(room, count)
        const rows = engine.rows(room, count)
        for (let i = 0; i < count; i++) {
          const record = recordOf(i)
          // Held against the index entry here, since the core knows lengths of 32 bits only.
          const refused = impossibleLength(job, record, store)
          if (refused || !slots.ok(i)) {
            fail(record, refused ?? slots.error(i, placeOf(job, record, store)))
            continue
          }
          if (lines?.write(record, room, slots, rows, i)) continue
          described.set(record, slots.dtypeNumber(i), slots.shape(i))
          if (moments.length === 0) moments = new Float64Array(total * rowLength)
          moments.set(rows.subarray(i * rowLength, (i + 1) * rowLength), record * rowLength)
        }
        lines?.flush()
      })
    }
  } finally {
    reads.end()
  }
  const histograms: HistogramResult[] = []
  const failed: RecordFailure[] = []
  for (const failure of failures) {
    const histogram = await readHistogram(job, failure.record, failure.error.code, store)
    if (histogram === null) failed.push(failure)
    else histograms.push({ record: failure.record, shape: shapeOf(histogram), reductions: histogram.reductions })
  }
  const written = lines?.finish() ?? null
  clock.lap('writeMs')
  const stats = { records: total, readBytes, reads: batches.length, spent: clock.spent }
  if (written !== null && written.byteLengths === null) {
    const nothing = new DescriptionWriter(0).finish()
    return { kind: 'scan', described: nothing, histograms, moments, failures, lines: written, stats }
  }
  return { kind: 'scan', described: described.finish(), histograms, moments, failures: failed, lines: written, stats }
}

/** Where a job's time goes. */
class Clock {
  readonly #spent: { -readonly [K in keyof Spent]: number } | undefined
  #at = performance.now()

  constructor(isOn: boolean) {
    this.#spent = isOn ? { readMs: 0, decodeMs: 0, reduceMs: 0, writeMs: 0 } : undefined
  }

  get spent(): Spent | undefined {
    return this.#spent
  }

  /** What has passed since the last lap goes to one account, but for what was done a second time. @returns the lap */
  lap(account: keyof Spent, twiceMs = 0): number {
    if (this.#spent === undefined) return 0
    const now = performance.now()
    const lap = now - this.#at
    this.#at = now
    this.#spent[account] += Math.max(0, lap - twiceMs)
    return lap
  }
}

/** A line of all eighteen reductions takes no more, but for long names. */
const LINE_BYTES = 512

/**
 * Writes rows down as they are made. Those of real numbers that need no second look wait for others, and the core writes
 * them at once; all others are written as they come.
 */
class LinesWriter {
  readonly #job: ScanJob
  readonly #lines: LinesJob
  readonly #engine: Engine
  readonly #format: RowFormat
  readonly #table: LineTable
  /** The records whose lines wait in the table. */
  #waiting: number[] = []
  readonly #text: TextWriter
  readonly #starts: Float64Array
  readonly #byteLengths: Uint32Array<ArrayBuffer>
  #count = 0
  /** Whether the lines came in the order of their rows. */
  #isInOrder = true
  /** The place and the kind that were spelled last. */
  #place: Place = { step: -1 as GlobalStep, mode: 'GLOBAL', modeStep: -1 as ModeStep, worker: '' }
  #placeText = ''
  #kind: Kind = { dtype: 'string', shape: [] }
  #kindText = ''

  constructor(job: ScanJob, lines: LinesJob, engine: Engine) {
    this.#job = job
    this.#lines = lines
    this.#engine = engine
    const format = rowFormat(lines.format, lines.reductions)
    this.#format = format
    const columns = lines.reductions.map((name, i) => ({ label: format.labels[i]!, ...numberFrom(name) }))
    const names = job.tags.map(tag => format.name(tag))
    this.#table = engine.lineTable({ columns, isJson: format.isJson, end: format.end, names })
    this.#text = new TextWriter(job.order.length * LINE_BYTES)
    this.#starts = new Float64Array(job.order.length)
    this.#byteLengths = new Uint32Array(job.order.length)
  }

  /**
   * Writes the i-th record of a batch.
   * @param rows those of the batch; they must stay until `flush`
   * @returns false for a record that is no row of its own, or has not all that was asked for: it is not written
   */
  write(record: number, batch: Batch, slots: SlotReader, rows: Float64Array, i: number): boolean {
    const { workers, worker, mode, modeStep, reductions, strict } = this.#lines
    if (worker[record]! < 0) return false
    const { records, tags } = this.#job
    const tag = records.tag[record]!
    const dtype = dtypeOf(slots.dtypeNumber(i))!
    const kind = { dtype, shape: slots.shape(i) }
    const place = {
      step: records.step[record]! as GlobalStep,
      mode: MODES[mode[record]!]!,
      modeStep: modeStep[record]! as ModeStep,
      worker: workers[worker[record]!]!,
    }
    const { moments: layout } = this.#engine.layout
    const at = i * layout.doubles
    if (!NOT_IN_FLOAT64.has(dtype) && isPlainRow(layout, rows, at)) {
      if (this.#add(tag, place, kind, this.#engine.rowAddress(batch, i))) {
        this.#waiting.push(record)
        return true
      }
    }
    const moments = new Moments(layout, dtype, rows.subarray(at, at + layout.doubles))
    const told: Partial<Record<ReductionName, ReductionValue>> = {}
    for (const name of reductions) {
      if (isDefined(name, dtype)) told[name] = moments.reduction(name)
      else if (strict && dtype !== 'string') return false
    }
    this.flush()
    const { exact } = moments
    const start = this.#text.length
    const row: ValueRow = {
      tensor: tags[tag]!,
      ...place,
      ...kind,
      reductions: told,
      saved: false,
      moments,
      ...(exact && { exact }),
    }
    this.#format.write(row, this.#text)
    this.#wrote(record, start, this.#text.length)
    return true
  }

  /** Adds a line to the table. @returns false for one that is too long for it */
  #add(name: number, place: Place, kind: Kind, row: Address): boolean {
    if (!isSamePlace(place, this.#place)) {
      this.#place = place
      this.#placeText = this.#format.place(place)
    }
    if (!isSameKind(kind, this.#kind)) {
      this.#kind = kind
      this.#kindText = this.#format.kind(kind)
    }
    if (this.#table.add(name, this.#placeText, this.#kindText, row)) return true
    this.flush()
    return this.#table.add(name, this.#placeText, this.#kindText, row)
  }

  /** Writes the lines that wait. */
  flush(): void {
    if (this.#waiting.length === 0) return
    const { text, ends } = this.#table.write()
    let start = this.#text.length
    const base = start
    this.#text.bytes(text)
    for (const [i, record] of this.#waiting.entries()) {
      this.#wrote(record, start, base + ends[i]!)
      start = base + ends[i]!
    }
    this.#waiting = []
  }

  finish(): WrittenLines {
    const isWhole = this.#count === this.#byteLengths.length && !this.#lines.apart
    const byteLengths = isWhole ? null : this.#byteLengths
    const written = this.#text.finish()
    if (this.#isInOrder) return { text: written, byteLengths }
    const text = new Uint8Array(written.length)
    let at = 0
    for (const [record, byteLength] of this.#byteLengths.entries()) {
      const start = this.#starts[record]!
      text.set(written.subarray(start, start + byteLength), at)
      at += byteLength
    }
    return { text, byteLengths }
  }

  #wrote(record: number, start: number, end: number): void {
    this.#isInOrder &&= record === this.#count
    this.#count++
    this.#starts[record] = start
    this.#byteLengths[record] = end - start
  }
}

type Place = Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker'>
type Kind = Pick<ValueRow, 'dtype' | 'shape'>

function isSamePlace(a: Place, b: Place): boolean {
  return a.step === b.step && a.modeStep === b.modeStep && a.mode === b.mode && a.worker === b.worker
}

function isSameKind(a: Kind, b: Kind): boolean {
  const { length } = a.shape
  if (a.dtype !== b.dtype || length !== b.shape.length) return false
  for (let axis = 0; axis < length; axis++) if (a.shape[axis] !== b.shape[axis]) return false
  return true
}

/** Dtypes of which not all reductions are there, or not all are numbers that float64 holds. */
const NOT_IN_FLOAT64: ReadonlySet<DType> = new Set<DType>(['string', 'complex64', 'complex128', 'int64', 'uint64'])

async function reducePart(job: PartJob, engine: Engine, store: Store): Promise<PartReply> {
  const described = new DescriptionWriter(1)
  const failures: RecordFailure[] = []
  let record: LargeRecord | undefined
  let moments = new Float64Array(engine.layout.moments.doubles)
  let sums = { crc: 0, crcByteLength: 0, storedCrc: 0 }
  try {
    record = await openLarge(job, 0, engine, store, job.aheadByteLength)
    const { dtype, shape } = record.found
    const row = engine.reserveBatch(1)
    const known = job.known
    engine.resetRow(row)
    sums = await record.streamPart(job.part, job.parts, (address, count) =>
      engine.addToRow(row, dtype, address, count, 0, known),
    )
    if (job.part === 0) record.addValues(row, known)
    moments = engine.rows(row, 1).slice()
    described.set(0, dtypeNumber(dtype), shape)
  } catch (error) {
    failures.push({ record: 0, error: failureData(error) })
  }
  return {
    kind: 'part',
    described: described.finish(),
    moments,
    failures,
    ...sums,
    stats: { records: job.part === 0 ? 1 : 0, readBytes: record?.readBytes ?? 0, reads: record?.reads ?? 0 },
  }
}

async function describe(job: DescribeJob, engine: Engine, plain: Store): Promise<DescribeReply> {
  const store = await withHeads(job, plain, HEAD_BYTES)
  const total = job.records.file.length
  const described = new DescriptionWriter(total)
  const failures: RecordFailure[] = []
  let readBytes = 0
  let reads = 0
  // Files that can't be read: not tried again for each of their records.
  const lost = new Map<number, ErrorData>()
  for (let record = 0; record < total; record++) {
    const known = lost.get(job.records.file[record]!)
    if (known) {
      failures.push({ record, error: known })
      continue
    }
    try {
      const large = await openLarge(job, record, engine, store)
      readBytes += large.readBytes
      reads += large.reads
      described.set(record, dtypeNumber(large.found.dtype), large.found.shape)
    } catch (error) {
      const data = failureData(error)
      if (error instanceof StoreError) lost.set(job.records.file[record]!, data)
      const histogram = await readHistogram(job, record, data.code, store)
      if (histogram === null) failures.push({ record, error: data })
      else described.set(record, dtypeNumber('float64'), shapeOf(histogram))
    }
  }
  return { kind: 'describe', described: described.finish(), failures, stats: { records: total, readBytes, reads } }
}

async function values(job: ValueJob, engine: Engine, plain: Store): Promise<ValueReply> {
  const isSmall = job.records.byteLength.every(byteLength => byteLength <= job.windowByteLength)
  const store = isSmall ? await withHeads(job, plain, job.windowByteLength) : plain
  const total = job.records.file.length
  const room = new UnfoldRoom(job.unfoldLimit)
  const result: RawValue[] = []
  const failures: RecordFailure[] = []
  let readBytes = 0
  let reads = 0
  for (let record = 0; record < total; record++) {
    try {
      if (job.records.byteLength[record]! <= job.windowByteLength) {
        result.push(await wholeValue(job, record, engine, store, room))
        readBytes += job.records.byteLength[record]!
        reads++
      } else {
        const large = await openLarge(job, record, engine, store)
        const strings = large.found.dtype === 'string' ? await large.readStrings(room) : null
        const bytes = strings ? null : await large.readElements(room)
        readBytes += large.readBytes
        reads += large.reads
        result.push(rawValue(large.found, bytes, strings, engine))
      }
    } catch (error) {
      const data = failureData(error)
      const histogram = await readHistogram(job, record, data.code, store)
      if (histogram === null) failures.push({ record, error: data })
      else result.push(histogramValue(histogram))
    }
  }
  return { kind: 'value', values: result, failures, stats: { records: total, readBytes, reads } }
}

async function wholeValue(
  job: ValueJob,
  record: number,
  engine: Engine,
  store: Store,
  unfoldRoom: UnfoldRoom,
): Promise<RawValue> {
  const { records } = job
  const refused = impossibleLength(job, record, store)
  if (refused) throw refused
  const byteLength = records.byteLength[record]!
  engine.reset()
  const tags = engine.writeTags([job.tags[records.tag[record]!]!])
  const room = engine.reserveBatch(1)
  const window = engine.reserveBytes(byteLength)
  const path = job.files[records.file[record]!]!
  const there = await store.readInto(path, records.startByte[record]!, engine.view(window, byteLength))
  const asked = { ...askedOf(records, record), tag: 0 }
  engine.ask(
    room,
    1,
    tags,
    () => asked,
    () => ({ address: window, byteLength: there }),
  )
  engine.decode(room, 1, job.checkLevel)
  const slots = engine.slots(room, 1)
  if (!slots.ok(0)) throw slots.error(0, placeOf(job, record, store))
  const found = slots.found(0)
  if (found.kind === 'strings') {
    return rawValue(found, null, engine.copyStrings(room, 0, found, unfoldRoom), engine)
  }
  return rawValue(found, engine.copyElements(room, 0, found, unfoldRoom), null, engine)
}

function histogramValue(histogram: Histogram): RawValue {
  const bytes = new Uint8Array(histogram.rows.buffer)
  return { dtype: 'float64', shape: shapeOf(histogram), bytes, widened: null, strings: null }
}

/** Of a whole file, which is told once. */
function errorOf(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return error.toJSON()
  throw error
}

async function readIndexFiles({ paths }: IndexJob, store: Store): Promise<IndexReply> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const reader = new IndexFileReader()
  const files = await eachFile(store, paths, async path => {
    try {
      const url = store.url(path)
      const name = parseIndexFileName(path)
      const bytes = await store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText: name?.kind !== 'csv' })
      if (name?.kind !== 'csv') return reader.read(bytes, url)
      const text = decodeText(decoder, bytes, url)
      return await withModeOfEvents(parseTornasoleIndex(text, url), name.step, store)
    } catch (error) {
      return errorOf(error)
    }
  })
  return { kind: 'index', files }
}

function decodeText(decoder: TextDecoder, bytes: Uint8Array, url: string): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    const message = `${url}: expected UTF-8, got bytes that are not`
    throw new FormatError('BadIndexFile', message, { url, expected: 'UTF-8', got: 'other bytes' }, cause)
  }
}
