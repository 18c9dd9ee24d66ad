/** A range of a remote file. After a body that broke off, the next request continues from the last received byte. */

import { FormatError } from '../base/errors.js'
import { type Attempts, type Failure, refusable } from './attempts.js'
import type { ReadContext } from './store.js'

/** A range to read, and the receiver of its bytes. */
export interface RangeRead {
  readonly startByte: number
  /** The end of the range; Infinity for the end of the file. */
  readonly endByte: number
  /** The validator that the file must still have. */
  readonly validator?: string | null | undefined
  /** The counter of its requests. Default: getRequests. */
  readonly counter?: 'getRequests' | 'listRequests'
  /** Called for each answer, before its bytes. Its error ends the read. */
  readonly begin?: (answer: RangeAnswer) => void
  /**
   * Receives bytes in order; `at` counts from the start of the read. A chunk is valid only during the call. Its error
   * ends the read.
   */
  readonly take: (chunk: Uint8Array, at: number) => void
}

/** An answer to a request, before its body. */
export interface RangeAnswer {
  /** A value that changes with the file: its ETag, or else its modification time; null if the server sends neither. */
  readonly validator: string | null
  /** The length of the whole file; null if unknown. */
  readonly byteLength: number | null
  /** The offset of the body's first byte. */
  readonly startByte: number
  /**
   * Passes on the body as it comes.
   * @param take returns true when nothing more is wanted
   */
  readonly read: (take: (chunk: Uint8Array) => boolean) => Promise<void>
  /** Gives up an unread body, which would hold its connection for ever. */
  readonly cancel: () => unknown
}

export interface RangeOutcome {
  /** The number of received bytes: fewer than requested only at the end of the file. */
  readonly byteLength: number
  /** The file's validator; null if the file ends before the range, or the server sends none. */
  readonly validator: string | null
}

/** The maker of the requests for a range. */
export interface RangeOpener {
  readonly url: string
  /**
   * Makes one request.
   * @param range the value of its Range header
   * @returns null if the file ends before the range
   */
  open(range: string | undefined, validator: string | null): Promise<RangeAnswer | null>
  /** The failure for an answer that doesn't fit the request. */
  failure(code: 'BadRange' | 'ShortBody', message: string): Failure
  /**
   * The error for a final failure.
   * @param range the Range header of the whole read
   */
  errorOf?(failure: Failure, attempts: number, range: string | undefined): Error
}

/**
 * Reads a range.
 * @throws the opener's error; FormatError `ObjectChanged` if the file has changed since it was listed or first read
 */
export async function readRange(
  { startByte, endByte, validator: known = null, counter = 'getRequests', begin, take }: RangeRead,
  opener: RangeOpener,
  attempts: Attempts,
  context: ReadContext,
): Promise<RangeOutcome> {
  const isWhole = startByte === 0 && endByte === Number.POSITIVE_INFINITY
  let validator = known
  let received = 0
  const rangeFrom = (from: number): string | undefined =>
    isWhole && from === 0 ? undefined : `bytes=${from}-${endByte === Number.POSITIVE_INFINITY ? '' : endByte - 1}`
  const attempt = async (): Promise<RangeOutcome> => {
    const range = rangeFrom(startByte + received)
    for (const counted of context.traffic) counted[counter]++
    const answer = await opener.open(range, validator)
    if (answer === null) return { byteLength: received, validator }
    try {
      validator ??= answer.validator
      if (answer.validator !== null && answer.validator !== validator) throw changedFile(opener.url)
      // Who has never heard of ranges sends all of it.
      let skip = startByte + received - answer.startByte
      if (skip < 0) {
        throw opener.failure('BadRange', `expected ${range}, got bytes from ${answer.startByte} on`)
      }
      refusable(() => begin?.(answer))
      const end = Math.min(endByte, answer.byteLength ?? Number.POSITIVE_INFINITY)
      await answer.read(chunk => {
        for (const counted of context.traffic) counted.receivedBytes += chunk.length
        const skipped = Math.min(skip, chunk.length)
        skip -= skipped
        const wanted = chunk.subarray(skipped, skipped + Math.max(0, end - startByte - received))
        if (wanted.length > 0) refusable(() => take(wanted, received))
        received += wanted.length
        return startByte + received >= end && skipped + wanted.length < chunk.length
      })
      if (end !== Number.POSITIVE_INFINITY && startByte + received < end) {
        throw opener.failure('ShortBody', `expected ${end - startByte} bytes, got ${received}`)
      }
      return { byteLength: received, validator }
    } finally {
      await answer.cancel()
    }
  }
  return attempts.run(context, attempt, (failure, count) =>
    opener.errorOf === undefined ? failure : opener.errorOf(failure, count, rangeFrom(startByte)),
  )
}

/**
 * The error for a file that changed.
 * @param where the URL and other facts about the place
 */
export function changedFile(url: string, where = url, fields: object = {}, cause?: unknown): FormatError {
  const [expected, got] = ['the file that was there at the first read', 'another']
  const message = `${where}: expected ${expected}, got ${got}: it was changed in the meantime`
  return new FormatError('ObjectChanged', message, { ...fields, url, expected, got }, cause)
}
