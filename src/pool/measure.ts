/**
 * What rules ask of tensors, where their bytes are: moments, and tasks on the elements of one record or of two. A record
 * that is compared with a later one is held until then, as a copy of its elements; no more than that is.
 */

import { dtypeNumber, elementByteLength } from '../engine/dtype.js'
import { type Batch, BLOCK_ELEMENTS, type Engine, type Found, type Tags, UnfoldRoom } from '../engine/engine.js'
import type { Address } from '../engine/memory.js'
import { QueryError } from '../errors.js'
import type { MeasureJob, MeasureReply, Task, TaskNumbers, TaskValue } from '../job/measure.js'
import type { HistogramResult, PartChecksum, RecordFailure } from '../job/reply.js'
import type { RawValue } from '../job/value.js'
import type { Store } from '../store/store.js'
import type { DType } from '../types.js'
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
} from './record.js'

export async function measure(job: MeasureJob, engine: Engine, stores: readonly Store[]): Promise<MeasureReply> {
  const measurement = new Measurement(job, engine, stores)
  if (job.batches.length > 0) await measurement.readBatches()
  else for (let record = 0; record < job.records.file.length; record++) await measurement.readLarge(record)
  return measurement.finish()
}

/** Elements in the core's memory. Of a part of a record, those of the part. */
interface Elements {
  readonly dtype: DType
  /** Of the whole tensor. */
  readonly shape: readonly number[]
  readonly address: Address
  readonly count: number
  /** Whether the record holds fewer values than that. */
  readonly isUnfolded: boolean
}

/** A copy of elements, for the tasks that still wait for it. */
interface Held extends Elements {
  readonly bytes: Uint8Array
  /** Where it was brought back to; of no meaning once that scope has ended. */
  address: Address
}

/** Copies of the tensors of a lane, which come back step by step in the same lengths. */
const MAX_SPARE = 16

class Measurement {
  readonly #job: MeasureJob
  readonly #engine: Engine
  readonly #stores: readonly Store[]
  readonly #moments: Float64Array<ArrayBuffer>
  readonly #described: DescriptionWriter
  readonly #failures: RecordFailure[] = []
  readonly #histograms: HistogramResult[] = []
  readonly #checksums: PartChecksum[] = []
  readonly #answers: Float64Array<ArrayBuffer>
  readonly #lists: TaskNumbers[] = []
  readonly #values: TaskValue[] = []
  /** What there is to do once a record is there. */
  readonly #tasksOf: readonly (readonly number[])[]
  /** Tasks that wait for a later record. */
  readonly #waiting: Int32Array
  readonly #held = new Map<number, Held>()
  /** What copies were held in. */
  readonly #spare: Uint8Array[] = []
  /** What is kept of values that short records stand for: copies that are held, and values for rules. */
  readonly #unfoldRoom: UnfoldRoom
  #readBytes = 0
  #reads = 0

  constructor(job: MeasureJob, engine: Engine, stores: readonly Store[]) {
    const total = job.records.file.length
    this.#job = job
    this.#engine = engine
    this.#stores = stores
    this.#unfoldRoom = new UnfoldRoom(job.windowByteLength)
    this.#moments = new Float64Array(total * engine.layout.moments.doubles)
    this.#described = new DescriptionWriter(total)
    const { first, second } = job.tasks
    this.#answers = new Float64Array(2 * first.length).fill(Number.NaN)
    const tasksOf: number[][] = new Array(total).fill(NO_TASKS)
    this.#waiting = new Int32Array(total)
    const earlier = first.map((record, task) => Math.min(record, second[task]!))
    first.forEach((record, task) => {
      // A pair is compared as soon as the later one of it is there.
      const later = Math.max(record, second[task]!)
      if (tasksOf[later] === NO_TASKS) tasksOf[later] = [task]
      else tasksOf[later]!.push(task)
      if (earlier[task]! >= 0 && earlier[task] !== later) this.#waiting[earlier[task]!]!++
    })
    for (const tasks of tasksOf) if (tasks.length > 1) tasks.sort((a, b) => earlier[a]! - earlier[b]! || a - b)
    this.#tasksOf = tasksOf
  }

  #asked(task: number): Pick<Task, 'kind' | 'numbers'> {
    const { asked, what } = this.#job.tasks
    return asked[what[task]!]!
  }

  async readBatches(): Promise<void> {
    const { batches, files } = this.#job
    const engine = this.#engine
    engine.reset()
    const tags = engine.writeTags(this.#job.tags)
    const room = engine.reserveBatch(batches.reduce((most, { count }) => Math.max(most, count), 1))
    const reads = new ReadAhead(
      engine,
      batches.map(({ file, startByte, endByte }) => ({
        store: this.#storeOf(file),
        path: files[file]!,
        startByte,
        byteLength: endByte - startByte,
      })),
      this.#job.aheadByteLength,
    )
    try {
      await this.#readBatches(reads, room, tags)
    } finally {
      reads.end()
    }
  }

  async #readBatches(reads: ReadAhead, room: Batch, tags: Tags): Promise<void> {
    const { batches, records, checkLevel } = this.#job
    const engine = this.#engine
    const rowLength = engine.layout.moments.doubles
    for (const { file, startByte, endByte, first, count } of batches) {
      let window: Address
      let there: number
      try {
        const arrival = reads.next()
        window = arrival.window
        there = typeof arrival.there === 'number' ? arrival.there : await arrival.there
      } catch (error) {
        for (let i = 0; i < count; i++) await this.#fail(first + i, error)
        continue
      }
      this.#reads++
      this.#readBytes += there
      engine.ask(
        room,
        count,
        tags,
        i => askedOf(records, first + i),
        i => {
          const at = records.startByte[first + i]! - startByte
          const byteLength = Math.max(0, Math.min(records.byteLength[first + i]!, there - at))
          return { address: window + Math.min(at, endByte - startByte), byteLength }
        },
      )
      const failed: (readonly [number, unknown])[] = []
      engine.scoped(() => {
        engine.scan(room, count, checkLevel, this.#job.known)
        const slots = engine.slots(room, count)
        this.#moments.set(engine.rows(room, count), first * rowLength)
        const withTasks: (readonly [number, Found, Address])[] = []
        for (let i = 0; i < count; i++) {
          const record = first + i
          const refused = impossibleLength(this.#job, record, this.#storeOf(file))
          if (refused || !slots.ok(i)) {
            failed.push([record, refused ?? slots.error(i, placeOf(this.#job, record, this.#storeOf(file)))])
            continue
          }
          this.#described.set(record, slots.dtypeNumber(i), slots.shape(i))
          if (this.#hasTasks(record)) withTasks.push([i, slots.found(i), slots.dataAddress(i)])
        }
        if (withTasks.length === 0) return
        // Values that lie one by one are read along a cursor, which the moments have moved to their end.
        if (withTasks.some(([, { kind }]) => kind === 'values' || kind === 'strings')) engine.decode(room, count, 0)
        for (const [i, found, address] of withTasks) {
          try {
            this.#work(first + i, found, address, room, i)
          } catch (error) {
            failed.push([first + i, error])
          }
        }
      })
      for (const [record, error] of failed) await this.#fail(record, error)
    }
  }

  /** Tasks on a record that is in memory as a whole. */
  #work(record: number, found: Found, content: Address, room: Batch, i: number): void {
    const engine = this.#engine
    const { dtype, shape, elementCount: count, kind } = found
    if (kind === 'strings') {
      for (const task of this.#tasksOf[record]!) {
        if (this.#asked(task).kind !== 'value') continue
        const strings = engine.copyStrings(room, i, found, this.#unfoldRoom)
        this.#values.push({ task, value: rawValue(found, null, strings, engine) })
      }
      return
    }
    // A few bytes can stand for any number of elements, of which the last is repeated.
    if (kind === 'values' && count * elementByteLength(dtype) > this.#job.windowByteLength) {
      const expected = `at most ${this.#job.windowByteLength} bytes of values that lie one by one`
      throw new QueryError('ValueTooLarge', `expected ${expected}, got ${count} elements`, { elements: count })
    }
    engine.scoped(() => {
      const unfoldRoom = new UnfoldRoom(this.#job.windowByteLength)
      const address = kind === 'content' ? content : this.#reserveCopy(engine.copyElements(room, i, found, unfoldRoom))
      const isUnfolded = isShort(found)
      this.#runTasks(record, { dtype, shape, address, count: kind === 'none' ? 0 : count, isUnfolded })
    })
  }

  /** A record of which one part at a time is in memory, or which is too large for anything but a read of its own. */
  async readLarge(record: number): Promise<void> {
    const { part, parts, records } = this.#job
    const engine = this.#engine
    const store = this.#storeOf(records.file[record]!)
    try {
      const large = await openLarge(this.#job, record, engine, store, this.#job.aheadByteLength)
      try {
        const { dtype, shape, kind, dataByteLength } = large.found
        this.#described.set(record, dtypeNumber(dtype), shape)
        const row = engine.reserveBatch(1)
        const known = this.#job.known
        engine.resetRow(row)
        const size = elementByteLength(dtype)
        const hasTasks = this.#hasTasks(record)
        const isContent = kind === 'content' && hasTasks
        const region = engine.reserveBytes(isContent ? Math.ceil(dataByteLength / parts) + BLOCK_ELEMENTS * size : 0)
        let at = 0
        const checksum = await large.streamPart(part, parts, (address, count, byteLength) => {
          engine.addToRow(row, dtype, address, count, 0, known)
          if (hasTasks) engine.view((region + at) as Address, byteLength).set(engine.view(address, byteLength))
          at += byteLength
        })
        if (part === 0) large.addValues(row, known)
        this.#checksums[record] = checksum
        this.#moments.set(engine.rows(row, 1), record * engine.layout.moments.doubles)
        if (!hasTasks) return
        if (kind === 'strings') {
          const strings = part === 0 ? large.copyStrings(this.#unfoldRoom) : []
          for (const task of this.#tasksOf[record]!) {
            this.#values.push({ task, value: rawValue(large.found, null, strings, engine) })
          }
          return
        }
        let [address, count] = [region, at / Math.max(1, size)]
        if (!isContent && part === 0) {
          const bytes = large.copyElements(new UnfoldRoom(this.#job.windowByteLength))
          address = this.#reserveCopy(bytes)
          count = bytes.length / size
        }
        this.#runTasks(record, { dtype, shape, address, count, isUnfolded: isShort(large.found) })
      } finally {
        this.#readBytes += large.readBytes
        this.#reads += large.reads
      }
    } catch (error) {
      await this.#fail(record, error)
    }
  }

  #runTasks(record: number, elements: Elements): void {
    const { first, second } = this.#job.tasks
    this.#engine.scoped(() => {
      let copied = -1
      for (const task of this.#tasksOf[record]!) {
        const other = Math.min(first[task]!, second[task]!)
        if (other < 0) this.#alone(task, elements)
        else if (other === record) this.#compare(task, elements, elements)
        else {
          const held = this.#held.get(other)
          if (held !== undefined) {
            // Tasks with the same other one follow each other: it is brought back once.
            if (copied !== other) held.address = this.#reserveCopy(held.bytes)
            copied = other
            if (first[task] === record) this.#compare(task, elements, held)
            else this.#compare(task, held, elements)
          }
          this.#release(other)
        }
      }
    })
    if (this.#waiting[record]! === 0) return
    const byteLength = elements.count * elementByteLength(elements.dtype)
    if (elements.isUnfolded) this.#unfoldRoom.take(byteLength)
    const spare = this.#spare.findIndex(bytes => bytes.length === byteLength)
    const bytes = spare < 0 ? new Uint8Array(byteLength) : this.#spare.splice(spare, 1)[0]!
    bytes.set(this.#engine.view(elements.address, byteLength))
    this.#held.set(record, { ...elements, bytes })
  }

  #answer(task: number, a: number, b: number): void {
    this.#answers[2 * task] = a
    this.#answers[2 * task + 1] = b
  }

  #alone(task: number, elements: Elements): void {
    const engine = this.#engine
    const { dtype, shape, address, count } = elements
    const { kind, numbers } = this.#asked(task)
    switch (kind) {
      case 'value':
        this.#values.push({ task, value: this.#value(elements) })
        break
      case 'count':
        this.#answer(task, engine.countEqual(dtype, address, count, numbers[0]!), count)
        break
      case 'percentiles':
        this.#lists.push({ task, numbers: engine.percentiles(dtype, address, count, numbers) })
        break
      case 'activity':
        this.#activity(task, elements, numbers)
        break
      default: {
        const [axis = 0] = numbers
        const isThere = axis < shape.length
        const channels = isThere ? shape[axis]! : 1
        const outer = isThere ? product(shape.slice(0, axis)) : 1
        const inner = isThere ? product(shape.slice(axis + 1)) : count
        // Of no elements there can be 2^53 channels.
        if (count === 0) {
          this.#lists.push({ task, numbers: [0, shape[0] ?? 1] })
          break
        }
        engine.scoped(() => {
          const sums = engine.reserveBytes(channels * 8)
          engine.view(sums, channels * 8).fill(0)
          engine.sumChannels(dtype, address, outer, channels, inner, sums)
          const bytes = engine.view(sums, channels * 8).slice()
          this.#lists.push({ task, numbers: [outer * inner, shape[0] ?? 1, ...new Float64Array(bytes.buffer)] })
        })
      }
    }
  }

  /**
   * How many nodes there are (positions over all axes but the first; a tensor of one axis is one sample of them), and how
   * many of them are within bounds in less than a share of the samples.
   */
  #activity(task: number, { dtype, shape, address, count }: Elements, [lo, hi, percent]: readonly number[]): void {
    const engine = this.#engine
    const samples = shape.length > 1 ? shape[0]! : 1
    const nodes = samples === 0 ? 0 : count / samples
    if (nodes === 0) {
      this.#answer(task, 0, 0)
      return
    }
    engine.scoped(() => {
      const counts = engine.reserveBytes(nodes * 4)
      engine.view(counts, nodes * 4).fill(0)
      engine.countInside(dtype, address, samples, nodes, lo!, hi!, counts)
      // The least count that is not below the share, judged by the very formula of the rule.
      let least = Math.max(0, Math.floor((percent! * samples) / 100) - 1)
      while ((100 * least) / samples < percent! && least <= samples) least++
      this.#answer(task, nodes, engine.countBelow(counts, nodes, least))
    })
  }

  /** Answers with how far two are apart, and the elements they have: -1 where shapes differ. */
  #compare(task: number, a: Elements, b: Elements): void {
    const engine = this.#engine
    const { kind, numbers } = this.#asked(task)
    if (!isSameShape(a.shape, b.shape)) {
      this.#answer(task, 0, -1)
      return
    }
    if (a.count !== b.count) {
      const message = 'expected two records that hold their elements in one way, got one in pieces and one not'
      throw new QueryError('NotComparable', message)
    }
    const apart =
      kind === 'change'
        ? engine.sumAbsDifference(a.dtype, a.address, b.dtype, b.address, a.count)
        : Number(!this.#isClose(a, b, numbers))
    this.#answer(task, apart, a.count)
  }

  /** Whether all elements are close. Most tensors that differ do so in their first elements, and are left there. */
  #isClose(a: Elements, b: Elements, [rtol, atol, equalNan]: readonly number[]): boolean {
    const tolerance = { rtol: rtol!, atol: atol!, equalNan: equalNan === 1 }
    const [sizeA, sizeB] = [elementByteLength(a.dtype), elementByteLength(b.dtype)]
    for (let at = 0; at < a.count; at += BLOCK_ELEMENTS) {
      const count = Math.min(BLOCK_ELEMENTS, a.count - at)
      const [x, y] = [(a.address + at * sizeA) as Address, (b.address + at * sizeB) as Address]
      if (this.#engine.countNotCloseAt(a.dtype, x, b.dtype, y, count, tolerance) > 0) return false
    }
    return true
  }

  #value({ dtype, shape, address, count, isUnfolded }: Elements): RawValue {
    if (isUnfolded) this.#unfoldRoom.take(count * elementByteLength(dtype))
    const bytes = this.#engine.view(address, count * elementByteLength(dtype)).slice()
    const found = { dtype, shape } as Found
    return rawValue(found, bytes, null, this.#engine)
  }

  #reserveCopy(bytes: Uint8Array): Address {
    const address = this.#engine.reserveBytes(bytes.length)
    this.#engine.view(address, bytes.length).set(bytes)
    return address
  }

  #hasTasks(record: number): boolean {
    return this.#tasksOf[record]!.length > 0 || this.#waiting[record]! > 0
  }

  /** One task less waits for a record. */
  #release(record: number): void {
    this.#waiting[record]!--
    if (this.#waiting[record]! > 0) return
    const held = this.#held.get(record)
    if (held === undefined) return
    this.#held.delete(record)
    if (held.isUnfolded) this.#unfoldRoom.give(held.bytes.length)
    this.#spare.push(held.bytes)
    if (this.#spare.length > MAX_SPARE) this.#spare.shift()
  }

  async #fail(record: number, error: unknown): Promise<void> {
    const data = failureData(error)
    // What was to be compared with it is held for nothing.
    const { first, second } = this.#job.tasks
    for (const task of this.#tasksOf[record]!) {
      const other = Math.min(first[task]!, second[task]!)
      if (other >= 0 && other !== record) this.#release(other)
    }
    const store = this.#storeOf(this.#job.records.file[record]!)
    const histogram = await readHistogram(this.#job, record, data.code, store)
    if (histogram === null) this.#failures.push({ record, error: data })
    else this.#histograms.push({ record, shape: shapeOf(histogram), reductions: histogram.reductions })
  }

  #storeOf(file: number): Store {
    return this.#stores[this.#job.storeOf[file]!]!
  }

  finish(): MeasureReply {
    return {
      kind: 'measure',
      described: this.#described.finish(),
      histograms: this.#histograms,
      moments: this.#moments,
      checksums: this.#checksums,
      answers: this.#answers,
      lists: this.#lists,
      values: this.#values,
      failures: this.#failures,
      stats: {
        records: this.#job.part === 0 ? this.#job.records.file.length : 0,
        readBytes: this.#readBytes,
        reads: this.#reads,
      },
    }
  }
}

/** Of records that nothing is asked of beside their moments. */
const NO_TASKS: number[] = []

function isSameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, i) => size === b[i])
}

/** Whether the last of the values that a record holds stands for others. */
function isShort({ kind, valueCount, elementCount }: Found): boolean {
  return (kind === 'values' || kind === 'strings') && valueCount < elementCount
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total * size, 1)
}
