/**
 * Keeps elements until a later record is compared with them: in place as long as their batch stays, which avoids most copies, and then as
 * a copy.
 */

import { byteLengthOf } from '../../../core/dtype.js'
import type { Engine } from '../../../core/engine.js'
import type { UnfoldBudget } from '../../../core/values.js'
import { copyIn, type Elements } from './element-reader.js'

interface Held {
  readonly elements: Elements
  /** A copy; null if they are still in the core's memory. */
  bytes: Uint8Array | null
}

export class HeldElements {
  readonly #engine: Engine
  readonly #unfoldBudget: UnfoldBudget
  readonly #held = new Map<number, Held>()
  /** The records kept in place, by batch: the oldest batch first, the present one last. */
  readonly #inWindows: number[][]

  /**
   * @param unfoldBudget the limit for values in short form
   * @param kept the number of batches that stay in place, besides the present one
   */
  constructor(engine: Engine, unfoldBudget: UnfoldBudget, kept: number) {
    this.#engine = engine
    this.#inWindows = Array.from({ length: kept + 1 }, () => [])
    this.#unfoldBudget = unfoldBudget
  }

  /** @param isInWindow true if they lie where the batch was read, and so outlast it */
  hold(record: number, elements: Elements, isInWindow: boolean): void {
    if (isInWindow) this.#inWindows.at(-1)!.push(record)
    else if (elements.isUnfolded) this.#unfoldBudget.take(bytesHeld(elements))
    this.#held.set(record, { elements, bytes: isInWindow ? null : this.#copyOf(elements) })
  }

  /** Elements in the core's memory, until the scope ends; undefined if none of that record are kept. */
  get(record: number): Elements | undefined {
    const held = this.#held.get(record)
    if (held === undefined || held.bytes === null) return held?.elements
    return { ...held.elements, address: copyIn(this.#engine, held.bytes) }
  }

  /** Copies kept elements out of the window before the next batch overwrites it. */
  leaveWindow(): void {
    for (const record of this.#inWindows.shift()!) {
      const held = this.#held.get(record)
      if (held !== undefined) held.bytes = this.#copyOf(held.elements)
    }
    this.#inWindows.push([])
  }

  release(record: number): void {
    const held = this.#held.get(record)
    this.#held.delete(record)
    if (held?.bytes && held.elements.isUnfolded) this.#unfoldBudget.give(held.bytes.length)
  }

  #copyOf(elements: Elements): Uint8Array {
    return this.#engine.view(elements.address, bytesHeld(elements)).slice()
  }
}

function bytesHeld({ dtype, count }: Elements): number {
  return byteLengthOf(dtype, count)
}
