/** Writes a tensor as numpy's .npy file: magic, version, a header in Python's syntax padded to 64 bytes, the elements. */

import { expectArgument } from '../base/arguments.js'
import { UsageError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import type { TensorData } from '../scan/job/tensor/data.js'

const DESCR: Readonly<Record<Exclude<DType, 'string'>, string>> = {
  float16: '<f2',
  // numpy has no bfloat16; widening it is exact.
  bfloat16: '<f4',
  // numpy has no narrower floats; their bits are written.
  float8_e4m3fn: '|u1',
  float8_e5m2: '|u1',
  float8_e4m3fnuz: '|u1',
  float8_e5m2fnuz: '|u1',
  float8_e8m0fnu: '|u1',
  float4_e2m1fn: '|u1',
  float32: '<f4',
  float64: '<f8',
  int8: '|i1',
  int16: '<i2',
  int32: '<i4',
  int64: '<i8',
  uint8: '|u1',
  uint16: '<u2',
  uint32: '<u4',
  uint64: '<u8',
  bool: '|b1',
  complex64: '<c8',
  complex128: '<c16',
}

/** The size limit for strings: numpy stores every string at the length of the longest. */
const MAX_STRING_BYTES = 2 ** 32

/** Yields the bytes of the file, in pieces. */
export function* npyChunks(value: TensorData): Generator<Uint8Array> {
  expectArgument('npyChunks', 'value', 'the value of a tensor', value, Array.isArray(value?.shape))
  const { dtype, shape, data, bytes } = value
  if (dtype === 'string') {
    yield* stringChunks(data as readonly string[], shape)
    return
  }
  yield npyHeader(DESCR[dtype], dtype === 'float4_e2m1fn' ? shapeOfBytes(shape) : shape)
  // numpy has no bfloat16, and allows only 0 and 1 for bool.
  if (dtype !== 'bfloat16' && dtype !== 'bool') yield bytes
  else {
    const { buffer, byteOffset, byteLength } = data as Float32Array | Uint8Array
    yield new Uint8Array(buffer, byteOffset, byteLength)
  }
}

/** The shape of the bytes of elements of which two share a byte. */
function shapeOfBytes(shape: readonly number[]): readonly number[] {
  const last = shape.at(-1) ?? 1
  if (last % 2 === 0) return [...shape.slice(0, -1), last / 2]
  return [Math.ceil(shape.reduce((product, size) => product * size, 1) / 2)]
}

/** The header: version 1.0, or 2.0 if its length doesn't fit 16 bits. */
export function npyHeader(descr: string, shape: readonly number[]): Uint8Array {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`
  const version = text.length + 64 > 0xffff ? 2 : 1
  const prefix = version === 1 ? 10 : 12
  const total = Math.ceil((prefix + text.length + 1) / 64) * 64
  const header = Buffer.alloc(total, ' ')
  header.write('\x93NUMPY', 'latin1')
  header[6] = version
  header[7] = 0
  if (version === 1) header.writeUInt16LE(total - prefix, 8)
  else header.writeUInt32LE(total - prefix, 8)
  header.write(text, prefix, 'latin1')
  header[total - 1] = 0x0a
  return header
}

function* stringChunks(strings: readonly string[], shape: readonly number[]): Generator<Uint8Array> {
  // numpy has no strings of length zero.
  let length = 1
  for (const text of strings) length = Math.max(length, codePoints(text))
  if (length * 4 * strings.length > MAX_STRING_BYTES) {
    const size = `${strings.length} strings of up to ${length} characters`
    throw new UsageError(`expected strings that fit in 4 GiB as numpy stores them, got ${size}`)
  }
  yield npyHeader(`<U${length}`, shape)
  for (const text of strings) {
    const chunk = Buffer.alloc(length * 4)
    let at = 0
    for (const character of text) at = chunk.writeUInt32LE(character.codePointAt(0)!, at)
    yield chunk
  }
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
