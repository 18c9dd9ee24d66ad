/** Parses and checks a line of a stream of tensors; docs/record.md describes it. */

import { FormatError, nearestNames } from '../../base/errors.js'
import { type DType, MODES, type Mode } from '../../base/types.js'
import { MAX_DIMENSIONS } from '../../core/border/abi.js'
import { DTYPES } from '../../core/dtype.js'
import { jsonExcerpt } from '../../format/json.js'
import { isNestable, type NestedElements } from '../values.js'

/** A line, or an entry of its `tensors`: one tensor, or a file of them. */
export interface TensorEntry {
  /** The name; null if the file has the names. */
  readonly name: string | null
  readonly dtype: DType | undefined
  readonly shape: readonly number[] | undefined
  readonly collection: string | readonly string[] | undefined
  readonly source:
    | { readonly kind: 'value'; readonly value: NestedElements }
    | { readonly kind: 'base64'; readonly bytes: Uint8Array }
    | { readonly kind: 'file'; readonly path: string; readonly prefix: string }
    /** Raw bytes that follow the line. */
    | { readonly kind: 'bytes'; readonly byteLength: number; readonly prefix: string }
}

export interface Line {
  readonly step: number | undefined
  readonly mode: Mode | undefined
  readonly modeStep: number | undefined
  readonly tensors: readonly TensorEntry[]
}

type Json = Readonly<Record<string, unknown>>

const OF_STEP = ['step', 'mode', 'mode_step', 'tensors']
const OF_TENSOR = ['name', 'value', 'shape', 'dtype', 'collection', 'base64', 'file', 'bytes', 'prefix']
/** The fields that can hold the elements; a line has one of them. */
const SOURCES = ['value', 'base64', 'file', 'bytes'] as const
/** Python's and JavaScript's spelling of NaN and infinities, which JSON lacks. Quoted texts match as well, so that they are skipped. */
const NOT_JSON = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g
const MARK = '\0'
const NUMBER_WORDS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
}
const WORDS = Object.keys(NUMBER_WORDS)

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @throws FormatError `BadTensorLine` without its place, which `at` adds */
export function lineFault(expected: string, got: string): FormatError {
  return new FormatError('BadTensorLine', `expected ${expected}, got ${got}`, { url: '', expected, got })
}

/** @returns the object; null for a blank line @throws FormatError if it is no JSON object */
export function parseLine(bytes: Uint8Array): Json | null {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw lineFault('a JSON object in UTF-8', 'bytes of another encoding')
  }
  if (text.trim() === '') return null
  const json = parsed(text) ?? parsed(text.replace(NOT_JSON, token => (token[0] === '"' ? token : `"\\u0000${token}"`)))
  if (typeof json?.value !== 'object' || json.value === null || Array.isArray(json.value)) {
    throw lineFault('a JSON object', json === null ? jsonExcerpt(text) : jsonExcerpt(json.value))
  }
  return json.value as Json
}

function parsed(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

/** The number of bytes that follow a line, even if the line is otherwise wrong; 0 if this number is wrong, too. */
export function followingByteLength(json: Json): number {
  const { bytes } = json
  return Number.isSafeInteger(bytes) && (bytes as number) > 0 ? (bytes as number) : 0
}

/** @throws FormatError */
export function readLine(json: Json): Line {
  expectKeys(json, [...OF_STEP, ...OF_TENSOR])
  const { step, mode, mode_step: modeStep, tensors } = json
  const known = mode === undefined ? undefined : MODES.find(name => name === String(mode).toUpperCase())
  if (mode !== undefined && known === undefined)
    throw lineFault(`mode to be one of ${MODES.join(', ')}`, jsonExcerpt(mode))
  if (modeStep !== undefined && step === undefined) throw lineFault('a step beside mode_step', 'none')
  const isTensor = OF_TENSOR.some(key => json[key] !== undefined)
  if (!isTensor && tensors === undefined && step === undefined && mode === undefined) {
    throw lineFault('a step, a mode or a tensor', 'an object without')
  }
  return {
    step: wholeNumber(step, 'step'),
    mode: known,
    modeStep: wholeNumber(modeStep, 'mode_step'),
    tensors: [...(isTensor ? [tensorOf(json)] : []), ...entriesOf(tensors)],
  }
}

function entriesOf(tensors: unknown): readonly TensorEntry[] {
  if (tensors === undefined) return []
  if (typeof tensors !== 'object' || tensors === null || Array.isArray(tensors)) {
    throw lineFault('tensors to be an object of them by name', jsonExcerpt(tensors))
  }
  return Object.entries(tensors).map(([name, given]) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return tensorOf({ name, value: given })
    expectKeys(given as Json, OF_TENSOR)
    if ('bytes' in given || 'name' in given)
      throw lineFault(`${name} to have a value, base64 or a file`, 'a name, or bytes')
    return tensorOf({ ...given, name })
  })
}

function tensorOf(json: Json): TensorEntry {
  const { name = null, dtype, shape, collection, prefix = '' } = json
  const given = SOURCES.filter(key => json[key] !== undefined)
  const [kind] = given
  if (kind === undefined || given.length > 1) {
    const got = given.length > 1 ? given.join(' and ') : 'none'
    throw lineFault(`one of ${SOURCES.join(', ')}${name === null ? '' : ` for ${jsonExcerpt(name)}`}`, got)
  }
  if (name !== null && typeof name !== 'string') throw lineFault('name to be a text', jsonExcerpt(name))
  if (name === null && (kind === 'value' || kind === 'base64')) throw lineFault(`a name beside ${kind}`, 'none')
  if (typeof prefix !== 'string') throw lineFault('prefix to be a text', jsonExcerpt(prefix))
  if (dtype !== undefined && !DTYPES.includes(dtype as DType)) {
    throw lineFault(`dtype to be one of ${DTYPES.join(', ')}`, jsonExcerpt(dtype))
  }
  const isList = Array.isArray(collection) && collection.every(name => typeof name === 'string')
  if (collection !== undefined && typeof collection !== 'string' && !isList) {
    throw lineFault('collection to be a name, or a list of names', jsonExcerpt(collection))
  }
  const isShape = Array.isArray(shape) && shape.every(size => Number.isSafeInteger(size) && size >= 0)
  if (shape !== undefined && !isShape) throw lineFault('shape to be a list of whole numbers', jsonExcerpt(shape))
  return {
    name,
    dtype: dtype as DType | undefined,
    shape: shape as readonly number[] | undefined,
    collection: collection as string | readonly string[] | undefined,
    source: sourceOf(kind, json, dtype as DType | undefined, prefix),
  }
}

function sourceOf(
  kind: (typeof SOURCES)[number],
  json: Json,
  dtype: DType | undefined,
  prefix: string,
): TensorEntry['source'] {
  const given = json[kind]
  switch (kind) {
    case 'value':
      if (dtype !== undefined && !isNestable(dtype)) throw lineFault(`base64, bytes or a file for ${dtype}`, 'a value')
      return { kind, value: elementsOf(given, dtype) }
    case 'base64': {
      if (dtype === undefined) throw lineFault('a dtype beside base64', 'none')
      const isBase64 = typeof given === 'string' && given.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(given)
      if (!isBase64) throw lineFault('base64, with = at its end', jsonExcerpt(given))
      const { buffer, byteOffset, length } = Buffer.from(given, 'base64')
      return { kind, bytes: new Uint8Array(buffer, byteOffset, length) }
    }
    case 'file':
      if (typeof given !== 'string' || given === '') throw lineFault('file to be a path', jsonExcerpt(given))
      return { kind, path: given, prefix }
    case 'bytes':
      if (!Number.isSafeInteger(given) || (given as number) < 0) {
        throw lineFault('bytes to be how many bytes follow the line', jsonExcerpt(given))
      }
      return { kind, byteLength: given as number, prefix }
  }
}

/** The values in the writer's form, with the numbers that JSON lacks, and integers beyond 2^53 given as texts of digits. */
function elementsOf(given: unknown, dtype: DType | undefined): NestedElements {
  const first = firstOf(given, 0)
  const isText = dtype === 'string' || (dtype === undefined && typeof first === 'string' && first[0] !== MARK)
  const is64 = dtype === 'int64' || dtype === 'uint64'
  const element = (item: unknown, depth: number): NestedElements => {
    if (Array.isArray(item)) return item.map(inner => element(inner, deeper(depth)))
    // JSON.stringify turns NaN into null.
    if (item === null && !isText) return Number.NaN
    if (typeof item === 'string' && !isText) {
      const word = item.replace(MARK, '')
      if (WORDS.includes(word)) return NUMBER_WORDS[word]!
      if (is64 && /^-?\d{1,20}$/.test(item)) return BigInt(item)
      throw lineFault('numbers, NaN, Infinity or -Infinity', jsonExcerpt(item))
    }
    if (typeof item === 'number' && is64 && Number.isSafeInteger(item)) return BigInt(item)
    if (['number', 'boolean', 'string'].includes(typeof item)) return item as number | boolean | string
    throw lineFault('numbers, texts, true or false, or arrays of these', jsonExcerpt(item))
  }
  return element(given, 0)
}

/** The depth of an array's elements. @throws FormatError beyond the limit */
function deeper(depth: number): number {
  if (depth < MAX_DIMENSIONS) return depth + 1
  throw lineFault(`at most ${MAX_DIMENSIONS} dimensions`, 'more')
}

/** The first element that is not null. */
function firstOf(given: unknown, depth: number): unknown {
  if (!Array.isArray(given)) return given
  for (const item of given) {
    const first = firstOf(item, deeper(depth))
    if (first !== null && first !== undefined) return first
  }
  return undefined
}

function wholeNumber(given: unknown, key: string): number | undefined {
  if (given === undefined) return undefined
  if (Number.isSafeInteger(given) && (given as number) >= 0) return given as number
  throw lineFault(`${key} to be a whole number from 0 on`, jsonExcerpt(given))
}

function expectKeys(json: Json, known: readonly string[]): void {
  const unknown = Object.keys(json).find(key => !known.includes(key))
  if (unknown === undefined) return
  const [nearest] = nearestNames(unknown, known)
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
  throw lineFault(`keys among ${known.join(', ')}`, `${jsonExcerpt(unknown)}${hint}`)
}
