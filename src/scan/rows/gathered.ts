/** Requests made one by one within a turn of the event loop, answered together. */

import type { TrialState } from '../catalog/state.js'

interface Rejectable {
  readonly reject: (error: unknown) => void
}

export class Gathered<R extends Rejectable> {
  /** By what they have in common. */
  readonly #batchesOf = new WeakMap<TrialState, Map<string, R[]>>()

  /**
   * Adds a request to those of the same key. Even an answer that is known takes a turn of the event loop, so that asking again and again
   * doesn't keep out all others.
   * @param answer resolves each of a batch; if it fails, all are rejected
   */
  add(state: TrialState, key: string, request: R, answer: (batch: readonly R[]) => Promise<void>): void {
    let batches = this.#batchesOf.get(state)
    if (batches === undefined) {
      batches = new Map()
      this.#batchesOf.set(state, batches)
    }
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
