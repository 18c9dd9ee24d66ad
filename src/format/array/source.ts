/** Sources of array files, and errors about them. */

import { FormatError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'

/** A file, or bytes in memory. */
export interface ArraySource {
  /** The name in errors. */
  readonly url: string
  readonly byteLength: number
  /** The limit for the size of an array. Default: MAX_ARRAY_BYTES. */
  readonly maxArrayBytes?: number
  /** Reads exactly these bytes, which the caller may change. @throws StoreError */
  read(startByte: number, byteLength: number): Uint8Array
}

/** An array of a file: its elements as little-endian bytes, or its texts. */
export interface FileArray {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly data: Uint8Array | readonly string[]
  /** The distance of neighbours along each axis, in elements. Default: C order. */
  readonly stride?: readonly number[]
}

/** An array of a file by name, or its error, which affects no other array. */
export type NamedArray = readonly [name: string, array: FileArray | FormatError]

/** The limit for an array, which is completely in memory. */
export const MAX_ARRAY_BYTES = 2 ** 30

/** @param offset of the fault in the file */
export function arrayFault(url: string, offset: number, expected: string, got: string): FormatError {
  const message = `${url}, byte ${offset}: expected ${expected}, got ${got}`
  return new FormatError('BadArrayFile', message, { url, offset, expected, got })
}

/** Bytes in memory as a source, without a copy. */
export function sourceOf(url: string, bytes: Uint8Array, maxArrayBytes = MAX_ARRAY_BYTES): ArraySource {
  return {
    url,
    byteLength: bytes.length,
    maxArrayBytes,
    read: (startByte, byteLength) => bytes.subarray(startByte, startByte + byteLength),
  }
}

/** The number of elements of a shape; null if it is beyond 2^53. */
export function countOf(shape: readonly number[]): number | null {
  const count = shape.reduce((product, size) => product * size, 1)
  // A product of safe factors that passes 2^53 on the way is safe again only if a factor is 0.
  return Number.isSafeInteger(count) ? count : null
}

/** Bytes of a file for an error message, shortened to a readable length. */
export function bytesShown(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes.subarray(0, 40)).toString('latin1'))
}
