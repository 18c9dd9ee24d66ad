/**
 * The header of a safetensors file: its length, then JSON that says where each tensor lies. What is wrong with one tensor
 * costs that tensor; the others are read.
 */

import { FormatError, quote } from '../../../base/errors.js'
import { entryOf } from '../../../base/maps.js'
import { inTurns, sortedInTurns, turnsWhenDue } from '../../../base/turns.js'
import type { DType } from '../../../base/types.js'
import { jsonExcerpt } from '../../json.js'
import { expectNoLfsPointer } from '../lfs-pointer.js'
import { DTYPE_NAMES, dtypeNamed, LENGTH_BYTES, MAX_HEADER_BYTES } from './dtypes.js'

/** The largest number of faults that have an error of their own. */
export const MAX_FAULTS = 100
/** The largest number of unreadable tensors that are named. */
const MAX_UNREAD = 10_000

/** Dtypes of the format that are not read, with the bits of an element. */
const UNREAD_BITS: Readonly<Record<string, number>> = { F6_E2M3: 6, F6_E3M2: 6 }

/** A tensor of a header. */
export interface HeaderTensor {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Bytes of the file. */
  readonly begin: number
  readonly end: number
}

/** A tensor that can't be read. */
export interface HeaderFault {
  readonly name: string
  /** The dtype as the header spells it. */
  readonly dtype: string
  readonly shape?: readonly number[]
  readonly byteLength?: number
  readonly error: FormatError
}

export interface Header {
  /** In the order of their bytes. */
  readonly tensors: readonly HeaderTensor[]
  /** The first `MAX_UNREAD` of them. Beyond `MAX_FAULTS`, those of a code have one error together. */
  readonly unread: readonly HeaderFault[]
  /** The problems of the file as a whole. */
  readonly problems: readonly FormatError[]
  readonly metadata: ReadonlyMap<string, string>
}

/** An error about a safetensors file. */
export function headerFault(
  code: string,
  url: string,
  offset: number,
  expected: string,
  got: string,
  hint = '',
): FormatError {
  const message = `${url}, byte ${offset}: expected ${expected}, got ${got}${hint && `: ${hint}`}`
  return new FormatError(code, message, { url, offset, expected, got })
}

const CODE = 'BadSafetensors'

/**
 * The length of the JSON.
 * @param prefix the first bytes of the file, eight or more of a longer one
 * @throws FormatError `BadSafetensors`, `ZeroHeader`, `GitLfsPointer`, `TruncatedFile`
 */
export function headerLength(prefix: Uint8Array, url: string, byteLength: number): number {
  expectNoLfsPointer(prefix, url)
  if (byteLength < LENGTH_BYTES) {
    const wanted = 'a safetensors file, which begins with the 8 bytes of its header length'
    throw headerFault(CODE, url, byteLength, wanted, `${byteLength} bytes`)
  }
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true))
  const room = byteLength - LENGTH_BYTES
  if (length === 0) {
    const hint = 'the file was made, but its header was never written; fetch it again'
    throw headerFault('ZeroHeader', url, 0, 'the length of a header', 'zero', hint)
  }
  if (length > MAX_HEADER_BYTES) {
    const hint = 'it is no safetensors file, or its first bytes are damaged'
    throw headerFault(CODE, url, 0, `a header of at most ${MAX_HEADER_BYTES} bytes`, `a length of ${length}`, hint)
  }
  if (length > room) {
    const hint = 'the file is cut off within its header, or is no safetensors file'
    throw headerFault('TruncatedFile', url, byteLength, `a header of ${length} bytes`, `${room}`, hint)
  }
  return length
}

/**
 * Parses the JSON of a header.
 * @param json its bytes
 * @param byteLength of the file
 * @throws FormatError `BadSafetensors`, if it is not the JSON of an object
 */
export async function parseHeader(json: Uint8Array, url: string, byteLength: number): Promise<Header> {
  const due = turnsWhenDue()
  const start = LENGTH_BYTES + json.length
  const faults = new Faults(url)
  const metadata = new Map<string, string>()
  const byName = new Map<string, HeaderTensor>()
  for (const members of membersOf(textOf(json, url), url)) {
    for (const [name, entry] of Object.entries(members)) {
      if (name === '__metadata__') readMetadata(entry, metadata, faults)
      else {
        const tensor = tensorOf(name, entry, start, faults)
        // The last of a name counts.
        if (tensor !== null) byName.set(name, tensor)
        else byName.delete(name)
      }
    }
    await due()
  }
  const sorted = await sortedInTurns([...byName.values()], (a, b) => a.begin - b.begin || a.end - b.end)
  const tensors: HeaderTensor[] = []
  let filled = start
  // Unreadable ones fill their bytes, too.
  const others = faults.places.sort((a, b) => a[0] - b[0])
  let other = 0
  await inTurns(sorted, tensor => {
    const { name, begin, end } = tensor
    for (; other < others.length && others[other]![0] <= begin; other++) filled = Math.max(filled, others[other]![1])
    if (begin < filled && end > begin) {
      faults.tensor(tensor, begin, `bytes from ${filled} on`, `bytes from ${begin} on`, 'it overlaps the one before')
      return
    }
    if (begin > filled) faults.file(filled, `tensor ${quote(name)}`, `a gap of ${begin - filled} bytes`)
    filled = Math.max(filled, end)
    // A tensor without elements lacks no bytes.
    if (end > byteLength && end > begin) {
      const availableLength = Math.max(0, byteLength - begin)
      faults.tensor(
        tensor,
        byteLength,
        `${end - begin} bytes`,
        `${availableLength}`,
        'the file is cut off',
        'TruncatedFile',
      )
    } else tensors.push(tensor)
  })
  for (; other < others.length; other++) filled = Math.max(filled, others[other]![1])
  if (filled < byteLength) {
    const hint = 'something was appended, or the header lacks a tensor'
    faults.file(filled, 'the end of the file', `${byteLength - filled} bytes more`, hint)
  }
  return { tensors, unread: faults.tensors(), problems: faults.all(), metadata }
}

function textOf(json: Uint8Array, url: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json)
  } catch {
    throw headerFault(CODE, url, LENGTH_BYTES, 'a header in UTF-8', 'other bytes')
  }
}

/** The characters of JSON that are parsed in one turn, which takes some milliseconds. */
const PIECE_LENGTH = 1 << 20

/**
 * The members of the JSON's object, in pieces if there are many. A piece ends behind the `}` of an entry: one that ends within a text
 * or a nested object is no JSON, and is tried again with more.
 */
function* membersOf(text: string, url: string): Generator<object> {
  const [opening] = /^[ \t\r\n]*\{/.exec(text) ?? []
  let start = opening?.length ?? 0
  for (let length = PIECE_LENGTH; opening !== undefined && text.length - start > length; ) {
    const end = text.indexOf('},', start + length)
    if (end < 0) break
    const members = parsedOrNull(`{${text.slice(start, end + 1)}}`)
    if (members === null) length *= 2
    else {
      yield members
      start = end + 2
      length = PIECE_LENGTH
    }
  }
  const rest = start > (opening?.length ?? 0) ? parsedOrNull(`{${text.slice(start)}`) : null
  // Errors are those of the whole text.
  yield rest !== null && Object.keys(rest).length > 0 ? rest : parsed(text, url)
}

function parsedOrNull(text: string): object | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function parsed(text: string, url: string): object {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch (error) {
    const got = `${quote(text.slice(0, 40))} (${error instanceof Error ? error.message.slice(0, 80) : error})`
    throw headerFault(CODE, url, LENGTH_BYTES, 'a header in JSON', got)
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    throw headerFault(CODE, url, LENGTH_BYTES, 'a header that is an object', quote(text.slice(0, 40)))
  }
  return header
}

function readMetadata(entry: unknown, metadata: Map<string, string>, faults: Faults): void {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    faults.file(LENGTH_BYTES, '__metadata__ of texts', shown(entry))
    return
  }
  for (const [key, value] of Object.entries(entry)) {
    if (typeof value === 'string') metadata.set(key, value)
    else faults.file(LENGTH_BYTES, `a text as __metadata__ ${quote(key)}`, shown(value))
  }
}

/** Null: it can't be read, and is among the faults. */
function tensorOf(name: string, entry: unknown, start: number, faults: Faults): HeaderTensor | null {
  if (typeof entry !== 'object' || entry === null) {
    faults.tensor({ name, dtype: '?' }, LENGTH_BYTES, 'dtype, shape and data_offsets', shown(entry))
    return null
  }
  const { dtype: given, shape, data_offsets: offsets } = entry as Readonly<Record<string, unknown>>
  const isPlaced = isCounts(offsets) && offsets.length === 2
  const [first, last] = isPlaced ? (offsets as [number, number]) : [0, 0]
  const byteLength = last - first
  const more = { ...(isCounts(shape) && { shape }), ...(byteLength > 0 && { byteLength }) }
  const wrong = (expected: string, got: string, code = CODE): null => {
    // Its bytes are its own, whatever else is wrong.
    if (byteLength > 0) faults.places.push([start + first, start + last])
    const dtype = typeof given === 'string' ? given : '?'
    faults.tensor({ name, dtype, ...more }, LENGTH_BYTES, expected, got, '', code)
    return null
  }
  if (typeof given !== 'string') return wrong('a text as dtype', shown(given))
  if (!isCounts(shape)) return wrong('a shape of whole numbers below 2^53', shown(shape))
  if (!isPlaced) return wrong('data_offsets: two whole numbers below 2^53', shown(offsets))
  const count = shape.reduce((product, size) => product * size, 1)
  if (!Number.isSafeInteger(count)) return wrong('a count of elements below 2^53', `shape [${shape}]`)
  const known = dtypeNamed(given)
  const bits = known?.[1] ?? (Object.hasOwn(UNREAD_BITS, given) ? UNREAD_BITS[given] : undefined)
  if (bits !== undefined && byteLength * 8 !== count * bits) {
    const size = Number.isInteger((count * bits) / 8) ? `${(count * bits) / 8} bytes` : 'elements that fill whole bytes'
    return wrong(`${size}, as shape [${shape}] and ${given} say`, `data_offsets [${offsets}]`)
  }
  if (byteLength < 0) return wrong('an end behind the begin', `data_offsets [${offsets}]`)
  if (known === undefined) return wrong(`one of ${DTYPE_NAMES}`, given, 'UnreadableDType')
  return { name, dtype: known[0], shape, begin: start + first, end: start + last }
}

/** The largest rank that is accepted. */
const MAX_RANK = 64

function isCounts(given: unknown): given is readonly number[] {
  return (
    Array.isArray(given) && given.length <= MAX_RANK && given.every(size => Number.isSafeInteger(size) && size >= 0)
  )
}

/** A value for messages: a list of plain values is written out, nested ones may have no end. */
function shown(given: unknown): string {
  const isPlain = Array.isArray(given) && given.every(item => typeof item !== 'object' || item === null)
  return isPlain ? JSON.stringify(given.slice(0, 60)).slice(0, 60) : jsonExcerpt(given)
}

/** The faults, as many as people read, and the number of others. */
class Faults {
  readonly #unread: HeaderFault[] = []
  /** The tensors beyond these, by code. */
  readonly #unreadMore = new Map<string, Omit<HeaderFault, 'error'>[]>()
  /** Bytes that unreadable tensors fill. */
  readonly places: [begin: number, end: number][] = []
  readonly #url: string
  readonly #problems: FormatError[] = []
  /** The number of unreadable tensors. */
  #count = 0
  #more = 0

  constructor(url: string) {
    this.#url = url
  }

  tensor(
    tensor: Omit<HeaderFault, 'error'>,
    offset: number,
    expected: string,
    got: string,
    hint = '',
    code = CODE,
  ): void {
    if (this.#count++ >= MAX_UNREAD) {
      this.#more++
      return
    }
    const { name, dtype, shape, byteLength } = tensor
    const unread = { name, dtype, ...(shape && { shape }), ...(byteLength !== undefined && { byteLength }) }
    if (this.#unread.length >= MAX_FAULTS) {
      entryOf(this.#unreadMore, code, () => []).push(unread)
      return
    }
    const url = this.#url
    const message = `${url}, byte ${offset}, tensor ${quote(name)}: expected ${expected}, got ${got}${hint && `: ${hint}`}`
    const error = new FormatError(code, message, { url, offset, expected, got, tensor: name.slice(0, 200) })
    this.#unread.push({ ...unread, error })
  }

  file(offset: number, expected: string, got: string, hint = ''): void {
    if (this.#problems.length >= MAX_FAULTS) this.#more++
    else this.#problems.push(headerFault(CODE, this.#url, offset, expected, got, hint))
  }

  /** The tensors that can't be read. */
  tensors(): readonly HeaderFault[] {
    const url = this.#url
    const more = [...this.#unreadMore].map(([code, tensors]) => {
      const count = tensors.length
      const [expected, got] = ['tensors that can be read', `${count} faults more of this kind (${code})`]
      const names = `tensors ${quote(tensors[0]!.name)} to ${quote(tensors[count - 1]!.name)}`
      const message = `${url}, ${names}: expected ${expected}, got ${got}`
      const error = new FormatError(code, message, { url, expected, got, count, lost: names })
      return tensors.map(tensor => Object.assign(tensor, { error }))
    })
    return [...this.#unread, ...more.flat()]
  }

  all(): readonly FormatError[] {
    if (this.#more === 0) return this.#problems
    const got = `${this.#more} faults more`
    return [...this.#problems, headerFault(CODE, this.#url, LENGTH_BYTES, 'tensors that can be read', got)]
  }
}
