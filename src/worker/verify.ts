/**
 * Event files, read from the first byte to the last: frames, checksums, Events, tensors against their shapes. The core
 * surveys a window of records in one crossing. Where a frame is broken, the walk goes on at the next one that holds.
 */

import { Status, ValueKind } from '../engine/abi.js'
import type { Engine } from '../engine/engine.js'
import { FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../engine/framing.js'
import type { Address, Texts } from '../engine/memory.js'
import { Moments } from '../engine/moments.js'
import type { Batch, SlotReader } from '../engine/slots.js'
import { faultError } from '../engine/status.js'
import { type ErrorData, FormatError, quote, TrialscanError } from '../errors.js'
import { MalformedEvent, walkEventHead } from '../format/event-head.js'
import { isHistogram } from '../format/histogram.js'
import { Interner } from '../job/interner.js'
import {
  type RecordProblem,
  VALUE_KINDS,
  type VerifiedRange,
  type VerifyJob,
  type VerifyRange,
  type VerifyReply,
} from '../job/verify.js'
import { isRemote, type Store } from '../store/store.js'
import { CHECK_FULL, LargeRecord } from './large.js'
import { FilePieces } from './survey.js'
import { DeepLook, isText } from './verify-values.js'

/** What is read and surveyed at once: it stays in the L2 cache. */
const WINDOW_BYTES = 1 << 20
/** Where reading is making requests: a window for each. */
const REMOTE_WINDOW_BYTES = 4 << 20
/** Values surveyed at once. */
const SLOTS = 4096
const FEW_SLOTS = 2
/** Bytes behind the tensor_content of a record that streams; more than any metadata takes. */
const MAX_TAIL_BYTES = 256 << 10
/** Problems of a range that are told one by one; the others are counted. */
const MAX_PROBLEMS = 100
/** Values after which a job has enough, and leaves the rest of its range to another. */
const MAX_VALUES = 1 << 20
/** Headers behind damage that are remembered, to see which of them lead to a record that is known. */
const MAX_LEADS = 1 << 18
const KIND_NUMBERS = {
  other: VALUE_KINDS.indexOf('other'),
  tensor: VALUE_KINDS.indexOf('tensor'),
  histogram: VALUE_KINDS.indexOf('histogram'),
}
const CHECK_MINIMAL = 1
const FOOTER_LENGTH = FRAMING_LENGTH - HEADER_LENGTH

/** Checks the records that begin in ranges of event files. A file that can't be read is an error in the reply. */
export async function verifyEventFiles(job: VerifyJob, engine: Engine, store: Store): Promise<VerifyReply> {
  engine.reset()
  const tags = new TagNumbers()
  const room = engine.reserveBatch(SLOTS)
  const size = isRemote(store) ? REMOTE_WINDOW_BYTES : WINDOW_BYTES
  const windowByteLength = Math.min(size, job.windowByteLength)
  const common: Common = {
    job,
    engine,
    store,
    tags,
    room,
    noTags: engine.writeTags([]),
    window: engine.reserveBytes(windowByteLength),
    windowByteLength,
    tail: engine.reserveBytes(MAX_TAIL_BYTES),
  }
  const ranges: (VerifiedRange | ErrorData)[] = []
  let readBytes = 0
  for (const range of job.ranges) {
    try {
      const verifier = new RangeVerifier(common, range, await store.byteLength(range.path))
      ranges.push(await verifier.run())
      readBytes += verifier.readBytes
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      ranges.push(error.toJSON())
    }
  }
  return { kind: 'verify', ranges, tags: tags.names, readBytes }
}

/** What the ranges of a job share. */
interface Common {
  readonly job: VerifyJob
  readonly engine: Engine
  readonly store: Store
  readonly tags: TagNumbers
  readonly room: Batch
  readonly noTags: Texts
  readonly window: Address
  readonly windowByteLength: number
  readonly tail: Address
}

class RangeVerifier {
  readBytes = 0
  readonly #common: Common
  readonly #range: VerifyRange
  readonly #url: string
  /** Of the file; less if it turns out to be shorter by now. */
  #fileLength: number
  /** Where the window begins in the file, and how much of it is filled. */
  #windowStart = 0
  #held = 0
  /** Whether the payload of the last record has another checksum than it should. */
  #isSpoilt = false
  readonly #recordStart: number[] = []
  readonly #recordByteLength: number[] = []
  readonly #step: number[] = []
  readonly #isBad: number[] = []
  #withoutChecksum = 0
  readonly #record: number[] = []
  readonly #tag: number[] = []
  readonly #mode: number[] = []
  readonly #modeStep: number[] = []
  readonly #shape: (readonly number[] | null)[] = []
  readonly #kind: number[] = []
  readonly #skipped: number[] = []
  readonly #problems = new Problems()
  readonly #notes = new Problems()
  /** What is wrong with the last record. */
  #faults: RecordProblem[] = []
  /** What the last search behind damage has come by. */
  #search: Search | null = null
  /** Values to survey at once: few behind a record that is spoilt, since what is surveyed behind the next one is surveyed again. */
  #capacity = SLOTS
  /** Bytes that may be read again to look for records in them, so that no file takes for ever. */
  #rewindable: number
  /** Null where values are not to be looked at. */
  readonly #deep: DeepLook | null
  /** Records that hold a histogram, to be decoded. */
  readonly #histograms: { readonly tensor: string; readonly record: number; readonly value: Uint8Array }[] = []
  /** Of the last of these records. */
  readonly #histogramTags = new Set<string>()

  constructor(common: Common, range: VerifyRange, fileLength: number) {
    this.#common = common
    this.#range = range
    this.#url = common.store.url(range.path)
    this.#fileLength = fileLength
    this.#rewindable = 2 * fileLength
    this.#deep = common.job.deep ? new DeepLook(common.engine) : null
  }

  async run(): Promise<VerifiedRange> {
    const { startByte, endByte } = this.#range
    let at = startByte
    await this.#fill(at)
    while (at < Math.min(endByte ?? this.#fileLength, this.#fileLength) && !this.#hasEnough) {
      let next = await this.#survey(at, endByte)
      if (this.#histograms.length > 0) await this.#checkHistograms()
      if (next === at) {
        const framed = await this.#framedLength(at)
        const isWhole = framed !== null && at + framed <= this.#fileLength
        if (isWhole && at > this.#windowStart && !this.#holds(at, framed)) {
          await this.#fill(at)
          continue
        }
        if (isWhole) await this.#large(at, framed)
        next = isWhole ? at + framed : await this.#broken(at, framed)
      }
      at = await this.#lookInside(next)
    }
    await this.#checkHistograms()
    this.#compareReductions()
    return {
      byteLength: this.#fileLength,
      startByte,
      endByte: at,
      recordStart: Float64Array.from(this.#recordStart),
      recordByteLength: Float64Array.from(this.#recordByteLength),
      withoutChecksum: this.#withoutChecksum,
      step: Float64Array.from(this.#step),
      isBad: Uint8Array.from(this.#isBad),
      record: Int32Array.from(this.#record),
      tag: Int32Array.from(this.#tag),
      mode: Uint8Array.from(this.#mode),
      modeStep: Float64Array.from(this.#modeStep),
      shape: this.#shape,
      kind: Uint8Array.from(this.#kind),
      skipped: Float64Array.from(this.#skipped),
      problems: this.#problems.inOrder,
      problemCounts: this.#problems.counts,
      notes: this.#notes.inOrder,
      noteCounts: this.#notes.counts,
    }
  }

  get #hasEnough(): boolean {
    return this.#record.length >= MAX_VALUES || this.#recordStart.length >= MAX_VALUES
  }

  /** Takes what is in the window from a byte of the file on. @returns where it ends */
  async #survey(at: number, endByte: number | null): Promise<number> {
    if (!this.#holds(at, FRAMING_LENGTH)) await this.#fill(at)
    const { engine, room, window, job } = this.#common
    const from = at - this.#windowStart
    const end = engine.scoped(() => {
      const some = { ...room, capacity: this.#capacity }
      const count = engine.survey.records(some, (window + from) as Address, this.#held - from, job.isTornasole)
      return this.#take(at, this.#windowStart, count, endByte ?? this.#fileLength)
    })
    this.#capacity = this.#isSuspect(end) ? FEW_SLOTS : Math.min(SLOTS, this.#capacity * 4)
    return end
  }

  /** Whether bytes of the file are in the window. */
  #holds(at: number, byteLength: number): boolean {
    return at >= this.#windowStart && at + byteLength <= this.#windowStart + this.#held
  }

  /** Has the window begin at a byte of the file, or before; what it holds of what follows is kept. */
  async #fill(at: number): Promise<void> {
    const { engine, window, windowByteLength } = this.#common
    const kept = this.#windowStart + this.#held - at
    const isKept = at >= this.#windowStart && kept > 0
    if (isKept && at > this.#windowStart) {
      const from = at - this.#windowStart
      engine.view(window, this.#held).copyWithin(0, from, this.#held)
    }
    this.#windowStart = at
    this.#held = isKept ? kept : 0
    const wanted = Math.min(windowByteLength, this.#fileLength - at) - this.#held
    if (wanted <= 0) return
    const there = await this.#read(at + this.#held, (window + this.#held) as Address, wanted)
    this.#held += there
    if (there < wanted) this.#fileLength = at + this.#held
  }

  async #read(startByte: number, address: Address, byteLength: number): Promise<number> {
    const { engine, store } = this.#common
    const there = await store.readInto(this.#range.path, startByte, engine.view(address, byteLength))
    this.readBytes += there
    return there
  }

  /** The length of the record whose header lies at an address, frame and all; null where the header is bad or cut off. */
  #header(address: Address, there: number): number | null {
    const { engine, room, noTags } = this.#common
    engine.ask(
      room,
      1,
      noTags,
      () => ({ byteLength: 0, tag: -1, step: -1 }),
      () => ({ address, byteLength: there }),
    )
    if (!engine.checkHeader(room, CHECK_MINIMAL)) return null
    const view = engine.view(address, HEADER_LENGTH)
    return new DataView(view.buffer, view.byteOffset).getUint32(0, true) + FRAMING_LENGTH
  }

  /** The same of the record at a byte of the file. */
  async #framedLength(at: number): Promise<number | null> {
    const wanted = Math.min(HEADER_LENGTH, this.#fileLength - at)
    if (!this.#holds(at, wanted)) {
      // The record before may be looked into again.
      const before = this.#faults[0]?.startByte ?? at
      const isNear = before >= this.#windowStart && at - before <= this.#common.windowByteLength >> 1
      await this.#fill(isNear ? before : at)
    }
    const from = at - this.#windowStart
    return this.#header((this.#common.window + from) as Address, this.#held - from)
  }

  /**
   * Writes down what the core has found in the records from a byte of the file on, up to one that may hide others.
   * @param base the byte of the file that lies where the window begins
   * @param until where the first record begins that is not wanted any more
   * @returns where the next record begins
   */
  #take(at: number, base: number, count: number, until: number): number {
    const { engine, room, window } = this.#common
    if (count === 0) return at
    const footers: number[] = []
    const surveyed = Math.min(count, this.#capacity)
    let slots = engine.slots(room, surveyed)
    let end = at
    let frame = 0
    for (let i = 0; i < surveyed; i++) {
      if (slots.frame(i) !== frame) {
        frame = slots.frame(i)
        const start = base + frame - window
        if (start >= until || (footers.length > 0 && this.#isSuspect(end))) break
        this.#openRecord(start, slots.frameByteLength(i), slots.eventStep(i))
        footers.push(frame + slots.frameByteLength(i) - FOOTER_LENGTH - window)
        end = start + slots.frameByteLength(i)
        const status = slots.recordStatus(i)
        if (status !== Status.ok) this.#badRecord(status, slots, i)
      }
      this.#takeValue(slots, i)
    }
    for (let rest = count, capacity = this.#capacity; rest > capacity; capacity = room.capacity) {
      // One record of many Values: the step may come behind them.
      rest = engine.survey.rest(room, end - at - FRAMING_LENGTH)
      slots = engine.slots(room, Math.min(rest, room.capacity))
      const status = slots.recordStatus(0)
      if (status !== Status.ok) this.#badRecord(status, slots, 0)
      else this.#step[this.#step.length - 1] = slots.eventStep(0)
      for (let i = 0; i < Math.min(rest, room.capacity); i++) this.#takeValue(slots, i)
    }
    this.#checkStep()
    if (this.#isSuspect(end)) footers.pop()
    this.#countChecksums(footers)
    return end
  }

  /** @param footers where records have the checksums of their payloads, from the window on */
  #countChecksums(footers: readonly number[]): void {
    const { engine, window } = this.#common
    const view = engine.view(window, (footers.at(-1) ?? 0) + FOOTER_LENGTH)
    const bytes = new DataView(view.buffer, view.byteOffset, view.byteLength)
    for (const at of footers) if (bytes.getUint32(at, true) === UNCHECKED_CRC) this.#withoutChecksum++
  }

  #openRecord(start: number, byteLength: number, step: number): void {
    this.#checkStep()
    this.#recordStart.push(start)
    this.#recordByteLength.push(byteLength)
    this.#step.push(step)
    this.#isBad.push(0)
    this.#isSpoilt = false
    this.#faults = []
  }

  /** Whether the last record is of a step that can be. */
  #checkStep(): void {
    const last = this.#step.length - 1
    const step = this.#step[last]
    if (step === undefined || Number.isNaN(step) || (Number.isSafeInteger(step) && step >= 0)) return
    const offset = this.#recordStart[last]!
    const [expected, got] = ['an Event of a step from 0 to 2^53 - 1', `one of step ${step}`]
    const message = `${this.#url}, offset ${offset}: expected ${expected}, got ${got}`
    this.#step[last] = Number.NaN
    this.#bad(new FormatError('BadStep', message, { url: this.#url, offset, expected, got }), null)
  }

  #badRecord(status: number, slots: SlotReader, i: number): void {
    const startByte = this.#recordStart.at(-1)!
    const place = { url: this.#url, startByte, tensor: '' }
    const tag = slots.holds(i) === ValueKind.noValue ? null : this.#tagName(slots, i)
    if (status !== Status.badPayloadCrc) {
      this.#step[this.#step.length - 1] = Number.NaN
      this.#bad(slots.error(i, place), tag)
      return
    }
    const { engine } = this.#common
    this.#isSpoilt = true
    const byteLength = slots.frameByteLength(i)
    const payload = (slots.frame(i) + HEADER_LENGTH) as Address
    const crc = engine.crc32c(payload, byteLength - FRAMING_LENGTH)
    const footer = engine.view((payload + byteLength - FRAMING_LENGTH) as Address, FOOTER_LENGTH)
    this.#badPayload(crc, new DataView(footer.buffer, footer.byteOffset).getUint32(0, true), tag)
  }

  /** Of the last record. */
  #badPayload(crc: number, stored: number, tag: string | null): void {
    const startByte = this.#recordStart.at(-1)!
    const faultOffset = this.#recordByteLength.at(-1)! - FOOTER_LENGTH
    const expected = this.#common.engine.maskedCrc(crc)
    const fault = { status: Status.badPayloadCrc, faultOffset, expected, got: stored, tag: '' }
    this.#bad(faultError(fault, { url: this.#url, startByte, tensor: tag ?? '' }), tag)
  }

  /** Something is wrong with the last record. */
  #bad(error: TrialscanError, tag: string | null): void {
    const last = this.#recordStart.length - 1
    const startByte = this.#recordStart[last]!
    const endByte = startByte + this.#recordByteLength[last]!
    this.#isBad[last] = 1
    const problem = { error: error.toJSON(), startByte, endByte, tag, step: this.#step[last]! }
    this.#faults.push(problem)
    this.#problems.add(problem)
  }

  #tagName(slots: SlotReader, i: number): string {
    const { tags } = this.#common
    return tags.names[tags.number(slots.tagBytes(i))]!
  }

  #takeValue(slots: SlotReader, i: number): void {
    const held = slots.holds(i)
    if (held === ValueKind.noValue) return
    const tagBytes = slots.tagBytes(i)
    const number = this.#common.tags.number(tagBytes)
    const kind = held === ValueKind.tensor ? 'tensor' : held === ValueKind.histogram ? 'histogram' : 'other'
    this.#value(number, slots.mode(i), slots.modeStep(i), kind)
    if (this.#common.job.withShapes && kind === 'tensor' && slots.ok(i))
      this.#shape[this.#shape.length - 1] = slots.shape(i)
    // Of a payload that is not what it was, nothing more needs to be said.
    if (this.#isSpoilt) return
    const tensor = this.#common.tags.names[number]!
    if (slots.ok(i)) {
      const last = this.#recordStart.length - 1
      if (!this.#common.tags.isText(tagBytes)) {
        this.#bad(this.#error('BadText', this.#recordStart[last]!, 'a tag in UTF-8', 'other bytes'), tensor)
      } else if (kind === 'histogram') this.#keepHistogram(slots, i, tensor)
      else if (this.#deep !== null) this.#look(this.#deep, slots, i, tensor, held)
      return
    }
    this.#bad(slots.error(i, { url: this.#url, startByte: this.#recordStart.at(-1)!, tensor }), tensor)
  }

  /** Copies a histogram, which the core only skips. One that streams is read by nobody, nor is the second of a tag. */
  #keepHistogram(slots: SlotReader, i: number, tensor: string): void {
    const record = this.#recordStart.length - 1
    if (slots.frameByteLength(i) !== this.#recordByteLength[record]) return
    if (this.#histograms.at(-1)?.record !== record) this.#histogramTags.clear()
    if (this.#histogramTags.has(tensor)) return
    this.#histogramTags.add(tensor)
    this.#histograms.push({ tensor, record, value: slots.valueBytes(i) })
  }

  /** Decodes the histograms that were kept. */
  async #checkHistograms(): Promise<void> {
    for (const { tensor, record, value } of this.#histograms.splice(0)) {
      if (this.#isBad[record] === 1 || (await isHistogram(value))) continue
      const startByte = this.#recordStart[record]!
      const error = this.#error(
        'MalformedEvent',
        startByte,
        'a well-formed histogram',
        'bytes that do not parse as one',
      )
      const endByte = startByte + this.#recordByteLength[record]!
      this.#isBad[record] = 1
      this.#problems.add({ error: error.toJSON(), startByte, endByte, tag: tensor, step: this.#step[record]! })
    }
  }

  /** Decodes a value. A record that streams is not in memory: see `#lookAtLarge`. */
  #look(deep: DeepLook, slots: SlotReader, i: number, tensor: string, held: number): void {
    const { room } = this.#common
    const last = this.#recordStart.length - 1
    const startByte = this.#recordStart[last]!
    const isInMemory = slots.frameByteLength(i) === this.#recordByteLength[last]
    if (held !== ValueKind.tensor || !isInMemory) return
    const fault = deep.look(room, slots, i, tensor, last)
    if (fault === 'text') {
      this.#bad(this.#error('BadText', startByte, 'strings in UTF-8', 'other bytes'), tensor)
    } else if (fault === 'bool') {
      const odd = this.#error('OddEncoding', startByte, 'bools of 0 and 1', 'other bytes, which count as true')
      const endByte = startByte + this.#recordByteLength[last]!
      this.#notes.add({ error: odd.toJSON(), startByte, endByte, tag: tensor, step: this.#step[last]! })
    }
  }

  /** The elements of a record that streams, once more. */
  async #lookAtLarge(deep: DeepLook, at: number, byteLength: number): Promise<void> {
    const { engine, store, noTags, job, tags } = this.#common
    const last = this.#recordStart.length - 1
    const value = this.#record.lastIndexOf(last)
    if (this.#isBad[last] === 1 || value < 0 || this.#record[value - 1] === last) return
    const mark = engine.mark()
    try {
      const record = await LargeRecord.open(engine, store, {
        path: this.#range.path,
        startByte: at,
        asked: { byteLength, tag: -1, step: -1, tornasole: job.isTornasole },
        tags: noTags,
        place: this.#place(at),
        checkLevel: CHECK_FULL - 1,
        windowByteLength: job.windowByteLength,
        aheadByteLength: 0,
      })
      const { dtype, shape, kind } = record.found
      if (kind !== 'content') return
      const row = engine.reserveBatch(1)
      engine.resetRow(row)
      await record.streamPart(0, 1, (address, count) => engine.addToRow(row, dtype, address, count))
      this.readBytes += record.readBytes
      const moments = new Moments(dtype, engine.rows(row, 1).slice())
      deep.keep(moments, shape, tags.names[this.#tag[value]!]!, this.#step[last]!, last)
    } finally {
      engine.release(mark)
    }
  }

  /** Of one range: a file is not cut for a deep look. */
  #compareReductions(): void {
    for (const { saved, computed } of this.#deep?.mismatches() ?? []) {
      const startByte = this.#recordStart[saved.record]!
      const { reduction, tensor, step } = saved
      const expected = `${reduction} ${computed} of tensor ${quote(tensor)}, which is saved beside it`
      const error = this.#error('ReductionMismatch', startByte, expected, `${saved.value}`)
      const endByte = startByte + this.#recordByteLength[saved.record]!
      this.#problems.add({ error: error.toJSON(), startByte, endByte, tag: tensor, step })
    }
  }

  #value(tag: number, mode: number, modeStep: number, kind: (typeof VALUE_KINDS)[number]): void {
    this.#record.push(this.#recordStart.length - 1)
    this.#tag.push(tag)
    this.#mode.push(mode)
    this.#modeStep.push(modeStep)
    if (this.#common.job.withShapes) this.#shape.push(null)
    this.#kind.push(KIND_NUMBERS[kind])
  }

  /** A record that is longer than the window, which begins with it. Its head is there; the rest streams. */
  async #large(at: number, byteLength: number): Promise<void> {
    const { engine, room, window, windowByteLength, tail, job } = this.#common
    const payloadLength = byteLength - FRAMING_LENGTH
    const survey = (tailAt: Address | 0, tailLength: number): number => {
      const head = { address: window, byteLength: this.#held }
      return engine.survey.sparse(room, head, payloadLength, tailAt, tailLength, job.isTornasole)
    }
    const release = engine.mark()
    let count = survey(0, 0)
    let slots = engine.slots(room, 1)
    if (slots.needs(0) === 'tail') {
      const tailStart = slots.dataOffset(0) + slots.dataByteLength(0)
      const tailLength = byteLength - FOOTER_LENGTH - tailStart
      if (tailLength <= MAX_TAIL_BYTES && (await this.#read(at + tailStart, tail, tailLength)) === tailLength) {
        count = survey(tail, tailLength)
        slots = engine.slots(room, 1)
      }
    }
    if (slots.needs(0) === null && count <= room.capacity) {
      this.#openRecord(at, byteLength, slots.eventStep(0))
      const found = engine.slots(room, count)
      if (found.recordStatus(0) !== Status.ok) this.#badRecord(found.recordStatus(0), found, 0)
      for (let i = 0; i < count; i++) this.#takeValue(found, i)
      this.#checkStep()
      engine.release(release)
    } else {
      engine.release(release)
      // Another long field than one tensor_content: read as a whole if it may be.
      if (byteLength <= job.windowByteLength) return this.#whole(at, byteLength)
      await this.#names(at, byteLength)
    }
    const end = at + byteLength - FOOTER_LENGTH
    let next = Math.min(end, at + this.#held)
    let crc = engine.crc32c((window + HEADER_LENGTH) as Address, next - at - HEADER_LENGTH)
    // The window is used for the rest of it.
    this.#held = 0
    let footer: Address
    do {
      // The checksum comes with the last bytes of what it is of.
      const part = Math.min(windowByteLength - FOOTER_LENGTH, end - next)
      const wanted = next + part === end ? part + FOOTER_LENGTH : part
      const there = await this.#read(next, window, wanted)
      if (there < wanted) return this.#shrunk(at, byteLength, next + there)
      crc = engine.crc32c(window, part, crc)
      next += part
      footer = (window + part) as Address
    } while (next < end)
    const view = engine.view(footer, FOOTER_LENGTH)
    const stored = new DataView(view.buffer, view.byteOffset).getUint32(0, true)
    if (stored === UNCHECKED_CRC) this.#withoutChecksum++
    else if (stored !== engine.maskedCrc(crc)) {
      const first = this.#record.lastIndexOf(this.#recordStart.length - 1)
      this.#badPayload(crc, stored, first < 0 ? null : this.#common.tags.names[this.#tag[first]!]!)
    }
    if (this.#deep !== null) await this.#lookAtLarge(this.#deep, at, byteLength)
  }

  /** A record that is longer than the window, but not than what may be in memory. */
  async #whole(at: number, byteLength: number): Promise<void> {
    const { engine, room, job } = this.#common
    const release = engine.mark()
    try {
      const address = engine.reserveBytes(byteLength)
      const there = await this.#read(at, address, byteLength)
      if (there < byteLength) return this.#shrunk(at, byteLength, at + there)
      this.#takeFrom(address, at, engine.survey.records(room, address, byteLength, job.isTornasole))
    } finally {
      engine.release(release)
      this.#held = 0
    }
  }

  #takeFrom(address: Address, at: number, count: number): void {
    const { window } = this.#common
    // Offsets are counted from the window.
    this.#take(at, at - (address - window), count, Number.POSITIVE_INFINITY)
  }

  /** What a record holds that is too long to be in memory: by its names alone. Whether its shape is right is not known. */
  async #names(at: number, byteLength: number): Promise<void> {
    const { store, tags, job } = this.#common
    const file = new FilePieces(store, this.#range.path, this.#fileLength)
    this.#openRecord(at, byteLength, Number.NaN)
    const [expected, got] = [
      `records of at most ${job.windowByteLength} bytes, or one large field`,
      `${byteLength} bytes`,
    ]
    const error = this.#error('RecordNotChecked', at, expected, got).toJSON()
    this.#notes.add({ error, startByte: at, endByte: at + byteLength, tag: null, step: Number.NaN })
    const walk = walkEventHead(file, at + HEADER_LENGTH, at + byteLength - FOOTER_LENGTH)
    try {
      for (;;) {
        const result = walk.next()
        if (result.done) {
          const { step, values } = result.value
          this.#step[this.#step.length - 1] = step
          for (const { tag, kind, mode, modeStep } of values) {
            this.#value(tags.named(tag), mode, modeStep, kind ?? 'other')
          }
          this.#checkStep()
          return
        }
        await file.load(result.value.at)
      }
    } catch (error) {
      if (!(error instanceof MalformedEvent)) throw error
      this.#bad(this.#error('MalformedEvent', error.at, error.expected, error.got), null)
    }
  }

  /** The file has become shorter while it was read. */
  #shrunk(at: number, expected: number, end: number): void {
    this.#fileLength = end
    if (this.#recordStart.at(-1) !== at) this.#openRecord(at, expected, Number.NaN)
    const fault = { status: Status.truncated, faultOffset: 0, expected, got: end - at, tag: '' }
    this.#bad(faultError(fault, { url: this.#url, startByte: at, tensor: '' }), null)
  }

  /**
   * A frame that is broken, or goes beyond the end of the file: one problem, whatever is skipped.
   * @param framed the length its header says, if that is right
   * @returns where the next record begins, or the file ends
   */
  async #broken(at: number, framed: number | null): Promise<number> {
    const { engine, room } = this.#common
    // What the header says must be read now: looking for the next one takes its place.
    const headerError = framed === null ? engine.slots(room, 1).error(0, this.#place(at)) : null
    // A record that is not what it was, and none behind it: its length is wrong, or bytes have come or gone. Then the next
    // one may begin before the end of this.
    const before = this.#faults.find(({ error, endByte }) => error.code === 'BadPayloadChecksum' && endByte === at)
    const isRewound = before !== undefined && this.#rewindable >= at - before.startByte
    if (isRewound) this.#rewindable -= at - before.startByte
    const next = await this.#nextFrame(isRewound ? before.startByte : at, null)
    const end = next ?? this.#fileLength
    const left = this.#fileLength - at
    const isTorn = next === null && (framed !== null || left < HEADER_LENGTH)
    let error: TrialscanError
    if (isTorn) {
      const expected = framed === null ? 'a record, which takes at least 16 bytes' : `a record of ${framed} bytes`
      error = this.#error('TruncatedRecord', at, expected, `${left} bytes before the file ends`)
    } else if (headerError?.code === 'BadLengthChecksum') {
      error = headerError
    } else {
      const expected = `a record that ends in the file, of at most ${left} bytes`
      error = this.#error(
        'BrokenFrame',
        at,
        expected,
        framed === null ? 'one of 4 GiB or more' : `one of ${framed} bytes`,
      )
    }
    if (end > at) this.#skipped.push(at, end)
    if (!isTorn && before !== undefined) {
      const { startByte } = before
      this.#recordByteLength[this.#recordByteLength.length - 1] = Math.min(at, end) - startByte
      const expected = `another record behind the ${at - startByte} bytes of this one`
      const frame = this.#error('BrokenFrame', startByte, expected, 'none, and another payload than was written')
      this.#problems.replace([before], { ...before, error: frame.toJSON(), endByte: end })
    } else {
      this.#problems.add({ error: error.toJSON(), startByte: at, endByte: end, tag: null, step: Number.NaN })
    }
    this.#faults = []
    return end
  }

  /**
   * Whether the last record is spoilt, and may hide others by a length that is too long: the index names some in it, or there
   * is no index.
   * @param end where it ends
   */
  #isSuspect(end: number): boolean {
    const [fault] = this.#faults
    if (fault === undefined || fault.endByte !== end || this.#rewindable < end - fault.startByte) return false
    const { anchors } = this.#range
    return anchors.length === 0 || (anchors[behind(anchors, fault.startByte)] ?? end) < end
  }

  /**
   * Looks for records in the last one, if that is spoilt.
   * @param end where it ends
   * @returns where the next record begins: there, or in it
   */
  async #lookInside(end: number): Promise<number> {
    if (!this.#isSuspect(end)) return end
    const [fault] = this.#faults as [RecordProblem]
    const { startByte } = fault
    this.#rewindable -= end - startByte
    const next = (await this.#nextFrame(startByte, end)) ?? end
    if (next === end) return end
    this.#recordByteLength[this.#recordByteLength.length - 1] = next - startByte
    const expected = `a record of at most ${next - startByte} bytes, since another begins behind these`
    const error = this.#error('BrokenFrame', startByte, expected, `one of ${end - startByte}`).toJSON()
    this.#problems.replace(this.#faults, { ...fault, error, endByte: next })
    this.#faults = []
    return next
  }

  #place(startByte: number) {
    return { url: this.#url, startByte, tensor: '' }
  }

  #error(code: string, offset: number, expected: string, got: string): FormatError {
    const message = `${this.#url}, offset ${offset}: expected ${expected}, got ${got}`
    return new FormatError(code, message, { url: this.#url, offset, expected, got })
  }

  /**
   * Where the next record begins behind a place where none does. An index entry's, if there is a record where it says;
   * and before that only what leads to it, since the elements of a tensor may look like anything. Null: there is none.
   * @param end where one begins, or the file ends, in any case; null: nobody knows
   */
  async #nextFrame(at: number, end: number | null): Promise<number | null> {
    const { anchors } = this.#range
    const known = this.#search
    if (end === null && known !== null && at >= known.from && at < known.until) return known.next(at)
    const search = new Search(at)
    let anchor = behind(anchors, at)
    const { engine, window } = this.#common
    const limit = end ?? this.#fileLength
    for (let from = at + 1; from + HEADER_LENGTH <= limit; ) {
      if (!this.#holds(from, HEADER_LENGTH)) await this.#fill(from)
      const offset = from - this.#windowStart
      const there = this.#held - offset
      const found = engine.survey.findFrame((window + offset) as Address, there, this.#fileLength - from)
      from += found
      if (found + HEADER_LENGTH > there) {
        if (this.#windowStart + this.#held >= this.#fileLength) break
        continue
      }
      if (from >= limit) break
      while (anchor < anchors.length && anchors[anchor]! < from) anchor++
      if (anchors[anchor] === from) {
        search.end(from, from)
        break
      }
      const header = engine.view((window + from - this.#windowStart) as Address, HEADER_LENGTH)
      const payload = new DataView(header.buffer, header.byteOffset).getUint32(0, true)
      search.add(from, from + payload + FRAMING_LENGTH)
      // Where nothing tells where to go on, or too much does, the next header is taken.
      if (end === null && (anchor === anchors.length || search.isFull)) {
        search.end(from, null)
        break
      }
      if (search.isFull) return null
      from++
    }
    search.end(limit, end)
    if (end === null) this.#search = search
    return search.next(at)
  }
}

/** The first of some numbers in order that is greater than another. */
function behind(numbers: ArrayLike<number>, at: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! > at) high = middle
    else low = middle + 1
  }
  return low
}

/** Headers that hold, behind damage, up to a record that is known. */
class Search {
  readonly from: number
  /** Up to where it has come. */
  until = Number.NaN
  #goal: number | null = null
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  /** Of these, where records begin that follow one another up to the goal; of a search without one, all. */
  #leads: readonly number[] = []

  constructor(from: number) {
    this.from = from
  }

  get isFull(): boolean {
    return this.#starts.length >= MAX_LEADS
  }

  add(start: number, end: number): void {
    this.#starts.push(start)
    this.#ends.push(end)
  }

  /** @param goal where a record begins; null: none is known. The first end counts */
  end(until: number, goal: number | null): void {
    if (!Number.isNaN(this.until)) return
    this.until = until
    this.#goal = goal
    this.#leads = this.#starts
    if (goal === null) return
    const good = new Set([goal])
    const leads: number[] = []
    for (let i = this.#starts.length - 1; i >= 0; i--) {
      if (!good.has(this.#ends[i]!)) continue
      good.add(this.#starts[i]!)
      leads.push(this.#starts[i]!)
    }
    this.#leads = leads.reverse()
  }

  /** Where the first record begins behind a byte; null: nowhere. */
  next(at: number): number | null {
    return this.#leads[behind(this.#leads, at)] ?? this.#goal
  }
}

/** Problems, of which the first are told. */
class Problems {
  readonly told: RecordProblem[] = []
  readonly counts: Record<string, number> = {}

  add(problem: RecordProblem): void {
    const { code } = problem.error
    this.counts[code] = (this.counts[code] ?? 0) + 1
    if (this.told.length < MAX_PROBLEMS) this.told.push(problem)
  }

  /** Puts another problem in place of some. */
  replace(before: readonly RecordProblem[], problem: RecordProblem): void {
    for (const one of before) {
      const at = this.told.lastIndexOf(one)
      if (at >= 0) this.told.splice(at, 1)
      this.counts[one.error.code]!--
    }
    this.add(problem)
  }

  /** Those that are told, in the order of the file. */
  get inOrder(): RecordProblem[] {
    return this.told.sort((a, b) => a.startByte - b.startByte)
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Tags by numbers, looked up by their bytes. */
class TagNumbers {
  readonly #tags = new Interner()
  readonly #byBytes = new Map<string, number>()
  readonly #odd = new Set<string>()

  get names(): readonly string[] {
    return this.#tags.names
  }

  /** @param bytes of the tag's UTF-8, one a character */
  number(bytes: string): number {
    let number = this.#byBytes.get(bytes)
    if (number === undefined) {
      const utf8 = Buffer.from(bytes, 'latin1')
      number = this.#tags.number(decoder.decode(utf8))
      if (!isText(utf8)) this.#odd.add(bytes)
      this.#byBytes.set(bytes, number)
    }
    return number
  }

  /** Whether a tag is UTF-8. @param bytes of one that has a number */
  isText(bytes: string): boolean {
    return !this.#odd.has(bytes)
  }

  named(tag: string): number {
    return this.#tags.number(tag)
  }
}
