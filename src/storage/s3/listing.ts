/**
 * Listings, as S3 answers them. They are read strictly, since a file that is missing in a listing would be missing in
 * the trial: a page that is incomplete, or answers another question, is refused as a whole. What servers leave out, or
 * write in ways of their own, is no fault.
 */

import { getHeapStatistics } from 'node:v8'
import { quote } from '../../base/errors.js'
import type { Failure } from '../attempts.js'
import { S3Failure } from './errors.js'

export interface ListQuery {
  readonly prefix: string
  /** True to leave out keys with a further slash after the prefix. */
  readonly isFlat: boolean
  readonly startAfter?: string | undefined
  readonly token?: string | undefined
  readonly maxKeys?: number | undefined
}

export interface ListedObject {
  readonly key: string
  readonly byteLength: number
  readonly modifiedMs: number
  readonly etag: string
}

export interface ListPage {
  readonly objects: readonly ListedObject[]
  /** The common prefixes one level deeper, if the query is flat. */
  readonly prefixes: readonly string[]
  /** The token of the next page; null on the last page. */
  readonly token: string | null
}

type Fields = Map<string, string>

/** The number of empty pages in a row. S3 may send some where many objects were deleted. */
const MAX_EMPTY_PAGES = 250
/** The default limit of keys in one listing. Trials of several million files are known. */
const MAX_KEYS = 10_000_000
/** The memory that a key is reckoned to take, in bytes: 430 are kept, and more are in use for a while. */
const KEY_BYTES = 1024
/** The limit of nested elements. A listing has four. */
const MAX_DEPTH = 16

/** The listing in an answer of S3. @throws BadListing */
export function parseListing(text: string, bucket: string, query: ListQuery): ListPage {
  const contents: Fields[] = []
  const commonPrefixes: Fields[] = []
  const page: Fields = new Map()
  readXml(text, (name, value, fields, path) => {
    if (path.length === 0) return
    if (path.length === 1 && name === 'Contents') contents.push(fields)
    else if (path.length === 1 && name === 'CommonPrefixes') commonPrefixes.push(fields)
    else if (path.length === 1) setOnce(page, name, value)
  })
  const decoded = decoderOf(page.get('EncodingType'))
  checkEcho(page, bucket, query)
  const isTruncated = page.get('IsTruncated')?.trim().toLowerCase()
  if (isTruncated !== 'true' && isTruncated !== 'false') {
    throw badListing('IsTruncated, true or false', isTruncated === undefined ? 'none' : quote(isTruncated))
  }
  const token = page.get('NextContinuationToken')
  if (isTruncated === 'true' && !token) {
    throw badListing('a NextContinuationToken, since there is more (IsTruncated)', 'none')
  }
  const objects = contents.map(fields => objectOf(fields, decoded))
  const prefixes = commonPrefixes.map(fields => decoded(needed(fields, 'Prefix', 'CommonPrefixes')))
  // Some servers do not count prefixes.
  const count = page.get('KeyCount')
  const counts = [objects.length + prefixes.length, objects.length]
  if (count !== undefined && !counts.includes(Number(count))) {
    throw badListing(`${count} keys (KeyCount)`, `${counts[0]}`)
  }
  checkInside(objects, prefixes, query)
  return { objects, prefixes, token: isTruncated === 'true' ? token! : null }
}

/** The limit of keys in one listing: as many as fit into memory, unless the options allow more. */
export function maxListedKeys(listLimit: number | undefined): number {
  if (listLimit === 0) return Number.POSITIVE_INFINITY
  const most = Math.min(MAX_KEYS, Math.floor(getHeapStatistics().heap_size_limit / KEY_BYTES))
  return Math.max(most, listLimit ?? 0)
}

/** Checks of the pages of one listing, in their order. */
export class ListingWatch {
  readonly #orders: Order[] | null
  /** The keys seen so far, for servers that don't sort. */
  readonly #seen = new Set<string>()
  readonly #tokens = new Set<string>()
  readonly #maxKeys: number
  #keys = 0
  #emptyPages = 0

  /** Reads the pages of a listing. @param maxKeys the limit for all pages together */
  constructor(bucket: string, maxKeys: number) {
    this.#maxKeys = maxKeys
    this.#orders = isUnordered(bucket) ? null : SPELLINGS.map(spell => new Order(spell))
  }

  /**
   * Takes a page.
   * @throws Failure if it can't be the next one; nothing of it then counts
   */
  accept({ objects, prefixes, token }: ListPage): void {
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
    else this.#acceptOrdered(this.#orders, objects, prefixes)
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
  #acceptOrdered(orders: Order[], objects: readonly ListedObject[], prefixes: readonly string[]): void {
    const faults = orders.map(order => order.faultOf(objects, prefixes))
    if (!faults.includes(null)) throw badListing('keys in order, each once', faults[0]!)
    this.#orders!.splice(0, orders.length, ...orders.filter((_, i) => faults[i] === null))
    for (const order of this.#orders!) order.advance(objects, prefixes)
  }
}

/**
 * The orders of keys: by bytes, as S3 documents it; or file by file, as in servers that keep keys in directories (`a/b`
 * before `a-b`).
 */
const SPELLINGS: readonly ((key: string) => string)[] = [key => key, key => key.replaceAll('/', '\0')]

/** One order of a listing's keys. */
class Order {
  readonly #spell: (key: string) => string
  #lastKey: Buffer | null = null
  #lastPrefix: Buffer | null = null

  constructor(spell: (key: string) => string) {
    this.#spell = spell
  }

  faultOf(objects: readonly ListedObject[], prefixes: readonly string[]): string | null {
    const keys = objects.map(({ key }) => key)
    // A prefix may appear on two pages, but its keys may not.
    return this.#fault(keys, this.#lastKey, 1) ?? this.#fault(prefixes, this.#lastPrefix, 0)
  }

  advance(objects: readonly ListedObject[], prefixes: readonly string[]): void {
    const [key, prefix] = [objects.at(-1)?.key, prefixes.at(-1)]
    if (key !== undefined) this.#lastKey = this.#bytes(key)
    if (prefix !== undefined) this.#lastPrefix = this.#bytes(prefix)
  }

  #fault(keys: readonly string[], last: Buffer | null, least: 0 | 1): string | null {
    let before = last
    for (const key of keys) {
      const bytes = this.#bytes(key)
      if (before !== null && bytes.compare(before) < least) {
        return `${quote(key)} after ${quote(before.toString().replaceAll('\0', '/'))}`
      }
      before = bytes
    }
    return null
  }

  #bytes(key: string): Buffer {
    return Buffer.from(this.#spell(key))
  }
}

/** True for directory buckets (S3 Express), which list in no order. */
function isUnordered(bucket: string): boolean {
  return bucket.endsWith('--x-s3')
}

/** Checks that an answer belongs to the request. With a bucket alias or another tenant the name differs. */
function checkEcho(page: Fields, bucket: string, query: ListQuery): void {
  const name = page.get('Name')
  const isAlias = /-s3alias$|--ol-s3$|:/.test(bucket)
  if (name && !isAlias && name.toLowerCase() !== bucket.toLowerCase()) {
    throw badListing('that bucket', `bucket ${quote(name)}`)
  }
  // In these both spellings are found, whatever EncodingType says.
  const isEcho = (answer: string, request: string): boolean => answer === request || unescaped(answer) === request
  const prefix = page.get('Prefix')
  if (prefix && !isEcho(prefix, query.prefix)) throw badListing('that prefix', `prefix ${quote(prefix)}`)
  const startAfter = page.get('StartAfter')
  if (startAfter && query.token === undefined && !isEcho(startAfter, query.startAfter ?? '')) {
    throw badListing('what comes after the key that was asked for', `what comes after ${quote(startAfter)}`)
  }
  const token = page.get('ContinuationToken')
  if (token && !isEcho(token, query.token ?? '')) {
    throw badListing('the page that was asked for', `the one of ContinuationToken ${quote(token)}`)
  }
}

function checkInside(objects: readonly ListedObject[], prefixes: readonly string[], query: ListQuery): void {
  const { prefix, isFlat } = query
  const outside = [...objects.map(({ key }) => key), ...prefixes].find(key => !key.startsWith(prefix))
  if (outside !== undefined) throw badListing('keys under that prefix', quote(outside))
  if (!isFlat && prefixes.length > 0) throw badListing('all keys', `those of ${quote(prefixes[0]!)} as one prefix`)
  if (!isFlat) return
  // What consoles make of a "folder" ends with a slash.
  const deep = objects.find(({ key }) => key.slice(prefix.length, -1).includes('/'))
  if (deep !== undefined) throw badListing('no keys with a further slash', quote(deep.key))
}

function objectOf(fields: Fields, decoded: (text: string) => string): ListedObject {
  const key = decoded(needed(fields, 'Key', 'Contents'))
  const size = needed(fields, 'Size', quote(key)).trim()
  const byteLength = Number(size)
  if (!/^\d+$/.test(size) || !Number.isSafeInteger(byteLength)) {
    throw badListing(`the size of ${quote(key)}`, quote(size))
  }
  const modified = fields.get('LastModified')
  const modifiedMs = modified ? Date.parse(modified) : 0
  if (Number.isNaN(modifiedMs)) throw badListing(`the time of ${quote(key)}`, quote(modified!))
  return { key, byteLength, modifiedMs, etag: fields.get('ETag') ?? '' }
}

function needed(fields: Fields, name: string, where: string): string {
  const value = fields.get(name)
  if (value === undefined || value === '') throw badListing(`a ${name} in ${where}`, 'none')
  return value
}

/** The decoder of keys, by the encoding that the server names, whichever was requested. */
function decoderOf(encoding: string | undefined): (text: string) => string {
  if (!encoding) return text => text
  if (encoding.toLowerCase() !== 'url') throw badListing('EncodingType url, or none', quote(encoding))
  return text => {
    const plain = unescaped(text)
    if (plain === null) throw badListing('keys with each % before two digits of UTF-8', quote(text))
    return plain
  }
}

/** Decodes form encoding, where a plus is a space; null if a `%` is not followed by two hex digits. */
function unescaped(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/** The failure for a page that can't be part of the listing. Another attempt may succeed. */
export class BadListing extends Error implements Failure {
  readonly code = 'BadListing'
  readonly retryable = true
}

export function badListing(expected: string, got: string): BadListing {
  return new BadListing(`expected ${expected}, got ${got}`)
}

// ------------------------------------------------------------------------------------------------------------------- XML

/**
 * Reads an answer's XML in linear time. It must be complete and hold one `ListBucketResult`.
 * @param close called at the end of an element, with its own text, the texts of its children and the names of its
 * ancestors
 */
function readXml(
  text: string,
  close: (name: string, value: string, fields: Fields, path: readonly string[]) => void,
): void {
  const path: string[] = []
  const open: { readonly name: string; value: string; readonly fields: Fields }[] = []
  let isOver = false
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0
  const malformed = (): BadListing => {
    const got = text.trim() === '' ? 'nothing' : quote(text.slice(Math.max(0, at - 20), at + 60).trim())
    return badListing('a complete ListBucketResult in XML', `${got}${at > 20 && got !== 'nothing' ? ` at ${at}` : ''}`)
  }
  const endElement = (): void => {
    const { name, value, fields } = open.pop()!
    path.pop()
    const parent = open.at(-1)
    if (parent && path.length > 1) setOnce(parent.fields, name, value)
    close(name, value, fields, path)
    isOver = path.length === 0
  }
  while (at < text.length) {
    const tag = text.indexOf('<', at)
    const between = text.slice(at, tag < 0 ? undefined : tag)
    const element = open.at(-1)
    if (element) element.value += unescapedXml(between)
    else if (between.trim() !== '') throw malformed()
    if (tag < 0) {
      at = text.length
      break
    }
    at = tag
    const markup = MARKUP.find(([begin]) => text.startsWith(begin, tag))
    if (markup !== undefined) {
      const [begin, end] = markup
      const last = text.indexOf(end, tag + begin.length)
      if (last < 0) throw malformed()
      if (begin === '<![CDATA[') {
        if (!element) throw malformed()
        element.value += text.slice(tag + begin.length, last)
      }
      at = last + end.length
      continue
    }
    const last = text.indexOf('>', tag)
    const [, slash, name, rest] = /^(\/?)([A-Za-z_][\w.:-]*)((?:\s[^<]*)?\/?)$/s.exec(text.slice(tag + 1, last)) ?? []
    if (last < 0 || name === undefined || isOver || path.length >= MAX_DEPTH) throw malformed()
    if (slash === '/') {
      if (name !== path.at(-1) || rest!.trim() !== '') throw malformed()
      endElement()
    } else {
      if (path.length === 0 && name !== 'ListBucketResult') throw malformed()
      path.push(name)
      open.push({ name, value: '', fields: new Map() })
      if (rest!.endsWith('/')) endElement()
    }
    at = last + 1
  }
  if (!isOver) throw malformed()
}

/** Markup other than elements, by its start and end. */
const MARKUP = [
  ['<?', '?>'],
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
] as const

/** Sets a field. A required field that comes twice is unknown; of others the first counts. */
function setOnce(fields: Fields, name: string, value: string): void {
  if (!fields.has(name)) fields.set(name, value)
  else if (ONCE.has(name)) throw badListing(`one ${name}`, `${quote(fields.get(name)!)} and ${quote(value)}`)
}

const ONCE = new Set(['Key', 'Size', 'ETag', 'Prefix', 'IsTruncated', 'NextContinuationToken', 'EncodingType'])

const ENTITIES = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])

function unescapedXml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&([^;&]{0,10})(;?)/g, (all, entity: string, end: string) => {
    const [, hex, digits] = /^#(?:x([0-9a-f]+)|(\d+))$/i.exec(entity) ?? []
    const code = hex === undefined ? Number(digits) : Number.parseInt(hex, 16)
    const character = code <= 0x10ffff ? String.fromCodePoint(code) : ENTITIES.get(entity)
    if (end === '' || character === undefined) throw badListing('XML', quote(all))
    return character
  })
}
