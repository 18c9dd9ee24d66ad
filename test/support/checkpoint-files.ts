/** Files of checkpoints, read through their formats and by a naive gathering of their blocks. */

import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { FORMATS } from '#dist/format/checkpoint/formats.js'
import {
  HEAD_BYTES,
  type RangedFile,
  type StoredTensor,
  type Surroundings,
  type TensorFileContents,
} from '#dist/format/checkpoint/stored-tensor.js'
import { StoreError } from '#dist/index.js'
import { ROOT } from './golden.js'

export const FIXTURES = join(ROOT, 'fixtures/checkpoints')
const SHARED = join(ROOT, '../shared/checkpoints')
/** Checkpoints that lie beside the project; null: they are not there. */
export const SHARED_CHECKPOINTS = existsSync(SHARED) ? SHARED : null

/** Bytes as a file. */
export function fileOf(bytes: Uint8Array, path = 'file.pt'): RangedFile & { reads: number } {
  return {
    path,
    url: path,
    byteLength: bytes.length,
    reads: 0,
    async read(startByte, byteLength) {
      this.reads++
      return bytes.slice(startByte, startByte + byteLength)
    },
  }
}

function fileAt(root: string, path: string): RangedFile {
  const url = join(root, path)
  if (!existsSync(url)) throw new StoreError('NotFound', `${url}: no such file`, { url })
  const descriptor = openSync(url, 'r')
  const byteLength = fstatSync(descriptor).size
  closeSync(descriptor)
  return {
    path,
    url,
    byteLength,
    async read(startByte, length) {
      const bytes = new Uint8Array(length)
      const file = openSync(url, 'r')
      try {
        return bytes.subarray(0, readSync(file, bytes, 0, length, startByte))
      } finally {
        closeSync(file)
      }
    },
  }
}

/** What a file below a directory holds. */
export async function contentsOf(root: string, path: string): Promise<TensorFileContents> {
  const file = fileAt(root, path)
  const head = await file.read(0, HEAD_BYTES)
  const format = FORMATS.find(
    format => format.byName(path) === 'yes' || (format.byName(path) === 'perhaps' && format.matches(head)),
  )
  if (format === undefined) throw new Error(`${path} is of no format`)
  return format.read(file, aroundOf(root))
}

export function aroundOf(root: string): Surroundings {
  const paths = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort()
  return { paths, open: async path => fileAt(root, path) }
}

const SIZES: Readonly<Record<string, number>> = { float64: 8, int64: 8, uint64: 8, complex64: 8, complex128: 16 }

export function sizeOf(dtype: string): number {
  const known = SIZES[dtype]
  if (known !== undefined) return known
  if (/^(?:float8|bool|u?int8)/.test(dtype)) return 1
  return /16$/.test(dtype) ? 2 : 4
}

/** The elements of a tensor in C order, gathered one by one. */
export function bytesOfTensor(
  { dtype, shape, blocks, data }: StoredTensor,
  contentOf: (path: string) => Uint8Array,
): Uint8Array {
  if (data !== undefined) return data
  const size = sizeOf(dtype)
  const count = shape.reduce((product, length) => product * length, 1)
  const bytes = new Uint8Array(count * size)
  const filled = new Uint8Array(count)
  for (const { file, start, offsets = shape.map(() => 0), shape: own = shape, strides = inOrder(own) } of blocks) {
    const content = contentOf(file)
    const whole = inOrder(shape)
    const index = own.map(() => 0)
    const elements = own.reduce((product, length) => product * length, 1)
    for (let i = 0; i < elements; i++) {
      const from = start + size * index.reduce((sum, at, axis) => sum + at * strides[axis]!, 0)
      const to = index.reduce((sum, at, axis) => sum + (at + offsets[axis]!) * whole[axis]!, 0)
      bytes.set(content.subarray(from, from + size), to * size)
      filled[to]!++
      for (let axis = own.length - 1; axis >= 0 && ++index[axis]! === own[axis]; axis--) index[axis] = 0
    }
  }
  if (!filled.every(times => times === 1)) throw new Error('blocks that do not cover the tensor once')
  return bytes
}

function inOrder(shape: readonly number[]): number[] {
  return shape.map((_, axis) => shape.slice(axis + 1).reduce((product, length) => product * length, 1))
}

/** Elements as numbers, by way of a table for those that JavaScript has no array of. */
export function numbersOf(dtype: string, bytes: Uint8Array): readonly number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const size = sizeOf(dtype)
  return Array.from({ length: bytes.length / size }, (_, i) => numberAt(dtype, view, i * size))
}

function numberAt(dtype: string, view: DataView, at: number): number {
  switch (dtype) {
    case 'float64':
      return view.getFloat64(at, true)
    case 'float32':
      return view.getFloat32(at, true)
    case 'bfloat16': {
      const wide = new DataView(new ArrayBuffer(4))
      wide.setUint16(0, view.getUint16(at, true))
      return wide.getFloat32(0)
    }
    case 'float16':
      return small(view.getUint16(at, true), 5, 10, 15, 'ieee')
    case 'float8_e4m3fn':
      return small(view.getUint8(at), 4, 3, 7, 'fn')
    case 'float8_e5m2':
      return small(view.getUint8(at), 5, 2, 15, 'ieee')
    case 'float8_e4m3fnuz':
      return small(view.getUint8(at), 4, 3, 8, 'fnuz')
    case 'int64':
      return Number(view.getBigInt64(at, true))
    case 'uint64':
      return Number(view.getBigUint64(at, true))
    case 'int32':
      return view.getInt32(at, true)
    case 'uint32':
      return view.getUint32(at, true)
    case 'int16':
      return view.getInt16(at, true)
    case 'uint16':
      return view.getUint16(at, true)
    case 'int8':
      return view.getInt8(at)
    case 'uint8':
    case 'bool':
      return view.getUint8(at)
    default:
      return Number.NaN
  }
}

/** A float of few bits. */
function small(bits: number, exponentBits: number, digits: number, bias: number, kind: 'ieee' | 'fn' | 'fnuz'): number {
  const sign = bits >> (exponentBits + digits) ? -1 : 1
  const exponent = (bits >> digits) & (2 ** exponentBits - 1)
  const digit = bits & (2 ** digits - 1)
  const isTop = exponent === 2 ** exponentBits - 1
  if (kind === 'ieee' && isTop) return digit === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  if (kind === 'fn' && isTop && digit === 2 ** digits - 1) return Number.NaN
  if (kind === 'fnuz' && sign < 0 && exponent === 0 && digit === 0) return Number.NaN
  return exponent === 0
    ? sign * digit * 2 ** (1 - bias - digits)
    : sign * (1 + digit / 2 ** digits) * 2 ** (exponent - bias)
}

/** What a golden answer says of a tensor. */
export interface GoldenTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly nan_count?: number
  readonly min?: number | string
  readonly max?: number | string
  readonly mean?: number | string
  readonly l2?: number | string
  readonly first?: readonly (number | string)[]
}

/** What such an answer would say of numbers. */
export function answerOf(numbers: readonly number[]): Omit<GoldenTensor, 'dtype' | 'shape'> {
  const hasNaN = numbers.some(Number.isNaN)
  const sum = numbers.reduce((total, x) => total + x, 0)
  return {
    nan_count: numbers.filter(Number.isNaN).length,
    min: hasNaN ? 'NaN' : numbers.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    max: hasNaN ? 'NaN' : numbers.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
    mean: hasNaN ? 'NaN' : sum / numbers.length,
    l2: hasNaN ? 'NaN' : Math.sqrt(numbers.reduce((total, x) => total + x * x, 0)),
  }
}

export function golden<T = Readonly<Record<string, GoldenTensor>>>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8')) as T
}

export function readContent(root: string): (path: string) => Uint8Array {
  return path => readFileSync(join(root, path))
}
