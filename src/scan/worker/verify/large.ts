/** Checks records of an event file that are longer than the window: their heads are surveyed, the rest streams. */

import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../../../core/border/framing.js'
import { type Address, NO_TEXTS } from '../../../core/border/memory.js'
import { Moments } from '../../../core/moments.js'
import type { SlotReader } from '../../../core/slots.js'
import { MalformedEvent, walkEventHead } from '../../../format/event-head.js'
import { FilePieces } from '../file-pieces.js'
import { CHECK_FULL, LargeRecord } from '../records/large.js'
import type { FoundRecords } from './found.js'
import { MAX_TAIL_BYTES, type RangeSetting } from './job.js'
import type { ValueCheck } from './value-check.js'
import type { FileWindow } from './window.js'

/** A receiver of a range's records. */
interface RecordTaker {
  take(at: number, base: number, count: number, until: number): number
  checkRecord(slots: SlotReader, i: number): boolean
  badPayload(crc: number, stored: number, tag: string | null): void
  shrunk(at: number, expected: number, end: number): void
}

export class LargeRecords {
  readonly #setting: RangeSetting
  readonly #window: FileWindow
  readonly #records: FoundRecords
  readonly #values: ValueCheck
  readonly #taker: RecordTaker

  constructor(
    setting: RangeSetting,
    window: FileWindow,
    records: FoundRecords,
    values: ValueCheck,
    taker: RecordTaker,
  ) {
    this.#setting = setting
    this.#window = window
    this.#records = records
    this.#values = values
    this.#taker = taker
  }

  /** Checks a record that is longer than the window, which begins with it. Its head is in memory; the rest streams. */
  async check(at: number, byteLength: number): Promise<void> {
    const { engine, batch, job } = this.#setting
    const release = engine.mark()
    const count = await this.#survey(at, byteLength)
    if (count !== null) {
      const slots = engine.slots(batch, count)
      this.#records.openRecord(at, byteLength, slots.eventStep(0))
      this.#taker.checkRecord(slots, 0)
      for (let i = 0; i < count; i++) this.#values.take(slots, i)
      this.#records.checkStep()
      engine.release(release)
    } else {
      engine.release(release)
      // A long field other than one tensor_content: read as a whole if that fits.
      if (byteLength <= job.windowByteLength) return this.#whole(at, byteLength)
      await this.#names(at, byteLength)
    }
    if ((await this.#checkPayload(at, byteLength)) && this.#values.isDeep) await this.#look(at, byteLength)
  }

  /** Lists the Values of a record by its head and, if it has one large field, its tail. @returns null if that is not enough */
  async #survey(at: number, byteLength: number): Promise<number | null> {
    const { engine, batch, tail, job } = this.#setting
    const window = this.#window
    const payloadLength = byteLength - FRAMING_LENGTH
    const survey = (tailAt: Address | 0, tailLength: number): number => {
      const head = { address: window.address, byteLength: window.held }
      return engine.survey.sparse(batch, head, payloadLength, tailAt, tailLength, job.isTornasole)
    }
    let count = survey(0, 0)
    let slots = engine.slots(batch, 1)
    if (slots.needs(0) === 'tail') {
      const tailStart = slots.dataOffset(0) + slots.dataByteLength(0)
      const tailLength = byteLength - FOOTER_LENGTH - tailStart
      if (tailLength <= MAX_TAIL_BYTES && (await window.read(at + tailStart, tail, tailLength)) === tailLength) {
        count = survey(tail, tailLength)
        slots = engine.slots(batch, 1)
      }
    }
    return slots.needs(0) === null && count <= batch.capacity ? count : null
  }

  /** Computes the checksum of the payload, in windows. @returns true if the record is complete */
  async #checkPayload(at: number, byteLength: number): Promise<boolean> {
    const { engine, tags } = this.#setting
    const window = this.#window
    const end = at + byteLength - FOOTER_LENGTH
    let next = Math.min(end, at + window.held)
    let crc = engine.crc32c((window.address + HEADER_LENGTH) as Address, next - at - HEADER_LENGTH)
    // The window is used for the rest of the record.
    window.held = 0
    let footer: Address
    do {
      // The checksum comes with the last bytes of the payload.
      const part = Math.min(window.byteLength - FOOTER_LENGTH, end - next)
      const wanted = next + part === end ? part + FOOTER_LENGTH : part
      const available = await window.read(next, window.address, wanted)
      if (available < wanted) {
        this.#taker.shrunk(at, byteLength, next + available)
        return false
      }
      crc = engine.crc32c(window.address, part, crc)
      next += part
      footer = (window.address + part) as Address
    } while (next < end)
    const stored = engine.uint32(footer)
    if (stored === UNCHECKED_CRC) this.#records.withoutChecksum++
    else if (stored !== engine.maskedCrc(crc)) {
      const { firstTag } = this.#records
      this.#taker.badPayload(crc, stored, firstTag === null ? null : tags.names[firstTag]!)
    }
    return true
  }

  /** Streams the elements of a record once more. */
  async #look(at: number, byteLength: number): Promise<void> {
    const { engine, store, job, tags } = this.#setting
    const records = this.#records
    const tag = records.onlyTag
    if (records.isBad(records.last) || tag === null) return
    const mark = engine.mark()
    const counts = { readBytes: 0, reads: 0 }
    try {
      const record = await LargeRecord.open(engine, store, {
        path: this.#window.path,
        startByte: at,
        request: { byteLength, tag: -1, step: -1, tornasole: job.isTornasole },
        tags: NO_TEXTS,
        place: { url: store.url(this.#window.path), startByte: at, tensor: '' },
        checkLevel: CHECK_FULL - 1,
        windowByteLength: job.windowByteLength,
        aheadByteLength: 0,
        counts,
      })
      const { dtype, shape, kind } = record.contents
      if (kind !== 'content') return
      const row = engine.reserveBatch(1)
      engine.resetRow(row)
      await record.streamPart(0, 1, (address, count) => engine.addToRow(row, dtype, address, count))
      this.#window.readBytes += counts.readBytes
      this.#values.keep(new Moments(dtype, engine.rows(row, 1).slice()), shape, tags.names[tag]!)
    } finally {
      engine.release(mark)
    }
  }

  /** Checks a record that is longer than the window but fits in memory. */
  async #whole(at: number, byteLength: number): Promise<void> {
    const { engine, batch, job } = this.#setting
    const window = this.#window
    const release = engine.mark()
    try {
      const address = engine.reserveBytes(byteLength)
      const available = await window.read(at, address, byteLength)
      if (available < byteLength) return this.#taker.shrunk(at, byteLength, at + available)
      const count = engine.survey.records(batch, address, byteLength, job.isTornasole)
      // Offsets are relative to the window.
      this.#taker.take(at, at - (address - window.address), count, Number.POSITIVE_INFINITY)
    } finally {
      engine.release(release)
      window.held = 0
    }
  }

  /** Checks a record that doesn't fit in memory by the names in it. Its shape is not checked. */
  async #names(at: number, byteLength: number): Promise<void> {
    const { store, tags, job } = this.#setting
    const records = this.#records
    const file = new FilePieces(store, this.#window.path, this.#window.fileLength)
    records.openRecord(at, byteLength, Number.NaN)
    const expected = `records of at most ${job.windowByteLength} bytes, or one large field`
    records.note('RecordNotChecked', records.last, null, () =>
      records.error('RecordNotChecked', at, expected, `${byteLength} bytes`),
    )
    const walk = walkEventHead(file, at + HEADER_LENGTH, at + byteLength - FOOTER_LENGTH)
    try {
      for (;;) {
        const result = walk.next()
        if (result.done) {
          const { step, values } = result.value
          records.setStep(step)
          for (const { tag, kind, mode, modeStep } of values) {
            records.addValue(tags.named(tag), mode, modeStep, kind ?? 'other')
          }
          records.checkStep()
          return
        }
        await file.load(result.value.at)
      }
    } catch (error) {
      if (!(error instanceof MalformedEvent)) throw error
      records.fail('MalformedEvent', null, () => records.error('MalformedEvent', error.at, error.expected, error.got))
    }
  }
}
