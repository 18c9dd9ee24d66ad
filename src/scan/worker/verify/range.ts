/**
 * Verifies the records that begin in a range of an event file: frames, checksums, Events, tensors against their shapes. The core surveys
 * a window of records in one call. Behind a broken frame, the walk continues at the next intact record.
 */

import type { TrialscanError } from '../../../base/errors.js'
import { Status, ValueKind } from '../../../core/border/abi.js'
import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../../../core/border/framing.js'
import type { Address } from '../../../core/border/memory.js'
import { faultError } from '../../../core/border/status.js'
import type { SlotReader } from '../../../core/slots.js'
import type { VerifiedRange, VerifyRange } from '../../job/verify-job.js'
import { FoundRecords } from './found.js'
import { FrameFinder } from './frames.js'
import { type RangeSetting, SLOTS } from './job.js'
import { LargeRecords } from './large.js'
import { ValueCheck } from './value-check.js'
import { FileWindow } from './window.js'

const FEW_SLOTS = 2

export class RangeVerifier {
  readonly #setting: RangeSetting
  readonly #range: VerifyRange
  readonly #url: string
  readonly #window: FileWindow
  readonly #frames: FrameFinder
  readonly #records: FoundRecords
  readonly #values: ValueCheck
  readonly #large: LargeRecords
  /** The number of Values to survey at once: few behind a damaged record, since what is surveyed behind the next one is surveyed again. */
  #capacity = SLOTS
  /** The number of bytes that may be searched again for hidden records; it bounds the total time. */
  #rewindable: number

  constructor(setting: RangeSetting, range: VerifyRange, fileLength: number) {
    const { engine, job, store, window: address, windowByteLength: byteLength } = setting
    this.#setting = setting
    this.#range = range
    this.#url = store.url(range.path)
    this.#window = new FileWindow(engine, store, { path: range.path, fileLength, address, byteLength })
    this.#frames = new FrameFinder(setting, this.#window, range.anchors)
    this.#records = new FoundRecords(this.#url, range.path, job.withShapes === true)
    this.#values = new ValueCheck(setting, this.#records, this.#url)
    this.#large = new LargeRecords(setting, this.#window, this.#records, this.#values, this)
    this.#rewindable = 2 * fileLength
  }

  get readBytes(): number {
    return this.#window.readBytes
  }

  async run(): Promise<VerifiedRange> {
    const { startByte, endByte } = this.#range
    const window = this.#window
    let at = startByte
    await window.fill(at)
    while (at < Math.min(endByte ?? window.fileLength, window.fileLength) && !this.#records.isMuch) {
      let next = await this.#survey(at, endByte)
      await this.#values.checkHistograms()
      if (next === at) {
        const framed = await this.#frames.framedLength(at, this.#records.faults[0]?.startByte ?? at)
        const isWhole = framed !== null && at + framed <= window.fileLength
        if (isWhole && at > window.start && !window.holds(at, framed)) {
          await window.fill(at)
          continue
        }
        if (isWhole) await this.#large.check(at, framed)
        next = isWhole ? at + framed : await this.#broken(at, framed)
      }
      at = await this.#lookInside(next)
    }
    await this.#values.checkHistograms()
    this.#values.compareReductions()
    return this.#records.reply(window.fileLength, startByte, at)
  }

  /** Surveys the window from a byte of the file on. @returns the end */
  async #survey(at: number, endByte: number | null): Promise<number> {
    const window = this.#window
    if (!window.holds(at, FRAMING_LENGTH)) await window.fill(at)
    const { engine, batch, job } = this.#setting
    const end = engine.scoped(() => {
      const some = { ...batch, capacity: this.#capacity }
      const count = engine.survey.records(some, window.addressOf(at), window.end - at, job.isTornasole)
      return this.take(at, window.start, count, endByte ?? window.fileLength)
    })
    this.#capacity = this.#isSuspect(end) ? FEW_SLOTS : Math.min(SLOTS, this.#capacity * 4)
    return end
  }

  /**
   * Adds the core's findings in the records from a byte of the file on, up to one that may hide others.
   * @param base the offset of the window in the file
   * @param until the start of the first record that is not wanted
   * @returns the start of the next record
   */
  take(at: number, base: number, count: number, until: number): number {
    const { engine, batch, window } = this.#setting
    const records = this.#records
    if (count === 0) return at
    const footers: Address[] = []
    const surveyed = Math.min(count, this.#capacity)
    let slots = engine.slots(batch, surveyed)
    let end = at
    let frame = 0
    for (let i = 0; i < surveyed; i++) {
      if (slots.frame(i) !== frame) {
        frame = slots.frame(i)
        const start = base + frame - window
        if (start >= until || (footers.length > 0 && this.#isSuspect(end))) break
        records.openRecord(start, slots.frameByteLength(i), slots.eventStep(i))
        footers.push((frame + slots.frameByteLength(i) - FOOTER_LENGTH) as Address)
        end = start + slots.frameByteLength(i)
        this.checkRecord(slots, i)
      }
      this.#values.take(slots, i)
    }
    for (let rest = count, capacity = this.#capacity; rest > capacity; capacity = batch.capacity) {
      // A record with many Values: its step may come behind them.
      rest = engine.survey.rest(batch, end - at - FRAMING_LENGTH)
      slots = engine.slots(batch, Math.min(rest, batch.capacity))
      if (this.checkRecord(slots, 0)) records.setStep(slots.eventStep(0))
      for (let i = 0; i < Math.min(rest, batch.capacity); i++) this.#values.take(slots, i)
    }
    records.checkStep()
    if (this.#isSuspect(end)) footers.pop()
    for (const footer of footers) if (engine.uint32(footer) === UNCHECKED_CRC) records.withoutChecksum++
    return end
  }

  /** @returns true if the record of a slot, which is the last one, has no problem */
  checkRecord(slots: SlotReader, i: number): boolean {
    const status = slots.recordStatus(i)
    if (status === Status.ok) return true
    const records = this.#records
    const tag = slots.holds(i) === ValueKind.noValue ? null : this.#values.tagName(slots, i)
    if (status !== Status.badPayloadCrc) {
      records.setStep(Number.NaN)
      const place = { url: this.#url, startByte: records.startOf(records.last), tensor: '' }
      records.failAs(slots.status(i), tag, () => slots.error(i, place))
      return false
    }
    const { engine } = this.#setting
    records.isSpoilt = true
    const byteLength = slots.frameByteLength(i)
    const payload = (slots.frame(i) + HEADER_LENGTH) as Address
    const crc = engine.crc32c(payload, byteLength - FRAMING_LENGTH)
    this.badPayload(crc, engine.uint32((payload + byteLength - FRAMING_LENGTH) as Address), tag)
    return false
  }

  /** Reports a bad payload checksum of the last record. */
  badPayload(crc: number, stored: number, tag: string | null): void {
    const records = this.#records
    const place = { url: this.#url, startByte: records.startOf(records.last), tensor: tag ?? '' }
    const faultOffset = records.byteLengthOf(records.last) - FOOTER_LENGTH
    const expected = this.#setting.engine.maskedCrc(crc)
    const fault = { status: Status.badPayloadCrc, faultOffset, expected, got: stored }
    records.failAs(fault.status, tag, () => faultError(fault, place))
  }

  /** Reports that the file has become shorter while it was read. */
  shrunk(at: number, expected: number, end: number): void {
    const records = this.#records
    this.#window.fileLength = end
    if (records.last < 0 || records.startOf(records.last) !== at) records.openRecord(at, expected, Number.NaN)
    const fault = { status: Status.truncated, expected, got: end - at }
    records.failAs(fault.status, null, () => faultError(fault, { url: this.#url, startByte: at, tensor: '' }))
  }

  /**
   * Reports a frame that is broken, or extends beyond the file, as one problem, whatever is skipped.
   * @param framed the length in its header, if that is valid
   * @returns the start of the next record, or the end of the file
   */
  async #broken(at: number, framed: number | null): Promise<number> {
    const records = this.#records
    const headerError = framed === null ? this.#frames.headerError(this.#url, at) : null
    // A damaged record without another behind it: its length is wrong, or bytes were inserted or lost. The next record may then begin
    // before the end of this one.
    const before = records.faults.find(({ code, endByte }) => code === 'BadPayloadChecksum' && endByte === at)
    const isRewound = before !== undefined && this.#rewindable >= at - before.startByte
    if (isRewound) this.#rewindable -= at - before.startByte
    const next = await this.#frames.next(isRewound ? before.startByte : at, null)
    const end = next ?? this.#window.fileLength
    const isTorn = next === null && (framed !== null || this.#window.fileLength - at < HEADER_LENGTH)
    records.skip(at, end)
    if (!isTorn && before !== undefined) {
      const { startByte } = before
      records.setEnd(Math.min(at, end))
      const expected = `another record behind the ${at - startByte} bytes of this one`
      const error = records.error('BrokenFrame', startByte, expected, 'none, and another payload than was written')
      records.replace(before, end, error, true)
    } else records.problem(this.#frameError(at, framed, headerError, isTorn), at, end)
    records.faults = []
    return end
  }

  #frameError(at: number, framed: number | null, headerError: TrialscanError | null, isTorn: boolean): TrialscanError {
    const remaining = this.#window.fileLength - at
    if (isTorn) {
      const expected = framed === null ? 'a record, which takes at least 16 bytes' : `a record of ${framed} bytes`
      return this.#records.error('TruncatedRecord', at, expected, `${remaining} bytes before the file ends`)
    }
    if (headerError?.code === 'BadLengthChecksum') return headerError
    const expected = `a record that ends in the file, of at most ${remaining} bytes`
    const got = framed === null ? 'one of 4 GiB or more' : `one of ${framed} bytes`
    return this.#records.error('BrokenFrame', at, expected, got)
  }

  /**
   * True if the last record is damaged and may hide others by a length that is too long: the index lists some in it, or there is no
   * index.
   * @param end its end
   */
  #isSuspect(end: number): boolean {
    const [fault] = this.#records.faults
    if (fault === undefined || fault.endByte !== end || this.#rewindable < end - fault.startByte) return false
    return this.#frames.mayHide(fault.startByte, end)
  }

  /**
   * Searches the last record for hidden ones, if it is damaged.
   * @param end its end
   * @returns the start of the next record: there, or within it
   */
  async #lookInside(end: number): Promise<number> {
    const [fault] = this.#records.faults
    if (fault === undefined || !this.#isSuspect(end)) return end
    const { startByte } = fault
    this.#rewindable -= end - startByte
    const next = (await this.#frames.next(startByte, end)) ?? end
    if (next === end) return end
    this.#records.setEnd(next)
    const expected = `a record of at most ${next - startByte} bytes, since another begins behind these`
    const error = this.#records.error('BrokenFrame', startByte, expected, `one of ${end - startByte}`)
    this.#records.replace(fault, next, error, false)
    return next
  }
}
