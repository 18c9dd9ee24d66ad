/**
 * Answers the questions of rules about tensors, in the thread that reads the bytes: moments, and tasks on the elements of one record or
 * two. Only the elements of a record that is compared with a later one are kept until then.
 */

import { BLOCK_ELEMENTS } from '../../core/border/abi.js'
import type { Address } from '../../core/border/memory.js'
import { byteLengthOf, dtypeNumber, elementByteLength } from '../../core/dtype.js'
import type { Engine } from '../../core/engine.js'
import type { RecordContents } from '../../core/slots.js'
import { UnfoldBudget } from '../../core/values.js'
import { isRemote, type Store } from '../../storage/store.js'
import type { MeasureJob, MeasureReply, TaskLists, TaskValue } from '../job/measure-job.js'
import type { HistogramResult, PartChecksum } from '../job/reply.js'
import type { RawValue } from '../job/value-job.js'
import { comparePairs } from './pairs/difference-pairs.js'
import { rawValue } from './raw-value.js'
import { openLarge, type ReadCounts } from './records/large.js'
import { type DecodedBatch, readRecords } from './records/read-records.js'
import { Failures, histogramResult, RecordTable } from './records/record-table.js'
import { copyIn, ElementReader, type Elements, isShort } from './task/element-reader.js'
import { HeldElements } from './task/held.js'
import { type Asking, answerAlone, compare, type List, type Pair } from './task/tasks.js'

export async function measure(job: MeasureJob, engine: Engine, stores: readonly Store[]): Promise<MeasureReply> {
  const measurement = new Measurement(job, engine, stores)
  if (job.batches.length > 0) await measurement.readBatches()
  else await measurement.readAllLarge()
  return measurement.finish()
}

/**
 * The number of batches that must stay in memory so that every record is there when a later one is compared with it, as far as there is
 * room; other records are copied.
 */
function keptBatches({ batches, records, tasks, windowByteLength }: MeasureJob, isAnyRemote: boolean): number {
  const { first, second } = tasks
  if (!second.some(record => record >= 0)) return 0
  if (isAnyRemote) return 1
  const batchOf = new Int32Array(records.file.length)
  for (const [batch, { first, count }] of batches.entries()) batchOf.fill(batch, first, first + count)
  const most = second.reduce((most, record, task) => {
    return record < 0 ? most : Math.max(most, Math.abs(batchOf[record]! - batchOf[first[task]!]!))
  }, 1)
  const longest = batches.reduce((longest, { startByte, endByte }) => Math.max(longest, endByte - startByte), 1)
  return Math.max(1, Math.min(most, Math.floor((2 * windowByteLength) / longest) - 1))
}

/** Lists of numbers, by task. */
function inColumns(lists: ReadonlyMap<number, ArrayLike<number>>): TaskLists {
  const ends = new Int32Array(lists.size)
  let [count, length] = [0, 0]
  for (const { length: more } of lists.values()) {
    length += more
    ends[count++] = length
  }
  const numbers = new Float64Array(length)
  let at = 0
  for (const list of lists.values()) {
    numbers.set(list, at)
    at += list.length
  }
  return { tasks: Int32Array.from(lists.keys()), ends, numbers }
}

/** The tasks of records that need only moments. */
const NO_TASKS: number[] = []

class Measurement {
  readonly #job: MeasureJob
  readonly #engine: Engine
  readonly #sourceOf: (file: number) => Store
  readonly #table: RecordTable
  readonly #failures: Failures
  readonly #checksums: PartChecksum[] = []
  readonly #answers: Float64Array<ArrayBuffer>
  readonly #lists = new Map<number, ArrayLike<number>>()
  readonly #values: TaskValue[] = []
  /** The tasks that become possible with each record. */
  readonly #tasksOf: readonly (readonly number[])[]
  /** The number of tasks that wait for a later record, by record. */
  readonly #waiting: Int32Array
  /** The number of batches, besides the present one, that stay in memory for later records. */
  readonly #kept: number
  readonly #held: HeldElements
  /** The limit for values that records store in short form: copies that are kept, and values for rules. */
  readonly #unfoldBudget: UnfoldBudget
  readonly #reader: ElementReader
  readonly #counts: ReadCounts = { readBytes: 0, reads: 0 }

  constructor(job: MeasureJob, engine: Engine, stores: readonly Store[]) {
    const total = job.records.file.length
    this.#job = job
    this.#engine = engine
    this.#sourceOf = file => stores[job.storeOf[file]!]!
    this.#unfoldBudget = new UnfoldBudget(job.windowByteLength)
    this.#kept = keptBatches(
      job,
      job.storeOf.some(store => isRemote(stores[store]!)),
    )
    this.#held = new HeldElements(engine, this.#unfoldBudget, this.#kept)
    this.#reader = new ElementReader(engine, job.windowByteLength)
    this.#table = new RecordTable(total)
    this.#failures = new Failures(job, this.#sourceOf)
    const { first, second } = job.tasks
    this.#answers = new Float64Array(2 * first.length).fill(Number.NaN)
    const tasksOf: number[][] = new Array(total).fill(NO_TASKS)
    this.#waiting = new Int32Array(total)
    const earlier = first.map((record, task) => Math.min(record, second[task]!))
    first.forEach((record, task) => {
      // A pair is compared as soon as its later record is read.
      const later = Math.max(record, second[task]!)
      if (tasksOf[later] === NO_TASKS) tasksOf[later] = [task]
      else tasksOf[later]!.push(task)
      if (earlier[task]! >= 0 && earlier[task] !== later) this.#waiting[earlier[task]!]!++
    })
    for (const tasks of tasksOf) if (tasks.length > 1) tasks.sort((a, b) => earlier[a]! - earlier[b]! || a - b)
    this.#tasksOf = tasksOf
  }

  async readBatches(): Promise<void> {
    const engine = this.#engine
    // Without questions besides tasks there is nothing to reduce.
    const known = this.#job.known === 0 ? null : this.#job.known
    engine.reset()
    const read = await readRecords(
      this.#job,
      engine,
      {
        record: (record, i, batch) => {
          const { slots } = batch
          this.#table.describeSlot(record, slots, i)
          if (!this.#hasTasks(record)) return undefined
          const [contents, content] = [slots.found(i), slots.dataAddress(i)]
          return () => this.#work(record, contents, content, batch, i)
        },
        ...(known !== null && { endBatch: ({ first, rows }) => this.#table.reduce(first, rows) }),
        fail: (record, error) => this.#fail(record, error),
        ...(this.#kept > 0 && { beginBatch: () => this.#held.leaveWindow() }),
      },
      {
        sourceOf: this.#sourceOf,
        known,
        kept: this.#kept,
        isAnyOrder: this.#kept === 0 && this.#waiting.every(count => count === 0),
      },
    )
    this.#counts.readBytes += read.readBytes
    this.#counts.reads += read.reads
  }

  /** Runs the tasks on a record that is completely in memory. */
  #work(record: number, contents: RecordContents, content: Address, decoded: DecodedBatch, i: number): void {
    if (contents.kind === 'strings') {
      const { values } = this.#engine
      this.#engine.decodeAgain(decoded.batch, i)
      this.#takeStrings(record, contents, () => values.copyStrings(decoded.batch, i, contents, this.#unfoldBudget))
      return
    }
    this.#reader.with(contents, content, decoded, i, elements => {
      this.#runTasks(record, elements, contents.kind === 'content')
    })
  }

  /** Reads the records that have no batch. */
  async readAllLarge(): Promise<void> {
    const { known, tasks, records } = this.#job
    if (known === 0 && tasks.requests.every(({ kind }) => kind === 'difference')) {
      const isDone = await comparePairs(this.#job, this.#engine, this.#sourceOf, {
        describe: (record, { dtype, shape }) => this.#table.describe(record, dtypeNumber(dtype), shape),
        answer: (task, numbers) => this.#lists.set(task, numbers),
        fail: (record, error) => this.#failures.add(record, error),
        counts: this.#counts,
      })
      if (isDone) return
    }
    for (let record = 0; record < records.file.length; record++) await this.readLarge(record)
  }

  /** Reads a record in parts, or one so large that it gets a read of its own. */
  async readLarge(record: number): Promise<void> {
    const { part, parts, records, known, aheadByteLength } = this.#job
    const engine = this.#engine
    const source = this.#sourceOf(records.file[record]!)
    try {
      engine.reset()
      const large = await openLarge(this.#job, record, engine, source, this.#counts, aheadByteLength)
      const { contents } = large
      const { dtype, shape, kind, dataByteLength } = contents
      this.#table.describe(record, dtypeNumber(dtype), shape)
      const size = elementByteLength(dtype)
      const hasTasks = this.#hasTasks(record)
      const isContent = kind === 'content' && hasTasks
      const region = engine.reserveBytes(isContent ? Math.ceil(dataByteLength / parts) + BLOCK_ELEMENTS * size : 0)
      const kept = hasTasks ? region : undefined
      const { rows, checksums } = await large.reduceParts(part, 1, parts, known, { kept })
      this.#checksums[record] = checksums[0]!
      this.#table.reduce(record, rows)
      if (!hasTasks) return
      if (kind === 'strings') {
        this.#takeStrings(record, contents, () => large.copyStrings(this.#unfoldBudget))
        return
      }
      const first = isContent ? large.firstOf(part, parts) : 0
      let [address, count] = [region, isContent ? large.firstOf(part + 1, parts) - first : 0]
      if (!isContent && part === 0) {
        const bytes = large.copyElements(new UnfoldBudget(this.#job.windowByteLength))
        address = copyIn(engine, bytes)
        count = bytes.length / size
      }
      this.#runTasks(record, { dtype, shape, address, count, first, isUnfolded: isShort(contents) })
    } catch (error) {
      this.#fail(record, error)
    }
  }

  /** Answers for strings, which have only a value. */
  #takeStrings(record: number, contents: RecordContents, copy: () => string[]): void {
    for (const task of this.#tasksOf[record]!) {
      if (this.#askedBy(task).kind !== 'value') continue
      this.#values.push({ task, value: rawValue(contents, null, copy(), this.#engine) })
    }
  }

  /** @param isInWindow true if they lie where the batch was read, and so outlast it */
  #runTasks(record: number, elements: Elements, isInWindow = false): void {
    const engine = this.#engine
    const { first, second } = this.#job.tasks
    engine.scoped(() => {
      // Tasks that share the other record are adjacent, so it is copied in once.
      let [at, held]: [number, Elements | undefined] = [-1, undefined]
      for (const task of this.#tasksOf[record]!) {
        const request = this.#askedBy(task)
        const other = Math.min(first[task]!, second[task]!)
        if (other < 0) this.#alone(task, request, elements)
        else if (other === record) this.#answer(task, compare(engine, request, elements, elements))
        else {
          if (at !== other) held = this.#held.get(other)
          at = other
          if (held !== undefined) {
            const isFirst = first[task] === record
            this.#answer(task, compare(engine, request, isFirst ? elements : held, isFirst ? held : elements))
          }
          this.#release(other)
        }
      }
    })
    if (this.#waiting[record]! > 0) this.#held.hold(record, elements, isInWindow)
  }

  #alone(task: number, request: Asking, elements: Elements): void {
    if (request.kind === 'value') {
      this.#values.push({ task, value: this.#value(elements) })
      return
    }
    this.#answer(task, answerAlone(this.#engine, request, elements))
  }

  #answer(task: number, answer: Pair | List): void {
    if ('list' in answer) {
      this.#lists.set(task, answer.list)
      return
    }
    const [a, b] = answer
    this.#answers[2 * task] = a
    this.#answers[2 * task + 1] = b
  }

  #value({ dtype, shape, address, count, isUnfolded }: Elements): RawValue {
    const byteLength = byteLengthOf(dtype, count)
    if (isUnfolded) this.#unfoldBudget.take(byteLength)
    return rawValue({ dtype, shape }, this.#engine.view(address, byteLength).slice(), null, this.#engine)
  }

  #hasTasks(record: number): boolean {
    return this.#tasksOf[record]!.length > 0 || this.#waiting[record]! > 0
  }

  #askedBy(task: number): Asking {
    const { requests, what } = this.#job.tasks
    return requests[what[task]!]!
  }

  /** Counts down the tasks that wait for a record. */
  #release(record: number): void {
    this.#waiting[record]!--
    if (this.#waiting[record]! > 0) return
    this.#held.release(record)
  }

  #fail(record: number, error: unknown): void {
    this.#failures.add(record, error)
    // The records to compare it with are no longer kept for it.
    const { first, second } = this.#job.tasks
    for (const task of this.#tasksOf[record]!) {
      const other = Math.min(first[task]!, second[task]!)
      if (other >= 0 && other !== record) this.#release(other)
    }
  }

  async finish(): Promise<MeasureReply> {
    const histograms: HistogramResult[] = []
    const failures = await this.#failures.finish((record, histogram) =>
      histograms.push(histogramResult(record, histogram)),
    )
    return {
      kind: 'measure',
      described: this.#table.described,
      histograms,
      moments: this.#table.moments,
      checksums: this.#checksums,
      answers: this.#answers,
      lists: inColumns(this.#lists),
      values: this.#values,
      failures,
      stats: {
        records: this.#job.part === 0 ? this.#job.records.file.length : 0,
        ...this.#counts,
      },
    }
  }
}
