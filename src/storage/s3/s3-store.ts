/** A trial on S3. Files are objects, read by their ranges; what a listing tells of them is not asked for again. */

import { setMaxListeners } from 'node:events'
import { posix } from 'node:path'
import { FormatError, StoreError, UsageError } from '../../base/errors.js'
import { RangeCache } from '../local/cache.js'
import type { ListOptions, ReadContext, Store, Watcher } from '../store.js'
import { ListingWatch, type ListQuery, maxListedKeys } from './listing.js'
import { type ObjectRange, type ObjectRead, S3Requests } from './requests.js'
import type { ObjectAnswer } from './sdk.js'
import { S3_DEFAULTS, type S3StoreSpec } from './spec.js'

/** The number of leading bytes that come with a file's length. */
const HEAD_BYTES = 64 << 10
/** The number of such heads that are kept until they are read. */
const MAX_HEADS = 64
/** A read that is a little longer than a part stays one. */
const PART_SLACK = 1.25

/** The known facts of an object; only the ETag if it was merely read. */
interface KnownObject {
  readonly etag: string
  readonly byteLength: number | null
  readonly modifiedMs: number
}

interface Listing {
  readonly paths: readonly string[]
  /** Names of the directories in it, where it was asked for itself alone. */
  readonly folders: ReadonlySet<string>
  /** True if there is nothing, not even a directory. */
  readonly isEmpty: boolean
}

/** The state that all stores of one trial share. */
class Bucket {
  readonly requests: S3Requests
  readonly cache: RangeCache | null
  /** By path. The ETag is that of the first read or the last listing: what is read later must be the same object. */
  readonly objects = new Map<string, KnownObject>()
  /** First bytes of files, until they are read. */
  readonly heads = new Map<string, Uint8Array>()
  /** Listings of directories that several questions in a turn of the event loop share. */
  readonly looks = new Map<string, Promise<Listing>>()
  /** Paths whose ETags are wanted for the cache. */
  wanted = new Set<string>()
  lookUp: Promise<void> | null = null

  constructor(spec: S3StoreSpec) {
    const { cacheDirectory, cacheByteLength } = { ...S3_DEFAULTS, ...spec.options }
    this.requests = new S3Requests(spec)
    this.cache = cacheDirectory === undefined ? null : new RangeCache(cacheDirectory, cacheByteLength)
  }
}

export class S3Store implements Store {
  readonly spec: S3StoreSpec
  readonly #bucket: Bucket
  readonly #context: ReadContext
  readonly #url: string
  readonly #partByteLength: number

  constructor(spec: S3StoreSpec, bucket = new Bucket(spec), context: ReadContext = { traffic: [] }) {
    this.spec = spec
    this.#bucket = bucket
    this.#context = context
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

  /** S3 tells of nothing: whoever waits looks again after a while. */
  watch(): Watcher {
    return { changed: () => new Promise(() => {}), close() {} }
  }

  async list(directory: string, { recursive = false, after, onPaths }: ListOptions = {}): Promise<string[]> {
    const { paths } = await this.#list(directory, !recursive, after, onPaths)
    return [...paths].sort()
  }

  readonly folders = async (directory: string): Promise<string[]> => {
    const { folders } = await this.#list(directory, true)
    return [...folders].sort()
  }

  /** A listing of the directory tells it, which serves all questions for its files in a turn of the event loop. */
  async exists(path: string): Promise<boolean> {
    const inside = this.#inside(path)
    const directory = posix.dirname(inside)
    return (await this.#look(directory === '.' ? '' : directory)).paths.includes(inside)
  }

  async read(path: string, { maxByteLength }: { readonly maxByteLength: number }): Promise<Uint8Array> {
    const inside = this.#inside(path)
    const { cache, objects } = this.#bucket
    const listed = objects.get(inside)
    if (cache && listed?.byteLength) {
      const kept = cache.read(this.#cacheKey(inside, listed.etag), 0, listed.byteLength)
      if (kept && kept.length <= maxByteLength) return kept
    }
    const chunks: Uint8Array[] = []
    const { etag, byteLength } = await this.#bucket.requests.get(
      {
        key: this.#key(inside),
        startByte: 0,
        endByte: Number.POSITIVE_INFINITY,
        begin: answer => {
          if (Number.isFinite(answer.byteLength) && answer.byteLength > maxByteLength) {
            throw this.#tooLarge(path, maxByteLength, answer.byteLength)
          }
        },
        take: (chunk, at) => {
          if (at + chunk.length > maxByteLength) throw this.#tooLarge(path, maxByteLength, at + chunk.length)
          chunks.push(chunk)
        },
      },
      this.#context,
    )
    const bytes = Buffer.concat(chunks, byteLength)
    // Another one than was listed: whoever asks for its stamps sees that.
    if (listed && etag && listed.etag !== etag) objects.set(inside, { ...listed, etag, byteLength })
    if (cache && etag) await cache.write(this.#cacheKey(inside, etag), 0, byteLength, bytes)
    return bytes
  }

  readInto(path: string, startByte: number, view: Uint8Array): Promise<number> {
    return this.readLater(path, startByte, view.byteLength, () => view)
  }

  readonly readLater = async (
    path: string,
    startByte: number,
    byteLength: number,
    view: () => Uint8Array,
  ): Promise<number> => {
    if (!Number.isSafeInteger(startByte) || startByte < 0) {
      throw new UsageError(`expected a byte offset, got ${startByte}`, { path, startByte })
    }
    const inside = this.#inside(path)
    if (byteLength === 0) return 0
    const head = this.#takeHead(inside, startByte, byteLength)
    if (head) {
      view().set(head)
      return head.length
    }
    if (this.#bucket.cache) await this.#knowEtag(inside)
    const count = byteLength <= this.#partByteLength * PART_SLACK ? 1 : Math.ceil(byteLength / this.#partByteLength)
    // When one part has failed, the view is its owner's again: the others, still under way, have no place any more.
    let failure: { readonly error: unknown } | undefined
    const parts = Array.from({ length: count }, (_, part) => {
      const [from, end] = [part, part + 1].map(i => Math.floor((byteLength * i) / count)) as [number, number]
      return this.#readPart(inside, startByte + from, end - from, () => {
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

  readonly stream = async (
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ): Promise<number> => {
    const inside = this.#inside(path)
    if (this.#bucket.cache === null) return (await this.#get(inside, startByte, byteLength, take)).byteLength
    // What is kept has to be held: it is read in pieces.
    const piece = new Uint8Array(Math.min(byteLength, this.#partByteLength))
    for (let at = 0; at < byteLength; at += piece.length) {
      const wanted = piece.subarray(0, byteLength - at)
      const there = await this.readInto(path, startByte + at, wanted)
      take(wanted.subarray(0, there))
      if (there < wanted.length) return at + there
    }
    return byteLength
  }

  async #readPart(path: string, startByte: number, byteLength: number, view: () => Uint8Array): Promise<number> {
    const { cache, objects } = this.#bucket
    const known = objects.get(path)
    // What lies behind the end is not there, and need not be asked for.
    const most = known?.byteLength ?? Number.POSITIVE_INFINITY
    const endByte = startByte + byteLength
    if (cache && known && startByte < most) {
      const kept = cache.read(this.#cacheKey(path, known.etag), startByte, Math.min(endByte, most))
      if (kept) {
        view().set(kept)
        return kept.length
      }
    }
    const { etag, byteLength: read } = await this.#get(path, startByte, byteLength, (chunk, at) =>
      view().set(chunk, at),
    )
    if (cache && etag && read > 0) {
      // A copy: the view is somebody else's as soon as this is answered.
      await cache.write(this.#cacheKey(path, etag), startByte, startByte + read, view().slice(0, read))
    }
    return read
  }

  #get(path: string, startByte: number, byteLength: number, take: ObjectRead['take']): Promise<ObjectRange> {
    const { objects, requests } = this.#bucket
    return requests.get(
      {
        key: this.#key(path),
        startByte,
        endByte: startByte + byteLength,
        etag: objects.get(path)?.etag,
        begin: answer => this.#hold(path, answer),
        take,
      },
      this.#context,
    )
  }

  /** None of it takes a request where the file was listed. */
  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * 3).fill(Number.NaN)
    paths.forEach((path, i) => {
      const known = this.#bucket.objects.get(this.#inside(path))
      if (known && known.byteLength !== null) {
        stamps.set([known.byteLength, known.modifiedMs, numberOf(known.etag)], i * 3)
      }
    })
    return stamps
  }

  versionOf(path: string): string | undefined {
    return this.#bucket.objects.get(this.#inside(path))?.etag || undefined
  }

  async byteLength(path: string): Promise<number> {
    const inside = this.#inside(path)
    const { objects, heads, requests, cache } = this.#bucket
    if (cache) await this.#knowEtag(inside)
    const listed = objects.get(inside)?.byteLength
    if (listed !== undefined && listed !== null) return listed
    let total = 0
    const head = new Uint8Array(HEAD_BYTES)
    const { byteLength } = await requests.get(
      {
        key: this.#key(inside),
        startByte: 0,
        endByte: HEAD_BYTES,
        etag: objects.get(inside)?.etag,
        begin: answer => {
          total = answer.byteLength
          this.#hold(inside, answer)
        },
        take: (chunk, at) => head.set(chunk, at),
      },
      this.#context,
    )
    heads.set(inside, head.subarray(0, byteLength))
    if (heads.size > MAX_HEADS) heads.delete(heads.keys().next().value!)
    return total
  }

  async close(): Promise<void> {
    this.#bucket.heads.clear()
  }

  /** A read that lies in the head that came with the file's length. */
  #takeHead(path: string, startByte: number, byteLength: number): Uint8Array | null {
    const head = this.#bucket.heads.get(path)
    if (head === undefined) return null
    const isAll = head.length < HEAD_BYTES
    if (!isAll && startByte + byteLength > head.length) return null
    return head.subarray(Math.min(startByte, head.length), Math.min(startByte + byteLength, head.length))
  }

  /** Whatever is read of a file is read of the same object. */
  #hold(path: string, { etag }: ObjectAnswer): void {
    const { objects } = this.#bucket
    const known = objects.get(path)
    if (known === undefined) objects.set(path, { etag, byteLength: null, modifiedMs: 0 })
    else if (etag !== '' && known.etag !== etag) {
      const [expected, got] = ['the object that was there at the first read', 'another']
      const url = this.url(path)
      const message = `${url}: expected ${expected}, got ${got}: it was changed in the meantime`
      throw new FormatError('ObjectChanged', message, { url, expected, got })
    }
  }

  #look(directory: string): Promise<Listing> {
    const { looks } = this.#bucket
    let look = looks.get(directory)
    if (look === undefined) {
      look = this.#list(directory, true)
      looks.set(directory, look)
      const forget = (): void => {
        setImmediate(() => {
          if (looks.get(directory) === look) looks.delete(directory)
        })
      }
      look.then(forget, forget)
    }
    return look
  }

  async #list(
    directory: string,
    isFlat: boolean,
    after?: string,
    onPaths?: (paths: readonly string[]) => void | Promise<void>,
  ): Promise<Listing> {
    const inside = this.#inside(directory)
    const { only } = this.spec
    const prefix = this.#key(only ?? (inside === '' ? '' : `${inside}/`))
    const paths: string[] = []
    const folders = new Set<string>()
    let isEmpty = true
    const startAfter = after && this.#key(this.#inside(after))
    for await (const page of this.#pages({ prefix, isFlat, startAfter }, true)) {
      // Some consoles make an empty object of a "folder".
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
   * The pages of a listing. What they tell of the objects is remembered.
   * @param isNews whether it is believed where something else is known
   */
  async *#pages(query: ListQuery, isNews: boolean) {
    const { objects, requests } = this.#bucket
    const watch = new ListingWatch(this.spec.bucket, maxListedKeys(this.spec.options.listLimit))
    let token: string | null | undefined
    do {
      const page = await requests.list({ ...query, token: token ?? undefined }, watch, this.#context)
      token = page.token
      const paths = page.objects.map(({ key }) => key.slice(this.spec.prefix.length))
      page.objects.forEach(({ etag, byteLength, modifiedMs }, i) => {
        if (isNews || !objects.has(paths[i]!)) objects.set(paths[i]!, { etag, byteLength, modifiedMs })
      })
      yield { paths, prefixes: page.prefixes }
    } while (token !== null)
  }

  /** Finds out the ETags that the cache goes by, for all files that are wanted in a turn, by listing where they lie. */
  async #knowEtag(path: string): Promise<void> {
    const bucket = this.#bucket
    for (let round = 0; round < 2 && !bucket.objects.has(path); round++) {
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
    const wanted = [...this.#bucket.wanted].filter(path => !this.#bucket.objects.has(path)).sort()
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

  #cacheKey(path: string, etag: string): string {
    return [this.spec.options.endpoint ?? '', this.spec.bucket, this.#key(path), etag].join('\n')
  }

  #key(path: string): string {
    return `${this.spec.prefix}${path}`
  }

  /** A path as it is spelled in keys, if it is one of the trial. */
  #inside(path: string): string {
    const inside = posix.normalize(path).replace(/^\.?\/?$|\/+$/g, '')
    if (!posix.isAbsolute(path) && !/^\.\.(\/|$)/.test(inside) && !path.includes('\0')) return inside
    const detail = `expected a path inside the trial, got ${JSON.stringify(path)}`
    throw new StoreError('Denied', `${this.#url}: ${detail}`, { url: this.#url })
  }

  #tooLarge(path: string, maxByteLength: number, byteLength: number): StoreError {
    const url = this.url(path)
    const got = `${byteLength}`
    const message = `${url}: expected at most ${maxByteLength} bytes, got ${got}`
    return new StoreError('TooLarge', message, { url, maxByteLength, byteLength, got })
  }
}

function commonDirectory(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, a.lastIndexOf('/', length - 1) + 1)
}

/** 48 bits of an ETag. */
function numberOf(etag: string): number {
  const hex = Buffer.from(etag).toString('hex').slice(-18)
  const digest = /^"?([0-9a-f]{12})/.exec(etag)?.[1]
  return Number.parseInt(digest ?? hex.slice(0, 12), 16)
}
