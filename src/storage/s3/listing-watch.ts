/** The pages of one listing: whether they come in order and end, and how many keys are accepted. */

import { getHeapStatistics } from 'node:v8'
import { quote } from '../../base/errors.js'
import { badListing, S3Failure } from './errors.js'
import type { ListedObject, ListPage } from './listing.js'

/** The number of empty pages in a row. S3 may send some where many objects were deleted. */
const MAX_EMPTY_PAGES = 250
/** The default limit of keys in one listing. Trials of several million files are known. */
const MAX_KEYS = 10_000_000
/** The memory that a key is reckoned to take, in bytes: 430 are kept, and more are in use for a while. */
const KEY_BYTES = 1024

/** The limit of keys in one listing: as many as fit into memory, unless the options allow more. */
export function maxListedKeys(listLimit: number | undefined): number {
  if (listLimit === 0) return Number.POSITIVE_INFINITY
  const most = Math.min(MAX_KEYS, Math.floor(getHeapStatistics().heap_size_limit / KEY_BYTES))
  return Math.max(most, listLimit ?? 0)
}

/** Checks of the pages of one listing, in their order. */
export class ListingWatch {
  #orders: readonly Order[] | null
  /** The keys seen so far, for servers that don't sort. */
  readonly #seen = new Set<string>()
  readonly #tokens = new Set<string>()
  readonly #maxKeys: number
  #keys = 0
  #emptyPages = 0

  /** Reads the pages of a listing. @param maxKeys the limit for all pages together */
  constructor(bucket: string, maxKeys: number) {
    this.#maxKeys = maxKeys
    // Directory buckets (S3 Express) list in no order.
    this.#orders = bucket.endsWith('--x-s3') ? null : ORDERS
  }

  /**
   * Takes a page.
   * @throws Failure if it can't be the next one; nothing of it then counts
   */
  accept(page: ListPage): void {
    const { objects, prefixes, token } = page
    if (token !== null && this.#tokens.has(token)) {
      throw badListing('another NextContinuationToken', `${quote(token)} again`)
    }
    const isEmpty = objects.length + prefixes.length === 0
    if (token !== null && isEmpty && this.#emptyPages >= MAX_EMPTY_PAGES) {
      const message = `expected a page with something in it, got ${MAX_EMPTY_PAGES} empty ones`
      throw new S3Failure(message, { code: 'EndlessListing' })
    }
    const keys = this.#keys + objects.length + prefixes.length
    if (keys > this.#maxKeys) {
      const most = `${this.#maxKeys.toLocaleString('en-US')} objects`
      const hint = 's3.listLimit, --s3-list-limit: a higher limit; node --max-old-space-size: memory for it'
      throw new S3Failure(`expected at most ${most}, got more (${hint})`, { code: 'LongListing' })
    }
    if (this.#orders === null) this.#acceptUnordered(objects)
    else this.#acceptOrdered(this.#orders, page)
    this.#keys = keys
    this.#emptyPages = isEmpty ? this.#emptyPages + 1 : 0
    if (token !== null) this.#tokens.add(token)
  }

  #acceptUnordered(objects: readonly ListedObject[]): void {
    const keys = new Set(objects.map(({ key }) => key))
    for (const key of keys) if (this.#seen.has(key)) throw badListing('other keys', `${quote(key)} again`)
    if (keys.size < objects.length) throw badListing('each key once', 'one of them twice')
    for (const key of keys) this.#seen.add(key)
  }

  /** Checks that all pages are in one order, whichever it is. */
  #acceptOrdered(orders: readonly Order[], page: ListPage): void {
    const next = orders.map(order => following(order, page))
    const isInOrder = (order: Order | string): order is Order => typeof order === 'object'
    if (!next.some(isInOrder)) throw badListing('keys in order, each once', next[0] as string)
    this.#orders = next.filter(isInOrder)
  }
}

/** One order of a listing's keys, and the last ones so far as it spells them. */
interface Order {
  readonly spell: (key: string) => string
  readonly key?: Buffer | undefined
  readonly prefix?: Buffer | undefined
}

/**
 * The orders of keys: by bytes, as S3 documents it; or file by file, as in servers that keep keys in directories (`a/b`
 * before `a-b`).
 */
const ORDERS: readonly Order[] = [{ spell: key => key }, { spell: key => key.replaceAll('/', '\0') }]

/** The order after a page; a text if the page is not in it. */
function following({ spell, ...last }: Order, { objects, prefixes }: ListPage): Order | string {
  let fault: string | undefined
  const lastOf = (keys: readonly string[], before: Buffer | undefined, least: 0 | 1): Buffer | undefined =>
    keys.reduce((before, key) => {
      const bytes = Buffer.from(spell(key))
      if (before !== undefined && bytes.compare(before) < least) {
        fault ??= `${quote(key)} after ${quote(before.toString().replaceAll('\0', '/'))}`
      }
      return bytes
    }, before)
  const key = lastOf(
    objects.map(({ key }) => key),
    last.key,
    1,
  )
  // A prefix may appear on two pages, but its keys may not.
  const prefix = lastOf(prefixes, last.prefix, 0)
  return fault ?? { spell, key, prefix }
}
