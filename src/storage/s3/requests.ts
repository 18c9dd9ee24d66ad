/** Repeated requests to S3. */

import { StoreError } from '../../base/errors.js'
import { lazily } from '../../base/lazily.js'
import { Attempts, type Failure } from '../attempts.js'
import { type RangeOpener, type RangeOutcome, type RangeRead, readRange } from '../range.js'
import type { ReadContext } from '../store.js'
import { S3Failure, s3Error } from './errors.js'
import type { ListPage, ListQuery } from './listing.js'
import type { ListingWatch } from './listing-watch.js'
import type { S3Connection } from './sdk.js'
import { RequestSlots } from './slots.js'
import { S3_DEFAULTS, type S3StoreSpec } from './spec.js'

/** The context of uncounted requests. */
const NOBODY: ReadContext = { traffic: [] }

export class S3Requests {
  readonly #spec: S3StoreSpec
  readonly #attempts: Attempts

  constructor(spec: S3StoreSpec) {
    const { maxAttempts, maxSockets } = { ...S3_DEFAULTS, ...spec.options }
    this.#spec = spec
    this.#attempts = new Attempts(maxAttempts, new RequestSlots(maxSockets))
  }

  /** The next page of a listing. A wrong page is requested again. */
  list(query: ListQuery, watch: ListingWatch, context: ReadContext): Promise<ListPage> {
    const { bucket } = this.#spec
    const attempt = async (connection: S3Connection): Promise<ListPage> => {
      for (const traffic of context.traffic) traffic.listRequests++
      const page = await connection.list(bucket, query, context.signal)
      watch.accept(page)
      return page
    }
    return this.run(query.prefix, attempt, context)
  }

  /**
   * True if there is such an object.
   * @throws StoreError if that can't be found out
   */
  async exists(key: string): Promise<boolean> {
    try {
      await this.get(key, { startByte: 0, endByte: 1, take: () => {} }, NOBODY)
      return true
    } catch (error) {
      if (error instanceof StoreError && error.code === 'NotFound') return false
      throw error
    }
  }

  /** An object, as requests name it. */
  object(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#spec.bucket, Key: key }
  }

  url(key: string): string {
    return `s3://${this.#spec.bucket}/${key}`
  }

  /**
   * Reads a range.
   * @throws StoreError; FormatError if the object has changed
   */
  get(key: string, read: RangeRead, context: ReadContext): Promise<RangeOutcome> {
    const open: RangeOpener['open'] = async (range, ifMatch) =>
      (await this.#connect()).get(this.#spec.bucket, key, { range, ifMatch }, context.signal)
    const failure: RangeOpener['failure'] = (code, message) => new S3Failure(message, { code })
    const errorOf = this.#errorOf(key)
    return readRange(read, { url: this.url(key), open, failure, errorOf }, this.#attempts, context)
  }

  /** Loads the SDK and connects. @throws S3Failure if no file can be opened, not even the SDK's */
  readonly #connect = lazily(async () => {
    try {
      return (await import('./sdk.js')).connect(this.#spec.options)
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      throw code === 'EMFILE' || code === 'ENFILE' ? new S3Failure(message, { code }, error) : error
    }
  })

  #errorOf(key: string) {
    const { bucket } = this.#spec
    return (failure: Failure, attempts: number, range?: string): Error =>
      s3Error(failure as S3Failure, { url: this.url(key), bucket, attempts, range })
  }

  /** Runs a request about a key, in several attempts if need be. @throws StoreError */
  run<T>(key: string, attempt: (connection: S3Connection) => Promise<T>, context = NOBODY): Promise<T> {
    return this.#attempts.run(context, async () => attempt(await this.#connect()), this.#errorOf(key))
  }
}
