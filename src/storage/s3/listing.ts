/**
 * Listings, as S3 answers them. They are read strictly, since a file that is missing in a listing would be missing in
 * the trial: a page that is incomplete, or answers another question, is refused as a whole. What servers leave out, or
 * write in ways of their own, is no fault.
 */

import { parseXml, XmlElement } from '@rgrove/parse-xml'
import { quote } from '../../base/errors.js'
import { badListing } from './errors.js'

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

/** The limit of tags, since each takes some hundred bytes. A thousand keys have 20,000. */
const MAX_TAGS = 400_000
/** The fields that no element has twice. */
const ONCE = new Set(['Key', 'Size', 'ETag', 'Prefix', 'IsTruncated', 'NextContinuationToken', 'EncodingType'])

/** The listing in an answer of S3. @throws BadListing */
export function parseListing(text: string, bucket: string, query: ListQuery): ListPage {
  const root = rootOf(text)
  const page = fieldsOf(root)
  const fieldsOfAll = (name: string): Fields[] =>
    elementsIn(root).flatMap(element => (element.name === name ? [fieldsOf(element)] : []))
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
  const objects = fieldsOfAll('Contents').map(fields => objectOf(fields, decoded))
  const prefixes = fieldsOfAll('CommonPrefixes').map(fields => decoded(needed(fields, 'Prefix', 'CommonPrefixes')))
  // Some servers do not count prefixes.
  const count = page.get('KeyCount')
  const counts = [objects.length + prefixes.length, objects.length]
  if (count !== undefined && !counts.includes(Number(count))) {
    throw badListing(`${count} keys (KeyCount)`, `${counts[0]}`)
  }
  checkInside(objects, prefixes, query)
  return { objects, prefixes, token: isTruncated === 'true' ? token! : null }
}

/** The root of a complete listing. @throws BadListing */
function rootOf(text: string): XmlElement {
  if (text.split('<', MAX_TAGS).length === MAX_TAGS) throw badListing(`less than ${MAX_TAGS} tags`, 'more')
  let reason = ''
  try {
    // Servers that keep a connection alive begin with blanks. The parser would take the square of the time for these line breaks.
    const { root } = parseXml(text.trimStart().replace(/\r\n?/g, '\n'))
    if (root?.name === 'ListBucketResult') return root
  } catch (error) {
    reason = `: ${(error as Error).message.split('\n')[0]}`
  }
  const got = text.trim() === '' ? 'nothing' : quote(text.trim().slice(0, 80))
  throw badListing('XML of a complete ListBucketResult', `${got}${reason}`)
}

function elementsIn(element: XmlElement): XmlElement[] {
  return element.children.filter(child => child instanceof XmlElement)
}

/** The texts of an element's children. A required field that comes twice is unknown; of others the first counts. */
function fieldsOf(element: XmlElement): Fields {
  const fields: Fields = new Map()
  for (const { name, text } of elementsIn(element)) {
    const first = fields.get(name)
    if (first === undefined) fields.set(name, text)
    else if (ONCE.has(name)) throw badListing(`one ${name}`, `${quote(first)} and ${quote(text)}`)
  }
  return fields
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
