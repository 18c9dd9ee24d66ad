/**
 * Objects written as their bytes come, in bounded memory: one request for a short object, and an upload in parts for a
 * long one, which appears when it is complete.
 */

import { StoreError } from '../../base/errors.js'
import type { S3Requests } from './requests.js'

/** The length of a part, and of the longest object in one request. S3 requires at least 5 MiB. */
export const PART_BYTES = 16 << 20
/** S3's limit of parts. */
const MAX_PARTS = 10_000
/** The number of parts in progress, each of which is held in memory. */
const PARTS_AT_ONCE = 2

/**
 * Writes an object.
 * @param isNew true to keep an object that is already there
 * @returns its number of bytes; null if another is there
 * @throws StoreError; an incomplete upload is given up
 */
export async function upload(
  requests: S3Requests,
  key: string,
  chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
  isNew: boolean,
): Promise<number | null> {
  let parts: Parts | undefined
  let byteLength = 0
  try {
    let part = new PartBuffer()
    for await (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      byteLength += bytes.length
      for (let at = 0; at < bytes.length; ) {
        // What is just as long as a part can still be all.
        if (part.isFull) {
          parts ??= await Parts.begin(requests, key)
          await parts.add(part.bytes)
          part = new PartBuffer()
        }
        at += part.add(bytes.subarray(at))
      }
    }
    if (parts === undefined) return (await requests.put(key, part.bytes, isNew)).isWritten ? byteLength : null
    await parts.add(part.bytes)
    return (await parts.complete(isNew)) ? byteLength : null
  } catch (error) {
    await parts?.abort()
    throw error
  }
}

/** The buffer of a part, which grows with its content. */
class PartBuffer {
  #bytes = new Uint8Array(64 << 10)
  #length = 0

  get isFull(): boolean {
    return this.#length === PART_BYTES
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Adds bytes to the current part. @returns the number of bytes taken */
  add(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, PART_BYTES - this.#length)
    const length = this.#length + taken.length
    if (length > this.#bytes.length) {
      const longer = new Uint8Array(Math.min(PART_BYTES, Math.max(length, 2 * this.#bytes.length)))
      longer.set(this.bytes)
      this.#bytes = longer
    }
    this.#bytes.set(taken, this.#length)
    this.#length = length
    return taken.length
  }
}

/** An upload in progress. */
class Parts {
  readonly #requests: S3Requests
  readonly #key: string
  readonly #id: string
  /** The ETags of the parts in order. */
  readonly #etags: string[] = []
  readonly #sending = new Set<Promise<void>>()
  #count = 0
  #failure: unknown = null

  private constructor(requests: S3Requests, key: string, id: string) {
    this.#requests = requests
    this.#key = key
    this.#id = id
  }

  static async begin(requests: S3Requests, key: string): Promise<Parts> {
    return new Parts(requests, key, await requests.beginUpload(key))
  }

  /** Sends a part once there is room among the parts in progress. */
  async add(bytes: Uint8Array): Promise<void> {
    while (this.#sending.size >= PARTS_AT_ONCE) await Promise.race(this.#sending)
    this.#expectNoFailure()
    const index = this.#count++
    if (index === MAX_PARTS) {
      const url = this.#requests.url(this.#key)
      const most = `${(MAX_PARTS * PART_BYTES) / 2 ** 30} GiB`
      throw new StoreError('TooLarge', `${url}: expected at most ${most} in an object, got more`, { url })
    }
    const sending = this.#requests
      .putPart(this.#key, this.#id, index + 1, bytes)
      .then(etag => {
        this.#etags[index] = etag
      })
      .catch(error => {
        this.#failure ??= error
      })
      .finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  async complete(isNew: boolean): Promise<boolean> {
    await Promise.all(this.#sending)
    this.#expectNoFailure()
    // Some servers ignore the condition, so the key is looked up first.
    const isThere = isNew && (await this.#requests.exists(this.#key))
    const isWritten = !isThere && (await this.#requests.completeUpload(this.#key, this.#id, this.#etags, isNew))
    if (!isWritten) await this.abort()
    return isWritten
  }

  /** Gives up, so that S3 keeps no parts. Its own error is ignored, since an earlier one matters more. */
  async abort(): Promise<void> {
    await Promise.all(this.#sending)
    await this.#requests.abortUpload(this.#key, this.#id).catch(() => {})
  }

  #expectNoFailure(): void {
    if (this.#failure !== null) throw this.#failure
  }
}
