/** The places that were read: what is known to be finite or not, beside what was saved and is not known. */

import { entryOf } from '../../base/maps.js'
import type { GlobalStep, Worker } from '../../base/types.js'

interface Place {
  readonly tensor: string
  readonly worker: Worker
  readonly step: GlobalStep
}

/** Is told of each row. */
export class ReadPlaces {
  readonly #names: ReadonlySet<string> | null
  /** The steps of which a worker has rows. */
  readonly #seen = new Map<Worker, Set<GlobalStep>>()
  /** The rows that could not be read. */
  readonly #unreadable = new Set<string>()

  /** @param names the tensors that are read; null: all */
  constructor(names: ReadonlySet<string> | null) {
    this.#names = names
  }

  add({ worker, step }: Omit<Place, 'tensor'>): void {
    entryOf(this.#seen, worker, () => new Set()).add(step)
  }

  addUnreadable({ tensor, worker, step }: Place): void {
    this.#unreadable.add(keyOf(worker, step, tensor))
  }

  /** A sentence that a place was not read; null: it was. */
  unreadText({ tensor, worker, step }: Place): string | null {
    const isUnreadable = this.#unreadable.has(keyOf(worker, step, tensor))
    const isRead = this.#seen.get(worker)?.has(step) === true && !isUnreadable && this.#names?.has(tensor) !== false
    return isRead
      ? null
      : `${tensor} of ${worker} at step ${step} ${isUnreadable ? 'could not be read' : 'was not read'}`
  }
}

function keyOf(worker: Worker, step: GlobalStep, tensor: string): string {
  return `${step}\n${worker}\n${tensor}`
}
