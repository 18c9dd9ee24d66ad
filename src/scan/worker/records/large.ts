/**
 * Reads a record that is too large to be read at once. Its head and tail are walked with a hole in place of tensor_content. The elements
 * then stream through the window in blocks, which changes no bit of their moments (BLOCK_ELEMENTS).
 */

import { EngineError, type TrialscanError } from '../../../base/errors.js'
import { CHECK_LEVELS } from '../../../base/types.js'
import { BLOCK_ELEMENTS, type KnownMoments, Status } from '../../../core/border/abi.js'
import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH } from '../../../core/border/framing.js'
import type { Address, Texts } from '../../../core/border/memory.js'
import { type FaultPlace, faultError } from '../../../core/border/status.js'
import { byteLengthOf, elementByteLength } from '../../../core/dtype.js'
import type { Engine } from '../../../core/engine.js'
import type { Batch, RecordContents, RecordRequest } from '../../../core/slots.js'
import type { Sketch } from '../../../core/statistics/sketch.js'
import { allocate, type UnfoldBudget } from '../../../core/values.js'
import { type ByteSource, isRemote } from '../../../storage/store.js'
import type { JobRecords } from '../../job/plan/coalesce.js'
import { PART_BYTES, PARTS_AT_ONCE, RECORD_LIMIT, STREAM_BYTES } from '../../job/plan/memory.js'
import type { PartChecksum } from '../../job/reply.js'
import type { PartDigests } from '../task/digests.js'
import { type JobRead, ReadAhead } from './read-ahead.js'
import { impossibleLength, placeOf, recordRequestAt } from './record-table.js'
import { contentsOf } from './tensor-head.js'

/** The check level at which payload checksums are verified. */
export const CHECK_FULL = CHECK_LEVELS.indexOf('full')

/** The number of bytes that are read to find the start of the elements: more than a tag and the fields around it take. */
export const RECORD_HEAD_BYTES = 16 << 10
/** More bytes than follow the elements in a record that a hook has saved. */
const END_BYTES = 1 << 10

export interface LargeRecordPlace {
  readonly path: string
  readonly startByte: number
  readonly request: RecordRequest
  readonly tags: Texts
  readonly place: FaultPlace
  readonly checkLevel: number
  /** The number of bytes of the file that may be in memory at once. */
  readonly windowByteLength: number
  /** The memory for streaming, if several reads are under way. */
  readonly aheadByteLength: number
  readonly counts: ReadCounts
}

/** The reads of a job, including those of failed records. */
export interface ReadCounts {
  readBytes: number
  reads: number
}

/** The bytes of a record to read, and the places where they are cut. */
interface Windows {
  readonly from: number
  readonly end: number
  readonly endOf: (at: number) => number
  readonly take: (window: Address, at: number, byteLength: number) => void
  readonly checksum: PartChecksum
}

/** Receives elements in the core's memory. */
type ElementSink = (address: Address, count: number, byteLength: number) => void

/** Opens a record of a job, which need not fit into memory. Reserves some of the core's memory. */
export async function openLarge(
  job: JobRecords & { readonly checkLevel: number; readonly windowByteLength: number },
  record: number,
  engine: Engine,
  store: ByteSource,
  counts: ReadCounts,
  aheadByteLength = 0,
): Promise<LargeRecord> {
  const { records } = job
  const refused = impossibleLength(job, record, store)
  if (refused) throw refused
  const tags = engine.writeTexts([job.tags[records.tag[record]!]!])
  return LargeRecord.open(engine, store, {
    path: job.files[records.file[record]!]!,
    startByte: records.startByte[record]!,
    request: { ...recordRequestAt(records, record), tag: 0 },
    tags,
    // For errors alone: there may be many records, and few of these.
    get place() {
      return placeOf(job, record, store)
    },
    checkLevel: job.checkLevel,
    windowByteLength: job.windowByteLength,
    aheadByteLength,
    counts,
  })
}

export class LargeRecord {
  /** The content of the record; set when it is open. */
  contents!: RecordContents
  readonly #engine: Engine
  readonly #store: ByteSource
  readonly #record: LargeRecordPlace
  readonly #batch: Batch
  #tail = 0 as Address
  #tailLength = 0
  /** The last bytes of the record, if requested. */
  #end: Promise<Uint8Array> | undefined

  private constructor(engine: Engine, store: ByteSource, record: LargeRecordPlace) {
    this.#engine = engine
    this.#store = store
    this.#record = record
    this.#batch = engine.reserveBatch(1)
  }

  /** Reads and walks everything in a record except its elements. */
  static async open(engine: Engine, store: ByteSource, record: LargeRecordPlace): Promise<LargeRecord> {
    const opened = new LargeRecord(engine, store, record)
    const known = store.headByteLength?.(record.path, record.startByte)
    if (known !== undefined && record.request.byteLength > RECORD_LIMIT) {
      await opened.#readHead(known)
      return opened
    }
    if (store.stream && known === undefined) opened.#askForEnd()
    let headLength = known ?? RECORD_HEAD_BYTES
    while (!(await opened.#walk(Math.min(headLength, record.request.byteLength)))) headLength *= 16
    return opened
  }

  /** Reads the head of a record that is too long for the core to walk. */
  async #readHead(headLength: number): Promise<void> {
    const { path, startByte, request } = this.#record
    const head = new Uint8Array(headLength)
    this.#count(await this.#store.readInto(path, startByte, head))
    this.contents = contentsOf(head, request.byteLength)
  }

  /** @returns false if the head has to be longer */
  async #walk(headLength: number): Promise<boolean> {
    const { request, tags, checkLevel, windowByteLength } = this.#record
    const engine = this.#engine
    if (headLength > windowByteLength) throw this.#tooLarge()
    const head = engine.reserveBytes(headLength)
    const available = await this.#read(0, head, headLength)
    engine.ask(
      this.#batch,
      1,
      tags,
      () => request,
      () => ({ address: head, byteLength: available }),
    )
    if (!engine.checkHeader(this.#batch, checkLevel)) throw this.#fault()
    if (available < headLength) throw this.#truncated(available)
    const payloadLength = request.byteLength - FRAMING_LENGTH
    let walked = engine.walkSparse(this.#batch, payloadLength, 0, 0)
    let slots = engine.slots(this.#batch, 1)
    if (!walked && slots.needs(0) === 'tail') {
      await this.#readTail(slots.dataOffset(0) + slots.dataByteLength(0))
      walked = engine.walkSparse(this.#batch, payloadLength, this.#tail, this.#tailLength)
      slots = engine.slots(this.#batch, 1)
    }
    if (!walked) {
      const needs = slots.needs(0)
      if (needs === 'more' && headLength < request.byteLength) return false
      throw needs === null ? this.#fault() : this.#tooLarge()
    }
    this.contents = slots.found(0)
    return true
  }

  /** Requests the end together with the head if every request takes time: the tail is rarely longer. */
  #askForEnd(): void {
    const { path, startByte, request } = this.#record
    const bytes = new Uint8Array(Math.min(END_BYTES, request.byteLength))
    const at = startByte + request.byteLength - bytes.length
    this.#end = Promise.resolve(this.#store.readInto(path, at, bytes)).then(available => bytes.subarray(0, available))
    this.#end.catch(() => {})
  }

  /** Reads the bytes between tensor_content and the end of the record, including the footer. */
  async #readTail(tailStart: number): Promise<void> {
    const { request, windowByteLength } = this.#record
    const byteLength = request.byteLength - tailStart
    if (byteLength > windowByteLength) throw this.#tooLarge()
    this.#tail = this.#engine.reserveBytes(byteLength)
    this.#tailLength = byteLength - FOOTER_LENGTH
    const end = byteLength <= END_BYTES ? await this.#end : undefined
    const available =
      end === undefined
        ? await this.#read(tailStart, this.#tail, byteLength)
        : this.#take(end.subarray(Math.min(END_BYTES, request.byteLength) - byteLength), this.#tail)
    if (available < byteLength) throw this.#truncated(tailStart + available)
  }

  /**
   * Streams one part of the elements, which begins and ends at whole blocks.
   * @param sink receives the elements in the core's memory, in order
   */
  async streamPart(part: number, parts: number, sink: ElementSink): Promise<PartChecksum> {
    const { windowByteLength, aheadByteLength } = this.#record
    // If every read is a request, few are made.
    const longest = Math.max(STREAM_BYTES, isRemote(this.#store) ? Math.floor(aheadByteLength / 4) : 0)
    const windows = this.#windows(part, parts, Math.min(windowByteLength, longest), sink)
    for await (const _ of this.#reading(windows, aheadByteLength)) {
      // The sink needs no bytes back.
    }
    return windows.checksum
  }

  /**
   * Yields all elements, in pieces of a fixed number; each is valid until the next is requested. The checksum is verified according to
   * the check level, after the last.
   * @param elements a multiple of BLOCK_ELEMENTS
   */
  async *pieces(elements: number, aheadByteLength: number): AsyncGenerator<{ address: Address; count: number }> {
    let piece: { address: Address; count: number } | null = null
    const windows = this.#windows(0, 1, elements * elementByteLength(this.contents.dtype), (address, count) => {
      piece = { address, count }
    })
    for await (const _ of this.#reading(windows, aheadByteLength)) {
      if (piece !== null) yield piece
      piece = null
    }
    this.checkPayload(windows.checksum.crc, windows.checksum.storedCrc)
  }

  /** Reads windows one after the other; each is consumed before it is yielded. */
  async *#reading({ from, end, endOf, take }: Windows, aheadByteLength: number): AsyncGenerator<void> {
    const { path, startByte } = this.#record
    const store = this.#store
    const planned: JobRead[] = []
    for (let at = from; at < end; at = endOf(at)) {
      planned.push({ store, path, startByte: startByte + at, byteLength: endOf(at) - at })
    }
    const reads = new ReadAhead(this.#engine, planned, { byteLength: aheadByteLength })
    try {
      for (const read of planned) {
        const { window, available } = reads.next()
        const got = typeof available === 'number' ? available : await available
        const at = read.startByte - startByte
        this.#count(got)
        if (got < read.byteLength) throw this.#truncated(at + got)
        take(window, at, got)
        yield
      }
    } finally {
      reads.end()
    }
  }

  /**
   * Streams neighbouring parts: one after another or, if reads are requests, all at once with one request each.
   * @param sink receives the elements of a part in the core's memory, in order
   * @param inOrder true to stream them one after another in any case
   */
  async streamParts(
    first: number,
    count: number,
    parts: number,
    sink: (part: number, ...elements: Parameters<ElementSink>) => void,
    inOrder = false,
  ): Promise<PartChecksum[]> {
    const numbers = Array.from({ length: count }, (_, i) => first + i)
    const { stream } = this.#store
    if (stream === undefined || this.contents.kind !== 'content' || inOrder) {
      const checksums: PartChecksum[] = []
      for (const part of numbers) {
        checksums.push(await this.streamPart(part, parts, (...elements) => sink(part, ...elements)))
      }
      return checksums
    }
    const mark = this.#engine.mark()
    let isOver = false
    const capacity = Math.min(this.#record.windowByteLength, STREAM_BYTES)
    const follow = async (part: number): Promise<PartChecksum> => {
      const { path, startByte } = this.#record
      const windows = this.#windows(part, parts, capacity, (...elements) => sink(part, ...elements))
      const { from, end, endOf, take, checksum } = windows
      if (from === end) return checksum
      const window = this.#engine.reserveBytes(capacity)
      let [at, filled] = [from, 0]
      const got = await stream(path, startByte + from, end - from, chunk => {
        // The memory belongs to another job by then.
        if (isOver) throw new EngineError('bytes came in after their job had ended')
        for (let used = 0; used < chunk.length; ) {
          const piece = chunk.subarray(used, used + endOf(at) - at - filled)
          this.#engine.view((window + filled) as Address, piece.length).set(piece)
          used += piece.length
          filled += piece.length
          if (at + filled < endOf(at)) continue
          take(window, at, filled)
          at += filled
          filled = 0
        }
      })
      this.#count(got)
      if (got < end - from) throw this.#truncated(from + got)
      return checksum
    }
    try {
      return await Promise.all(numbers.map(follow))
    } finally {
      isOver = true
      this.#engine.release(mark)
    }
  }

  /**
   * The bytes to read for a part: its elements, with the surrounding bytes if those are checksummed. Each window contains either
   * elements, or other bytes, or the footer.
   */
  #windows(part: number, parts: number, byteLength: number, sink: ElementSink): Windows {
    const { request, checkLevel } = this.#record
    const { dtype, kind } = this.contents
    const engine = this.#engine
    const checked = checkLevel === CHECK_FULL
    const payloadEnd = request.byteLength - FOOTER_LENGTH
    const size = elementByteLength(dtype)
    const isContent = kind === 'content'
    const [first, last, elementCount] = isContent ? this.#elementsOf(part, parts) : [payloadEnd, payloadEnd, 0]
    // Head and tail are read again: they surround the first hole, and the elements may lie after it, in another Value.
    const from = checked && part === 0 ? HEADER_LENGTH : first
    const end = checked && part === parts - 1 ? request.byteLength : last
    const step = isContent ? byteLength - (byteLength % (BLOCK_ELEMENTS * size)) : byteLength
    const ends = [first, last, payloadEnd, end]
    const endOf = (at: number): number => ends.reduce((next, end) => (end > at && end < next ? end : next), at + step)
    const checksum = { crc: 0, crcByteLength: 0, storedCrc: 0 }
    const take = (window: Address, at: number, byteLength: number): void => {
      if (at >= payloadEnd) checksum.storedCrc = engine.uint32(window)
      else if (checked) {
        checksum.crc = engine.crc32c(window, byteLength, checksum.crc)
        checksum.crcByteLength += byteLength
      }
      if (at < first || at >= last) return
      // The last half of a byte of float4 may be unused.
      sink(window, Math.min(byteLength / size, elementCount - (at - first) / size), byteLength)
    }
    return { from, end, endOf, take, checksum }
  }

  /** The index of the first element of a part. */
  firstOf(part: number, parts: number): number {
    const { elementCount } = this.contents
    return Math.min(elementCount, part * Math.ceil(elementCount / parts / BLOCK_ELEMENTS) * BLOCK_ELEMENTS)
  }

  /** The start, end and number of the elements of a part. Parts are cut at whole blocks. */
  #elementsOf(part: number, parts: number): [from: number, end: number, count: number] {
    const { dtype, elementCount, dataOffset } = this.contents
    const size = elementByteLength(dtype)
    const perPart = Math.ceil(elementCount / parts / BLOCK_ELEMENTS) * BLOCK_ELEMENTS
    const first = this.firstOf(part, parts)
    const end = part === parts - 1 ? elementCount : Math.min(elementCount, first + perPart)
    return [dataOffset + first * size, dataOffset + byteLengthOf(dtype, end), end - first]
  }

  /**
   * Computes moments of neighbouring parts of the elements, which `streamParts` reads.
   * @param kept the place for a copy of these elements, in the core's memory
   * @param sketch the sketch to which they are added
   * @param digests the digests to which they are added
   */
  async reduceParts(
    first: number,
    count: number,
    parts: number,
    known: KnownMoments,
    {
      kept,
      sketch = null,
      digests,
    }: { kept?: Address | undefined; sketch?: Sketch | null; digests?: PartDigests | null },
  ) {
    const engine = this.#engine
    const { dtype, kind } = this.contents
    const ends = Array.from({ length: count }, (_, i) => this.#elementsOf(first + i, parts)[0])
    const from = ends[0] ?? 0
    const rows = engine.reserveBatch(count)
    for (let i = 0; i < count; i++) engine.resetRow(rows, i)
    const take: Parameters<LargeRecord['streamParts']>[3] = (part, address, elements, byteLength) => {
      engine.addToRow(rows, dtype, address, elements, part - first, known, sketch)
      digests?.add(part - first, address, byteLength)
      if (kept === undefined) return
      const at = ends[part - first]! - from
      engine.view((kept + at) as Address, byteLength).set(engine.view(address, byteLength))
      ends[part - first]! += byteLength
    }
    const checksums = await this.streamParts(first, count, parts, take, digests?.needsOrder)
    // Values that are stored one by one, not in tensor_content, are already in memory.
    if (first === 0 && kind === 'values') engine.addValuesToRow(this.#batch, rows, known, sketch)
    return { rows: engine.rows(rows, count).slice(), checksums }
  }

  /** Copies elements that are not in tensor_content; the checksum is not verified. */
  copyElements(budget: UnfoldBudget): Uint8Array<ArrayBuffer> {
    return this.#engine.values.copyElements(this.#batch, 0, this.contents, budget)
  }

  /** Copies the strings of a record; the checksum is not verified. */
  copyStrings(budget: UnfoldBudget): string[] {
    return this.#engine.values.copyStrings(this.#batch, 0, this.contents, budget)
  }

  /** Reads the little-endian bytes of all elements, verified according to the check level. */
  async readElements(budget: UnfoldBudget): Promise<Uint8Array<ArrayBuffer>> {
    const { kind, dataOffset, dataByteLength } = this.contents
    const out = kind === 'content' ? allocate(dataByteLength) : this.copyElements(budget)
    const parts = this.#store.stream ? Math.ceil(this.#record.request.byteLength / PART_BYTES) : 1
    const ends = Array.from({ length: parts }, (_, part) => this.#elementsOf(part, parts)[0] - dataOffset)
    let sum = { crc: 0, storedCrc: 0 }
    for (let first = 0; first < parts; first += PARTS_AT_ONCE) {
      const count = Math.min(PARTS_AT_ONCE, parts - first)
      const checksums = await this.streamParts(first, count, parts, (part, address, _, byteLength) => {
        out.set(this.#engine.view(address, byteLength), ends[part]!)
        ends[part]! += byteLength
      })
      for (const { crc, crcByteLength, storedCrc } of checksums) {
        sum = { crc: this.#engine.crc32cCombine(sum.crc, crc, crcByteLength), storedCrc }
      }
    }
    this.checkPayload(sum.crc, sum.storedCrc)
    return out
  }

  /** Reads the strings of a record, verified according to the check level. */
  async readStrings(budget: UnfoldBudget): Promise<string[]> {
    const { crc, storedCrc } = await this.streamPart(0, 1, () => {})
    this.checkPayload(crc, storedCrc)
    return this.copyStrings(budget)
  }

  /** Throws unless the stored checksum is the payload's, or smdebug's constant. Does nothing below check level `full`. */
  checkPayload(crc: number, storedCrc: number): void {
    if (this.#record.checkLevel !== CHECK_FULL) return
    if (!this.#engine.checkPayload(this.#batch, crc, storedCrc)) throw this.#fault()
  }

  async #read(at: number, address: Address, byteLength: number): Promise<number> {
    const { path, startByte } = this.#record
    const available = await this.#store.readInto(path, startByte + at, this.#engine.view(address, byteLength))
    this.#count(available)
    return available
  }

  /** Takes bytes that were read ahead into the core. @returns their number */
  #take(bytes: Uint8Array, address: Address): number {
    this.#engine.view(address, bytes.length).set(bytes)
    this.#count(bytes.length)
    return bytes.length
  }

  #count(byteLength: number): void {
    const { counts } = this.#record
    counts.readBytes += byteLength
    counts.reads++
  }

  #fault(): TrialscanError {
    return this.#engine.slots(this.#batch, 1).error(0, this.#record.place)
  }

  #truncated(got: number): TrialscanError {
    const expected = this.#record.request.byteLength
    return faultError({ status: Status.truncated, expected, got }, this.#record.place)
  }

  #tooLarge(): TrialscanError {
    const { request, windowByteLength, place } = this.#record
    return faultError({ status: Status.needMore, expected: request.byteLength, got: windowByteLength }, place)
  }
}
