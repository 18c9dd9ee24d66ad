/** The code of a careful user without trialscan: loops over typed arrays, and protobufjs for the messages. */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { decodeRecord } from './protobufjs.js'

export const NAME = 'plain JS'

/** The number of reductions. */
const REDUCTION_COUNT = 18

/** Consecutive stretches of data. */
export function cut(data: Uint8Array, byteLength: number): Uint8Array[] {
  return Array.from({ length: data.length / byteLength }, (_, i) => data.subarray(i * byteLength, (i + 1) * byteLength))
}

type Elements =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
type View = new (
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
) => Elements & { BYTES_PER_ELEMENT: number }

/** The typed array and the expression that read an element, by dtype. */
const READS: Readonly<Record<string, { view: View & { BYTES_PER_ELEMENT: number }; read?: string; words?: number }>> = {
  float16: { view: Uint16Array, read: 'float16[data[i]]' },
  bfloat16: { view: Uint16Array, read: 'bfloat16[data[i]]' },
  float32: { view: Float32Array },
  float64: { view: Float64Array },
  int8: { view: Int8Array },
  int16: { view: Int16Array },
  int32: { view: Int32Array },
  // Exact to 53 bits only, and much faster than bigints.
  int64: { view: Int32Array, read: 'data[2 * i + 1] * 4294967296 + (data[2 * i] >>> 0)', words: 2 },
  uint8: { view: Uint8Array },
  uint16: { view: Uint16Array },
  uint32: { view: Uint32Array },
  uint64: { view: Uint32Array, read: 'data[2 * i + 1] * 4294967296 + data[2 * i]', words: 2 },
  bool: { view: Uint8Array },
}

export type ReducibleDType = Exclude<
  import('#dist/base/types.js').DType,
  'string' | 'complex64' | 'complex128' | `float8_${string}` | `float4_${string}`
>

/** The values of all float16 and all bfloat16, by their bits. */
export const FLOAT16 = Float32Array.from({ length: 65536 }, (_, bits) => {
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  const sign = bits >> 15 ? -1 : 1
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
})
export const BFLOAT16 = new Float32Array(Uint32Array.from({ length: 65536 }, (_, bits) => bits << 16).buffer)

/**
 * One pass for all 18 numbers. Variances are kept about the first element, which is what keeps them right; a NaN shows
 * in the sums, so the loop need not look for it.
 */
function compileSinglePass<T = Elements>(read: string): (data: T, count: number) => Float64Array {
  const text = `
    return (data, count) => {
      let i = 0
      const shift = ${read}, shiftAbs = Math.abs(shift)
      let min = Infinity, max = -Infinity, minAbs = Infinity, maxAbs = 0, prod = 1
      let s1 = 0, s2 = 0, t1 = 0, t2 = 0, squares = 0
      for (; i < count; i++) {
        const x = ${read}
        const a = Math.abs(x)
        if (x < min) min = x
        if (x > max) max = x
        if (a < minAbs) minAbs = a
        if (a > maxAbs) maxAbs = a
        const d = x - shift, e = a - shiftAbs
        s1 += d
        s2 += d * d
        t1 += e
        t2 += e * e
        squares += x * x
        prod *= x
      }
      const sum = s1 + count * shift, sumAbs = t1 + count * shiftAbs, l2 = Math.sqrt(squares)
      if (sum !== sum) return new Float64Array(${REDUCTION_COUNT}).fill(NaN)
      const variance = (s2 - s1 * s1 / count) / count, varianceAbs = (t2 - t1 * t1 / count) / count
      return Float64Array.of(
        min, max, sum / count, Math.sqrt(variance), variance, sum, prod, sumAbs, l2,
        minAbs, maxAbs, sumAbs / count, Math.sqrt(varianceAbs), varianceAbs, sumAbs, Math.abs(prod), sumAbs, l2,
      )
    }`
  return compile(text)
}

/** The elements of a dtype, as the loop reads them. */
function elementsOf(dtype: ReducibleDType, bytes: Uint8Array): Elements {
  const { view } = READS[dtype]!
  return new view(bytes.buffer, bytes.byteOffset, bytes.length / view.BYTES_PER_ELEMENT)
}

/** All 18 reductions, in the order of REDUCTIONS. */
export function moments(dtype: ReducibleDType, bytes: Uint8Array): () => Float64Array {
  const { read = 'data[i]', words = 1 } = READS[dtype]!
  const pass = compileSinglePass(read)
  const data = elementsOf(dtype, bytes)
  return () => pass(data, data.length / words)
}

/** The moments of 64-bit integers through their typed array, whose elements are bigints. */
export function momentsOfBigInts(dtype: 'int64' | 'uint64', bytes: Uint8Array<ArrayBuffer>): () => Float64Array {
  const pass = compileSinglePass<BigInt64Array | BigUint64Array>('Number(data[i])')
  const { buffer, byteOffset, length } = bytes
  const data = new (dtype === 'int64' ? BigInt64Array : BigUint64Array)(buffer, byteOffset, length / 8)
  return () => pass(data, data.length)
}

/** Mean and std. */
export function meanStd(dtype: ReducibleDType, bytes: Uint8Array): () => Float64Array {
  const pass = compile<(data: Elements) => Float64Array>(`
    return data => {
      const shift = data[0]
      let s = 0, q = 0
      for (let i = 0; i < data.length; i++) {
        const d = data[i] - shift
        s += d
        q += d * d
      }
      return Float64Array.of(shift + s / data.length, Math.sqrt((q - s * s / data.length) / data.length))
    }`)
  const data = elementsOf(dtype, bytes)
  return () => pass(data)
}

/** Least and greatest; a NaN makes both NaN. */
export function minMax(dtype: ReducibleDType, bytes: Uint8Array): () => Float64Array {
  const pass = compile<(data: Elements) => Float64Array>(`
    return data => {
      let min = Infinity, max = -Infinity
      for (let i = 0; i < data.length; i++) {
        const x = data[i]
        if (x < min) min = x
        if (x > max) max = x
        if (x !== x) return Float64Array.of(x, x)
      }
      return Float64Array.of(min, max)
    }`)
  const data = elementsOf(dtype, bytes)
  return () => pass(data)
}

let compiled = 0

/** A function of its own: V8 slows down one that has seen many kinds of arrays, and equal texts are one function. */
function compile<F>(text: string): F {
  return new Function('float16', 'bfloat16', `// ${compiled++}\n${text}`)(FLOAT16, BFLOAT16)
}

/** The number of pairs that are not close, in float32 arithmetic as numpy's. */
export function allclose(a: Float32Array, b: Float32Array, rtol: number, atol: number): () => number {
  const { fround, abs } = Math
  const relative = fround(rtol)
  const absolute = fround(atol)
  return () => {
    let apart = 0
    for (let i = 0; i < a.length; i++) {
      const x = a[i]!
      const y = b[i]!
      const size = abs(y)
      const within = abs(fround(x - y)) <= fround(absolute + fround(relative * size)) && size !== Infinity
      if (!within && x !== y) apart++
    }
    return apart
  }
}

interface IndexJson {
  readonly meta: { readonly event_file_name: string }
  readonly tensor_payload: readonly { readonly start_idx: number }[]
}

/** All 18 reductions of every tensor of a trial: whole files, protobufjs, loops. */
export function scan(dir: string): () => Float64Array {
  const pass = compileSinglePass('data[i]')
  return () => {
    const numbers: number[] = []
    for (const path of filesUnder(join(dir, 'index'))) {
      const { meta, tensor_payload } = JSON.parse(readFileSync(path, 'utf8')) as IndexJson
      const file = readFileSync(join(dir, meta.event_file_name))
      const view = new DataView(file.buffer, file.byteOffset, file.length)
      for (const { start_idx } of tensor_payload) {
        const { data } = decodeRecord(file, view, start_idx)
        numbers.push(...pass(data, data.length))
      }
    }
    return Float64Array.from(numbers)
  }
}

/** Only reads the event files, a mebibyte at a time into one buffer: nobody can be faster on one thread. */
export function read(dir: string): () => number {
  const buffer = new Uint8Array(1 << 20)
  return () => {
    let byteLength = 0
    for (const path of filesUnder(join(dir, 'events'))) {
      const file = openSync(path, 'r')
      for (;;) {
        const got = readSync(file, buffer, 0, buffer.length, null)
        byteLength += got
        if (got === 0) break
      }
      closeSync(file)
    }
    return byteLength
  }
}

function filesUnder(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}
