/** The places that were read: what is known to be finite or not, beside what was saved and is not known. */

import type { GlobalStep, Worker } from '../../base/types.js'

interface Place {
  readonly tensor: string
  readonly worker: Worker
  readonly step: GlobalStep
}

/** Is told of each row. */
export class ReadPlaces {
  readonly #names: ReadonlySet<string> | null
  /** The steps of which a worker has rows, and the rows that could not be read. */
  readonly #seen = new Set<string>()
  readonly #unreadable = new Set<string>()

  /** @param names the tensors that are read; null: all */
  constructor(names: ReadonlySet<string> | null) {
    this.#names = names
  }

  add({ worker, step }: Omit<Place, 'tensor'>): void {
    this.#seen.add(keyOf(worker, step))
  }

  addUnreadable({ tensor, worker, step }: Place): void {
    this.#unreadable.add(keyOf(worker, step, tensor))
  }

  /** A sentence that a place was not read; null: it was. */
  unreadText({ tensor, worker, step }: Place): string | null {
    const isUnreadable = this.#unreadable.has(keyOf(worker, step, tensor))
    const isRead = this.#seen.has(keyOf(worker, step)) && !isUnreadable && this.#names?.has(tensor) !== false
    return isRead
      ? null
      : `${tensor} of ${worker} at step ${step} ${isUnreadable ? 'could not be read' : 'was not read'}`
  }
}

function keyOf(worker: Worker, step: GlobalStep, tensor = ''): string {
  return `${step}\n${worker}\n${tensor}`
}
