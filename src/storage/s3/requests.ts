/**
 * Requests to S3 that go on until they are answered: attempts with backoff and jitter, bodies that broke off resumed from
 * the last byte that came, so many at once and no more.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../base/errors.js'
import type { ReadContext } from '../store.js'
import { type Pace, paceOf, readBody } from './body.js'
import { S3Failure, type S3Request, s3Error } from './errors.js'
import type { ListingWatch, ListPage, ListQuery } from './listing.js'
import type { ObjectAnswer, S3Connection } from './sdk.js'
import { S3_DEFAULTS, type S3StoreSpec } from './spec.js'

const BACKOFF_MS = 50
/** S3 that asks for fewer requests is left alone for longer. */
const THROTTLED_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 20_000
/** The longest Retry-After that is obeyed. */
const MAX_RETRY_AFTER_MS = 60_000

/** An object to be read, and the receiver of its bytes. */
export interface ObjectRead {
  readonly key: string
  readonly startByte: number
  /** Infinity: up to the end of the object. */
  readonly endByte: number
  /** The object must still be this one. */
  readonly etag?: string | undefined
  /** Called for each answer, before its bytes. What it throws ends the read. */
  readonly begin?: (answer: ObjectAnswer) => void
  /** Takes bytes, in order; `at` counts from the read's start. What it throws ends the read. */
  readonly take: (chunk: Uint8Array, at: number) => void
}

/** The facts learned by a read. */
export interface ObjectRange {
  /** Bytes that came: fewer than asked for only at the end of the object. */
  readonly byteLength: number
  /** Null where the object ends before the range begins. */
  readonly etag: string | null
}

export interface PutOutcome {
  readonly isWritten: boolean
  readonly attempts: number
}

/** The context of requests that nobody counts. */
const NOBODY: ReadContext = { traffic: [] }

/** Thrown by whoever takes the bytes: another attempt would not help. */
class Refusal extends Error {}

export class S3Requests {
  readonly #spec: S3StoreSpec
  readonly #maxAttempts: number
  readonly #pace: Pace
  readonly #slots: Slots
  #connection: Promise<S3Connection> | undefined

  constructor(spec: S3StoreSpec) {
    const { maxAttempts, maxSockets } = { ...S3_DEFAULTS, ...spec.options }
    this.#spec = spec
    this.#maxAttempts = maxAttempts
    this.#pace = paceOf(spec.options)
    this.#slots = new Slots(maxSockets)
  }

  /** The next page of a listing. A page that can't be it is asked for again. */
  list(query: ListQuery, watch: ListingWatch, context: ReadContext): Promise<ListPage> {
    const { bucket } = this.#spec
    return this.#attempts({ key: query.prefix }, context, async connection => {
      for (const traffic of context.traffic) traffic.listRequests++
      const page = await connection.list(bucket, query, context.signal)
      watch.accept(page)
      return page
    })
  }

  /**
   * Writes an object. @param isNew one that is there stays as it is
   * @returns whether it was written, and in how many attempts: of several, one whose answer was lost can have written what is there
   * @throws StoreError
   */
  put(key: string, bytes: Uint8Array, isNew: boolean, context = NOBODY): Promise<PutOutcome> {
    const { bucket } = this.#spec
    let attempts = 0
    return this.#attempts({ key }, context, async connection => {
      attempts++
      return { isWritten: await connection.put(bucket, key, bytes, isNew, context.signal), attempts }
    })
  }

  /** Begins an object that comes in parts. @returns what the upload is called @throws StoreError */
  beginUpload(key: string): Promise<string> {
    return this.#attempts({ key }, NOBODY, connection => connection.beginUpload(this.#spec.bucket, key))
  }

  /** @param number from 1 on @returns its ETag @throws StoreError */
  putPart(key: string, upload: string, number: number, bytes: Uint8Array): Promise<string> {
    return this.#attempts({ key }, NOBODY, connection =>
      connection.putPart(this.#spec.bucket, key, upload, number, bytes),
    )
  }

  /**
   * Makes an object of parts. @param etags of all of them, in their order; isNew: an object that is there stays as it is
   * @returns whether it was made
   * @throws StoreError
   */
  async completeUpload(key: string, upload: string, etags: readonly string[], isNew: boolean): Promise<boolean> {
    let tries = 0
    const isMade = await this.#attempts({ key }, NOBODY, async connection => {
      tries++
      try {
        return await connection.completeUpload(this.#spec.bucket, key, upload, etags, isNew)
      } catch (error) {
        // The attempt before can have made it, and only its answer was lost: then there is no such upload any more.
        if (tries > 1 && error instanceof S3Failure && error.code === 'NoSuchUpload') return null
        throw error
      }
    })
    if (isMade !== null) return isMade
    if (await this.exists(key)) return true
    throw s3Error(new S3Failure('no such upload', { code: 'NoSuchUpload' }), this.#about(key, tries))
  }

  /** @throws StoreError */
  abortUpload(key: string, upload: string): Promise<void> {
    return this.#attempts({ key }, NOBODY, connection => connection.abortUpload(this.#spec.bucket, key, upload))
  }

  /** @throws StoreError where that can't be found out */
  async exists(key: string): Promise<boolean> {
    try {
      await this.get({ key, startByte: 0, endByte: 1, take: () => {} }, NOBODY)
      return true
    } catch (error) {
      if (error instanceof StoreError && error.code === 'NotFound') return false
      throw error
    }
  }

  /** The URL of an object in errors. */
  url(key: string): string {
    return `s3://${this.#spec.bucket}/${key}`
  }

  /** @throws StoreError, FormatError if the object is not the one it was */
  async get(read: ObjectRead, context: ReadContext): Promise<ObjectRange> {
    const { key, startByte, endByte } = read
    const isWhole = startByte === 0 && endByte === Number.POSITIVE_INFINITY
    const asRange = (from: number): string => `bytes=${from}-${endByte === Number.POSITIVE_INFINITY ? '' : endByte - 1}`
    let etag = read.etag
    let received = 0
    const range = isWhole ? undefined : asRange(startByte)
    return this.#attempts({ key, range }, context, async connection => {
      const from = startByte + received
      const asked = isWhole && received === 0 ? undefined : asRange(from)
      for (const traffic of context.traffic) traffic.getRequests++
      let answer: ObjectAnswer
      try {
        answer = await connection.get(this.#spec.bucket, key, { range: asked, ifMatch: etag }, context.signal)
      } catch (error) {
        // There is nothing from there on: the object is shorter.
        if (error instanceof S3Failure && error.status === 416) return { byteLength: received, etag: etag ?? null }
        throw error
      }
      try {
        // Every object has one. What comes without is a page of whoever stands between, be it with status 200.
        if (answer.etag === '') {
          throw new S3Failure(`expected an object with its ETag, got ${answer.status} without`, { code: 'NoETag' })
        }
        etag ??= answer.etag
        if (answer.etag !== etag) {
          throw new S3Failure('the answer is of another object', { status: 412, code: 'PreconditionFailed' })
        }
        // Who has never heard of ranges sends all of it.
        let skip = from - answer.startByte
        if (skip < 0 || (skip > 0 && answer.status !== 200)) {
          throw new S3Failure(`expected ${asked}, got bytes from ${answer.startByte} on`, { code: 'BadRange' })
        }
        refusable(() => read.begin?.(answer))
        const end = Math.min(endByte, answer.byteLength)
        await readBody(answer.body, this.#pace, context.signal, chunk => {
          for (const traffic of context.traffic) traffic.receivedBytes += chunk.length
          const skipped = Math.min(skip, chunk.length)
          skip -= skipped
          const wanted = chunk.subarray(skipped, skipped + Math.max(0, end - startByte - received))
          if (wanted.length > 0) refusable(() => read.take(wanted, received))
          received += wanted.length
          return (
            end !== Number.POSITIVE_INFINITY && startByte + received >= end && skipped + wanted.length < chunk.length
          )
        })
        if (end !== Number.POSITIVE_INFINITY && startByte + received < end) {
          throw new S3Failure(`expected ${end - startByte} bytes, got ${received}`, { code: 'ShortBody' })
        }
        return { byteLength: received, etag }
      } finally {
        // Nobody reads on: an open body would hold its socket for ever.
        if (!answer.body.readableEnded) answer.body.destroy()
      }
    })
  }

  /** @throws S3Failure where no file can be opened, the SDK's neither */
  #connect(): Promise<S3Connection> {
    const { options } = this.#spec
    this.#connection ??= import('./sdk.js')
      .then(({ connect }) => connect(options))
      .catch((error: unknown) => {
        this.#connection = undefined
        const { code = '', message } = error as NodeJS.ErrnoException
        throw code === 'EMFILE' || code === 'ENFILE' ? new S3Failure(message, { code }, error) : error
      })
    return this.#connection
  }

  #about(key: string, attempts: number): S3Request {
    return { url: this.url(key), bucket: this.#spec.bucket, attempts }
  }

  async #attempts<T>(
    { key, range }: { readonly key: string; readonly range?: string | undefined },
    { signal, traffic }: ReadContext,
    attempt: (connection: S3Connection) => Promise<T>,
  ): Promise<T> {
    for (let attempts = 1; ; attempts++) {
      await this.#slots.take(signal)
      let failure: S3Failure
      try {
        signal?.throwIfAborted()
        const answer = await attempt(await this.#connect())
        this.#slots.succeeded()
        return answer
      } catch (error) {
        signal?.throwIfAborted()
        if (error instanceof Refusal) throw error.cause
        if (!(error instanceof S3Failure)) throw error
        failure = error
        if (failure.isThrottling) this.#slots.throttled()
        if (!failure.isRetryable || attempts >= this.#maxAttempts) {
          throw s3Error(failure, { ...this.#about(key, attempts), range })
        }
      } finally {
        this.#slots.give()
      }
      for (const counted of traffic) counted.retries++
      await sleep(waitMs(attempts, failure), undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    }
  }
}

/** Anything up to twice as long every time, so that those who failed together don't come back together. */
function waitMs(attempts: number, { isThrottling, retryAfterMs = 0 }: S3Failure): number {
  const most = Math.min(MAX_BACKOFF_MS, (isThrottling ? THROTTLED_BACKOFF_MS : BACKOFF_MS) * 2 ** (attempts - 1))
  return Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) + Math.random() * most
}

function refusable(work: () => void): void {
  try {
    work()
  } catch (cause) {
    throw new Refusal('', { cause })
  }
}

/**
 * So many requests at once. Where S3 asks for fewer, half as many, and one more for every few that succeed: attempts are
 * not used up on a server that can't keep up.
 */
class Slots {
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #allowed: number
  #taken = 0
  #throttledAt = Number.NEGATIVE_INFINITY

  constructor(most: number) {
    this.#most = most
    this.#allowed = most
  }

  async take(signal: AbortSignal | undefined): Promise<void> {
    if (this.#taken < this.#allowed) {
      this.#taken++
      return
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        const place = this.#waiting.indexOf(go)
        if (place >= 0) this.#waiting.splice(place, 1)
        reject(signal!.reason)
      }
      const go = (): void => {
        signal?.removeEventListener('abort', onAbort)
        this.#taken++
        resolve()
      }
      this.#waiting.push(go)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  give(): void {
    this.#taken--
    while (this.#taken < this.#allowed && this.#waiting.length > 0) this.#waiting.shift()!()
  }

  throttled(): void {
    // Requests that were under way together are refused together: that is one refusal.
    const now = performance.now()
    if (now - this.#throttledAt < THROTTLED_BACKOFF_MS) return
    this.#throttledAt = now
    this.#allowed = Math.max(1, Math.floor(this.#allowed / 2))
  }

  succeeded(): void {
    if (this.#allowed < this.#most) this.#allowed = Math.min(this.#most, this.#allowed + 0.25)
  }
}
