/** Reads dtypes and shapes of records from their heads. */

import { StoreError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { dtypeNumber } from '../../core/dtype.js'
import type { Engine } from '../../core/engine.js'
import { readShape } from '../../storage/read-shape.js'
import { type ByteSource, isRemote, type RemoteStore, type Store } from '../../storage/store.js'
import { coalesce, inFileOrder } from '../job/plan/coalesce.js'
import { recordLimit } from '../job/plan/memory.js'
import type { DescribeJob, DescribeReply } from '../job/value-job.js'
import { openLarge, RECORD_HEAD_BYTES } from './records/large.js'
import { Failures, RecordTable, shapeOf } from './records/record-table.js'

export async function describe(job: DescribeJob, engine: Engine, store: Store): Promise<DescribeReply> {
  const source = isRemote(store) ? withHeads(job, store) : store
  const total = job.records.file.length
  const table = new RecordTable(total)
  const failures = new Failures(job, () => source)
  const stats = { records: total, readBytes: 0, reads: 0 }
  // Unreadable files, so that they are not tried again for each record.
  const lost = new Map<number, StoreError>()
  for (let record = 0; record < total; record++) {
    const file = job.records.file[record]!
    try {
      const known = lost.get(file)
      if (known) throw known
      engine.reset()
      const large = await openLarge(job, record, engine, source, stats)
      table.describe(record, dtypeNumber(large.contents.dtype), large.contents.shape)
    } catch (error) {
      if (error instanceof StoreError) lost.set(file, error)
      failures.add(record, error)
    }
  }
  const failed = await failures.finish((record, histogram) =>
    table.describe(record, dtypeNumber('float64'), shapeOf(histogram)),
  )
  return {
    kind: 'describe',
    described: table.described,
    failures: failed,
    stats,
  }
}

interface FilePiece {
  readonly startByte: number
  readonly bytes: Uint8Array
  readonly read: Promise<number>
}

/** A store with the prefetched heads of a job's records: neighbours share a request, and all run at once. */
function withHeads({ files, records, store: spec }: DescribeJob, store: RemoteStore): ByteSource {
  const { file, startByte } = records
  const longest = recordLimit(spec)
  // A record with an impossible length is refused unread.
  const byteLength = records.byteLength.map((length, i) => {
    const most = store.headByteLength?.(files[file[i]!]!, startByte[i]!) ?? RECORD_HEAD_BYTES
    return length > longest ? 0 : Math.min(length, most)
  })
  const shape = { gapByteLength: readShape(spec)!.gapByteLength, batchByteLength: Number.POSITIVE_INFINITY }
  const pieces = new Map<string, FilePiece[]>()
  const batches = coalesce({ file, startByte, byteLength }, inFileOrder(records), {
    shape,
    longest: RECORD_HEAD_BYTES,
    mostRecords: Number.POSITIVE_INFINITY,
  })
  for (const { file, startByte, endByte } of batches) {
    const path = files[file]!
    const bytes = new Uint8Array(endByte - startByte)
    const read = store.readLater(path, startByte, bytes.length, () => bytes)
    read.catch(() => {})
    entryOf(pieces, path, () => []).push({ startByte, bytes, read })
  }
  return {
    url: path => store.url(path),
    readLater: store.readLater,
    headByteLength: (path, startByte) => store.headByteLength?.(path, startByte),
    async readInto(path, startByte, view) {
      const isIn = ({ startByte: from, bytes }: FilePiece): boolean =>
        from <= startByte && startByte + view.length <= from + bytes.length
      const piece = pieces.get(path)?.find(isIn)
      if (piece === undefined) return store.readInto(path, startByte, view)
      const at = startByte - piece.startByte
      const available = piece.bytes.subarray(0, await piece.read).subarray(at, at + view.length)
      view.set(available)
      return available.length
    },
  }
}
