/**
 * The core's interface for the rest of trialscan: records in, rows of moments or values out. Concurrent jobs need an engine each: see
 * engines.ts. Every job begins with `reset`, reserves what it needs, and copies its results out.
 */

import { EngineError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { CheckLevelNumber, KnownMoments, MomentsRow, RecordSlot } from './border/abi.js'
import { FRAMING_LENGTH } from './border/framing.js'
import { type Address, CoreMemory, NO_TEXTS, type Texts } from './border/memory.js'
import { type Core, instantiateCore } from './border/module.js'
import { dtypeNumber } from './dtype.js'
import { ElementKernels } from './elements.js'
import { ROW_LENGTH } from './moments-row.js'
import { type Batch, type Frame, type RecordRequest, SlotReader, writeSlots } from './slots.js'
import { Sketch } from './statistics/sketch.js'
import { Survey } from './survey.js'
import { ValueReader } from './values.js'

/** The core behind an engine, for modules that only some programs load. */
export let coreOf: (engine: Engine) => Core

export class Engine extends CoreMemory {
  static {
    coreOf = engine => engine.#core
  }

  readonly #core: Core
  /** Surveys of records without index entries. */
  readonly survey: Survey
  /** Copies of the values of records. */
  readonly values: ValueReader
  /** Operations on elements in memory. */
  readonly elements: ElementKernels

  constructor() {
    const core = instantiateCore()
    super(core)
    this.#core = core
    this.survey = new Survey(core, this)
    this.values = new ValueReader(core, this)
    this.elements = new ElementKernels(core, this)
  }

  /** Reserves slots and rows for the records that are decoded at once. */
  reserveBatch(capacity: number): Batch {
    return {
      slots: this.reserveBytes(capacity * RecordSlot.size),
      rows: this.reserveBytes(capacity * MomentsRow.size),
      capacity,
    }
  }

  /** Writes the expected content of a batch's records into their slots. `frame` returns the address and length of the i-th. */
  ask(
    batch: Batch,
    count: number,
    tags: Texts,
    request: (i: number) => RecordRequest,
    frame: (i: number) => Frame,
  ): void {
    writeSlots(this, batch, count, tags, request, frame)
  }

  /** Checks and walks the records of a batch. */
  decode(batch: Batch, count: number, checkLevel: number): void {
    this.#core.decodeRecords(batch.slots, count, checkLevel)
  }

  /** Checks and walks the records of a batch and writes their moments, as far as `known` requires. */
  scan(batch: Batch, count: number, checkLevel: number, known: KnownMoments = KnownMoments.all): void {
    this.#core.scanRecords(batch.slots, count, checkLevel, batch.rows, known)
  }

  /** The moments of a batch's records: a view, to be copied before the next call. */
  rows(batch: Batch, count: number): Float64Array<ArrayBuffer> {
    return this.doubles(batch.rows, count * ROW_LENGTH)
  }

  /** The slots of a batch after decode or scan, for reading. Valid until the next reservation or call of the core. */
  slots(batch: Batch, count: number): SlotReader {
    return new SlotReader(this, batch, count)
  }

  /** Checks the header of the batch's first record, whose first bytes are in memory. */
  checkHeader(batch: Batch, checkLevel: number): boolean {
    return this.#core.checkHeader(batch.slots, checkLevel) !== 0
  }

  /**
   * The length of a record with its frame, from its first bytes in memory; null if the header is bad or cut off: the batch's first slot
   * then has the reason.
   */
  framedLength(batch: Batch, address: Address, byteLength: number): number | null {
    const any = { byteLength: 0, tag: -1, step: -1 }
    this.ask(
      batch,
      1,
      NO_TEXTS,
      () => any,
      () => ({ address, byteLength }),
    )
    return this.checkHeader(batch, CheckLevelNumber.minimal) ? this.uint32(address) + FRAMING_LENGTH : null
  }

  /** Compares a payload's computed checksum with the stored one, for the batch's first record. */
  checkPayload(batch: Batch, crc: number, stored: number): boolean {
    return this.#core.checkPayload(batch.slots, crc, stored) !== 0
  }

  /** Walks the batch's first record, of which only the head and possibly the tail are in memory. */
  walkSparse(batch: Batch, payloadLength: number, tail: Address | 0, tailLength: number): boolean {
    return this.#core.walkSparse(batch.slots, payloadLength, tail, tailLength) !== 0
  }

  /** CRC-32C of bytes in the core's memory, continuing `crc`. */
  crc32c(address: Address, byteLength: number, crc = 0): number {
    return this.#core.crc32c(address, byteLength, crc) >>> 0
  }

  /** CRC-32C of A followed by B. */
  crc32cCombine(a: number, b: number, byteLengthB: number): number {
    return this.#core.crc32cCombine(a, b, byteLengthB) >>> 0
  }

  /** A checksum as TFRecord stores it. */
  maskedCrc(crc: number): number {
    return this.#core.mask(crc) >>> 0
  }

  /** Empties the i-th row of a batch. */
  resetRow(batch: Batch, i = 0): void {
    this.#core.momentsReset(batch.rows + i * MomentsRow.size)
  }

  /** Adds elements in the core's memory to the i-th row of a batch. */
  addToRow(
    batch: Batch,
    dtype: DType,
    data: Address,
    count: number,
    i = 0,
    known: KnownMoments = KnownMoments.all,
    sketch: Sketch | null = null,
  ): void {
    const row = batch.rows + i * MomentsRow.size
    this.#core.momentsAdd(dtypeNumber(dtype), data, count, row, known, sketch?.address ?? 0)
  }

  /** Adds the values of the first record of a batch, which are stored one by one, to the first row of another. */
  addValuesToRow(from: Batch, to: Batch, known: KnownMoments = KnownMoments.all, sketch: Sketch | null = null): void {
    this.#core.reduceRecord(from.slots, to.rows, known, sketch?.address ?? 0)
  }

  /** An empty sketch, in which elements can be counted while they are added to a row of moments. */
  reserveSketch(): Sketch {
    return new Sketch(this.#core, this)
  }

  /** Walks the i-th record of a batch once more, so that its values can be read again. */
  decodeAgain(batch: Batch, i: number): void {
    this.#core.decodeRecords(batch.slots + i * RecordSlot.size, 1, CheckLevelNumber.none)
  }

  /** The moments of the i-th record of a batch, which must be walked and in memory: a view, to be copied. */
  reduceSlot(batch: Batch, i: number, known: KnownMoments, sketch: Sketch | null = null): Float64Array<ArrayBuffer> {
    const row = (batch.rows + i * MomentsRow.size) as Address
    this.#core.momentsReset(row)
    this.#core.reduceRecord(batch.slots + i * RecordSlot.size, row, known, sketch?.address ?? 0)
    return this.doubles(row, ROW_LENGTH)
  }

  /** Merges the moments of one row of a batch into another, as far as both are known. */
  mergeRow(batch: Batch, into: number, from: number): void {
    this.#core.momentsMerge(batch.rows + into * MomentsRow.size, batch.rows + from * MomentsRow.size)
  }

  /** Merges the moments of the parts of a tensor; only what all rows know is kept. @param rows in the order of the parts */
  mergeRows(rows: readonly Float64Array[]): Float64Array<ArrayBuffer> {
    this.reset()
    const batch = this.reserveBatch(2)
    this.resetRow(batch, 0)
    for (const row of rows) {
      if (row.length !== ROW_LENGTH) throw new EngineError(`expected rows of ${ROW_LENGTH} numbers, got ${row.length}`)
      this.rows(batch, 2).set(row, ROW_LENGTH)
      this.mergeRow(batch, 0, 1)
    }
    return this.rows(batch, 1).slice()
  }
}
