/** Compares large records in pairs: they stream side by side, so that neither is completely in memory. */

import { BLOCK_ELEMENTS } from '../../../core/border/abi.js'
import type { Engine } from '../../../core/engine.js'
import type { RecordContents } from '../../../core/slots.js'
import { isSameShape } from '../../../format/index-file.js'
import { isRemote, type Store } from '../../../storage/store.js'
import type { MeasureJob } from '../../job/measure-job.js'
import { openLarge, type ReadCounts } from '../records/large.js'
import { Difference } from '../task/difference.js'

/** The number of elements of either side that are compared at a time: both fit in the cache. Pieces of requests are larger. */
const LOCAL_PIECE = 16 * BLOCK_ELEMENTS
const REMOTE_PIECE = 256 * BLOCK_ELEMENTS

/** Receives the results. */
interface PairSink {
  describe(record: number, contents: RecordContents): void
  answer(task: number, numbers: readonly number[]): void
  fail(record: number, error: unknown): void
  readonly counts: ReadCounts
}

/**
 * Answers the tasks of a job, all of which ask for differences.
 * @returns false if the elements of a record aren't contiguous, which this doesn't handle
 */
export async function comparePairs(
  job: MeasureJob,
  engine: Engine,
  sourceOf: (file: number) => Store,
  sink: PairSink,
): Promise<boolean> {
  const { requests, what, first, second } = job.tasks
  const failed = new Set<number>()
  const ahead = Math.floor(job.aheadByteLength / 2)
  const noting = async <T>(record: number, doing: Promise<T>): Promise<T> => {
    try {
      return await doing
    } catch (error) {
      failed.add(record)
      sink.fail(record, error)
      throw error
    }
  }
  const storeOf = (record: number) => sourceOf(job.records.file[record]!)
  const open = (record: number) => noting(record, openLarge(job, record, engine, storeOf(record), sink.counts, ahead))
  for (let task = 0; task < first.length; task++) {
    const [p, q] = [first[task]!, second[task]!]
    if (failed.has(p) || failed.has(q)) continue
    try {
      engine.reset()
      const [a, b] = [await open(p), await open(q)]
      if (a.contents.kind !== 'content' || b.contents.kind !== 'content') return false
      sink.describe(p, a.contents)
      sink.describe(q, b.contents)
      const { dtype, shape, elementCount: count } = a.contents
      if (!isSameShape(shape, b.contents.shape)) {
        sink.answer(task, [])
        continue
      }
      const difference = new Difference(engine, { dtype, shape, count }, b.contents, requests[what[task]!]!.numbers)
      const elements = isRemote(storeOf(p)) || isRemote(storeOf(q)) ? REMOTE_PIECE : LOCAL_PIECE
      for (const pass of difference.passes()) {
        const mark = engine.mark()
        const [piecesA, piecesB] = [a.pieces(elements, ahead), b.pieces(elements, ahead)]
        for (let isEnough = false; !isEnough; ) {
          const [x, y] = [await noting(p, piecesA.next()), await noting(q, piecesB.next())]
          if (x.done || y.done) break
          isEnough = pass(x.value.address, y.value.address, x.value.count)
        }
        for (const pieces of [piecesA, piecesB]) await pieces.return(undefined)
        engine.release(mark)
      }
      sink.answer(task, difference.numbers())
    } catch (error) {
      if (!failed.has(p) && !failed.has(q)) throw error
    }
  }
  return true
}
