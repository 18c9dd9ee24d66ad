/** Synchronous readers over files that answer later: a missing range is fetched, and the reader starts again. */

import type { ArraySource } from '../array/source.js'
import type { RangedFile } from './stored-tensor.js'

/** The least number of bytes that are fetched: the next range often lies behind the first. */
const FETCHED_BYTES = 4096
/** The largest number of ranges that a reader may fetch: more than the reader of any header needs. */
const MAX_RANGES = 64

class MissingRange extends Error {
  readonly startByte: number
  readonly byteLength: number

  constructor(startByte: number, byteLength: number) {
    super()
    this.startByte = startByte
    this.byteLength = byteLength
  }
}

/**
 * Runs `work` until it has all the ranges it reads; it must read the same ones each time.
 * @returns its result
 * @throws what `work` throws; StoreError
 */
export async function withRanges<T>(file: RangedFile, work: (source: ArraySource) => T): Promise<T> {
  const { url, byteLength } = file
  const ranges: { readonly startByte: number; readonly bytes: Uint8Array }[] = []
  const source: ArraySource = {
    url,
    byteLength,
    read(startByte, length) {
      for (const { startByte: from, bytes } of ranges) {
        if (from <= startByte && startByte + length <= from + bytes.length) {
          return bytes.subarray(startByte - from, startByte - from + length)
        }
      }
      throw new MissingRange(startByte, length)
    },
  }
  for (;;) {
    try {
      return work(source)
    } catch (error) {
      if (!(error instanceof MissingRange) || ranges.length === MAX_RANGES) throw error
      const { startByte } = error
      const length = Math.max(error.byteLength, Math.min(FETCHED_BYTES, byteLength - startByte))
      const bytes = await file.read(startByte, length)
      // A file that shrinks meanwhile is one of zeros behind its end: its reader finds nothing there.
      if (bytes.length < error.byteLength) {
        const padded = new Uint8Array(error.byteLength)
        padded.set(bytes)
        ranges.push({ startByte, bytes: padded })
      } else ranges.push({ startByte, bytes })
    }
  }
}
