/** The records of a job in the core's memory, so that those of a batch are requested and examined together (assembly/records.ts). */

import { MomentsRow, RecordColumn, RecordSlot, TextPiece } from '../border/abi.js'
import type { Address, Texts } from '../border/memory.js'
import { coreOf, type Engine } from '../engine.js'
import type { Batch } from '../slots.js'

/** The expected content and the places of records; an entry for each. */
export interface AskedRecords {
  /** The index into the tags; negative for any. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
  /** The global step. */
  readonly step: Float64Array
  /** 1 if the trial is Tornasole's, which labelled float16 as int32. */
  readonly tornasole: Uint8Array
}

/** Bytes of a file in the core's memory. */
export interface FileWindow {
  readonly address: Address
  readonly startByte: number
  readonly byteLength: number
  /** The number of records that are in memory. */
  readonly available: number
}

/** The records of a job; their memory is reserved for its duration. */
export class CoreRecords {
  readonly #engine: Engine
  /** The address of the columns. */
  readonly address: Address

  /** @param order the records in the order of the files; null if they are in it */
  constructor(engine: Engine, records: AskedRecords, order: Int32Array | null, tags: Texts) {
    this.#engine = engine
    const columns: (readonly [RecordColumn, Address | 0])[] = [
      [RecordColumn.tag, copied(engine, records.tag)],
      [RecordColumn.startByte, copied(engine, records.startByte)],
      [RecordColumn.byteLength, copied(engine, records.byteLength)],
      [RecordColumn.step, copied(engine, records.step)],
      [RecordColumn.tornasole, copied(engine, records.tornasole)],
      [RecordColumn.tags, writePieces(engine, tags)],
      [RecordColumn.order, order === null ? 0 : copied(engine, order)],
    ]
    this.address = engine.reserveBytes(RecordColumn.size)
    const words = engine.words(this.address, RecordColumn.size / 4)
    for (const [column, address] of columns) words[column / 4] = address
  }

  /**
   * Writes the expected content of records into the slots of a batch.
   * @param first the index of the first record
   * @returns the number of records with an impossible length
   */
  ask(batch: Batch, first: number, count: number, window: FileWindow): number {
    const { address, startByte, byteLength, available } = window
    return coreOf(this.#engine).askRecords(
      this.address,
      first,
      count,
      startByte,
      address,
      byteLength,
      available,
      batch.slots,
    )
  }
}

/** The descriptions of a run of records, as views that are valid until the next call. */
export interface DescribedRun {
  readonly count: number
  readonly dtypes: Uint8Array
  readonly ranks: Uint8Array
  /** The dimensions of all, one after the other. */
  readonly dims: Float64Array
}

/** The number of dimensions reserved for each record of a batch. */
const RANK = 4
const MORE_DIMENSIONS = 256

/** Finds records that need no individual treatment. Its memory is reserved for the duration of a job. */
export class OrdinaryRecords {
  readonly #engine: Engine
  readonly #batch: Batch
  readonly #dtypes: Address
  readonly #ranks: Address
  readonly #dims: Address

  constructor(engine: Engine, batch: Batch) {
    this.#engine = engine
    this.#batch = batch
    this.#dtypes = engine.reserveBytes(batch.capacity)
    this.#ranks = engine.reserveBytes(batch.capacity)
    this.#dims = engine.reserveBytes(8 * this.#capacity)
  }

  get #capacity(): number {
    return RANK * this.#batch.capacity + MORE_DIMENSIONS
  }

  /**
   * The number of consecutive records of a reduced batch that are ordinary: their dtype is (`isOrdinary`), and their rows are finite
   * (`isFiniteRow`).
   */
  count(from: number, count: number): number {
    return coreOf(this.#engine).ordinaryRecords(
      this.#batch.slots + from * RecordSlot.size,
      this.#batch.rows + from * MomentsRow.size,
      count,
      this.#dtypes,
      this.#ranks,
      this.#dims,
      this.#capacity,
    )
  }

  /** Describes the first of the counted records. */
  describe(count: number): DescribedRun {
    const engine = this.#engine
    const ranks = engine.view(this.#ranks, count)
    let rank = 0
    for (let i = 0; i < count; i++) rank += ranks[i]!
    return { count, dtypes: engine.view(this.#dtypes, count), ranks, dims: engine.doubles(this.#dims, rank) }
  }
}

/** Texts as a table of TextPieces. */
export function writePieces(engine: Engine, { addresses, byteLengths }: Texts): Address {
  const { length } = addresses
  const table = engine.reserveBytes(length * TextPiece.size)
  const words = engine.words(table, (length * TextPiece.size) / 4)
  for (let i = 0; i < length; i++) {
    words[2 * i + TextPiece.address / 4] = addresses[i]!
    words[2 * i + TextPiece.byteLength / 4] = byteLengths[i]!
  }
  return table
}

function copied(engine: Engine, column: Int32Array | Float64Array | Uint8Array): Address {
  const address = engine.reserveBytes(column.byteLength)
  // A set method of the same type: a short array has no buffer until it is requested, and making one dominates the time.
  if (column instanceof Float64Array) engine.doubles(address, column.length).set(column)
  else if (column instanceof Int32Array) engine.words(address, column.length).set(column)
  else engine.view(address, column.length).set(column)
  return address
}
