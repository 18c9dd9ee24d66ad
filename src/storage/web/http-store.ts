/** A trial behind URLs: a list tells its files, and HTTP Range their bytes. */

import { StoreError, UsageError } from '../../base/errors.js'
import type { ReadContext, Store, Watcher } from '../store.js'
import { readListing } from './listing.js'
import type { Place, WebFile, WebStoreSpec } from './place.js'
import { type Answer, changedFile, getRange } from './requests.js'
import { pathsIn } from './tree.js'

type HttpPlace = Extract<Place, { kind: 'http' }>

/** The number of leading bytes that come with a file's length. */
const HEAD_BYTES = 64 << 10
/** The number of small files that came this way and are kept until they are read. */
const MAX_KEPT = 64

/** The facts about a file, from answers. */
interface KnownFile {
  readonly validator: string | null
  readonly byteLength: number | null
}

/** The state that all stores of one trial share. */
class Server {
  readonly known = new Map<string, KnownFile>()
  /** Small files that came when their length was asked for, until they are read. */
  readonly kept = new Map<string, Uint8Array>()
  /** The URLs of files that don't lie below the trial's URL, by path. */
  readonly urls = new Map<string, string>()
  /** A listing that several questions share; forgotten when it has answered them. */
  look: Promise<readonly WebFile[]> | null = null

  constructor({ listing }: HttpPlace) {
    if (typeof listing !== 'string') this.keep(listing)
  }

  keep(listing: readonly WebFile[]): void {
    for (const { path, url } of listing) if (url !== undefined) this.urls.set(path, url)
  }
}

export class HttpStore implements Store {
  readonly spec: WebStoreSpec
  readonly #place: HttpPlace
  readonly #server: Server
  readonly #context: ReadContext

  constructor(
    spec: WebStoreSpec,
    place: HttpPlace,
    server = new Server(place),
    context: ReadContext = { traffic: [] },
  ) {
    this.spec = spec
    this.#place = place
    this.#server = server
    this.#context = context
  }

  readonly within = (context: ReadContext): Store => new HttpStore(this.spec, this.#place, this.#server, context)

  async open(): Promise<void> {
    await this.#files()
  }

  url(path: string): string {
    return this.#server.urls.get(path) ?? `${this.spec.root}${path.split('/').map(encodeURIComponent).join('/')}`
  }

  async list(
    directory: string,
    { recursive = false, onPaths }: NonNullable<Parameters<Store['list']>[1]> = {},
  ): Promise<string[]> {
    const all = (await this.#files()).map(({ path }) => path)
    const paths = pathsIn(all, directory, recursive)
    await onPaths?.(paths)
    return paths
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#files()).some(file => file.path === path)
  }

  async read(path: string, { maxByteLength }: { readonly maxByteLength: number }): Promise<Uint8Array> {
    const kept = this.#server.kept.get(path)
    this.#server.kept.delete(path)
    if (kept !== undefined && kept.length <= maxByteLength) return kept
    const chunks: Uint8Array[] = []
    let length = 0
    const check = (byteLength: number): void => {
      if (byteLength <= maxByteLength) return
      const url = this.url(path)
      const message = `${url}: expected at most ${maxByteLength} bytes, got ${byteLength}`
      throw new StoreError('TooLarge', message, { url, maxByteLength, byteLength, got: `${byteLength}` })
    }
    await getRange(
      {
        url: this.url(path),
        startByte: 0,
        endByte: Number.POSITIVE_INFINITY,
        headers: this.#place.headers,
        begin: answer => {
          check(answer.byteLength ?? 0)
          // As it is now: what could not be read before may have been under way.
          this.#server.known.set(path, answer)
        },
        take: (chunk, at) => {
          check(at + chunk.length)
          chunks.push(chunk.slice())
          length = at + chunk.length
        },
      },
      this.#context,
    )
    const bytes = new Uint8Array(length)
    let at = 0
    for (const chunk of chunks) {
      bytes.set(chunk, at)
      at += chunk.length
    }
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
    return this.#get(path, startByte, byteLength, (chunk, at) => view().set(chunk, at))
  }

  readonly stream = async (
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ): Promise<number> => this.#get(path, startByte, byteLength, take)

  async #get(
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array, at: number) => void,
  ): Promise<number> {
    if (!Number.isSafeInteger(startByte) || startByte < 0) {
      throw new UsageError(`expected a byte offset, got ${startByte}`, { path, startByte })
    }
    // What lies behind the end is not there, and need not be asked for.
    const end = Math.min(startByte + byteLength, this.#server.known.get(path)?.byteLength ?? Number.POSITIVE_INFINITY)
    if (end <= startByte) return 0
    return getRange(
      {
        url: this.url(path),
        startByte,
        endByte: end,
        headers: this.#place.headers,
        begin: answer => this.#hold(path, answer),
        take,
      },
      this.#context,
    )
  }

  /** Whatever is read of a file is read of the same one. */
  #hold(path: string, answer: Answer): void {
    const { known } = this.#server
    const before = known.get(path)
    const isSame =
      before === undefined ||
      ((before.validator === null || answer.validator === null || before.validator === answer.validator) &&
        (before.byteLength === null || answer.byteLength === null || before.byteLength === answer.byteLength))
    if (!isSame) throw changedFile(this.url(path))
    const validator = answer.validator ?? before?.validator ?? null
    known.set(path, { validator, byteLength: answer.byteLength ?? before?.byteLength ?? null })
  }

  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * 3).fill(Number.NaN)
    paths.forEach((path, i) => {
      const byteLength = this.#server.known.get(path)?.byteLength
      if (byteLength !== undefined && byteLength !== null) stamps.set([byteLength, 0, 0], i * 3)
    })
    return stamps
  }

  async byteLength(path: string): Promise<number> {
    const known = this.#server.known.get(path)?.byteLength
    if (known !== undefined && known !== null) return known
    const head = new Uint8Array(HEAD_BYTES)
    const length = await this.#get(path, 0, HEAD_BYTES, (chunk, at) => head.set(chunk, at))
    const told = this.#server.known.get(path)?.byteLength
    const { kept } = this.#server
    if (told === length) kept.set(path, head.slice(0, length))
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value ?? '')
    if (told !== undefined && told !== null) return told
    const url = this.url(path)
    const message = `${url}: expected the server to tell the length of the file (Content-Range), got none`
    throw new StoreError('Unavailable', message, { url })
  }

  /** A server tells of nothing: whoever waits looks again after a while. */
  watch(): Watcher {
    return { changed: () => new Promise(() => {}), close() {} }
  }

  async close(): Promise<void> {
    this.#server.kept.clear()
  }

  async #files(): Promise<readonly WebFile[]> {
    const { listing, headers } = this.#place
    if (typeof listing !== 'string') return listing
    const server = this.#server
    if (server.look === null) {
      const look = readListing(listing, headers, this.#context)
      server.look = look
      const forget = (): void => {
        setTimeout(() => {
          if (server.look === look) server.look = null
        })
      }
      look.then(forget, forget)
      look.then(
        files => server.keep(files),
        () => {},
      )
    }
    return server.look
  }
}
