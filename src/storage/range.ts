/** A range of a file behind requests: a body that broke off goes on from the last byte that came. */

import { FormatError } from '../base/errors.js'
import { type Attempts, type Failure, refusable } from './attempts.js'
import type { ReadContext } from './store.js'

/** A range to be read, and the receiver of its bytes. */
export interface RangeRead {
  readonly startByte: number
  /** Infinity: up to the end of the file. */
  readonly endByte: number
  /** The file must still be this one. */
  readonly validator?: string | null | undefined
  /** The counter of its requests. Default: getRequests. */
  readonly counter?: 'getRequests' | 'listRequests'
  /** Called for each answer, before its bytes. What it throws ends the read. */
  readonly begin?: (answer: RangeAnswer) => void
  /** Takes bytes, in order; `at` counts from the read's start. A chunk may be valid during the call only. What it throws ends the read. */
  readonly take: (chunk: Uint8Array, at: number) => void
}

/** An answer to a request, whose body comes next. */
export interface RangeAnswer {
  /** A value that changes with the file: its ETag or, without one, its modification time; null if the server sends neither. */
  readonly validator: string | null
  /** The length of the whole file; null if the answer doesn't tell. */
  readonly byteLength: number | null
  /** The first byte that comes. */
  readonly startByte: number
  /** Hands out the body as it comes. @param take true: that was all that is wanted */
  readonly read: (take: (chunk: Uint8Array) => boolean) => Promise<void>
  /** Gives up what nobody has read: an open body would hold its connection for ever. */
  readonly cancel: () => unknown
}

/** The facts learned by a read. */
export interface RangeOutcome {
  /** Bytes that came: fewer than asked for only at the end of the file. */
  readonly byteLength: number
  /** Null where the file ends before the range begins, or the server sends none. */
  readonly validator: string | null
}

/** The maker of the requests for a range. */
export interface RangeOpener {
  readonly url: string
  /** Makes one request. @param range the value of its Range header @returns null: the file ends before it */
  open(range: string | undefined, validator: string | null): Promise<RangeAnswer | null>
  /** The failure for an answer that is another than was asked for. */
  failure(code: 'BadRange' | 'ShortBody', message: string): Failure
  /** The error for a failure that is final. @param range the value of the Range header of all of the read */
  errorOf?(failure: Failure, attempts: number, range: string | undefined): Error
}

/** @throws what the opener throws; FormatError `ObjectChanged` if the file is not the one it was */
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

/** @param where the URL, and what else tells the place */
export function changedFile(url: string, where = url, fields: object = {}, cause?: unknown): FormatError {
  const [expected, got] = ['the file that was there at the first read', 'another']
  const message = `${where}: expected ${expected}, got ${got}: it was changed in the meantime`
  return new FormatError('ObjectChanged', message, { ...fields, url, expected, got }, cause)
}
