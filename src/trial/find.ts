/** Finds trials below a place: in a directory, or through a pattern. */

import { expectText } from '../base/arguments.js'
import { pathOfUrl, QueryError, StoreError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { isCheckpointFile } from '../format/checkpoint/formats.js'
import { isTensorBoardFile } from '../format/paths.js'
import { kindOfFolders } from '../format/place-kind.js'
import { placeOf } from '../scan/catalog/load/place.js'
import { openStore, storeSpec } from '../storage/open.js'
import { S3_OPTIONS } from '../storage/s3/options.js'
import type { S3Options } from '../storage/s3/spec.js'
import type { Store } from '../storage/store.js'

export interface FindOptions {
  /**
   * True to follow symbolic links. Default: false. A trial with several names is listed once, under its real name if that lies below the
   * place.
   */
  readonly allowSymlinks?: boolean
  /** Region, endpoint and credentials for S3. */
  readonly s3?: S3Options | undefined
}

const FIND_OPTIONS = optionsOf<FindOptions>({ allowSymlinks: kinds.flag, s3: S3_OPTIONS })

/** The depth of the search; deeper directories hold something else. */
const MAX_DEPTH = 8
/** The limit for directories that are listed, so that a search of a whole disk ends. */
const MAX_FOLDERS = 100_000

/**
 * The trials at a place, sorted: the directory itself if it is one, otherwise those below it. In a pattern `*` and `?` stand for any part
 * of a name: `runs/*`, `s3://bucket/experiments/2024-*`. A directory is a trial if it contains `index/`, `events/`, `collections/` or
 * checkpoints; a TensorBoard event file is found only by its own name or a pattern for it. If there is no trial below a directory, the
 * directory itself is returned: opening it gives the reason.
 * @throws StoreError (`NotFound`) if a pattern matches nothing; QueryError (`TooManyDirectories`); UsageError
 */
export async function findTrials(place: string, options?: FindOptions): Promise<string[]> {
  const { allowSymlinks = false, s3 } = checkOptions('findTrials', FIND_OPTIONS, options)
  expectText('findTrials', 'place', place)
  const { base, pattern } = splitPlace(place)
  if (pattern.length === 0 && placeOf(place).file !== undefined) return [place]
  const store = openStore(storeSpec(base === '' ? '.' : base, { allowSymlinks, s3 }))
  try {
    const search = new Search(store)
    const all = pattern.length === 0 ? await search.below('', 0) : await search.matching('', pattern)
    const paths = allowSymlinks ? eachOnce(all, store) : all
    if (paths.length > 0) return paths.map(path => joined(base, path))
  } finally {
    await store.close()
  }
  if (pattern.length === 0) return [place]
  throw new StoreError('NotFound', `${place}: no trial matches it`, { url: place })
}

/** Trials with several names, once each: by the real name if it is among them. */
function eachOnce(paths: readonly string[], store: Store): readonly string[] {
  const root = store.realPath?.('') ?? ''
  const real = (path: string): string => store.realPath?.(path) ?? path
  const realNames = new Set(paths.filter(path => real(path) === joined(root, path)).map(real))
  const taken = new Set<string>()
  return paths.filter(path => {
    const place = real(path)
    if (taken.has(place) || (realNames.has(place) && place !== joined(root, path))) return false
    taken.add(place)
    return true
  })
}

class Search {
  readonly #store: Store
  /** Real paths of the directories above the current one: no link may lead back to them. */
  readonly #around: string[] = []
  #count = 0

  constructor(store: Store) {
    this.#store = store
  }

  /** The trials in a directory, itself included. */
  async below(directory: string, depth: number): Promise<string[]> {
    const folders = await this.#folders(directory)
    const { isTrial, part } = kindOfFolders(folders)
    if (isTrial || (await this.#isCheckpoint(directory, part))) return [directory]
    if (depth === MAX_DEPTH || folders.length === 0) return []
    const real = this.#store.realPath?.(directory) ?? directory
    if (this.#around.includes(real)) return []
    this.#around.push(real)
    const paths: string[] = []
    for (const folder of folders) {
      if (!folder.startsWith('.')) paths.push(...(await this.below(joined(directory, folder), depth + 1)))
    }
    this.#around.pop()
    return paths
  }

  async matching(directory: string, [first, ...others]: readonly string[]): Promise<string[]> {
    if (first === undefined) {
      const paths = await this.below(directory, 0)
      return paths.length > 0 || !(await this.#isTensorBoard(directory)) ? paths : [directory]
    }
    const matches = matcher(first)
    const paths: string[] = []
    if (others.length === 0 && isCheckpointFile(first)) {
      const files = await this.#store.list(directory)
      paths.push(...files.filter(path => matches(path.slice(path.lastIndexOf('/') + 1)) && isCheckpointFile(path)))
    }
    for (const folder of await this.#folders(directory)) {
      if (matches(folder)) paths.push(...(await this.matching(joined(directory, folder), others)))
    }
    return paths
  }

  async #folders(directory: string): Promise<readonly string[]> {
    if (this.#count++ === MAX_FOLDERS) {
      const url = this.#store.url('')
      const message = `${pathOfUrl(url)}: expected trials in at most 100,000 directories, got more: name a directory in it, or a pattern`
      throw new QueryError('TooManyDirectories', message, { url })
    }
    return (await this.#store.folders?.(directory)) ?? []
  }

  /** True if a directory holds a checkpoint, or directories of checkpoints that are named by steps or workers. */
  async #isCheckpoint(directory: string, part: string | undefined): Promise<boolean> {
    if (this.#store.folders === undefined) return false
    const listed = await this.#store.list(directory)
    if (listed.some(path => isCheckpointFile(path))) return true
    if (part === undefined) return false
    const files = await this.#store.list(joined(directory, part), { recursive: true })
    return files.some(path => isCheckpointFile(path))
  }

  async #isTensorBoard(directory: string): Promise<boolean> {
    return (await this.#store.list(directory)).some(isTensorBoardFile)
  }
}

/** The part of a place before its first name with a wildcard, and the names from there on. */
function splitPlace(place: string): { readonly base: string; readonly pattern: readonly string[] } {
  const names = place.trim().split('/')
  const first = names.findIndex(name => /[*?]/.test(name))
  if (first < 0) return { base: place, pattern: [] }
  const base = names.slice(0, first).join('/')
  return { base: base === '' && first > 0 ? '/' : base, pattern: names.slice(first).filter(name => name !== '') }
}

function joined(directory: string, name: string): string {
  return directory === '' || name === '' ? directory + name : `${directory.replace(/\/$/, '')}/${name}`
}

/** A name is hidden from a wildcard at its start if it begins with a dot, as in a shell. */
function matcher(pattern: string): (name: string) => boolean {
  const parts = pattern
    .split('')
    .map(mark => (mark === '*' ? '[^]*' : mark === '?' ? '[^]' : mark.replace(/\W/, '\\$&')))
  const regex = new RegExp(`^${parts.join('')}$`)
  return name => regex.test(name) && (!name.startsWith('.') || pattern.startsWith('.'))
}
