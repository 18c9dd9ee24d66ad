/** The steps at which each tensor was saved. Tensors that were saved together share them: a million tensors can have one list. */

import { int32Column } from '../../base/column.js'
import { entryOf } from '../../base/maps.js'
import type { SavedRows } from './columns/saved-rows.js'
import type { SavedTensor } from './columns/tensor-lists.js'
import type { WorkerSteps } from './worker-steps.js'

/** A saved tensor at steps with the same list of tensors. */
export interface SavedAlike {
  readonly saved: SavedTensor
  readonly count: number
  /** The first and the last of them, as indices among all worker steps. */
  readonly first: number
  readonly last: number
}

/** Marks the absence of a history. */
const NONE = -1

export class TensorSteps {
  readonly #rows: SavedRows
  readonly #workerSteps: WorkerSteps
  /** List i has the places from `#begins[i]` up to `#begins[i + 1]`, ascending. */
  readonly #begins: Int32Array
  readonly #places: Int32Array
  /**
   * The preceding history of each history: a history is a list after the history of the lists that a tensor was in before. Tensors that
   * were always saved together share one.
   */
  readonly #before = int32Column()
  readonly #list = int32Column()
  /** The history of each tensor, in the order of first appearance; null if all have the only list. */
  readonly #histories: Map<string, number> | null
  readonly #stepsOf = new Map<number, WorkerSteps>()

  constructor(rows: SavedRows, workerSteps: WorkerSteps) {
    this.#rows = rows
    this.#workerSteps = workerSteps
    const { length, listCount } = rows
    const begins = new Int32Array(listCount + 1)
    for (let place = 0; place < length; place++) begins[rows.listAt(place) + 1]!++
    for (let list = 0; list < listCount; list++) begins[list + 1]! += begins[list]!
    const ends = begins.slice()
    this.#places = new Int32Array(length)
    const inOrder: number[] = []
    for (let place = 0; place < length; place++) {
      const list = rows.listAt(place)
      if (ends[list] === begins[list]) inOrder.push(list)
      this.#places[ends[list]!++] = place
    }
    this.#begins = begins
    this.#histories = inOrder.length === 1 ? null : this.#historiesOf(inOrder)
    if (this.#histories === null) this.#add(NONE, inOrder[0]!)
  }

  #historiesOf(lists: readonly number[]): Map<string, number> {
    const histories = new Map<string, number>()
    for (const list of lists) {
      const next = new Map<number, number>()
      for (const name of this.#rows.tensorsOf(list).keys()) {
        const before = histories.get(name) ?? NONE
        const known = next.get(before)
        const history = known ?? this.#add(before, list)
        if (known === undefined) next.set(before, history)
        histories.set(name, history)
      }
    }
    return histories
  }

  #add(before: number, list: number): number {
    this.#before.push(before)
    this.#list.push(list)
    return this.#list.length - 1
  }

  has(name: string): boolean {
    return this.#historyOf(name) !== undefined
  }

  /** The names, in the order of first appearance. */
  keys(): IterableIterator<string> {
    return this.#histories?.keys() ?? this.#rows.tensorsOf(this.#list.at(0)).keys()
  }

  /** The steps of workers that have a tensor. Tensors that were always saved together share them. */
  get(name: string): WorkerSteps | undefined {
    const history = this.#historyOf(name)
    if (history === undefined) return undefined
    const known = this.#stepsOf.get(history)
    if (known) return known
    const steps = this.#together(history)
    this.#stepsOf.set(history, steps)
    return steps
  }

  *[Symbol.iterator](): Generator<[string, WorkerSteps]> {
    for (const name of this.keys()) yield [name, this.get(name)!]
  }

  /**
   * The saved tensors with some names, list by list, each list once.
   * @returns also the index of the tensor among `names`; earlier steps come first
   */
  *alike(names: readonly string[]): Generator<SavedAlike & { readonly index: number }> {
    const together = new Map<number, number[]>()
    for (const [index, name] of names.entries()) entryOf(together, this.#historyOf(name)!, () => []).push(index)
    const historiesOf = new Map<number, number[]>()
    for (const history of together.keys()) {
      for (const list of this.#listsOf(history)) entryOf(historiesOf, list, () => []).push(history)
    }
    const firstOf = (list: number): number => this.#places[this.#begins[list]!]!
    for (const list of [...historiesOf.keys()].sort((a, b) => firstOf(a) - firstOf(b))) {
      const [begin, end] = [this.#begins[list]!, this.#begins[list + 1]!]
      const all = { count: end - begin, first: firstOf(list), last: this.#places[end - 1]! }
      const tensors = this.#rows.tensorsOf(list)
      for (const history of historiesOf.get(list)!) {
        for (const index of together.get(history)!) yield { index, saved: tensors.get(names[index]!)!, ...all }
      }
    }
  }

  #historyOf(name: string): number | undefined {
    if (this.#histories !== null) return this.#histories.get(name)
    return this.#rows.tensorsOf(this.#list.at(0)).has(name) ? 0 : undefined
  }

  #together(history: number): WorkerSteps {
    const lists = this.#listsOf(history)
    const parts = lists.map(list => this.#places.subarray(this.#begins[list]!, this.#begins[list + 1]!))
    const count = parts.reduce((sum, { length }) => sum + length, 0)
    if (count === this.#places.length) return this.#workerSteps
    const places = new Int32Array(count)
    let at = 0
    for (const part of parts) {
      places.set(part, at)
      at += part.length
    }
    return this.#workerSteps.ofAll(places.sort())
  }

  /** The lists of a history, in the order of first appearance. */
  #listsOf(history: number): number[] {
    const lists: number[] = []
    for (let at = history; at !== NONE; at = this.#before.at(at)) lists.push(this.#list.at(at))
    return lists.reverse()
  }
}
