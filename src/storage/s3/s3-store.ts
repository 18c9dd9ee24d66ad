/** A trial on S3. Files are objects that are read by ranges. Facts from a listing are not requested again. */

import { setMaxListeners } from 'node:events'
import { posix } from 'node:path'
import { StoreError } from '../../base/errors.js'
import { RangeCache } from '../local/cache.js'
import type { RangeOutcome, RangeRead } from '../range.js'
import { Looks, RangedStore, SeenFiles } from '../ranged-store.js'
import type { ListOptions, ReadContext, Store } from '../store.js'
import type { ListQuery } from './listing.js'
import { ListingWatch, maxListedKeys } from './listing-watch.js'
import { S3Requests } from './requests.js'
import { S3_DEFAULTS, type S3StoreSpec } from './spec.js'

/** The factor of a part's length up to which a read stays one request. */
const PART_SLACK = 1.25

interface Listing {
  readonly paths: readonly string[]
  /** The names of its directories, if only this level was listed. */
  readonly folders: ReadonlySet<string>
  /** True if there is neither a file nor a directory. */
  readonly isEmpty: boolean
}

/** The state that all stores of one trial share. */
class Bucket extends SeenFiles {
  readonly requests: S3Requests
  readonly cache: RangeCache | null
  /** Listings of directories. */
  readonly looks = new Looks<Listing>()
  /** Paths whose ETags the cache needs. */
  wanted = new Set<string>()
  lookUp: Promise<void> | null = null

  constructor(spec: S3StoreSpec) {
    super()
    const { cacheDirectory, cacheByteLength } = { ...S3_DEFAULTS, ...spec.options }
    this.requests = new S3Requests(spec)
    this.cache = cacheDirectory === undefined ? null : new RangeCache(cacheDirectory, cacheByteLength)
  }
}

export class S3Store extends RangedStore {
  readonly spec: S3StoreSpec
  readonly #bucket: Bucket
  readonly #url: string
  readonly #partByteLength: number

  constructor(spec: S3StoreSpec, bucket = new Bucket(spec), context: ReadContext = { traffic: [] }) {
    super(bucket, context)
    this.spec = spec
    this.#bucket = bucket
    this.#url = `s3://${spec.bucket}/${spec.prefix}`
    this.#partByteLength = spec.options.partByteLength ?? S3_DEFAULTS.partByteLength
  }

  readonly within = (context: ReadContext): Store => {
    // As many listen to it as requests are under way: no leak.
    if (context.signal) setMaxListeners(0, context.signal)
    return new S3Store(this.spec, this.#bucket, context)
  }

  async open(): Promise<void> {
    await this.#bucket.cache?.open()
    // What it sees answers the first question for files in the root, too.
    if ((await this.#look('')).isEmpty) {
      const { only } = this.spec
      if (only !== undefined) {
        const url = this.url(only)
        throw new StoreError('NotFound', `${url}: no such object; a prefix of that name ends with a slash`, { url })
      }
      throw new StoreError('NotFound', `${this.#url}: no such prefix: no key begins with it`, { url: this.#url })
    }
  }

  url(path: string): string {
    return `${this.#url}${path}`
  }

  async list(directory: string, { recursive = false, after, onPaths }: ListOptions = {}): Promise<string[]> {
    const { paths } = await this.#list(directory, !recursive, after, onPaths)
    return [...paths].sort()
  }

  readonly folders = async (directory: string): Promise<string[]> => {
    const { folders } = await this.#list(directory, true)
    return [...folders].sort()
  }

  /**
   * True if there is a regular file. A listing of the directory answers all such questions in a turn of the event loop.
   */
  async exists(path: string): Promise<boolean> {
    const inside = this.inside(path)
    const directory = posix.dirname(inside)
    return (await this.#look(directory === '.' ? '' : directory)).paths.includes(inside)
  }

  protected override get(path: string, read: RangeRead): Promise<RangeOutcome> {
    return this.#bucket.requests.get(this.#key(path), read, this.context)
  }

  override async read(path: string, options: { readonly maxByteLength: number }): Promise<Uint8Array> {
    const inside = this.inside(path)
    const kept = this.#kept(inside, 0, this.#bucket.known.get(inside)?.byteLength ?? 0)
    if (kept !== null && kept.length <= options.maxByteLength) return kept
    const bytes = await super.read(path, options)
    await this.#keep(inside, this.#bucket.known.get(inside)?.validator, 0, bytes)
    return bytes
  }

  override readonly stream: RangedStore['stream'] = async (path, startByte, byteLength, take) => {
    if (this.#bucket.cache === null) {
      return (await this.getHeld(this.inside(path), startByte, byteLength, take)).byteLength
    }
    // What is kept has to be held: it is read in pieces.
    const piece = new Uint8Array(Math.min(byteLength, this.#partByteLength))
    for (let at = 0; at < byteLength; at += piece.length) {
      const wanted = piece.subarray(0, byteLength - at)
      const readLength = await this.readInto(path, startByte + at, wanted)
      take(wanted.subarray(0, readLength))
      if (readLength < wanted.length) return at + readLength
    }
    return byteLength
  }

  override async byteLength(path: string): Promise<number> {
    await this.#knowEtag(this.inside(path))
    return super.byteLength(path)
  }

  /** Reads a range in parts, several in parallel. */
  protected override async fill(
    path: string,
    startByte: number,
    byteLength: number,
    view: () => Uint8Array,
  ): Promise<number> {
    await this.#knowEtag(path)
    const count = byteLength <= this.#partByteLength * PART_SLACK ? 1 : Math.ceil(byteLength / this.#partByteLength)
    // When one part has failed, the view is its owner's again: the others, still under way, have no place any more.
    let failure: { readonly error: unknown } | undefined
    const parts = Array.from({ length: count }, (_, part) => {
      const [from, end] = [part, part + 1].map(i => Math.floor((byteLength * i) / count)) as [number, number]
      return this.#readPart(path, startByte + from, end - from, () => {
        if (failure) throw failure.error
        return view().subarray(from, end)
      })
    })
    try {
      return (await Promise.all(parts)).reduce((sum, length) => sum + length, 0)
    } catch (error) {
      failure = { error }
      throw error
    }
  }

  async #readPart(path: string, startByte: number, byteLength: number, view: () => Uint8Array): Promise<number> {
    const kept = this.#kept(path, startByte, startByte + byteLength)
    if (kept !== null) {
      view().set(kept)
      return kept.length
    }
    const take = (chunk: Uint8Array, at: number): void => view().set(chunk, at)
    const { validator, byteLength: read } = await this.getHeld(path, startByte, byteLength, take)
    // The cache gets a copy: the view belongs to the caller as soon as the read is answered.
    if (this.#bucket.cache !== null && read > 0) await this.#keep(path, validator, startByte, view().slice(0, read))
    return read
  }

  /** A range from the cache, if it has all of it. */
  #kept(path: string, startByte: number, endByte: number): Uint8Array | null {
    const { cache, known } = this.#bucket
    const { validator = null, byteLength = null } = known.get(path) ?? {}
    const end = Math.min(endByte, byteLength ?? Number.POSITIVE_INFINITY)
    if (cache === null || validator === null || startByte >= end) return null
    return cache.read(this.#cacheKey(path, validator), startByte, end)
  }

  async #keep(path: string, etag: string | null | undefined, startByte: number, bytes: Uint8Array): Promise<void> {
    if (etag) await this.#bucket.cache?.write(this.#cacheKey(path, etag), startByte, startByte + bytes.length, bytes)
  }

  #cacheKey(path: string, etag: string): string {
    return [this.spec.options.endpoint ?? '', this.spec.bucket, this.#key(path), etag].join('\n')
  }

  #look(directory: string): Promise<Listing> {
    return this.#bucket.looks.ask(directory, () => this.#list(directory, true))
  }

  async #list(
    directory: string,
    isFlat: boolean,
    after?: string,
    onPaths?: (paths: readonly string[]) => void | Promise<void>,
  ): Promise<Listing> {
    const inside = this.inside(directory)
    const { only } = this.spec
    const prefix = this.#key(only ?? (inside === '' ? '' : `${inside}/`))
    const paths: string[] = []
    const folders = new Set<string>()
    let isEmpty = true
    const startAfter = after && this.#key(this.inside(after))
    for await (const page of this.#pages({ prefix, isFlat, startAfter }, true)) {
      // Some consoles create an empty object for a "folder".
      const isMeant = (path: string): boolean =>
        only === undefined ? !path.endsWith('/') && path !== '' : path === only
      const some = inside !== '' && only !== undefined ? [] : page.paths.filter(isMeant)
      isEmpty &&= only === undefined ? page.paths.length === 0 && page.prefixes.length === 0 : some.length === 0
      for (const path of some) paths.push(path)
      for (const folder of only === undefined ? page.prefixes : []) folders.add(folder.slice(prefix.length, -1))
      await onPaths?.(some)
    }
    return { paths, folders, isEmpty }
  }

  /**
   * The pages of a listing. Their facts about objects are remembered.
   * @param isNews true to let them replace known facts
   */
  async *#pages(query: ListQuery, isNews: boolean) {
    const { known, requests } = this.#bucket
    const watch = new ListingWatch(this.spec.bucket, maxListedKeys(this.spec.options.listLimit))
    let token: string | null | undefined
    do {
      const page = await requests.list({ ...query, token: token ?? undefined }, watch, this.context)
      token = page.token
      const paths = page.objects.map(({ key }) => key.slice(this.spec.prefix.length))
      page.objects.forEach(({ etag, byteLength, modifiedMs }, i) => {
        if (isNews || !known.has(paths[i]!)) known.set(paths[i]!, { validator: etag, byteLength, modifiedMs })
      })
      yield { paths, prefixes: page.prefixes }
    } while (token !== null)
  }

  /** Finds the ETags of all wanted files, once per turn of the event loop, by listing their directories. */
  async #knowEtag(path: string): Promise<void> {
    const bucket = this.#bucket
    if (bucket.cache === null) return
    for (let round = 0; round < 2 && !bucket.known.has(path); round++) {
      bucket.wanted.add(path)
      bucket.lookUp ??= new Promise<void>(resolve => setImmediate(resolve))
        .then(() => this.#lookUp())
        .finally(() => {
          bucket.lookUp = null
        })
      await bucket.lookUp
    }
  }

  async #lookUp(): Promise<void> {
    const wanted = [...this.#bucket.wanted].filter(path => !this.#bucket.known.has(path)).sort()
    this.#bucket.wanted = new Set()
    const [first, last] = [wanted[0], wanted.at(-1)]
    if (first === undefined || last === undefined) return
    const isOne = first === last
    const query: ListQuery = isOne
      ? { prefix: this.#key(first), isFlat: false, maxKeys: 1 }
      : // From what sorts right before the first of them.
        { prefix: this.#key(commonDirectory(first, last)), isFlat: false, startAfter: this.#key(first.slice(0, -1)) }
    for await (const { paths } of this.#pages(query, false)) if (isOne || (paths.at(-1) ?? last) >= last) return
  }

  #key(path: string): string {
    return `${this.spec.prefix}${path}`
  }

  protected override inside(path: string): string {
    const inside = posix.normalize(path).replace(/^\.?\/?$|\/+$/g, '')
    if (!posix.isAbsolute(path) && !/^\.\.(\/|$)/.test(inside) && !path.includes('\0')) return inside
    const detail = `expected a path inside the trial, got ${JSON.stringify(path)}`
    throw new StoreError('Denied', `${this.#url}: ${detail}`, { url: this.#url })
  }
}

function commonDirectory(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, a.lastIndexOf('/', length - 1) + 1)
}
