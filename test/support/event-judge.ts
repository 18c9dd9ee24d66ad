/** What protobufjs's reading of an Event means by format.md, in a form that the core's reading can be held against. */

import type { DType } from '#dist/base/types.js'
import { DTYPES, type DTypeName, elementBytes } from '../../fixtures/event-writer.js'
import { type EventView, type TensorView, TYPED_FIELDS, type ValueView } from './event-schema.js'
import type { Decoded } from './records.js'

/** Floats of eight and four bits, which lie in tensor_content alone: their numbers, and how many of them are in a byte. */
const SMALL_FLOATS: ReadonlyMap<number, readonly [dtype: DType, perByte: number]> = new Map([
  [24, ['float8_e5m2', 1]],
  [25, ['float8_e4m3fn', 1]],
  [26, ['float8_e4m3fnuz', 1]],
  [28, ['float8_e5m2fnuz', 1]],
  [62, ['float8_e8m0fnu', 1]],
  [63, ['float4_e2m1fn', 2]],
])
const DTYPE_BY_NUMBER = new Map(Object.entries(DTYPES).map(([name, facts]) => [facts.number, name as DTypeName]))

/** What protobufjs's reading of an Event means, by format.md: the tensor, or the code of the error it deserves. */
export type Judgement =
  | { readonly code: string }
  | {
      readonly code: null
      readonly step: number
      readonly mode: number
      readonly modeStep: number
      readonly dtype: DType
      readonly shape: readonly number[]
      readonly content: Uint8Array | null
      readonly strings: readonly Uint8Array[] | null
    }

export function judge({ step, values }: EventView, tag: string | undefined): Judgement {
  const holding = values.filter(({ tensor, simpleValue }) => tensor !== undefined || simpleValue !== undefined)
  const value = holding.find(candidate => tag === undefined || candidate.tag === tag)
  if (value === undefined) {
    const other = tag !== undefined && values.some(candidate => candidate.tag !== tag)
    return { code: other ? 'TagMismatch' : 'NoTensor' }
  }
  const common = { code: null, step: Number(step), mode: modeOf(value), modeStep: modeStepOf(value) } as const
  const { tensor, simpleValue } = value
  if (tensor === undefined) {
    const content = elementBytes('float32', [simpleValue!])
    return { ...common, dtype: 'float32', shape: [], content, strings: null }
  }
  const { shape } = tensor
  // The core counts in doubles, dimension by dimension, so this does too.
  const count = shape.includes(0) ? 0 : shape.reduce((product, size) => product * size, 1)
  if (shape.some(size => size < 0 || size >= 2 ** 53) || shape.length > 254 || !(count <= 2 ** 53))
    return { code: 'BadShape' }
  const isEmpty = tensor.content.length === 0 && count === 0
  if (tensor.dtype === 7 || (tensor.dtype === 0 && (tensor.strings.length > 0 || isEmpty))) {
    if (!fits(tensor.strings.length, count)) return { code: 'ShapeMismatch' }
    return { ...common, dtype: 'string', shape, content: null, strings: repeated([...tensor.strings], count) }
  }
  const small = SMALL_FLOATS.get(tensor.dtype)
  if (small !== undefined) {
    const isRight = tensor.content.length === Math.ceil(count / small[1])
    return isRight
      ? { ...common, dtype: small[0], shape, content: tensor.content, strings: null }
      : { code: 'ShapeMismatch' }
  }
  const dtype = DTYPE_BY_NUMBER.get(tensor.dtype)
  if (dtype === undefined) return { code: 'UnknownDType' }
  if (tensor.content.length > 0) {
    const isRight = tensor.content.length === count * DTYPES[dtype].byteLength
    return isRight ? { ...common, dtype, shape, content: tensor.content, strings: null } : { code: 'ShapeMismatch' }
  }
  const content = typedContent(tensor, dtype, count)
  return content === null ? { code: 'ShapeMismatch' } : { ...common, dtype, shape, content, strings: null }
}

function fits(there: number, count: number): boolean {
  return there <= count && (there > 0 || count === 0)
}

function repeated<T>(list: T[], count: number): T[] {
  if (count <= 1e6) while (list.length < count) list.push(list.at(-1)!)
  return list
}

/** The elements of a typed field, the last one repeated; null where they don't fit the shape. */
function typedContent(tensor: TensorView, dtype: DTypeName, count: number): Uint8Array | null {
  const { parts, field } = DTYPES[dtype]
  const name = TYPED_FIELDS[[5, 6, 7, 9, 10, 11, 12, 13, 16, 17].indexOf(field)]!
  const values = tensor.typed[name] ?? []
  const whole = values.length / parts
  // Half a complex number is none.
  if (!Number.isInteger(whole) || !fits(whole, count)) return null
  const written = dtype === 'float16' || dtype === 'bfloat16' ? 'uint16' : dtype
  const bytes = elementBytes(written, values)
  if (count > 1e6 || count === 0) return bytes
  const size = DTYPES[dtype].byteLength
  const out = new Uint8Array(count * size)
  out.set(bytes)
  for (let at = bytes.length; at < out.length; at += size) out.set(bytes.subarray(bytes.length - size), at)
  return out
}

/** Decimal digits, no more than a double holds; the last of several plugins counts. */
function decimal({ plugins }: ValueView, wanted: string): number {
  const content = plugins.findLast(({ name }) => name === wanted)?.content ?? ''
  return /^\d{1,15}$/.test(content) ? Number(content) : -1
}

function modeOf(value: ValueView): number {
  const mode = decimal(value, 'mode')
  return mode >= 1 && mode <= 4 ? mode : 0
}

function modeStepOf(value: ValueView): number {
  return decimal(value, 'mode_step')
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Elements as text. Every NaN counts as the same: protobufjs reads typed fields as numbers, which loses NaN's payload. */
function elementText(dtype: DType, bytes: Uint8Array): string {
  if (dtype === 'float32' || dtype === 'complex64') return hex(elementBytes(dtype, floats(bytes, 4)))
  if (dtype === 'float64' || dtype === 'complex128') return hex(elementBytes(dtype, floats(bytes, 8)))
  return hex(bytes)
}

function floats(bytes: Uint8Array, size: 4 | 8): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / size }, (_, i) =>
    size === 4 ? view.getFloat32(i * 4, true) : view.getFloat64(i * 8, true),
  )
}

/** Both readings in a form that can be compared. */
export function comparable(decoded: Decoded): unknown {
  if (decoded.error) return { code: decoded.error.code }
  const { found, elements, strings } = decoded
  const { dtype, shape, mode, modeStep, eventStep } = found
  return {
    code: null,
    step: eventStep,
    mode,
    modeStep,
    dtype,
    shape,
    content: elements && elementText(dtype, elements),
    strings: strings && [...strings],
  }
}

export function comparableJudgement(judgement: Judgement): unknown {
  if (judgement.code !== null) return judgement
  const { dtype, shape, content, strings } = judgement
  const isHuge = shape.reduce((product, size) => product * size, 1) > 1e6
  return {
    ...judgement,
    content: isHuge ? null : content && elementText(dtype, content),
    strings: isHuge
      ? null
      : (strings?.map(bytes => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)) ?? null),
  }
}
