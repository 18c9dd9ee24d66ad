/** Collects requests made within a turn of the event loop, to answer them together. */

import { entryOf } from '../../base/maps.js'
import type { TrialState } from '../catalog/state.js'

interface Rejectable {
  readonly reject: (error: unknown) => void
}

export class Gathered<R extends Rejectable> {
  /** The open batch of each key. */
  readonly #batchesOf = new WeakMap<TrialState, Map<string, R[]>>()

  /**
   * Adds a request to those with the same key. Even a known answer takes a turn of the event loop, so that a caller who polls doesn't
   * block everyone else.
   * @param answer resolves the requests of a batch; if it fails, all are rejected
   */
  add(state: TrialState, key: string, request: R, answer: (batch: readonly R[]) => Promise<void>): void {
    const batches = entryOf(this.#batchesOf, state, () => new Map())
    const open = batches.get(key)
    if (open !== undefined) {
      open.push(request)
      return
    }
    const batch = [request]
    batches.set(key, batch)
    setImmediate(() => {
      batches.delete(key)
      answer(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error)
      })
    })
  }
}
