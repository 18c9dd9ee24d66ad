/** Reads and decodes records in batches, with one callback per record: the common path of every job on records. */

import { isAboutFile, TrialscanError } from '../../../base/errors.js'
import { CoreRecords, OrdinaryRecords } from '../../../core/batch/core-records.js'
import type { KnownMoments } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import type { Engine } from '../../../core/engine.js'
import type { Batch, SlotReader } from '../../../core/slots.js'
import type { ByteSource } from '../../../storage/store.js'
import type { JobRecords, ReadBatch } from '../../job/plan/coalesce.js'
import { Clock } from './clock.js'
import { ReadAhead } from './read-ahead.js'
import { impossibleLength, placeOf } from './record-table.js'

export interface BatchedRecords extends JobRecords {
  readonly checkLevel: number
  readonly batches: readonly ReadBatch[]
  readonly aheadByteLength: number
}

/** A batch in the core's memory. Slots and rows are views, valid until the core is called or reserves memory. */
export interface DecodedBatch {
  readonly batch: Batch
  readonly records: CoreRecords
  readonly first: number
  readonly count: number
  readonly slots: SlotReader
  /** Moments; of no meaning if they were not requested. */
  readonly rows: Float64Array<ArrayBuffer>
}

export interface RecordVisitor {
  /**
   * Handles ordinary records of a batch together, from the i-th on. May call the core, but not reserve memory.
   * @returns the number of the `count` records that were handled; the next one is for `record`
   */
  run?: ((i: number, count: number, batch: DecodedBatch, ordinary: OrdinaryRecords) => number) | undefined
  /**
   * Handles the i-th record of the batch, which matches its index entry.
   * @returns work that calls the core or reserves memory, to be done after all records of the batch. If it throws, the record has failed.
   */
  record(record: number, i: number, batch: DecodedBatch): (() => void) | undefined
  /** Called before each batch is read: nothing of the one before is valid any more. */
  beginBatch?(): void
  /** Called after the last record of a batch, while its rows are in memory. */
  endBatch?(batch: DecodedBatch): void
  fail(record: number, error: unknown): void
}

export interface ReadRecordsOptions {
  readonly sourceOf: (file: number) => ByteSource
  /** The moments that rows must have; null for no rows. */
  readonly known: KnownMoments | null
  /** The order of the records in the batches. Default: that of the job. */
  readonly order?: Int32Array
  /** The number of further batches that are read before the bytes of one are gone; see ReadAheadOptions. Default: 0. */
  readonly kept?: number
  /**
   * True if the visitor takes records in any order. Of a checkpoint a batch may lie in several files: if one of them can't be read,
   * the records are then read again in halves, so that those of the others are not lost.
   */
  readonly isAnyOrder?: boolean
  readonly clock?: Clock
}

/** Processes all records of a job, batch by batch. The engine must have been reset. */
export async function readRecords(
  job: BatchedRecords,
  engine: Engine,
  visitor: RecordVisitor,
  options: ReadRecordsOptions,
): Promise<{ readonly readBytes: number; readonly reads: number }> {
  const { sourceOf, known, order, kept = 0, isAnyOrder = false, clock = new Clock(false) } = options
  const { batches, records, checkLevel } = job
  const tags = engine.writeTexts(job.tags)
  const batch = engine.reserveBatch(batches.reduce((most, { count }) => Math.max(most, count), 1))
  const coreRecords = new CoreRecords(engine, records, order ?? null, tags)
  const ordinary = visitor.run && new OrdinaryRecords(engine, batch)
  const reads = new ReadAhead(
    engine,
    batches.map(({ file, startByte, endByte }) => {
      return { store: sourceOf(file), path: job.files[file]!, startByte, byteLength: endByte - startByte }
    }),
    { byteLength: job.aheadByteLength, kept },
  )
  let readBytes = 0
  const again: ReadBatch[] = []
  try {
    for (const read of batches) {
      const { file, startByte, endByte, first, count } = read
      const recordOf = (i: number): number => (order === undefined ? first + i : order[first + i]!)
      let window: Address
      let available: number
      clock.lap('writeMs')
      visitor.beginBatch?.()
      try {
        const arrival = reads.next()
        window = arrival.window
        available = typeof arrival.available === 'number' ? arrival.available : await arrival.available
        clock.lap('readMs')
      } catch (error) {
        if (isAnyOrder && count > 1 && isOfOneFile(error, sourceOf(file)))
          again.push(...halvesOf(read, i => records.startByte[recordOf(i)]!))
        else for (let i = 0; i < count; i++) visitor.fail(recordOf(i), error)
        continue
      }
      readBytes += available
      const impossible = coreRecords.ask(batch, first, count, {
        address: window,
        startByte,
        byteLength: endByte - startByte,
        available,
      })
      engine.scoped(() => {
        clock.lap('writeMs')
        if (known === null || clock.isOn) engine.decode(batch, count, checkLevel)
        const decodeMs = clock.lap('decodeMs')
        if (known !== null) engine.scan(batch, count, checkLevel, known)
        // The core decodes and reduces in one call; its time beyond decoding alone is that of reducing.
        clock.lap('reduceMs', decodeMs)
        const [slots, rows] = [engine.slots(batch, count), engine.rows(batch, count)]
        const decoded = { batch, records: coreRecords, first, count, slots, rows }
        const waiting: { readonly record: number; readonly work: () => void }[] = []
        for (let i = 0; i < count; i++) {
          if (ordinary && impossible === 0) i += visitor.run!(i, ordinary.count(i, count - i), decoded, ordinary)
          if (i === count) break
          const record = recordOf(i)
          // Compared with the index entry here, since the core has 32-bit lengths.
          const refused = impossibleLength(job, record, sourceOf(file))
          if (refused) visitor.fail(record, refused)
          else if (decoded.slots.ok(i)) {
            const work = visitor.record(record, i, decoded)
            if (work !== undefined) waiting.push({ record, work })
          } else visitor.fail(record, decoded.slots.error(i, placeOf(job, record, sourceOf(file))))
        }
        visitor.endBatch?.(decoded)
        for (const { record, work } of waiting) {
          try {
            work()
          } catch (error) {
            visitor.fail(record, error)
          }
        }
      })
    }
  } finally {
    reads.end()
  }
  if (again.length === 0) return { readBytes, reads: batches.length }
  const more = await readRecords({ ...job, batches: again, aheadByteLength: 0 }, engine, visitor, options)
  return { readBytes: readBytes + more.readBytes, reads: batches.length + more.reads }
}

/** True if an error may be about one of several files that a batch lies in. */
function isOfOneFile(error: unknown, source: ByteSource): boolean {
  const isComposed = source.headByteLength !== undefined
  return (
    isComposed && error instanceof TrialscanError && (error.code === 'ObjectChanged' || isAboutFile(error.toJSON()))
  )
}

/** The halves of a batch whose records lie one behind the other, as those of checkpoints do. */
function halvesOf({ file, startByte, endByte, first, count }: ReadBatch, startOf: (i: number) => number): ReadBatch[] {
  const half = count >> 1
  const middle = startOf(half)
  return [
    { file, startByte, endByte: middle, first, count: half },
    { file, startByte: middle, endByte, first: first + half, count: count - half },
  ]
}
