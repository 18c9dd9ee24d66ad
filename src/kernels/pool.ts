/** Reduces arrays on threads. Loaded on demand, since it needs the pool. */

import { availableParallelism } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { UsageError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import type { KnownMoments } from '../core/border/abi.js'
import { byteLengthOf } from '../core/dtype.js'
import { withEngine, withEngineSync } from '../core/engines.js'
import { threadsThatFit } from '../core/host.js'
import { Moments } from '../core/moments.js'
import { ROW_LENGTH } from '../core/moments-row.js'
import type { ArrayElements, ArrayPart, ArraysJob, ArraysReply } from '../scan/job/array-job.js'
import { JOB_BYTES } from '../scan/job/plan/memory.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'
import { pump } from '../scan/runner/pump.js'
import { ThreadRunner } from '../scan/runner/threads.js'
import { partsOf, reduceArrays } from '../scan/worker/reduce-arrays.js'
import { allocationOf } from './allocate.js'

/** The number of parts in a job: small arrays are sent by the thousand. */
const JOB_PARTS = 1024

/** The result for one array. */
export interface ReducedArray {
  readonly moments: Moments
  /** With `transfer`, the array's buffer, moved back; undefined if it was copied or is shared. */
  readonly buffer: ArrayBuffer | undefined
}

export interface PoolRequest {
  readonly known: KnownMoments
  /** True if buffers are transferred to the threads and back. */
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

export class Pool {
  /** The threads; null for the calling thread. */
  readonly #runner: ThreadRunner | null

  constructor(threads = availableParallelism()) {
    this.#runner = threads === 0 ? null : new ThreadRunner(Math.min(threads, Math.max(1, threadsThatFit())))
  }

  /** Yields the moments of arrays in order. Takes and copies only as many arrays as keep the threads busy. */
  async *momentsOf(
    arrays: Iterable<ArrayElements>,
    request: PoolRequest,
  ): AsyncGenerator<ReducedArray, void, undefined> {
    const { signal } = request
    const runner = this.#runner
    const run = ({ job }: Plan): Promise<ArraysReply> => (runner ? runner.run(job, signal) : runHere(job))
    const plans = planArrays(arrays, request, runner !== null)
    let rows: Float64Array<ArrayBuffer>[] = []
    for await (const { plan, reply, error } of pump(plans, run, { ahead: runner?.ahead ?? 1, signal })) {
      if (reply === null) throw error
      for (let part = 0; part < plan.job.parts.length; part++) {
        rows.push(reply.rows.slice(part * ROW_LENGTH, (part + 1) * ROW_LENGTH))
        const end = plan.ends.get(part)
        if (end === undefined) continue
        const row = rows.length === 1 ? rows[0]! : withEngineSync(engine => engine.mergeRows(rows))
        rows = []
        yield { moments: new Moments(end.dtype, row), buffer: bufferOf(reply, end) }
      }
    }
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    await this.#runner?.close()
  }
}

function bufferOf({ returned }: ArraysReply, end: ArrayEnd): ArrayBuffer | undefined {
  const buffer = returned[end.returned]?.buffer
  return buffer instanceof ArrayBuffer ? buffer : undefined
}

async function runHere(job: ArraysJob): Promise<ArraysReply> {
  // Gives signals and timers a turn of the event loop between two jobs.
  await setImmediate()
  return withEngine(async engine => reduceArrays(job, engine))
}

interface Plan {
  readonly job: ArraysJob
  /** The arrays, by the number of their last part. */
  readonly ends: ReadonlyMap<number, ArrayEnd>
}

interface ArrayEnd {
  readonly dtype: DType
  /** The index of the array's buffer among the returned ones; -1 for none. */
  readonly returned: number
}

/** Plans jobs, each just before it runs. An array that isn't moved is cut into parts, which any thread can take. */
function* planArrays(
  arrays: Iterable<ArrayElements>,
  { known, transfer }: PoolRequest,
  isSent: boolean,
): Generator<Plan> {
  const begin = (): OpenPlan => new OpenPlan(known, isSent)
  let open = begin()
  for (const array of arrays) {
    const buffer = transfer ? wholeBuffer(array) : undefined
    const isShared = array.bytes.buffer instanceof SharedArrayBuffer
    const parts = partsOf(array)
    for (const [i, part] of parts.entries()) {
      const returned = buffer === undefined ? -1 : open.move(buffer)
      if (buffer !== undefined || isShared || !isSent) open.add(array, part)
      else open.addCopy(array, part)
      if (i === parts.length - 1) open.end(array.dtype, returned)
      else if (buffer !== undefined) continue
      if (!open.isFull) continue
      yield open.plan()
      open = begin()
    }
  }
  if (!open.isEmpty) yield open.plan()
}

/** The buffer of an array that is all of it, so that no other data is moved; otherwise undefined. */
function wholeBuffer({ bytes }: ArrayElements): ArrayBuffer | undefined {
  const { buffer } = bytes
  const isWhole = buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength
  return isWhole && allocationOf(bytes) === undefined ? buffer : undefined
}

class OpenPlan {
  readonly #known: KnownMoments
  readonly #isSent: boolean
  readonly #parts: (ArrayPart & { readonly array: ArrayElements })[] = []
  readonly #ends = new Map<number, ArrayEnd>()
  readonly #copies: ArrayBuffer[] = []
  readonly #returned: ArrayBuffer[] = []
  #byteLength = 0

  /** @param isSent true if the job goes to a thread */
  constructor(known: KnownMoments, isSent: boolean) {
    this.#known = known
    this.#isSent = isSent
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  get isFull(): boolean {
    return this.#parts.length >= JOB_PARTS || this.#byteLength >= JOB_BYTES
  }

  /** Moves a buffer with the job. @returns its index among those that come back */
  move(buffer: ArrayBuffer): number {
    // Arrays of one buffer are adjacent, if there are several.
    if (this.#returned.at(-1) !== buffer) this.#returned.push(buffer)
    return this.#returned.length - 1
  }

  add(array: ArrayElements, part: ArrayPart): void {
    this.#parts.push({ array, ...part })
    this.#byteLength += byteLengthOf(array.dtype, part.count)
  }

  addCopy(array: ArrayElements, { first, count }: ArrayPart): void {
    const bytes = new Uint8Array(byteLengthOf(array.dtype, count))
    copyElements(array, first, count, bytes)
    this.#copies.push(bytes.buffer)
    this.add({ dtype: array.dtype, shape: [count], count, bytes, layout: null }, { first: 0, count })
  }

  /** Marks the last added part as the last of its array. */
  end(dtype: DType, returned: number): void {
    this.#ends.set(this.#parts.length - 1, { dtype, returned })
  }

  /** @throws UsageError for a buffer that can't be moved */
  plan(): Plan {
    const returned = this.#isSent ? detach(this.#returned) : this.#returned
    const movedOf = new Map(this.#returned.map((buffer, i) => [buffer as ArrayBufferLike, returned[i]]))
    const parts = this.#parts.map(part => {
      const buffer = movedOf.get(part.array.bytes.buffer)
      return buffer === undefined ? part : { ...part, array: { ...part.array, bytes: new Uint8Array(buffer) } }
    })
    const job: ArraysJob = {
      kind: 'arrays',
      known: this.#known,
      parts,
      moved: [...this.#copies, ...returned],
      returned,
    }
    return { job, ends: this.#ends }
  }
}

/**
 * Detaches buffers from their owners. The memory of a WebAssembly instance can't be detached: older versions of Node.js copy it silently,
 * newer ones throw.
 */
function detach(buffers: readonly ArrayBuffer[]): readonly ArrayBuffer[] {
  if (buffers.length === 0) return buffers
  let cause: unknown
  try {
    const moved = structuredClone(buffers, { transfer: [...buffers] })
    if (buffers.every(({ byteLength }) => byteLength === 0)) return moved
  } catch (error) {
    cause = error
  }
  const call = 'engine.momentsOf'
  const got = 'one that is the memory of a WebAssembly instance, or may not be moved for another reason'
  throw new UsageError(`${call}: expected buffers that can be moved, got ${got}`, { call }, cause)
}
