/** Repeated requests to S3. */

import { StoreError } from '../../base/errors.js'
import { Attempts, type Failure } from '../attempts.js'
import { type RangeOpener, type RangeOutcome, type RangeRead, readRange } from '../range.js'
import type { ReadContext } from '../store.js'
import { S3Failure, s3Error } from './errors.js'
import type { ListingWatch, ListPage, ListQuery } from './listing.js'
import type { S3Connection } from './sdk.js'
import { RequestSlots } from './slots.js'
import { S3_DEFAULTS, type S3StoreSpec } from './spec.js'

export interface PutOutcome {
  readonly isWritten: boolean
  readonly attempts: number
}

/** The context of uncounted requests. */
const NOBODY: ReadContext = { traffic: [] }

export class S3Requests {
  readonly #spec: S3StoreSpec
  readonly #attempts: Attempts
  #connection: Promise<S3Connection> | undefined

  constructor(spec: S3StoreSpec) {
    const { maxAttempts, maxSockets } = { ...S3_DEFAULTS, ...spec.options }
    this.#spec = spec
    this.#attempts = new Attempts(maxAttempts, new RequestSlots(maxSockets))
  }

  /** The next page of a listing. A wrong page is requested again. */
  list(query: ListQuery, watch: ListingWatch, context: ReadContext): Promise<ListPage> {
    const { bucket } = this.#spec
    return this.#run(query.prefix, context, async connection => {
      for (const traffic of context.traffic) traffic.listRequests++
      const page = await connection.list(bucket, query, context.signal)
      watch.accept(page)
      return page
    })
  }

  /**
   * Writes an object.
   * @param isNew true to keep an object that is already there
   * @returns whether it was written, and the number of attempts: after a lost answer, the object that is there can be
   * this one
   * @throws StoreError
   */
  put(key: string, bytes: Uint8Array, isNew: boolean, context = NOBODY): Promise<PutOutcome> {
    const { bucket } = this.#spec
    let attempts = 0
    return this.#run(key, context, async connection => {
      attempts++
      return { isWritten: await connection.put(bucket, key, bytes, isNew, context.signal), attempts }
    })
  }

  /**
   * Begins an upload in parts.
   * @returns the ID of the upload
   * @throws StoreError
   */
  beginUpload(key: string): Promise<string> {
    return this.#run(key, NOBODY, connection => connection.beginUpload(this.#spec.bucket, key))
  }

  /** Uploads a part. @param number from 1 on @returns its ETag @throws StoreError */
  putPart(key: string, upload: string, number: number, bytes: Uint8Array): Promise<string> {
    return this.#run(key, NOBODY, connection => connection.putPart(this.#spec.bucket, key, upload, number, bytes))
  }

  /**
   * Completes an upload in parts.
   * @param etags the ETags of all parts in order; isNew: true to keep an object that is already there
   * @returns true if the object was made
   * @throws StoreError
   */
  async completeUpload(key: string, upload: string, etags: readonly string[], isNew: boolean): Promise<boolean> {
    let tries = 0
    const isMade = await this.#run(key, NOBODY, async connection => {
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
    throw this.#errorOf(key)(new S3Failure('no such upload', { code: 'NoSuchUpload' }), tries)
  }

  /** Removes an unfinished upload. @throws StoreError */
  abortUpload(key: string, upload: string): Promise<void> {
    return this.#run(key, NOBODY, connection => connection.abortUpload(this.#spec.bucket, key, upload))
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

  /** The URL of an object, for errors. */
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

  #errorOf(key: string) {
    const { bucket } = this.#spec
    return (failure: Failure, attempts: number, range?: string): Error =>
      s3Error(failure as S3Failure, { url: this.url(key), bucket, attempts, range })
  }

  #run<T>(key: string, context: ReadContext, attempt: (connection: S3Connection) => Promise<T>): Promise<T> {
    return this.#attempts.run(context, async () => attempt(await this.#connect()), this.#errorOf(key))
  }
}
