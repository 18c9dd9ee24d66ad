/**
 * Rows that belong together: those of a worker's step. Most steps save the same tensors at the same places, so the derived data of such a
 * list are made once instead of for each step.
 */

import { countBelow } from '../../base/sorted.js'
import { isSameStep } from '../catalog/columns/saved-rows.js'
import type { SavedTensor, SavedTensors } from '../catalog/columns/tensor-lists.js'
import type { WorkerStep } from '../catalog/worker-steps.js'
import { type ListedPlaces, listPlaces } from '../job/plan/coalesce.js'

/** A row of a saved tensor; null stands for an unreadable index file. */
export interface ScanItem {
  readonly workerStep: WorkerStep
  readonly saved: SavedTensor | null
}

/** Tensors that were saved together, in the order of the index file. */
export interface SavedList {
  readonly saved: readonly SavedTensor[]
  /** The places of the records; null for short lists, or if some tensors have no value in the step's event file. */
  readonly records: ListedPlaces | null
}

/** The rows of a worker at a step; `list` is null if its index file can't be read. */
export interface RowGroup {
  readonly workerStep: WorkerStep
  readonly list: SavedList | null
}

/** The length from which places are kept as columns; those of a shorter list are used one by one. */
const SHORT_LIST = 4
/** The length at which a list is split, to limit memory. */
const LIST_LENGTH = 4096
/** The number of tensors of lists that are kept. */
const KEPT_TENSORS = 1 << 16

/** The lists of a selection. */
export class SavedLists {
  readonly #names: ReadonlySet<string> | null
  readonly #known = new Map<SavedTensors, readonly SavedList[]>()
  #kept = 0

  /** @param names the names of the selected tensors; null for all */
  constructor(names: ReadonlySet<string> | null) {
    this.#names = names
  }

  *of(workerSteps: Iterable<WorkerStep>): Generator<RowGroup> {
    for (const workerStep of workerSteps) {
      if (workerStep.error !== null) yield { workerStep, list: null }
      else for (const list of this.#listsOf(workerStep.tensors)) yield { workerStep, list }
    }
  }

  #listsOf(tensors: SavedTensors): Iterable<SavedList> {
    const known = this.#known.get(tensors)
    if (known !== undefined) return known
    if (tensors.size < SHORT_LIST || tensors.size > KEPT_TENSORS) return this.#cut(tensors)
    const lists = [...this.#cut(tensors)]
    this.#kept += tensors.size + 1
    if (this.#kept > KEPT_TENSORS) {
      this.#known.clear()
      this.#kept = tensors.size + 1
    }
    this.#known.set(tensors, lists)
    return lists
  }

  *#cut(tensors: SavedTensors): Generator<SavedList> {
    let open: SavedTensor[] = []
    for (const saved of tensors.values()) {
      if (this.#names !== null && !this.#names.has(saved.tensor)) continue
      open.push(saved)
      if (open.length < LIST_LENGTH) continue
      yield listOf(open)
      open = []
    }
    if (open.length > 0) yield listOf(open)
  }
}

function listOf(saved: readonly SavedTensor[]): SavedList {
  if (saved.length < SHORT_LIST) return { saved, records: null }
  const values = saved.map(({ value }) => value)
  const isPlain = values.every(value => value !== null && value.eventFile === undefined)
  return { saved, records: isPlain ? listPlaces(values as readonly NonNullable<(typeof values)[number]>[]) : null }
}

/** Groups the rows of a worker's step, if they are adjacent. */
export function groupsOf(items: readonly (ScanItem & { readonly saved: SavedTensor })[]): RowGroup[] {
  const groups: RowGroup[] = []
  for (let first = 0, end = 1; first < items.length; first = end++) {
    const { workerStep } = items[first]!
    while (end < items.length && isSameStep(items[end]!.workerStep, workerStep)) end++
    groups.push({ workerStep, list: listOf(items.slice(first, end).map(({ saved }) => saved)) })
  }
  return groups
}

export function* itemsOf(groups: Iterable<RowGroup>): Generator<ScanItem> {
  for (const { workerStep, list } of groups) {
    if (list === null) yield { workerStep, saved: null }
    else for (const saved of list.saved) yield { workerStep, saved }
  }
}

/** Rows in order, made into objects on demand. */
export class Rows {
  #groups: { readonly workerStep: WorkerStep; readonly saved: readonly SavedTensor[] | null; readonly from: number }[] =
    []
  /** The start of each group, counted from the very first row. */
  #begins: number[] = []
  #first = 0
  #end = 0
  /** The group of the last lookup. */
  #last = 0

  get length(): number {
    return this.#end - this.#first
  }

  /** Adds rows. @param saved null for one row without a tensor @param from the first tensor, up to `end` */
  add(workerStep: WorkerStep, saved: readonly SavedTensor[] | null, from = 0, end = saved?.length ?? 1): void {
    this.#groups.push({ workerStep, saved, from })
    this.#begins.push(this.#end)
    this.#end += end - from
  }

  at(i: number): ScanItem {
    const group = this.#groupAt(this.#first + i)
    const { workerStep, saved, from } = this.#groups[group]!
    return { workerStep, saved: saved === null ? null : saved[from + this.#first + i - this.#begins[group]!]! }
  }

  /** A range of the rows. */
  slice(from: number, end: number): Rows {
    const rows = new Rows()
    const [first, last] = [this.#first + from, this.#first + end]
    for (let group = this.#groupAt(first); group < this.#groups.length && this.#begins[group]! < last; group++) {
      const { workerStep, saved, from } = this.#groups[group]!
      const begin = this.#begins[group]! - from
      rows.add(workerStep, saved, Math.max(from, first - begin), Math.min(this.#endOf(group), last) - begin)
    }
    return rows
  }

  /** Removes the first rows. */
  drop(count: number): void {
    this.#first += count
    if (count === 0) return
    const gone = this.length === 0 ? this.#groups.length : this.#groupAt(this.#first)
    this.#groups = this.#groups.slice(gone)
    this.#begins = this.#begins.slice(gone)
    this.#last = 0
  }

  #endOf(group: number): number {
    return this.#begins[group + 1] ?? this.#end
  }

  #groupAt(row: number): number {
    // Lookups are mostly sequential.
    if (!this.#isIn(row, this.#last)) {
      const isNext = this.#isIn(row, this.#last + 1)
      this.#last = isNext ? this.#last + 1 : countBelow(this.#begins.length, group => this.#begins[group]! <= row) - 1
    }
    return this.#last
  }

  #isIn(row: number, group: number): boolean {
    return group < this.#begins.length && this.#begins[group]! <= row && row < this.#endOf(group)
  }
}
