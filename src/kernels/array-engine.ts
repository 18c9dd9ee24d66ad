/** Reduces many arrays, on threads. */

import { ThreadError } from '../base/errors.js'
import type { MomentName } from '../base/types.js'
import { type ArrayInput, elementsOf } from './elements.js'
import { knownFor } from './moments.js'
import type { Pool, ReducedArray } from './pool.js'
import { described, expectOptions, isObject, wrong } from './wrong.js'

export interface EngineOptions {
  /** The number of threads; 0 means the calling thread. Default: the parallelism of the machine. */
  readonly threads?: number
}

export interface MomentsOfOptions {
  /** The reductions that will be read. Default: all. */
  readonly reductions?: readonly MomentName[]
  /**
   * True to move arrays that own their whole buffer to a thread and back instead of copying them; they are detached. Arrays in a
   * SharedArrayBuffer are neither moved nor copied. Default: false.
   */
  readonly transfer?: boolean
  readonly signal?: AbortSignal
}

/**
 * Makes an engine for many arrays. Its threads start with the first array and don't keep the process alive while idle.
 * @throws UsageError
 */
export function createEngine(options: EngineOptions = {}): ArrayEngine {
  expectOptions('createEngine', options, ['threads'])
  const { threads } = options
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 0 && threads <= 1024)) {
    throw wrong('createEngine', 'a number of threads from 0 to 1024', described(threads))
  }
  return new ArrayEngine(threads)
}

export class ArrayEngine {
  readonly #threads: number | undefined
  #pool: Promise<Pool> | undefined
  #isClosed = false

  constructor(threads: number | undefined) {
    this.#threads = threads
  }

  /**
   * Yields the moments of arrays in order, bit for bit as `moments` returns them. Arrays are taken just before a thread needs them, so a
   * generator can make them one by one.
   * @throws UsageError for what is not an array
   * @throws ThreadError if a thread dies, or the engine is closed
   */
  async *momentsOf(
    arrays: Iterable<ArrayInput>,
    options: MomentsOfOptions = {},
  ): AsyncGenerator<ReducedArray, void, undefined> {
    const call = 'engine.momentsOf'
    expectOptions(call, options, ['reductions', 'transfer', 'signal'])
    const { reductions, transfer = false, signal } = options
    if (!isObject(arrays) || !(Symbol.iterator in arrays)) throw wrong(call, 'arrays in a list', described(arrays))
    if (ArrayBuffer.isView(arrays)) throw wrong(call, 'arrays in a list', 'one array')
    if (typeof transfer !== 'boolean') throw wrong(call, 'transfer to be true or false', described(transfer))
    const known = knownFor(call, reductions)
    const pool = await this.#open()
    yield* pool.momentsOf(checked(call, arrays), { known, transfer, signal })
  }

  /** Ends the threads. Arrays in progress fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.#pool)?.close()
  }

  #open(): Promise<Pool> {
    if (this.#isClosed) throw new ThreadError('ThreadsClosed', 'expected an open engine, got one that was closed')
    this.#pool ??= import('./pool.js').then(({ Pool }) => new Pool(this.#threads))
    return this.#pool
  }
}

function* checked(call: string, arrays: Iterable<ArrayInput>) {
  for (const array of arrays) yield elementsOf(call, array)
}
