/** A trial behind URLs: a listing names its files, and HTTP Range requests read them. */

import type { RangeOutcome, RangeRead } from '../range.js'
import { Looks, RangedStore, SeenFiles } from '../ranged-store.js'
import type { ListOptions, ReadContext, Store } from '../store.js'
import { readListing } from './listing.js'
import type { Place, WebFile, WebStoreSpec } from './place.js'
import { HttpRequests } from './requests.js'
import { pathsIn } from './tree.js'

type HttpPlace = Extract<Place, { kind: 'http' }>

/** The state that all stores of one trial share. */
class Server extends SeenFiles {
  readonly requests: HttpRequests
  /** The URLs of files that don't lie below the trial's URL, by path. */
  readonly urls = new Map<string, string>()
  readonly looks = new Looks<readonly WebFile[]>()

  constructor({ listing, headers }: HttpPlace) {
    super()
    this.requests = new HttpRequests(headers)
    if (typeof listing !== 'string') this.keep(listing)
  }

  keep(listing: readonly WebFile[]): readonly WebFile[] {
    for (const { path, url } of listing) if (url !== undefined) this.urls.set(path, url)
    return listing
  }
}

export class HttpStore extends RangedStore {
  readonly spec: WebStoreSpec
  readonly #place: HttpPlace
  readonly #server: Server

  constructor(
    spec: WebStoreSpec,
    place: HttpPlace,
    server = new Server(place),
    context: ReadContext = { traffic: [] },
  ) {
    super(server, context)
    this.spec = spec
    this.#place = place
    this.#server = server
  }

  readonly within = (context: ReadContext): Store => new HttpStore(this.spec, this.#place, this.#server, context)

  async open(): Promise<void> {
    await this.#files()
  }

  url(path: string): string {
    return this.#server.urls.get(path) ?? `${this.spec.root}${path.split('/').map(encodeURIComponent).join('/')}`
  }

  async list(directory: string, { recursive = false, onPaths }: ListOptions = {}): Promise<string[]> {
    const all = (await this.#files()).map(({ path }) => path)
    const paths = pathsIn(all, directory, recursive)
    await onPaths?.(paths)
    return paths
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#files()).some(file => file.path === path)
  }

  protected override get(path: string, read: RangeRead): Promise<RangeOutcome> {
    return this.#server.requests.get(this.url(path), read, this.context)
  }

  async #files(): Promise<readonly WebFile[]> {
    const { listing } = this.#place
    if (typeof listing !== 'string') return listing
    const { looks, requests } = this.#server
    return looks.ask(listing, async () => this.#server.keep(await readListing(listing, requests, this.context)))
  }
}
