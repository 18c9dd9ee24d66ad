/** The index files of each event file. */

import { type ErrorData, pathOfUrl, quote } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import type { IndexFile } from '../../format/index-file.js'
import { isTemporary, parseEventFileName } from '../../format/paths.js'
import { DisjointSets } from '../../scan/job/plan/disjoint-sets.js'
import type { Store } from '../../storage/store.js'
import { isPlainPath, nameKey, type SortedFiles } from './files.js'
import { type IndexSource, missingIndex } from './index-source.js'
import type { FoundFile } from './plan/known.js'
import type { Reason, RepairNotes } from './report.js'

/** The largest number of event files that are examined together because their index files name one another's. */
const MAX_ENTANGLED = 10_000

export const NAMES_ANOTHER: Reason = { code: 'BadIndexEntry', message: 'the index file of its step does not name it' }

/** An event file and the index files that refer to it; null for index files without an event file. */
export interface Group {
  readonly path: string | null
  /** True if an index file names it as its event file but it is another part of the trial, or unfinished. */
  readonly isOther?: boolean
  indexes: IndexSource[]
}

/** Assigns index files to event files: by their names and content, then by the records that are found. */
export class Grouping {
  readonly #store: Store
  readonly #notes: RepairNotes
  /** Steps and workers that have an index file, or will get one. */
  readonly #known = new Set<string>()

  constructor(store: Store, notes: RepairNotes) {
    this.#store = store
    this.#notes = notes
  }

  /** Groups files by their names and by what the index files say. */
  group({ all, events, eventsByName, others }: SortedFiles, indexes: readonly IndexSource[]): Group[] {
    const existing = new Set([...events, ...others.filter(path => !isTemporary(path) && isPlainPath(path))])
    const groups = new Map<string | null, Group>()
    const groupOf = (path: string | null): Group => {
      const isOther = path !== null && !existing.has(path) && all.has(path)
      const group = entryOf(groups, path, () => ({ path, isOther, indexes: [] }))
      return group
    }
    for (const { step, worker } of indexes) this.#known.add(nameKey(step, worker))
    const named = new Set(indexes.map(({ eventFile }) => eventFile))
    for (const index of indexes) {
      const { step, worker, content, eventFile } = index
      const ownEvents = eventsByName.get(nameKey(step, worker))
      if (content === null || ownEvents === undefined || eventFile === ownEvents) groupOf(eventFile).indexes.push(index)
      else if (eventFile !== null && !existing.has(eventFile)) {
        // The event file has the right name; the name in the index file is wrong.
        groupOf(ownEvents).indexes.push(this.#ownOf(index, ownEvents))
      } else if (eventFile !== null || !named.has(ownEvents)) {
        // The records will show which of the two is right.
        groupOf(eventFile ?? ownEvents).indexes.push({ ...index, eventPath: ownEvents })
        groupOf(ownEvents)
      } else groupOf(null).indexes.push(index)
    }
    for (const path of events) {
      if (groups.has(path)) continue
      const { step, worker } = parseEventFileName(path)!
      const key = nameKey(step, worker)
      const eventFile = eventsByName.get(key)!
      if (this.#known.has(key) || (eventFile !== path && !groups.has(eventFile)))
        this.#notes.loseFile(path, NAMES_ANOTHER)
      else groupOf(path).indexes.push(missingIndex(path))
      this.#known.add(key)
    }
    return [...groups.values()].sort((a, b) => ((a.path ?? '') < (b.path ?? '') ? -1 : 1))
  }

  /** An index file that names another event file, corrected to name its own. */
  #ownOf(index: IndexSource, eventFile: string): IndexSource {
    const fault = `${pathOfUrl(this.#store.url(index.path))}: expected the name of its event file, got ${quote(index.eventFile ?? 'nothing')}`
    const { eventPath: _, ...rest } = index
    return { ...rest, eventFile: eventFile, fault }
  }

  /**
   * Moves index files that name another step's or worker's event file, or none. They move to their own event file if it holds at least as
   * many of their records, and if the other file holds none of them or belongs to another index file while nobody else names theirs. An
   * event file that ends up without an index file gets a new one.
   * @param files the content of each group's event file
   */
  settle(groups: readonly Group[], files: readonly (FoundFile | ErrorData)[]): void {
    const byPath = new Map(groups.map((group, i) => [group.path, { group, tells: matchCounter(files[i]!) }]))
    const pass = (isToMove: (index: IndexSource, group: Group, ownGroup: Group) => boolean): void => {
      const moved: [to: Group, index: IndexSource][] = []
      for (const group of groups) {
        group.indexes = group.indexes.filter(index => {
          const ownGroup = index.eventPath === undefined ? undefined : byPath.get(index.eventPath)?.group
          if (ownGroup === undefined || !isToMove(index, group, ownGroup)) return true
          // Its mode is as doubtful as its event file was.
          moved.push([ownGroup, { ...this.#ownOf(index, index.eventPath!), tellsMode: false, isMoved: true }])
          return false
        })
      }
      for (const [to, index] of moved) to.indexes.push(index)
    }
    const tells = (index: IndexSource, { path }: Group): number => byPath.get(path)!.tells(index)
    for (const [i, group] of groups.entries()) {
      const file = files[i]!
      const isEmpty = 'code' in file || file.records.length === 0
      group.indexes = group.indexes.map(index => {
        if (index.eventPath === undefined || index.eventFile !== null) return index
        const { eventPath, ...rest } = index
        return isEmpty ? rest : this.#ownOf(index, eventPath)
      })
    }
    pass((index, group) => tells(index, group) === 0)
    const hasOwn = new Set(groups.filter(({ indexes }) => indexes.some(({ eventPath }) => eventPath === undefined)))
    const isFree = new Set(groups.filter(({ indexes }) => indexes.length === 0))
    pass((index, group, ownGroup) => {
      if (!hasOwn.has(group) || tells(index, ownGroup) < tells(index, group)) return false
      return isFree.delete(ownGroup)
    })
    for (const group of groups) {
      const name = group.indexes.length === 0 ? parseEventFileName(group.path!) : null
      if (name === null || this.#known.has(nameKey(name.step, name.worker))) continue
      this.#known.add(nameKey(name.step, name.worker))
      group.indexes = [missingIndex(group.path!)]
    }
  }
}

/** Counts the entries of an index file that lead to a record of its step in an event file. Many index files may share one list. */
function matchCounter(file: FoundFile | ErrorData): (index: IndexSource) => number {
  let byStep: Map<number, Set<string>> | undefined
  const known = new Map<number, WeakMap<IndexFile['tensors'], number>>()
  return ({ step, content }) => {
    if ('code' in file) return 0
    byStep ??= placesByStep(file.records)
    const places = byStep.get(step)
    if (places === undefined) return 0
    const { tensors } = content!
    const ofStep = entryOf(known, step, () => new WeakMap<IndexFile['tensors'], number>())
    return entryOf(ofStep, tensors, () => countPlaces(tensors, places))
  }
}

function placesByStep(records: FoundFile['records']): Map<number, Set<string>> {
  const byStep = new Map<number, Set<string>>()
  for (const record of records) {
    entryOf(byStep, record.step, () => new Set<string>()).add(placeKey(record))
  }
  return byStep
}

/** For each list, the number of times that it names each place. */
const timesOfLists = new WeakMap<IndexFile['tensors'], ReadonlyMap<string, number>>()

/** Counts the entries that lead to one of the given places. One long list may be compared with the few records of many files. */
function countPlaces(tensors: IndexFile['tensors'], places: ReadonlySet<string>): number {
  if (tensors.length <= places.size) return tensors.filter(entry => places.has(placeKey(entry))).length
  const times = entryOf(timesOfLists, tensors, () => {
    const counts = new Map<string, number>()
    for (const entry of tensors) counts.set(placeKey(entry), (counts.get(placeKey(entry)) ?? 0) + 1)
    return counts
  })
  let count = 0
  for (const place of places) count += times.get(place) ?? 0
  return count
}

function placeKey({ startByte, byteLength }: { readonly startByte: number; readonly byteLength: number }): string {
  return `${startByte} ${byteLength}`
}

/**
 * Sets of groups whose index files may belong to each other's event files. A set that is too large to be plausible is split into its
 * groups.
 */
export function entangled(groups: readonly Group[]): readonly Group[][] {
  const number = new Map(groups.map(({ path }, i) => [path, i]))
  const joined = new DisjointSets(groups.length)
  for (const [i, { indexes }] of groups.entries()) {
    for (const { eventPath } of indexes) if (eventPath !== undefined) joined.join(i, number.get(eventPath)!)
  }
  const sets = new Map<number, Group[]>()
  const all: Group[][] = []
  for (const [i, group] of groups.entries()) {
    const root = joined.rootOf(i)
    const set = sets.get(root)
    if (set !== undefined && set.length < MAX_ENTANGLED) set.push(group)
    else {
      sets.set(root, [group])
      all.push(sets.get(root)!)
    }
  }
  return all
}
