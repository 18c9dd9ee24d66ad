/**
 * What of the index the cache knows as it is. The times of a directory tell that none of its files was added, replaced or removed, so that only
 * a sample of them is looked at; where they don't, each file is.
 */

import type { Store } from '../../store/store.js'
import { type IndexCache, stampAt } from './index-cache.js'

/** So many files are looked at even where their directories tell that they are as they were. */
const SAMPLED_FILES = 1000

/** Files of the index when they were looked at. */
export interface IndexStamps {
  readonly paths: readonly string[]
  /** Where the cache has each file as it is; -1: it hasn't. */
  readonly places: Int32Array
  /** Directories that tell when their files change, with their stamps. */
  readonly directories: ReadonlyMap<string, Float64Array>
  /** Whether the cache has all of that. */
  readonly areKnown: boolean
  /** The stamp of the i-th file. */
  of(i: number): Float64Array
}

export async function indexStamps(
  store: Store,
  paths: readonly string[],
  cache: IndexCache | null,
): Promise<IndexStamps> {
  const places = placesIn(cache, paths)
  const directoryOf = new Int32Array(paths.length)
  const directories: string[] = []
  paths.forEach((path, i) => {
    const last = directories.at(-1)
    const length = path.lastIndexOf('/')
    if (last?.length !== length || !path.startsWith(last)) directories.push(path.slice(0, length))
    directoryOf[i] = directories.length - 1
  })
  const stamps = store.directoryStamps?.(directories) ?? new Float64Array(3 * directories.length).fill(Number.NaN)
  const telling = new Map(
    directories
      .map((directory, i) => [directory, stampAt(stamps, i)] as const)
      .filter(([, [first]]) => !Number.isNaN(first)),
  )
  const known = cache?.directories
  const isBelieved = directories.map(directory => {
    const [now, before] = [telling.get(directory), known?.get(directory)]
    return now !== undefined && before !== undefined && now.every((number, i) => number === before[i])
  })
  const isSure = (i: number): boolean => places[i]! >= 0 && isBelieved[directoryOf[i]!]!
  const looked = await look(store, paths, places, cache, isSure)
  const isWhole = cache !== null && cache.paths.length === paths.length && places.every(place => place >= 0)
  return {
    paths,
    places,
    directories: telling,
    areKnown: isWhole && [...telling.keys()].every(directory => isBelieved[directories.indexOf(directory)]),
    of: i => (looked.at[i]! < 0 ? cache!.stamp(places[i]!) : stampAt(looked.stamps, looked.at[i]!)),
  }
}

/** Looks at files, and takes those that are no longer as the cache has them out of the places. */
async function look(
  store: Store,
  paths: readonly string[],
  places: Int32Array,
  cache: IndexCache | null,
  isSure: (i: number) => boolean,
): Promise<{ readonly at: Int32Array; readonly stamps: Float64Array }> {
  const every = Math.max(1, Math.ceil(paths.length / SAMPLED_FILES))
  const chosen: number[] = []
  const at = new Int32Array(paths.length).fill(-1)
  for (let i = 0; i < paths.length; i++) {
    if (i % every === 0 || !isSure(i)) at[i] = chosen.push(i) - 1
  }
  const stamps = await store.stamps(chosen.map(i => paths[i]!))
  const changed = chosen.filter((i, k) => places[i]! >= 0 && !cache!.hasStamp(places[i]!, stamps, k))
  // One that its directory does not tell of: none of them is believed.
  if (changed.some(isSure)) return look(store, paths, places, cache, () => false)
  for (const i of changed) places[i] = -1
  return { at, stamps }
}

/** Where a cache has files, which are mostly in its order. */
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
