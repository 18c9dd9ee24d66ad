/** Ranges of files by HTTP (RFC 9110, section 14). */

import { quote, StoreError } from '../../base/errors.js'
import { Attempts } from '../attempts.js'
import { type RangeAnswer, type RangeOpener, type RangeOutcome, type RangeRead, readRange } from '../range.js'
import type { ReadContext } from '../store.js'

const MAX_ATTEMPTS = 4

export class HttpRequests {
  readonly #headers: Readonly<Record<string, string>>
  readonly #attempts = new Attempts(MAX_ATTEMPTS)

  constructor(headers: Readonly<Record<string, string>>) {
    this.#headers = headers
  }

  /**
   * Reads a range.
   * @throws StoreError; FormatError if the file has changed
   */
  get(url: string, read: RangeRead, context: ReadContext): Promise<RangeOutcome> {
    const open: RangeOpener['open'] = range => this.#open(url, range, context.signal)
    const failure: RangeOpener['failure'] = (code, message) => unavailable(url, message, code === 'ShortBody')
    return readRange(read, { url, open, failure }, this.#attempts, context)
  }

  async #open(url: string, range: string | undefined, signal: AbortSignal | undefined): Promise<RangeAnswer | null> {
    const headers = range === undefined ? this.#headers : { ...this.#headers, Range: range }
    const response = await request(url, headers, signal)
    const { body } = response
    const cancel = async (): Promise<void> => body?.cancel().catch(() => {})
    try {
      const place = placeOf(response, url, range)
      if (place === null) {
        await cancel()
        return null
      }
      // A body that was compressed on the way has no ranges to go on with.
      const isEncoded = response.headers.has('content-encoding')
      const brokeOff = (cause: unknown): never => {
        signal?.throwIfAborted()
        throw unavailable(url, `the answer broke off: ${reasonOf(cause)}`, !isEncoded, cause)
      }
      const read: RangeAnswer['read'] = async take => {
        if (body === null || place.byteLength === 0) return
        const reader = body.getReader()
        try {
          for (;;) {
            const { done, value } = await reader.read().catch(brokeOff)
            if (done || take(value)) return
          }
        } finally {
          reader.releaseLock()
        }
      }
      return { ...place, validator: validatorOf(response), read, cancel }
    } catch (error) {
      await cancel()
      throw error
    }
  }
}

/** Makes a request and checks its answer; null if the file ends before the range. */
async function request(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  let response: Response
  try {
    // A browser's cache may mix parts of an older file with those of a newer one.
    response = await fetch(url, { headers, cache: 'no-store', ...(signal && { signal }) })
  } catch (cause) {
    signal?.throwIfAborted()
    const hint = 'the server is not there, or does not allow this page to read it (CORS)'
    throw unavailable(url, `${reasonOf(cause)}: ${hint}`, true, cause)
  }
  const { status } = response
  if (response.ok || status === 416) return response
  await response.body?.cancel().catch(() => {})
  const fields = { url, status }
  if (status === 404 || status === 410) {
    throw new StoreError('NotFound', `${url}: no such file (HTTP status ${status})`, fields)
  }
  if (status === 401 || status === 403) {
    throw new StoreError('Denied', `${url}: the server refuses it (HTTP status ${status})`, fields)
  }
  throw unavailable(url, `HTTP status ${status}`, status === 408 || status === 429 || status >= 500)
}

/**
 * The place of an answer: its first byte and the length of the file, null if unknown. Null if the file ends before the
 * range.
 * @throws StoreError
 */
function placeOf(
  { status, headers }: Response,
  url: string,
  requestedRange: string | undefined,
): Pick<RangeAnswer, 'startByte' | 'byteLength'> | null {
  const length = numberOf(headers.get('content-length'))
  // With a content encoding, the header has the compressed length.
  if (requestedRange === undefined) return { startByte: 0, byteLength: headers.has('content-encoding') ? null : length }
  if (status === 416) return null
  if (status !== 206) {
    // An empty file has no ranges.
    if (length === 0) return null
    const hint = 'the server does not answer Range requests, which trialscan needs'
    throw unavailable(url, `expected a range of the file (HTTP status 206), got all of it (${status}): ${hint}`, false)
  }
  const range = headers.get('content-range')
  if (range === null) {
    const hint = 'a server of another origin must expose it: Access-Control-Expose-Headers: Content-Range, ETag'
    throw unavailable(url, `expected the header Content-Range, got none: ${hint}`, false)
  }
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range) ?? []
  if (from === undefined) throw unavailable(url, `expected ${requestedRange}, got ${quote(range)}`, false)
  return { startByte: Number(from), byteLength: numberOf(total) }
}

function validatorOf({ headers }: Response): string | null {
  return headers.get('etag') ?? headers.get('last-modified')
}

function unavailable(url: string, detail: string, retryable: boolean, cause?: unknown): StoreError {
  return new StoreError('Unavailable', `${url}: ${detail}`, { url, retryable }, cause)
}

function numberOf(text: string | null | undefined): number | null {
  return text !== null && text !== undefined && /^\d+$/.test(text) ? Number(text) : null
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
