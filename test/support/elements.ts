/** Elements of every data type for the tests of kernels: as bytes at any address of the core, and as numbers. */

import fc from 'fast-check'
import { type DTypeName, elementBytes } from '../../fixtures/event-writer.js'
import type { Element } from '../oracle/allclose.js'
import { COMPLEX, elementsOf, REAL } from '../oracle/moments.js'
import type { Core } from './core.js'

/** The names of the types that have numbers. */
export const DTYPES = [...Object.keys(REAL), ...Object.keys(COMPLEX)] as DTypeName[]

export const isComplex = (dtype: string): dtype is keyof typeof COMPLEX => dtype in COMPLEX
export const dtypeNumber = (dtype: string) => (isComplex(dtype) ? COMPLEX[dtype][0] : REAL[dtype]![0])
export const sizeOf = (dtype: string) => (isComplex(dtype) ? 2 * REAL[COMPLEX[dtype][1]]![1] : REAL[dtype]![1])

export interface Elements {
  readonly dtype: DTypeName
  readonly bytes: Uint8Array
  /** How far the elements lie from a round address. */
  readonly offset: number
}

export function of(dtype: DTypeName, values: readonly number[], offset = 0): Elements {
  return { dtype, bytes: elementBytes(dtype, values), offset }
}

export function countOf({ dtype, bytes }: Elements): number {
  return bytes.length / sizeOf(dtype)
}

export function valuesOf({ dtype, bytes }: Elements): Element[] {
  const parts = elementsOf(dtype, bytes)
  if (!isComplex(dtype)) return parts
  return Array.from({ length: parts.length / 2 }, (_, i) => [parts[2 * i] as number, parts[2 * i + 1] as number])
}

/** Copies elements into the core's memory. */
export function place({ memory }: Core, { bytes, offset }: Elements, at: number): number {
  new Uint8Array(memory.buffer).set(bytes, at + offset)
  return at + offset
}

const SPECIAL = [0, -0, 1, -1, 0.5, NaN, Infinity, -Infinity, 1e-45, -5e-324, 3.4e38, 6e-8, 65504, 100]
const WHOLE = [0, 1, 2, 100, 127]

/** So many elements of a type: of any bits, of small numbers, or of the numbers where arithmetic is special. */
export function elements(dtype: DTypeName, count: number): fc.Arbitrary<Elements> {
  const parts = isComplex(dtype) ? 2 : 1
  const isFloat = /float|complex/.test(dtype)
  const size = sizeOf(dtype) / parts
  const special = fc.constantFrom(...(isFloat ? SPECIAL : WHOLE)).map(x => elementBytes(dtype, [x]))
  const small = fc.constantFrom(...WHOLE).map(x => elementBytes(dtype, [x]))
  const any = fc.uint8Array({ minLength: size, maxLength: size })
  const only = (part: fc.Arbitrary<Uint8Array>) =>
    fc.array(part, { minLength: count * parts, maxLength: count * parts })
  return fc.record({
    dtype: fc.constant(dtype),
    bytes: fc
      .oneof(only(any), only(small), only(fc.oneof(special, small)), only(fc.oneof(any, special)))
      .map(pieces => new Uint8Array(Buffer.concat(pieces.map(piece => piece.subarray(0, size))))),
    offset: fc.integer({ min: 0, max: 15 }),
  })
}

export const dtypes = fc.constantFrom(...DTYPES)

/** Counts around the width of a vector. */
export const counts = fc.integer({ min: 0, max: 70 })
