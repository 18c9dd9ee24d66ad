/**
 * The opt-in cache of index files: their content, with the stamp of each file. An entry is valid while its file has that stamp, and the
 * cache only if its checksum is right. It is a line of JSON that lists the sections, then the sections: numbers in columns, names as
 * JSON, since names can contain anything, even NUL. Anyone who can write the file can write a checksum, so an impossible number or name
 * invalidates the whole cache.
 */

import { crc32 } from 'node:zlib'
import { FormatError } from '../../../base/errors.js'
import { type GlobalStep, MODES, type Worker } from '../../../base/types.js'
import type { SavedShape, TensorLocation } from '../../../format/index-file.js'
import { checkEventFileName } from '../../../format/paths.js'
import { STAMP_LENGTH, type Store } from '../../../storage/store.js'
import { Interner } from '../../job/plan/interner.js'
import type { IndexColumns, ListedRow } from '../columns/index-columns.js'

/** The version of the cache's format. */
const FORM = 'trialscan index cache 5'
/** The columns of numbers: per file, per list of tensors (equal steps share one), and per tensor in a list. */
const COLUMNS = ['stamps', 'modes', 'modeSteps', 'eventFiles', 'lists', 'counts', 'names', 'starts', 'lengths'] as const
type Columns = Record<(typeof COLUMNS)[number], Float64Array<ArrayBuffer>>

/** In the column of event files: the hook's own name, none, or from there on the number of a name. */
const USUAL = 0
const NONE = 1
const NAMED = 2

const MAX = Number.MAX_SAFE_INTEGER

interface Header {
  readonly form: string
  readonly trial: string
  /** The number of bytes of each section: the columns, then paths of files, names of event files and tensors. */
  readonly sections: readonly number[]
  /** Saved shapes, by list. */
  readonly shapes: readonly (readonly [number, readonly SavedShape[]])[]
  readonly crc: number
}

/** An index file, and its content under that stamp. */
export interface StampedFile {
  readonly path: string
  readonly stamp: Float64Array
  readonly row: ListedRow
}

/** The content of a cache. */
export interface Cacheable {
  readonly files: Iterable<StampedFile>
  /** The columns that hold the lists. */
  readonly columns: IndexColumns
}

/** Encodes a cache. @param trial identifies the trial */
export function encodeIndexCache(trial: string, { files, columns: from }: Cacheable): Uint8Array {
  const tensors = new Interner()
  const eventFiles = new Interner()
  const lists = new Map<number, number>()
  const shapes: [number, readonly SavedShape[]][] = []
  const columns: Record<keyof Columns, number[]> = {
    stamps: [],
    modes: [],
    modeSteps: [],
    eventFiles: [],
    lists: [],
    counts: [],
    names: [],
    starts: [],
    lengths: [],
  }
  const paths: string[] = []
  for (const { path, stamp, row } of files) {
    paths.push(path)
    columns.stamps.push(...stamp)
    columns.modes.push(MODES.indexOf(row.mode))
    columns.modeSteps.push(row.modeStep)
    const { eventFile } = row
    columns.eventFiles.push(
      eventFile === undefined ? USUAL : eventFile === null ? NONE : NAMED + eventFiles.number(eventFile),
    )
    let list = lists.get(row.list)
    if (list === undefined) {
      list = lists.size
      lists.set(row.list, list)
      const locations = from.lists.locations(row.list)
      columns.counts.push(locations.length)
      for (const { name, startByte, byteLength } of locations) {
        columns.names.push(tensors.number(name))
        columns.starts.push(startByte)
        columns.lengths.push(byteLength)
      }
      const saved = from.lists.shapes(row.list)
      if (saved.length > 0) shapes.push([list, saved])
    }
    columns.lists.push(list)
  }
  const sections = [
    ...COLUMNS.map(name => Buffer.from(Float64Array.from(columns[name]).buffer)),
    ...[paths, eventFiles.names, tensors.names].map(names => Buffer.from(JSON.stringify(names))),
  ]
  const body = Buffer.concat(sections)
  const known = { form: FORM, trial, sections: sections.map(({ length }) => length), shapes }
  const header: Header = { ...known, crc: checksum(known, body) }
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body])
}

/** Decodes a cache; null unless the bytes are an intact cache of that trial. */
export function decodeIndexCache(trial: string, bytes: Uint8Array): IndexCache | null {
  try {
    return decode(trial, bytes)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError || error instanceof TypeError) return null
    if (error instanceof FormatError) return null
    throw error
  }
}

function decode(trial: string, bytes: Uint8Array): IndexCache | null {
  const headerEnd = bytes.indexOf(0x0a)
  if (headerEnd < 0) return null
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, headerEnd))
  const header = JSON.parse(text) as Header
  if (header.form !== FORM || header.trial !== trial) return null
  // The checksum is that of the parsed text, which must be in the form in which it was written.
  if (JSON.stringify(header) !== text) return null
  const body = bytes.subarray(headerEnd + 1)
  const { crc, ...known } = header
  if (checksum(known, body) !== crc) return null
  let at = 0
  const sections = header.sections.map(length => {
    at += length
    return body.subarray(at - length, at)
  })
  const columns = {} as Columns
  COLUMNS.forEach((name, i) => {
    // A copy, since the section may not be aligned to eight bytes.
    columns[name] = new Float64Array(new Uint8Array(sections[i]!).buffer)
  })
  const names = sections.slice(COLUMNS.length).map(namesOf) as [string[], string[], string[]]
  const [paths, eventFiles, tensors] = names
  const isPlausible =
    columns.stamps.length === paths.length * STAMP_LENGTH &&
    (['modes', 'modeSteps', 'eventFiles', 'lists'] as const).every(name => columns[name].length === paths.length) &&
    [columns.starts, columns.lengths].every(column => column.length === columns.names.length) &&
    [columns.counts, columns.starts, columns.lengths].every(column => areIntegers(column, 0, MAX)) &&
    // −1 precedes the first step of a mode.
    areIntegers(columns.modeSteps, -1, MAX - 1) &&
    columns.counts.reduce((sum, count) => sum + count, 0) === columns.names.length &&
    areIntegers(columns.names, 0, tensors.length - 1) &&
    areIntegers(columns.eventFiles, 0, NAMED + eventFiles.length - 1) &&
    areIntegers(columns.lists, 0, columns.counts.length - 1) &&
    areIntegers(columns.modes, 0, MODES.length - 1)
  if (!isPlausible) return null
  for (const name of eventFiles) checkEventFileName(name, trial)
  return new IndexCache(columns, { paths, eventFiles, tensors }, new Map(header.shapes))
}

type Names = Record<'paths' | 'eventFiles' | 'tensors', readonly string[]>

/** Index files in their cached state. */
export class IndexCache {
  /** The paths, in the order of the columns. */
  readonly paths: readonly string[]
  readonly #columns: Columns
  readonly #names: Names
  readonly #shapes: ReadonlyMap<number, readonly SavedShape[]>
  /** The start of each list's tensors. */
  readonly #begins: Float64Array
  /** The number of each list in the columns it was added to, plus one; 0 if it was not added yet. */
  readonly #added: Int32Array

  constructor(columns: Columns, names: Names, shapes: ReadonlyMap<number, readonly SavedShape[]>) {
    this.paths = names.paths
    this.#columns = columns
    this.#names = names
    this.#shapes = shapes
    this.#begins = new Float64Array(columns.counts.length + 1)
    columns.counts.forEach((count, list) => {
      this.#begins[list + 1] = this.#begins[list]! + count
    })
    this.#added = new Int32Array(columns.counts.length)
  }

  /** The stamp of a file. */
  stamp(file: number): Float64Array {
    return stampAt(this.#columns.stamps, file)
  }

  /** True if a file had the `at`-th of these stamps. */
  hasStamp(file: number, stamps: Float64Array, at: number): boolean {
    const { stamps: ownStamps } = this.#columns
    for (let i = 0; i < STAMP_LENGTH; i++) {
      if (ownStamps[file * STAMP_LENGTH + i] !== stamps[at * STAMP_LENGTH + i]) return false
    }
    return true
  }

  /** Adds the content of a file to columns, which must always be the same. @returns the number of the row */
  addTo(columns: IndexColumns, file: number, step: GlobalStep, worker: Worker): number {
    const { modes, modeSteps, lists, eventFiles } = this.#columns
    const list = lists[file]!
    if (this.#added[list] === 0)
      this.#added[list] = 1 + columns.lists.add(this.#tensorsOf(list), this.#shapes.get(list) ?? [])
    const eventFile = eventFiles[file]!
    return columns.addListed(step, worker, {
      mode: MODES[modes[file]!]!,
      modeStep: modeSteps[file]!,
      eventFile:
        eventFile === USUAL ? undefined : eventFile === NONE ? null : this.#names.eventFiles[eventFile - NAMED]!,
      list: this.#added[list]! - 1,
    })
  }

  #tensorsOf(list: number): readonly TensorLocation[] {
    const { counts, names, starts, lengths } = this.#columns
    const first = this.#begins[list]!
    return Array.from({ length: counts[list]! }, (_, k) => ({
      name: this.#names.tensors[names[first + k]!]!,
      startByte: starts[first + k]!,
      byteLength: lengths[first + k]!,
    }))
  }
}

export function stampAt(stamps: Float64Array, i: number): Float64Array {
  return stamps.subarray(i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH)
}

/** The present stamps of index files. */
export interface IndexStamps {
  readonly paths: readonly string[]
  /** The index of each file in the cache, if it has not changed; otherwise -1. */
  readonly places: Int32Array
  /** Three numbers per file: see `Store.stamps`. */
  readonly stamps: Float64Array
  /** True if the cache has exactly these files, unchanged. */
  readonly areKnown: boolean
}

export async function indexStamps(
  store: Store,
  paths: readonly string[],
  cache: IndexCache | null,
): Promise<IndexStamps> {
  const places = placesIn(cache, paths)
  const stamps = await store.stamps(paths)
  for (const [i, place] of places.entries()) {
    if (place >= 0 && !cache!.hasStamp(place, stamps, i)) places[i] = -1
  }
  const areKnown = cache?.paths.length === paths.length && places.every(place => place >= 0)
  return { paths, places, stamps, areKnown }
}

/** The indices of files in a cache, which mostly has them in the same order; -1 for absent ones. */
function placesIn(cache: IndexCache | null, paths: readonly string[]): Int32Array {
  const places = new Int32Array(paths.length).fill(-1)
  if (cache === null) return places
  let byPath: Map<string, number> | undefined
  let next = 0
  paths.forEach((path, i) => {
    if (cache.paths[next] !== path) {
      byPath ??= new Map(cache.paths.map((known, place) => [known, place]))
      const place = byPath.get(path)
      if (place === undefined) return
      next = place
    }
    places[i] = next++
  })
  return places
}

/** The checksum of the whole cache, including the header's own fields. */
function checksum(header: Omit<Header, 'crc'>, body: Uint8Array): number {
  return crc32(body, crc32(JSON.stringify(header)))
}

function namesOf(section: Uint8Array): string[] {
  const names: unknown = JSON.parse(new TextDecoder().decode(section))
  if (Array.isArray(names) && names.every(name => typeof name === 'string')) return names
  throw new TypeError('expected names')
}

/** True if all numbers are integers in a range. A plain loop, since a callback per number would take longer. */
function areIntegers(numbers: Float64Array, least: number, most: number): boolean {
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i]!
    if (!(number >= least && number <= most && Math.floor(number) === number)) return false
  }
  return true
}
