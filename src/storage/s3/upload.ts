/**
 * Objects written as their bytes come, in bounded memory: one request for a short object, and an upload in parts for a
 * long one, which appears when it is complete.
 */

import { StoreError } from '../../base/errors.js'
import { S3Failure } from './errors.js'
import type { S3Requests } from './requests.js'

/** The length of a part, and of the longest object in one request. S3 requires at least 5 MiB. */
export const PART_BYTES = 16 << 20
/** S3's limit of parts. */
const MAX_PARTS = 10_000
/** The number of parts in progress, each of which is held in memory. */
const PARTS_AT_ONCE = 2

/** The length at which the buffer of the first part begins to grow, since most objects are short. */
const FIRST_BYTES = 64 << 10

/** The condition of a request that keeps an object that is already there. */
const IF_NEW = { IfNoneMatch: '*' }

/**
 * Writes an object in one request.
 * @param isNew true to keep an object that is already there
 * @returns whether it was written, and the number of attempts: after a lost answer, the object that is there can be
 * this one
 * @throws StoreError
 */
export async function put(requests: S3Requests, key: string, bytes: Uint8Array, isNew: boolean) {
  let attempts = 0
  const isWritten = await requests.run(key, connection => {
    attempts++
    const object = { ...requests.object(key), Body: bytes, ...(isNew && IF_NEW) }
    return connection.write(isNew, s3 => s3.putObject(object, connection.timeoutFor(bytes)))
  })
  return { isWritten, attempts }
}

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
  let [part, filled] = [new Uint8Array(FIRST_BYTES), 0]
  try {
    for await (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      byteLength += bytes.length
      for (let at = 0; at < bytes.length; ) {
        // What is just as long as a part can still be all.
        if (filled === PART_BYTES) {
          parts ??= await Parts.begin(requests, key)
          await parts.add(part)
          ;[part, filled] = [new Uint8Array(PART_BYTES), 0]
        }
        const taken = bytes.subarray(at, at + PART_BYTES - filled)
        part = withRoom(part, filled + taken.length)
        part.set(taken, filled)
        filled += taken.length
        at += taken.length
      }
    }
    const last = part.subarray(0, filled)
    if (parts === undefined) return (await put(requests, key, last, isNew)).isWritten ? byteLength : null
    await parts.add(last)
    return (await parts.complete(isNew)) ? byteLength : null
  } catch (error) {
    await parts?.abort()
    throw error
  }
}

/** A buffer with that much room and the content of the given one, which is itself if it is long enough. */
function withRoom(part: Uint8Array<ArrayBuffer>, byteLength: number): Uint8Array<ArrayBuffer> {
  if (byteLength <= part.length) return part
  const longer = new Uint8Array(Math.min(PART_BYTES, Math.max(byteLength, 2 * part.length)))
  longer.set(part)
  return longer
}

class Parts {
  readonly #requests: S3Requests
  /** The object and the ID of the upload. */
  readonly #upload: { readonly Bucket: string; readonly Key: string; readonly UploadId: string }
  /** The ETags of the parts in order. */
  readonly #etags: Promise<string>[] = []

  private constructor(requests: S3Requests, key: string, UploadId: string) {
    this.#requests = requests
    this.#upload = { ...requests.object(key), UploadId }
  }

  static async begin(requests: S3Requests, key: string): Promise<Parts> {
    const id = await requests.run(key, async connection => {
      const { UploadId } = await connection.send(s3 => s3.createMultipartUpload(requests.object(key)))
      if (!UploadId) throw new S3Failure('expected an upload with its id, got none', { code: 'NoUploadId' })
      return UploadId
    })
    return new Parts(requests, key, id)
  }

  /** Sends a part once there is room among the parts in progress. @throws the error of an earlier part */
  async add(bytes: Uint8Array): Promise<void> {
    await this.#etags.at(-PARTS_AT_ONCE)
    const { Key } = this.#upload
    if (this.#etags.length === MAX_PARTS) {
      const url = this.#requests.url(Key)
      const most = `${(MAX_PARTS * PART_BYTES) / 2 ** 30} GiB`
      throw new StoreError('TooLarge', `${url}: expected at most ${most} in an object, got more`, { url })
    }
    const part = { ...this.#upload, PartNumber: this.#etags.length + 1, Body: bytes }
    const etag = this.#requests.run(Key, async connection => {
      const { ETag } = await connection.send(s3 => s3.uploadPart(part, connection.timeoutFor(bytes)))
      if (!ETag) throw new S3Failure('expected a part with its ETag, got none', { code: 'NoETag' })
      return ETag
    })
    // It is thrown where it is awaited.
    etag.catch(() => {})
    this.#etags.push(etag)
  }

  /** @returns false if another object is there */
  async complete(isNew: boolean): Promise<boolean> {
    const etags = await Promise.all(this.#etags)
    // Some servers ignore the condition, so the key is looked up first.
    const isThere = isNew && (await this.#requests.exists(this.#upload.Key))
    const isWritten = !isThere && (await this.#complete(etags, isNew))
    if (!isWritten) await this.abort()
    return isWritten
  }

  async #complete(etags: readonly string[], isNew: boolean): Promise<boolean> {
    const { Key } = this.#upload
    const Parts = etags.map((ETag, i) => ({ ETag, PartNumber: i + 1 }))
    const object = { ...this.#upload, MultipartUpload: { Parts }, ...(isNew && IF_NEW) }
    try {
      return await this.#requests.run(Key, connection => {
        return connection.write(isNew, s3 => s3.completeMultipartUpload(object))
      })
    } catch (error) {
      // The attempt before can have made it, and only its answer was lost: then there is no such upload any more.
      const { s3, attempts } = error instanceof StoreError ? error.fields : {}
      if (s3 === 'NoSuchUpload' && Number(attempts) > 1 && (await this.#requests.exists(Key))) return true
      throw error
    }
  }

  /** Gives up, so that S3 keeps no parts. Its own error is ignored, since an earlier one matters more. */
  async abort(): Promise<void> {
    await Promise.allSettled(this.#etags)
    await this.#requests
      .run(this.#upload.Key, connection => connection.send(s3 => s3.abortMultipartUpload(this.#upload)))
      .catch(() => {})
  }
}
