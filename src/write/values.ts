/** The values that can be saved (arrays and tensors of any kind, numbers and texts) as little-endian elements in C order. */

import { shown } from '../base/arguments.js'
import { UsageError } from '../base/errors.js'
import { isObject } from '../base/options.js'
import type { DType } from '../base/types.js'
import { MAX_DIMENSIONS } from '../core/border/abi.js'
import { byteLengthOf } from '../core/dtype.js'
import { type ArrayInput, elementsOf } from '../kernels/elements.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'

/** A tensor of TensorFlow.js or similar: its elements are fetched on request. */
export interface RemoteTensor {
  readonly shape: readonly number[]
  readonly dtype: string
  data(): Promise<ArrayLike<number> | readonly string[]>
}

type Element = number | bigint | boolean | string
/** Nested arrays of any depth, with equal lengths at each depth. */
export type NestedElements = Element | readonly NestedElements[]

/** A value to save. Numbers in an array become float64, bigints int64, booleans bool; texts are strings. */
export type SavableValue = ArrayInput | RemoteTensor | NestedElements

/** The part of a value that is saved. */
export type TakenValue =
  | { readonly dtype: DType; readonly shape: readonly number[]; readonly count: number; readonly bytes: Uint8Array }
  | { readonly shape: readonly number[]; readonly texts: readonly string[] }

export interface ElementOptions {
  /** The shape of a typed array that has none itself. Default: one dimension. */
  readonly shape?: readonly number[]
  /**
   * The dtype of elements whose array doesn't determine it: float16 and bfloat16 in a Uint16Array, narrower floats in a Uint8Array,
   * complex numbers, bytes; or the dtype to which numbers are converted.
   */
  readonly dtype?: DType
}

/** Half of a surrogate pair. */
const TORN = /\p{Surrogate}/u
const SAVABLE = 'a typed array, a tensor, numbers or texts, or arrays of these'

/** @throws UsageError for what can't be saved */
export function takenValue(
  call: string,
  given: SavableValue,
  options: ElementOptions,
): TakenValue | Promise<TakenValue> {
  if (isRemote(given)) {
    const { shape, dtype } = given
    const elements = Promise.resolve(given.data()).catch(error => {
      const got = error instanceof Error ? error.message : String(error)
      throw new UsageError(`${call}: expected the elements of a tensor, got an error: ${got}`, { call }, error)
    })
    return elements.then(data => {
      if (dtype === 'string') return textsOf(call, data as readonly string[], shape)
      return elementsIn(call, { data: data as unknown as ArrayBufferView, shape, dtype: dtype as DType })
    })
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return nestedValue(call, given as NestedElements, options)
  if (ArrayBuffer.isView(given)) return elementsIn(call, { data: given, ...options })
  if (isObject(given) && 'bytes' in given) {
    const { dtype, shape } = given
    if (dtype === 'string') return textsOf(call, given.data as readonly string[], shape)
    return elementsIn(call, given)
  }
  // An ndarray's dtype is the type of its array, which is known anyway.
  const { data, dtype, shape, stride, offset } = given as Exclude<ArrayInput, ArrayBufferView> & {
    readonly stride?: readonly number[]
    readonly offset?: number
  }
  if (data === undefined) throw wrongValue(call, SAVABLE, shown(given))
  const isOwn = 'pick' in given
  return elementsIn(call, {
    data: data as ArrayBufferView,
    ...(dtype !== undefined && !isOwn && { dtype }),
    ...(shape !== undefined && { shape: [...shape] }),
    ...(stride !== undefined && { stride: [...stride] }),
    ...(offset !== undefined && { offset }),
    ...options,
  })
}

function isRemote(given: unknown): given is RemoteTensor {
  return typeof given === 'object' && given !== null && typeof (given as { data?: unknown }).data === 'function'
}

function elementsIn(call: string, given: ArrayInput): TakenValue {
  const elements = elementsOf(call, given)
  const { dtype, shape, count, layout } = elements
  expectDimensions(call, shape)
  let { bytes } = elements
  const byteLength = byteLengthOf(dtype, count)
  if (layout !== null) {
    bytes = new Uint8Array(byteLength)
    copyElements(elements, 0, count, bytes)
  }
  return { dtype, shape, count, bytes: bytes.length === byteLength ? bytes : bytes.subarray(0, byteLength) }
}

function textsOf(call: string, texts: readonly string[], shape: readonly number[]): TakenValue {
  expectDimensions(call, shape)
  const count = shape.reduce((product, size) => product * size, 1)
  if (texts.length !== count) throw wrongValue(call, `${count} texts, as the shape says`, `${texts.length}`)
  const wrong = texts.findIndex(text => typeof text !== 'string' || TORN.test(text))
  if (wrong >= 0) throw wrongValue(call, 'texts that UTF-8 can hold', shown(texts[wrong]))
  return { shape, texts }
}

const MADE_OF: Partial<Record<DType, (numbers: readonly number[]) => ArrayBufferView>> = {
  float32: numbers => Float32Array.from(numbers),
  float64: numbers => Float64Array.from(numbers),
  int8: numbers => Int8Array.from(numbers),
  uint8: numbers => Uint8Array.from(numbers),
  int16: numbers => Int16Array.from(numbers),
  uint16: numbers => Uint16Array.from(numbers),
  int32: numbers => Int32Array.from(numbers),
  uint32: numbers => Uint32Array.from(numbers),
  int64: numbers => BigInt64Array.from(numbers, number => BigInt(number)),
  uint64: numbers => BigUint64Array.from(numbers, number => BigInt(number)),
  bool: numbers => Uint8Array.from(numbers, number => Number(Boolean(number))),
}

/** True if numbers or texts in nested arrays can be elements of a dtype. */
export function isNestable(dtype: DType): boolean {
  return dtype === 'string' || MADE_OF[dtype] !== undefined
}

function nestedValue(call: string, given: NestedElements, options: ElementOptions): TakenValue {
  const shape: number[] = []
  for (let at = given; Array.isArray(at); at = at[0]) {
    shape.push(at.length)
    expectDimensions(call, shape)
  }
  const flat: Element[] = []
  flatten(call, given, shape, 0, flat)
  const kinds = [...new Set(flat.map(element => typeof element))]
  if (kinds.length > 1) throw wrongValue(call, 'elements of one type', kinds.join(' and '))
  const size = options.shape ?? shape
  const isText = kinds[0] === 'string' || (flat.length === 0 && options.dtype === 'string')
  if (isText) return textsOf(call, flat as string[], size)
  const dtype = options.dtype ?? (kinds[0] === 'bigint' ? 'int64' : kinds[0] === 'boolean' ? 'bool' : 'float64')
  const make = MADE_OF[dtype]
  if (make === undefined) throw wrongValue(call, `${dtype} elements in a typed array`, 'numbers')
  const isWhole = dtype !== 'float32' && dtype !== 'float64'
  const odd = isWhole && flat.find(element => typeof element === 'number' && !Number.isSafeInteger(element))
  if (odd !== false && odd !== undefined) throw wrongValue(call, `whole numbers for ${dtype}`, String(odd))
  const data = make(flat as readonly number[])
  if (isWhole && dtype !== 'bool') {
    const held = data as unknown as ArrayLike<number | bigint>
    const beyond = flat.find((element, i) => BigInt(element) !== BigInt(held[i]!))
    if (beyond !== undefined) throw wrongValue(call, `numbers that fit ${dtype}`, String(beyond))
  }
  return elementsIn(call, { data, dtype, shape: size })
}

function flatten(call: string, given: NestedElements, shape: readonly number[], depth: number, into: Element[]): void {
  if (depth === shape.length) {
    if (!['number', 'bigint', 'boolean', 'string'].includes(typeof given)) {
      throw wrongValue(call, SAVABLE, shown(given))
    }
    into.push(given as Element)
    return
  }
  if (!Array.isArray(given) || given.length !== shape[depth]) {
    const got = Array.isArray(given) ? `one of ${given.length}` : shown(given)
    throw wrongValue(call, `arrays of ${shape[depth]} elements at depth ${depth}, as the first`, got)
  }
  for (const item of given) flatten(call, item, shape, depth + 1, into)
}

/** Limits the depth: an array that contains itself has no end. */
function expectDimensions(call: string, { length }: readonly number[]): void {
  if (length > MAX_DIMENSIONS) throw wrongValue(call, `at most ${MAX_DIMENSIONS} dimensions`, `${length}`)
}

function wrongValue(call: string, expected: string, got: string): UsageError {
  return new UsageError(`${call}: expected ${expected}, got ${got}`, { call })
}
