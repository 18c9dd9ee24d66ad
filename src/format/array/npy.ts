/** Reads numpy's .npy files (numpy.lib.format): magic, version, a header in Python's syntax, the elements. */

import type { DType } from '../../base/types.js'
import { type ArraySource, arrayFault, bytesShown, countOf, type FileArray, MAX_ARRAY_BYTES } from './source.js'

const MAGIC = '\x93NUMPY'
const PREFIX_BYTES = 12
/** The limit for a header: numpy writes about a hundred bytes, and reads ten thousand. */
const MAX_HEADER_BYTES = 1 << 16
const MAX_KIND_LENGTH = 60
/** numpy's own limit of dimensions. */
const MAX_DIMENSIONS = 64

/** Dtypes by numpy's names for them, without the byte order. */
export const KINDS: Readonly<Record<string, DType>> = {
  b1: 'bool',
  i1: 'int8',
  u1: 'uint8',
  i2: 'int16',
  u2: 'uint16',
  i4: 'int32',
  u4: 'uint32',
  i8: 'int64',
  u8: 'uint64',
  f2: 'float16',
  f4: 'float32',
  f8: 'float64',
  c8: 'complex64',
  c16: 'complex128',
}

/** The size of numpy's elements that store the bits of floats which numpy lacks. */
const BITS_IN: Partial<Record<DType, number>> = {
  bfloat16: 2,
  float8_e4m3fn: 1,
  float8_e5m2: 1,
  float8_e4m3fnuz: 1,
  float8_e5m2fnuz: 1,
  float8_e8m0fnu: 1,
  float4_e2m1fn: 1,
}

export interface NpyHeader {
  /** numpy's name for the elements, without the byte order: `f4`, `M8[ns]`; for records the list of their fields, cut short. */
  readonly kind: string
  readonly isBigEndian: boolean
  readonly isFortran: boolean
  readonly shape: readonly number[]
  /** The start of the elements. */
  readonly start: number
}

/** True if a file begins with the magic of .npy. */
export function isNpy(head: Uint8Array): boolean {
  return head.length >= 6 && [...MAGIC].every((char, i) => head[i] === char.charCodeAt(0))
}

/** The approximate memory of a short text, in bytes. */
const TEXT_BYTES = 64

/**
 * Reads a file's array.
 * @param as the dtype of elements that numpy has no name for: bfloat16, whose bits are stored as `V2` or `u2`, and narrower floats,
 *   stored as `V1` or `u1`; float4 has two elements in each
 * @throws FormatError `BadArrayFile` for anything inconsistent; StoreError
 */
export function readNpy(source: ArraySource, as?: DType): FileArray {
  const { kind, isBigEndian, isFortran, shape, start } = npyHeader(source)
  const { url, byteLength, maxArrayBytes = MAX_ARRAY_BYTES } = source
  const textLength = /^[US](\d{1,9})$/.exec(kind)
  const dtype = isBitsOf(as, kind) ? as : textLength ? 'string' : KINDS[kind]
  if (dtype === undefined) {
    const named = kind === 'V2' ? 'bfloat16' : kind === 'V1' ? 'float8_e4m3fn (or another of 8 bits)' : null
    const hint = named === null ? '' : `; with dtype ${named} said beside it, it is read as that`
    throw arrayFault(url, 0, `elements of ${Object.keys(KINDS).join(', ')}, U or S`, `${JSON.stringify(kind)}${hint}`)
  }
  const size = textLength ? Number(textLength[1]) * (kind[0] === 'U' ? 4 : 1) : Number(kind.slice(1))
  const count = countOf(shape)
  const length = count === null ? Number.NaN : count * size
  if (!(length === byteLength - start)) {
    const wanted = `${Number.isNaN(length) ? 'elements that can be counted' : `${length} bytes of elements`}, as shape [${shape}] and ${kind} say`
    throw arrayFault(url, start, wanted, `${byteLength - start}`)
  }
  if (length > maxArrayBytes) {
    throw arrayFault(url, start, `at most ${maxArrayBytes} bytes of elements`, `${length}`)
  }
  const stride = isFortran && shape.length > 1 ? { stride: fortranStride(shape) } : {}
  // A text takes much more memory than its bytes, of which it may have none.
  const mostTexts = Math.floor(maxArrayBytes / TEXT_BYTES)
  if (textLength && count! > mostTexts) throw arrayFault(url, start, `at most ${mostTexts} texts`, `${count}`)
  const bytes = source.read(start, length)
  if (textLength) {
    const texts = textsOf(url, start, bytes, size, count!, kind[0] === 'U', isBigEndian)
    return { dtype, shape, data: isFortran ? inCOrder(texts, shape) : texts }
  }
  const part = dtype.startsWith('complex') ? size / 2 : size
  if (dtype === 'float4_e2m1fn') return { dtype, shape: ofHalves(shape, isFortran, url), data: bytes }
  return { dtype, shape, data: isBigEndian ? swapped(bytes, part) : bytes, ...stride }
}

/** True if elements of a kind are the bits of a float type that numpy lacks. */
function isBitsOf(as: DType | undefined, kind: string): as is DType {
  const size = as && BITS_IN[as]
  return size !== undefined && (kind === `V${size}` || kind === `u${size}`)
}

/** The shape of elements that share bytes in pairs, from the shape of the bytes. */
function ofHalves(shape: readonly number[], isFortran: boolean, url: string): readonly number[] {
  const last = shape.at(-1)
  if (last === undefined || (isFortran && shape.length > 1)) {
    const order = isFortran ? 'Fortran' : 'C'
    throw arrayFault(url, 0, 'bytes of float4 along an axis, in C order', `shape [${shape}] in ${order} order`)
  }
  return [...shape.slice(0, -1), 2 * last]
}

/** @throws FormatError `BadArrayFile`; StoreError */
export function npyHeader({ url, byteLength, read }: ArraySource): NpyHeader {
  const prefix = read(0, Math.min(PREFIX_BYTES, byteLength))
  if (!isNpy(prefix)) throw arrayFault(url, 0, 'a .npy file, which begins with \\x93NUMPY', bytesShown(prefix))
  const version = prefix[6] ?? 0
  if (version < 1 || version > 3) throw arrayFault(url, 6, 'version 1, 2 or 3', `${version}`)
  const start = version === 1 ? 10 : 12
  if (byteLength < start) throw arrayFault(url, byteLength, 'the length of the header', 'the end of the file')
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.length)
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true)
  if (length > MAX_HEADER_BYTES) throw arrayFault(url, 8, `a header of at most ${MAX_HEADER_BYTES} bytes`, `${length}`)
  if (start + length > byteLength) {
    throw arrayFault(url, 8, `a header within the ${byteLength} bytes of the file`, `one of ${length}`)
  }
  const text = Buffer.from(read(start, length)).toString(version === 3 ? 'utf8' : 'latin1')
  return { ...parsedHeader(url, start, text), start: start + length }
}

const ENTRY =
  /\s*(['"])(descr|fortran_order|shape)\1\s*:\s*(?:(['"])([^'"\\]*)\3|(True|False)|\(([\d\sL,]*)\)|(\[.*\]))\s*(,|(?=\}))/sy

/** Parses the dictionary that Python writes; nothing else is accepted, and nothing is evaluated. */
function parsedHeader(url: string, start: number, text: string): Omit<NpyHeader, 'start'> {
  const wrong = (at: number): never => {
    const expected = "{'descr': …, 'fortran_order': …, 'shape': …} of plain elements"
    throw arrayFault(url, start + at, expected, JSON.stringify(text.slice(at, at + 60)))
  }
  const opening = /^\s*\{/.exec(text)
  if (opening === null) return wrong(0)
  const fields = new Map<string, string>()
  let at = opening[0].length
  while (!/^\s*\}\s*$/.test(text.slice(at))) {
    ENTRY.lastIndex = at
    const entry = ENTRY.exec(text)
    if (entry === null || fields.has(entry[2]!)) return wrong(at)
    const value = { descr: entry[4] ?? entry[7], fortran_order: entry[5], shape: entry[6] }[entry[2]!]
    if (value === undefined) return wrong(at)
    fields.set(entry[2]!, value)
    at = ENTRY.lastIndex
  }
  if (fields.size < 3) return wrong(0)
  const descr = /^([<>=|]?)([a-zA-Z]\d*(?:\[[\w/]+\])?|\[.*\])$/s.exec(fields.get('descr')!)
  const shape = /^\s*(?:\d+L?\s*,\s*)*(?:\d+L?\s*)?$/.test(fields.get('shape')!)
    ? (fields.get('shape')!.match(/\d+/g) ?? []).map(Number)
    : null
  if (descr === null || shape === null || shape.length > MAX_DIMENSIONS || !shape.every(Number.isSafeInteger)) {
    return wrong(0)
  }
  return {
    kind: descr[2]!.slice(0, MAX_KIND_LENGTH),
    isBigEndian: descr[1] === '>',
    isFortran: fields.get('fortran_order') === 'True',
    shape,
  }
}

/** The strides of elements in Fortran's order. */
export function fortranStride(shape: readonly number[]): readonly number[] {
  let stride = 1
  return shape.map(size => {
    const ownStride = stride
    stride *= size
    return ownStride
  })
}

function inCOrder(texts: readonly string[], shape: readonly number[]): readonly string[] {
  const stride = fortranStride(shape)
  return texts.map((_, i) => {
    let rest = i
    let at = 0
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at += (rest % shape[axis]!) * stride[axis]!
      rest = Math.floor(rest / shape[axis]!)
    }
    return texts[at]!
  })
}

/** A copy with the bytes of each number reversed. */
function swapped(bytes: Uint8Array, size: number): Uint8Array {
  const copy = Buffer.from(bytes)
  if (size === 2) copy.swap16()
  else if (size === 4) copy.swap32()
  else if (size === 8) copy.swap64()
  return new Uint8Array(copy.buffer, copy.byteOffset, copy.length)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Texts of a fixed length, padded with zeros. */
function textsOf(
  url: string,
  start: number,
  bytes: Uint8Array,
  size: number,
  count: number,
  isUnicode: boolean,
  isBigEndian: boolean,
): readonly string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return Array.from({ length: count }, (_, i) => {
    const from = i * size
    try {
      if (!isUnicode) return utf8.decode(bytes.subarray(from, from + size)).replace(/\0+$/, '')
      let text = ''
      for (let at = from; at < from + size; at += 4) text += String.fromCodePoint(view.getUint32(at, !isBigEndian))
      const trimmed = text.replace(/\0+$/, '')
      if (/\p{Surrogate}/u.test(trimmed)) throw new RangeError()
      return trimmed
    } catch {
      throw arrayFault(url, start + from, isUnicode ? 'a text in UTF-32' : 'a text in UTF-8', 'other bytes')
    }
  })
}
