/**
 * Rows that belong together: those of a worker's step. Most steps save the same tensors at the same places, so the derived data of such a
 * list are made once instead of for each step.
 */

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

export function* itemsOf(groups: Iterable<RowGroup>): Generator<ScanItem> {
  for (const { workerStep, list } of groups) {
    if (list === null) yield { workerStep, saved: null }
    else for (const saved of list.saved) yield { workerStep, saved }
  }
}
