/** Compares weights with their quantised form, streamed side by side in pieces. */

import { TrialscanError } from '../../../base/errors.js'
import type { DType } from '../../../base/types.js'
import { BLOCK_ELEMENTS } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import { dtypeNumber, elementByteLength } from '../../../core/dtype.js'
import { coreOf, type Engine } from '../../../core/engine.js'
import { UnfoldBudget } from '../../../core/values.js'
import { isRemote, type Store } from '../../../storage/store.js'
import type { QuantisationError, QuantisedJob, QuantisedReply } from '../../job/quantised-job.js'
import type { RecordFailure } from '../../job/reply.js'
import { type LargeRecord, openLarge } from '../records/large.js'
import { failureData } from '../records/record-table.js'
import { copyIn } from '../task/element-reader.js'
import { QuantisedSums, scaleGrid } from '../task/quantised-sums.js'

/** The number of elements in a piece: both sides fit in the cache. Pieces of requests are larger. */
const LOCAL_PIECE = 16 * BLOCK_ELEMENTS
const REMOTE_PIECE = 256 * BLOCK_ELEMENTS

interface Piece {
  readonly address: Address
  readonly count: number
}

export async function compareQuantised(
  job: QuantisedJob,
  engine: Engine,
  stores: readonly Store[],
): Promise<QuantisedReply> {
  const stats = { records: job.records.file.length, readBytes: 0, reads: 0 }
  const failures: RecordFailure[] = []
  let error: QuantisationError | null = null
  let reading = 0
  const noting = <T>(record: number, doing: Promise<T>): Promise<T> => {
    reading = record
    return doing
  }
  try {
    engine.reset()
    const storeOf = (record: number) => stores[job.storeOf[job.records.file[record]!]!]!
    const records = [...job.records.file.keys()]
    const ahead = Math.floor(job.aheadByteLength / records.length)
    const opened: LargeRecord[] = []
    for (const record of records) {
      opened.push(await noting(record, openLarge(job, record, engine, storeOf(record), stats, ahead)))
    }
    const [weight, codes, scales, outer] = opened as [LargeRecord, LargeRecord, LargeRecord, LargeRecord?]
    const length = records.some(record => isRemote(storeOf(record))) ? REMOTE_PIECE : LOCAL_PIECE
    const pieces = (large: LargeRecord, elements: number) => piecesOf(large, elements, ahead, engine, job)
    const grid = scaleGrid(job.form, codes.contents, scales.contents)
    const whole =
      outer === undefined ? 1 : await noting(3, firstOf(pieces(outer, BLOCK_ELEMENTS), outer.contents.dtype, engine))
    const scaleReader = new NumberReader(engine, grid.scales, pieces(scales, BLOCK_ELEMENTS))
    const sums = new QuantisedSums(engine, weight.contents, grid, job.divides ? 1 / whole : whole, (count, into) =>
      noting(2, scaleReader.read(count, into)),
    )
    // 4-bit numbers are packed in pairs.
    const packed = elementByteLength(codes.contents.dtype) / elementByteLength(grid.codes)
    const [piecesA, piecesB] = [pieces(weight, length), pieces(codes, length / packed)]
    for (;;) {
      const [a, b] = [await noting(0, piecesA.next()), await noting(1, piecesB.next())]
      if (a.done || b.done) break
      await sums.add(a.value.address, b.value.address, a.value.count)
    }
    error = sums.result
  } catch (cause) {
    if (!(cause instanceof TrialscanError)) throw cause
    failures.push({ record: reading, error: failureData(cause) })
  }
  return { kind: 'quantised', error, failures, stats }
}

/** Elements that aren't contiguous bytes are few, and are copied. */
async function* piecesOf(
  large: LargeRecord,
  elements: number,
  ahead: number,
  engine: Engine,
  { windowByteLength }: QuantisedJob,
): AsyncGenerator<Piece> {
  const { kind, elementCount, dtype } = large.contents
  if (kind === 'content') yield* large.pieces(elements, ahead)
  else if (kind !== 'none') {
    const address = copyIn(engine, large.copyElements(new UnfoldBudget(windowByteLength)))
    for (let at = 0; at < elementCount; at += elements) {
      const count = Math.min(elements, elementCount - at)
      yield { address: (address + at * elementByteLength(dtype)) as Address, count }
    }
  }
}

/** The first number; 1 if there is none. */
async function firstOf(pieces: AsyncGenerator<Piece>, dtype: DType, engine: Engine): Promise<number> {
  const first = new Float64Array(1).fill(1)
  await new NumberReader(engine, dtype, pieces).read(1, first)
  return first[0]!
}

/** Reads numbers of any real type as float64, a requested number at a time. */
class NumberReader {
  readonly #engine: Engine
  readonly #dtype: DType
  readonly #pieces: AsyncGenerator<Piece>
  #numbers = new Float64Array()
  #used = 0

  constructor(engine: Engine, dtype: DType, pieces: AsyncGenerator<Piece>) {
    this.#engine = engine
    this.#dtype = dtype
    this.#pieces = pieces
  }

  async read(count: number, into: Float64Array): Promise<void> {
    for (let at = 0; at < count; ) {
      if (this.#used === this.#numbers.length && !(await this.#fill())) return
      const more = this.#numbers.subarray(this.#used, this.#used + count - at)
      into.set(more, at)
      at += more.length
      this.#used += more.length
    }
  }

  async #fill(): Promise<boolean> {
    const { done, value } = await this.#pieces.next()
    if (done) return false
    const { address, count } = value
    const engine = this.#engine
    this.#numbers = engine.scoped(() => {
      const numbers = engine.reserveBytes(count * 8)
      coreOf(engine).widenToDoubles(dtypeNumber(this.#dtype), address, count, numbers)
      return engine.doubles(numbers, count).slice()
    })
    this.#used = 0
    return true
  }
}
