/** The files of a trial behind URLs. HTTP has no directories, so a text file lists them. */

import { FormatError, quote } from '../../base/errors.js'
import type { ListPage } from '../s3/listing.js'
import type { ReadContext } from '../store.js'
import type { WebFile } from './place.js'
import type { HttpRequests } from './requests.js'

/** The limit of a listing in bytes: enough for a trial of a million files. */
const MAX_LISTING_BYTES = 256 << 20
/** The limit of pages. A page of S3 has a thousand keys. */
const MAX_PAGES = 10_000

/**
 * Reads a listing: a text with one path per line, as `find . -type f` writes it, or S3's answer to ListObjectsV2, of
 * which all pages are read. The keys of S3 must begin with the prefix that its URL names.
 * @throws FormatError `BadListing`
 */
export async function readListing(
  url: string,
  requests: HttpRequests,
  context: ReadContext,
): Promise<readonly WebFile[]> {
  const text = await readText(url, requests, context)
  return /^\ufeff?\s*</.test(text) ? readPages(url, text, requests, context) : parsePaths(text, url)
}

/** The paths in a listing. @throws FormatError for a path that leads out of the trial */
export function parsePaths(text: string, url: string): WebFile[] {
  return text
    .split('\n')
    .map(line => line.replace(/\r$/, '').replace(/^\.\//, ''))
    .filter(line => line !== '')
    .map(path => {
      if (isInside(path)) return { path }
      throw badListing(url, 'a path a line, each inside the trial', quote(path))
    })
}

/** True if a path is relative and stays inside the trial. */
export function isInside(path: string): boolean {
  return !path.includes('\0') && path.split('/').every(part => part !== '' && part !== '.' && part !== '..')
}

async function readPages(
  url: string,
  first: string,
  requests: HttpRequests,
  context: ReadContext,
): Promise<readonly WebFile[]> {
  // Most listings are texts, which need no parser.
  const { parseListing } = await import('../s3/listing.js')
  const files: WebFile[] = []
  const tokens = new Set<string>()
  const prefix = new URL(url).searchParams.get('prefix') ?? ''
  for (let [text, token]: [string, string | undefined] = [first, undefined]; ; ) {
    let page: ListPage
    try {
      // The name of the bucket is part of the URL in more than one way: an alias, which is held against nothing.
      page = parseListing(text, ':', { prefix, isFlat: false, token })
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      throw new FormatError('BadListing', `${url}: ${message}`, { url }, cause)
    }
    for (const { key } of page.objects) {
      const path = key.slice(prefix.length)
      // Consoles make an empty object of a "folder".
      if (path !== '' && !path.endsWith('/') && isInside(path)) files.push({ path })
    }
    if (page.token === null) return files
    if (tokens.has(page.token) || tokens.size >= MAX_PAGES) {
      throw badListing(url, 'another NextContinuationToken', quote(page.token))
    }
    tokens.add(page.token)
    token = page.token
    const next = new URL(url)
    next.searchParams.set('continuation-token', token)
    text = await readText(next.href, requests, context)
  }
}

async function readText(url: string, requests: HttpRequests, context: ReadContext): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  const take = (chunk: Uint8Array, at: number): void => {
    if (at + chunk.length > MAX_LISTING_BYTES) throw badListing(url, `at most ${MAX_LISTING_BYTES} bytes`, 'more')
    text += decoder.decode(chunk, { stream: true })
  }
  const counter = 'listRequests'
  await requests.get(url, { startByte: 0, endByte: Number.POSITIVE_INFINITY, counter, take }, context)
  return text + decoder.decode()
}

function badListing(url: string, expected: string, got: string): FormatError {
  return new FormatError('BadListing', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
}
