/** Arrays and scalars of numpy in a pickle, and the places of their bytes. */

import { fortranStride, KINDS } from '../../array/npy.js'
import { type Handle, KIND, type Pickle } from '../pickle/tape.js'
import { type ElementType, elementTypeOf } from './storage.js'

export interface NumpyArray {
  readonly type: ElementType
  readonly shape: readonly number[]
  /** Default: C order. */
  readonly strides?: readonly number[]
  /** The bytes, or the text that protocol 2 has in their place: a character a byte. */
  readonly content: Handle
}

/** numpy itself has no more. */
const MAX_DIMENSIONS = 64
/** numpy's functions that make an array or a scalar, before numpy 2 and since. */
const MAKERS = /^numpy\._?core\.(?:multiarray\.(_reconstruct|scalar)|numeric\.(_frombuffer))$/

function makerOf(pickle: Pickle, handle: Handle): string | undefined {
  const [, multiarray, numeric] = MAKERS.exec(pickle.calleeName(handle) ?? '') ?? []
  return multiarray ?? numeric
}

/** True for an array of numbers. An array of texts or objects is a value like any other. */
export function isNumpyArray(pickle: Pickle, handle: Handle): boolean {
  const maker = makerOf(pickle, handle)
  if (maker === undefined || maker === 'scalar') return false
  const list = partsOf(pickle, handle, maker)
  return list === undefined || elementTypeAt(pickle, list.dtype) !== undefined
}

interface Parts {
  readonly content: Handle
  readonly dtype: Handle
  readonly shape: Handle
  readonly order: Handle
  readonly axes?: Handle
}

/**
 * The parts of an array: arguments of `_frombuffer` (bytes, dtype, shape, order; since numpy 2.3 perhaps the order of axes),
 * or the state of `_reconstruct` (version, shape, dtype, Fortran order, bytes).
 */
function partsOf(pickle: Pickle, handle: Handle, maker: string | undefined): Parts | undefined {
  const isBuffer = maker === '_frombuffer'
  const list = pickle.part(handle, isBuffer ? 'arguments' : 'state')
  if (list === undefined || !pickle.isSequence(list)) return undefined
  const size = pickle.size(list)
  if (size !== 5 && !(isBuffer && size === 4)) return undefined
  const item = (index: number) => pickle.link(list, index)
  if (!isBuffer) return { content: item(4), dtype: item(2), shape: item(1), order: item(3) }
  const parts = { content: item(0), dtype: item(1), shape: item(2), order: item(3) }
  return size === 5 ? { ...parts, axes: item(4) } : parts
}

/** An array; a text: why it can't be read. */
export function numpyArrayAt(pickle: Pickle, handle: Handle): NumpyArray | string {
  const parts = partsOf(pickle, handle, makerOf(pickle, handle))
  const type = parts && elementTypeAt(pickle, parts.dtype)
  const shape = parts && shapeAt(pickle, parts.shape)
  const content = parts && contentOf(pickle, parts.content)
  if (parts === undefined || type === undefined || shape === undefined || content === undefined) {
    return 'an array of numpy without dtype, shape and elements'
  }
  if (isBigEndian(pickle, parts.dtype) && type.byteLength > 1) return 'an array of numpy, big-endian'
  const order = pickle.text(parts.order)
  if (order === 'K') return permuted(pickle, { type, shape, content }, parts.axes)
  const isFortran = (pickle.kind(parts.order) === KIND.true || order === 'F') && shape.length > 1
  return { type, shape, ...(isFortran && { strides: fortranStride(shape) }), content }
}

/** An array in C order whose axes are put in another order: `array.transpose(axes)`. */
function permuted(
  pickle: Pickle,
  { type, shape, content }: NumpyArray,
  handle: Handle | undefined,
): NumpyArray | string {
  const axes = handle === undefined ? undefined : shapeAt(pickle, handle)
  if (axes?.length !== shape.length || !shape.every((_, axis) => axes.includes(axis))) {
    return 'an array of numpy in an unknown order of axes'
  }
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1))
  return { type, shape: axes.map(axis => shape[axis]!), strides: axes.map(axis => strides[axis]!), content }
}

/** A scalar as a number or a truth value; undefined: it is none, or none that can be read. */
export function numpyScalarAt(pickle: Pickle, handle: Handle): number | bigint | boolean | undefined {
  if (makerOf(pickle, handle) !== 'scalar') return undefined
  const [dtype, value] = [pickle.argument(handle, 0), pickle.argument(handle, 1)]
  const type = dtype === undefined ? undefined : elementTypeAt(pickle, dtype)
  const content = value === undefined ? undefined : contentOf(pickle, value)
  if (type === undefined || content === undefined || isBigEndian(pickle, dtype!)) return undefined
  const bytes = numpyBytes(pickle, content)
  if (bytes?.length !== type.byteLength) return undefined
  const number = SCALARS[type.name]?.(new DataView(bytes.buffer, bytes.byteOffset, bytes.length))
  return typeof number === 'bigint' && Number.isSafeInteger(Number(number)) ? Number(number) : number
}

const SCALARS: Readonly<Record<string, (view: DataView) => number | bigint | boolean>> = {
  bool: view => view.getUint8(0) !== 0,
  int8: view => view.getInt8(0),
  uint8: view => view.getUint8(0),
  int16: view => view.getInt16(0, true),
  uint16: view => view.getUint16(0, true),
  int32: view => view.getInt32(0, true),
  uint32: view => view.getUint32(0, true),
  int64: view => view.getBigInt64(0, true),
  uint64: view => view.getBigUint64(0, true),
  float16: view => float16(view.getUint16(0, true)),
  float32: view => view.getFloat32(0, true),
  float64: view => view.getFloat64(0, true),
}

function float16(bits: number): number {
  const [sign, exponent, digits] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023]
  if (exponent === 31) return digits === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (exponent === 0 ? digits * 2 ** -24 : (1 + digits / 1024) * 2 ** (exponent - 15))
}

/** `numpy.dtype('f4', False, True)`; undefined: its elements are no numbers. */
function elementTypeAt(pickle: Pickle, handle: Handle): ElementType | undefined {
  const given = pickle.calleeName(handle) === 'numpy.dtype' ? pickle.argument(handle, 0) : undefined
  const kind = given === undefined ? undefined : pickle.text(given)
  return kind !== undefined && Object.hasOwn(KINDS, kind) ? elementTypeOf(`torch.${KINDS[kind]}`) : undefined
}

/** True if the state `(3, '>', …)` of a dtype says big-endian. */
function isBigEndian(pickle: Pickle, dtype: Handle): boolean {
  const state = pickle.part(dtype, 'state')
  return state !== undefined && pickle.size(state) > 1 && pickle.text(pickle.link(state, 1)) === '>'
}

function shapeAt(pickle: Pickle, handle: Handle): readonly number[] | undefined {
  if (!pickle.isSequence(handle) || pickle.size(handle) > MAX_DIMENSIONS) return undefined
  const shape = Array.from({ length: pickle.size(handle) }, (_, i) => pickle.integer(pickle.link(handle, i)) ?? -1)
  return shape.every(size => size >= 0) ? shape : undefined
}

/** The bytes of an array, or the text that encodes them. */
function contentOf(pickle: Pickle, handle: Handle): Handle | undefined {
  const kind = pickle.kind(handle)
  if (kind === KIND.bytes || kind === KIND.latin) return handle
  const name = pickle.calleeName(handle)
  if (name === undefined || !/^(?:_codecs\.encode|(?:builtins|__builtin__)\.(?:bytes|bytearray))$/.test(name)) {
    return undefined
  }
  const [given, encoding] = [pickle.argument(handle, 0), pickle.argument(handle, 1)]
  // bytes() of protocol 2: what it has no items of.
  if (given === undefined) return name === '_codecs.encode' ? undefined : pickle.part(handle, 'arguments')
  if (pickle.kind(given) === KIND.bytes && encoding === undefined) return given
  const isLatin = encoding !== undefined && /^latin-?1$/.test(pickle.text(encoding) ?? '')
  return isLatin && pickle.isText(given) ? given : undefined
}

/** True if bytes lie in the pickle unchanged. */
export function isAsItLies(pickle: Pickle, content: Handle): boolean {
  return pickle.kind(content) !== KIND.text
}

/** The bytes that a value encodes, a character a byte; undefined: a character is none. */
export function numpyBytes(pickle: Pickle, content: Handle): Uint8Array | undefined {
  if (pickle.kind(content) === KIND.tuple) return new Uint8Array(0)
  const encoded = pickle.bytes(content)
  if (isAsItLies(pickle, content)) return encoded
  const bytes = new Uint8Array(encoded.length)
  let length = 0
  for (let at = 0; at < encoded.length; at++) {
    const byte = encoded[at]!
    if (byte < 0x80) bytes[length++] = byte
    else {
      // UTF-8 of U+0080 to U+00FF.
      const next = encoded[++at]
      if ((byte !== 0xc2 && byte !== 0xc3) || next === undefined || (next & 0xc0) !== 0x80) return undefined
      bytes[length++] = ((byte & 3) << 6) | (next & 0x3f)
    }
  }
  return bytes.subarray(0, length)
}

/** The bytes that a value encodes, for `show`: also those of `_codecs.encode`. Undefined: the value encodes none. */
export function bytesAt(pickle: Pickle, handle: Handle): Uint8Array | undefined {
  const content = pickle.isNote(handle) ? contentOf(pickle, handle) : undefined
  return content === undefined ? undefined : numpyBytes(pickle, content)
}
