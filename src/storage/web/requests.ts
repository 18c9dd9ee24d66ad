/** Ranges of files by HTTP (RFC 9110, section 14): one request at a time, repeated where that may help. */

import { FormatError, quote, StoreError } from '../../base/errors.js'
import type { ReadContext } from '../store.js'

/** A request is tried so often. */
const MAX_ATTEMPTS = 4
/** Before the second attempt, in milliseconds; before each further one twice as much. */
const FIRST_PAUSE_MS = 200
/** The size of the pieces in which an answer is read. Measured from 64 KiB to 1 MiB: no difference. */
const CHUNK_BYTES = 256 << 10

/**
 * Buffers that no answer is being read into. A new one for each chunk would be garbage that is collected late: 100 MB of it
 * while 1 GB is read.
 */
const idleBuffers: ArrayBuffer[] = []

/** The requested part of a file. */
export interface Wanted {
  readonly url: string
  readonly startByte: number
  /** Behind the last byte; Infinity: all of the file, without a Range. */
  readonly endByte: number
  readonly headers: Readonly<Record<string, string>>
  /** Called with each answer before its bytes. What it throws ends the read. */
  readonly begin: (answer: Answer) => void
  /** The chunk is valid during the call only. */
  readonly take: (chunk: Uint8Array, at: number) => void
}

/** The facts about a file in an answer. */
export interface Answer {
  /** A value that changes with the file: its ETag or, without one, its modification time; null if the server sends neither. */
  readonly validator: string | null
  /** The length of the whole file; null if the answer doesn't tell. */
  readonly byteLength: number | null
}

/** @returns how many bytes there were, which is less than asked for only at the end of the file */
export async function getRange(wanted: Wanted, { signal, traffic }: ReadContext): Promise<number> {
  let received = 0
  const take = (chunk: Uint8Array): void => {
    for (const one of traffic) one.receivedBytes += chunk.length
    wanted.take(chunk, received)
    received += chunk.length
  }
  for (let attempt = 1; ; attempt++) {
    for (const one of traffic) one.getRequests++
    try {
      await getOnce({ ...wanted, startByte: wanted.startByte + received }, take, signal)
      return received
    } catch (error) {
      signal?.throwIfAborted()
      const mayHelp = error instanceof StoreError && error.retryable && attempt < MAX_ATTEMPTS
      // The rest of a file is asked for by a Range, which a whole one was not.
      if (!mayHelp || (received > 0 && wanted.endByte === Number.POSITIVE_INFINITY)) throw error
      for (const one of traffic) one.retries++
      await pause(FIRST_PAUSE_MS * 2 ** (attempt - 1), signal)
    }
  }
}

async function getOnce(
  { url, startByte, endByte, headers, begin }: Wanted,
  take: (chunk: Uint8Array) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const isWhole = endByte === Number.POSITIVE_INFINITY
  const response = await request(
    url,
    isWhole ? headers : { ...headers, Range: `bytes=${startByte}-${endByte - 1}` },
    signal,
  )
  try {
    const expected = expectedLength(response, url, startByte, endByte)
    begin({ validator: validatorOf(response), byteLength: expected.total })
    let got = 0
    if (expected.length !== 0 && response.body !== null) {
      const brokeOff = (cause: unknown): never => {
        signal?.throwIfAborted()
        throw unavailable(url, `the answer broke off: ${reasonOf(cause)}`, true, cause)
      }
      await readBody(response.body, brokeOff, chunk => {
        got += chunk.length
        if (expected.length !== null && got > expected.length) {
          throw unavailable(url, `expected ${expected.length} bytes, got more`, false)
        }
        take(chunk)
      })
    }
    if (expected.length !== null && got < expected.length) {
      throw unavailable(url, `expected ${expected.length} bytes, got ${got}`, true)
    }
  } finally {
    // What is left of an answer that nobody wants.
    await response.body?.cancel().catch(() => {})
  }
}

/** Hands out a body in chunks, each of which is valid during the call only. */
async function readBody(
  body: ReadableStream<Uint8Array>,
  brokeOff: (cause: unknown) => never,
  take: (chunk: Uint8Array) => void,
): Promise<void> {
  const byob = byobReaderOf(body)
  if (byob === null) {
    const reader = body.getReader()
    try {
      for (;;) {
        const { done, value } = await reader.read().catch(brokeOff)
        if (done) return
        take(value)
      }
    } finally {
      reader.releaseLock()
    }
  }
  let buffer = idleBuffers.pop() ?? new ArrayBuffer(CHUNK_BYTES)
  try {
    for (;;) {
      // Reading takes the buffer away, and hands it back with the bytes.
      const { done, value } = await byob.read(new Uint8Array(buffer)).catch(brokeOff)
      if (value !== undefined) buffer = value.buffer
      if (done) break
      take(value)
    }
    idleBuffers.push(buffer)
  } finally {
    byob.releaseLock()
  }
}

/** A reader into buffers of our own (Streams, section 4.5); null where bodies are no byte streams. */
function byobReaderOf(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: 'byob' })
  } catch {
    return null
  }
}

/** A request that was answered with what was asked for, or with nothing since that lies behind the end. */
async function request(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  let response: Response
  try {
    // A browser that keeps parts of an older file would hand them out between those of a newer one.
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

/** The expected length of the answer and of the file; null if unknown. @throws StoreError for another range */
function expectedLength(
  response: Response,
  url: string,
  startByte: number,
  endByte: number,
): { readonly length: number | null; readonly total: number | null } {
  const { status, headers } = response
  const range = headers.get('content-range')
  if (endByte === Number.POSITIVE_INFINITY) {
    // Of a body that was compressed on the way the header tells something else.
    const length = headers.has('content-encoding') ? null : numberOf(headers.get('content-length'))
    return { length, total: length }
  }
  if (status === 416) return { length: 0, total: numberOf(/^bytes \*\/(\d+)$/.exec(range ?? '')?.[1]) }
  if (status !== 206) {
    // An empty file has no ranges.
    if (numberOf(headers.get('content-length')) === 0) return { length: 0, total: 0 }
    const hint = 'the server does not answer Range requests, which trialscan needs'
    throw unavailable(url, `expected a range of the file (HTTP status 206), got all of it (${status}): ${hint}`, false)
  }
  if (range === null) {
    const hint = 'a server of another origin must expose it: Access-Control-Expose-Headers: Content-Range, ETag'
    throw unavailable(url, `expected the header Content-Range, got none: ${hint}`, false)
  }
  const [, from, to, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(range) ?? []
  const last = Math.min(endByte, numberOf(total) ?? endByte) - 1
  if (numberOf(from) !== startByte || numberOf(to) !== last) {
    throw unavailable(url, `expected bytes ${startByte}-${last}, got ${quote(range)}`, false)
  }
  return { length: last + 1 - startByte, total: numberOf(total) }
}

function validatorOf({ headers }: Response): string | null {
  return headers.get('etag') ?? headers.get('last-modified')
}

/** @throws FormatError `ObjectChanged` */
export function changedFile(url: string): FormatError {
  const [expected, got] = ['the file that was there at the first read', 'another']
  const message = `${url}: expected ${expected}, got ${got}: it was changed in the meantime`
  return new FormatError('ObjectChanged', message, { url, expected, got })
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

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
