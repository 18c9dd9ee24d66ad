/**
 * The opt-in cache of index files: their content, with the stamp of each file. An entry is valid while its file has that stamp, and the
 * cache only if its checksum is right. It is that checksum, and a line of JSON. Anyone who can write the file can write a checksum, so
 * an impossible number or name invalidates the whole cache.
 */

import { crc32 } from 'node:zlib'
import { FormatError } from '../../../base/errors.js'
import { entryOf } from '../../../base/maps.js'
import { MODES, type Mode } from '../../../base/types.js'
import type { Listed } from '../../../format/index-file.js'
import { checkEventFileName } from '../../../format/paths.js'
import { STAMP_LENGTH } from '../../../storage/store.js'
import type { ReadIndexFile } from '../../job/index-job.js'
import type { IndexColumns } from '../columns/index-columns.js'

/** The version of the cache's format. */
const FORM = 'trialscan index cache 6'

/** An index file in the cache, with the number of its list, which equal steps share. The event file is left out if it has the hook's name. */
type Entry = readonly [
  path: string,
  ...stamp: [number, number, number],
  mode: Mode,
  modeStep: number,
  list: number,
  eventFile?: string | null,
]

interface Content {
  readonly form: string
  readonly trial: string
  readonly files: readonly Entry[]
  readonly lists: readonly Listed[]
}

/** The content of a cache. */
export interface Cacheable {
  /** The rows of index files, by path. Those that can't be read, or that have no stamp, are left out. */
  readonly rows: ReadonlyMap<string, number>
  readonly columns: IndexColumns
  /** The stamp that each file had before it was read. */
  readonly stamps: ReadonlyMap<string, Float64Array>
}

/** Encodes a cache. @param trial identifies the trial */
export function encodeIndexCache(trial: string, { rows, columns, stamps }: Cacheable): Uint8Array {
  const numbers = new Map<number, number>()
  const lists: Listed[] = []
  const files: unknown[] = []
  for (const [path, row] of rows) {
    const stamp = stamps.get(path)
    if (stamp === undefined || columns.error(row) !== null) continue
    const { mode, modeStep, list, eventFile } = columns.listed(row)
    const number = entryOf(
      numbers,
      list,
      () => lists.push({ tensors: columns.lists.locations(list), shapes: columns.lists.shapes(list) }) - 1,
    )
    files.push([path, ...stamp, mode, modeStep, number, ...(eventFile === undefined ? [] : [eventFile])])
  }
  const text = Buffer.from(JSON.stringify({ form: FORM, trial, files, lists }))
  return Buffer.concat([Buffer.from(`${crc32(text)}\n`), text])
}

/** Decodes a cache; null unless the bytes are an intact cache of that trial. */
export function decodeIndexCache(trial: string, bytes: Uint8Array): IndexCache | null {
  const end = bytes.indexOf(0x0a)
  const body = bytes.subarray(end + 1)
  if (end < 0 || Buffer.from(bytes.subarray(0, end)).toString('latin1') !== `${crc32(body)}`) return null
  try {
    const content = JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)) as Content
    return content.form === FORM && content.trial === trial && isPlausible(content) ? new IndexCache(content) : null
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof FormatError) return null
    throw error
  }
}

/** @throws TypeError for values of another kind, and FormatError for the name of an event file outside the trial */
function isPlausible({ trial, files, lists }: Content): boolean {
  for (const { tensors, shapes } of lists) {
    for (const { name, startByte, byteLength, eventFile } of tensors) {
      if (typeof name !== 'string' || !isCount(startByte) || !isCount(byteLength) || eventFile !== undefined)
        return false
    }
    for (const { name, originalName, shape } of shapes) {
      if (typeof name !== 'string' || typeof originalName !== 'string' || !shape.every(isCount)) return false
    }
  }
  // By position: of a hundred thousand entries, taking each apart shows.
  return files.every(entry => {
    const modeStep = entry[5]
    const list = entry[6]
    const eventFile = entry[7] ?? null
    if (eventFile !== null) checkEventFileName(eventFile, trial)
    // −1 precedes the first step of a mode.
    const isStep = modeStep === -1 || isCount(modeStep)
    return typeof entry[0] === 'string' && MODES.includes(entry[4]) && isStep && isCount(list) && list < lists.length
  })
}

function isCount(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0
}

/** Index files in their cached state. */
export class IndexCache {
  readonly #files: readonly Entry[]
  readonly #lists: readonly Listed[]
  /** The entry behind the last one asked for: they are asked for in their order, if all is as it was. */
  #next = 0
  /** Entries by path, which take longer to make than to parse. */
  #byPath: ReadonlyMap<string, Entry> | undefined

  constructor({ files, lists }: Content) {
    this.#files = files
    this.#lists = lists
  }

  get paths(): readonly string[] {
    return this.#files.map(([path]) => path)
  }

  /** The content of a file; null unless it had the `at`-th of these stamps. */
  get(path: string, stamps: Float64Array, at: number): ReadIndexFile | null {
    let entry = this.#files[this.#next++]
    if (entry?.[0] !== path) {
      this.#byPath ??= new Map(this.#files.map(file => [file[0], file]))
      entry = this.#byPath.get(path)
    }
    if (entry === undefined) return null
    for (let i = 0; i < STAMP_LENGTH; i++) if (entry[1 + i] !== stamps[at * STAMP_LENGTH + i]) return null
    return { mode: entry[4], modeStep: entry[5], eventFile: entry[7], listed: this.#lists[entry[6]]! }
  }
}
