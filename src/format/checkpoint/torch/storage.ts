/** The storages that tensors of a pickle are views of: their element types, and what the pickle says of each. */

import type { DType } from '../../../base/types.js'
import { type Handle, KIND, type Pickle } from '../pickle/tape.js'

export interface ElementType {
  /** The storage type's name, without `torch.`. */
  readonly name: string
  readonly byteLength: number
  /** Null: its values can't be read. */
  readonly dtype: DType | null
}

const elementType = (name: string, byteLength: number, dtype: DType | null = name as DType): ElementType => ({
  name,
  byteLength,
  dtype,
})

/** Element types by torch's names of dtypes. */
const TYPES = new Map<string, ElementType>(
  [
    elementType('float64', 8),
    elementType('float32', 4),
    elementType('float16', 2),
    elementType('bfloat16', 2),
    elementType('float8_e4m3fn', 1),
    elementType('float8_e5m2', 1),
    elementType('float8_e4m3fnuz', 1),
    elementType('float8_e5m2fnuz', 1),
    elementType('float8_e8m0fnu', 1),
    elementType('float4_e2m1fn_x2', 1, null),
    elementType('int64', 8),
    elementType('int32', 4),
    elementType('int16', 2),
    elementType('int8', 1),
    elementType('uint64', 8),
    elementType('uint32', 4),
    elementType('uint16', 2),
    elementType('uint8', 1),
    elementType('bool', 1),
    elementType('complex32', 4, null),
    elementType('complex64', 8),
    elementType('complex128', 16),
    elementType('bits8', 1, null),
    elementType('bits16', 2, null),
    // torch counts their bytes.
    elementType('quint4x2', 1, null),
    elementType('quint2x4', 1, null),
    elementType('quint8', 1, 'uint8'),
    elementType('qint8', 1, 'int8'),
    elementType('qint32', 4, 'int32'),
  ].map(type => [type.name, type]),
)

/** Names of dtypes by the class of a storage, without `Storage`. */
const STORAGES: Readonly<Record<string, string>> = {
  Double: 'float64',
  Float: 'float32',
  Half: 'float16',
  BFloat16: 'bfloat16',
  Long: 'int64',
  Int: 'int32',
  Short: 'int16',
  Char: 'int8',
  Byte: 'uint8',
  Bool: 'bool',
  ComplexHalf: 'complex32',
  ComplexFloat: 'complex64',
  ComplexDouble: 'complex128',
  QInt8: 'qint8',
  QUInt8: 'quint8',
  QUInt4x2: 'quint4x2',
  QUInt2x4: 'quint2x4',
  QInt32: 'qint32',
  Untyped: 'uint8',
  Float8_e4m3fn: 'float8_e4m3fn',
  Float8_e5m2: 'float8_e5m2',
  Float8_e4m3fnuz: 'float8_e4m3fnuz',
  Float8_e5m2fnuz: 'float8_e5m2fnuz',
  Float8_e8m0fnu: 'float8_e8m0fnu',
}

/** The element type of a dtype such as `torch.float32`. */
export function elementTypeOf(torchName: string | undefined): ElementType | undefined {
  return torchName?.startsWith('torch.') ? TYPES.get(torchName.slice('torch.'.length)) : undefined
}

export interface Storage {
  readonly key: string
  readonly type: ElementType
  readonly byteLength: number
  /** The start of the meant elements in the storage, in elements: files before 1.6 have views of storages. */
  readonly viewOffset: number
}

/** The storage of a persistent id; null for another id. */
export function storageOf(pickle: Pickle, handle: Handle): Storage | null {
  if (pickle.kind(handle) !== KIND.persistent) return null
  const id = pickle.link(handle, 0)
  if (pickle.kind(id) !== KIND.tuple || pickle.size(id) < 5) return null
  const [tag, type, key, , count] = [0, 1, 2, 3, 4].map(i => pickle.link(id, i)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  if (pickle.text(tag) !== 'storage') return null
  const [elementType, name, elements] = [typeOf(pickle.globalName(type)), pickle.exactText(key), pickle.integer(count)]
  if (elementType === undefined || name === undefined || elements === undefined || elements < 0) return null
  let viewOffset = 0
  if (pickle.size(id) > 5) {
    const view = pickle.link(id, 5)
    if (pickle.kind(view) === KIND.tuple && pickle.size(view) === 3) {
      viewOffset = pickle.integer(pickle.link(view, 1)) ?? Number.NaN
    }
  }
  const byteLength = elements * elementType.byteLength
  return Number.isSafeInteger(byteLength) ? { key: name, type: elementType, byteLength, viewOffset } : null
}

/** `torch.FloatStorage`, `torch.storage.UntypedStorage`, `torch.cuda.HalfStorage`. */
function typeOf(className: string | undefined): ElementType | undefined {
  const match = /^torch\.(?:\w+\.)?(\w+?)Storage$/.exec(className ?? '')
  return match ? TYPES.get(STORAGES[match[1]!] ?? '') : undefined
}
