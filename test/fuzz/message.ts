/**
 * Mutations of protobuf messages that know their structure: the bytes are taken apart into fields, the fields are
 * changed, and the lengths around them are put right again, unless the lie is the length.
 */

import { type Chance, EDGES, mutateBytes } from './bytes.js'

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const START_GROUP = 3
const END_GROUP = 4
const FIXED32 = 5

/** Which fields of a message are messages, by number. */
export interface Schema {
  readonly [field: number]: Schema
}

const NONE: Schema = {}
const DIM: Schema = NONE
const TENSOR: Schema = { 2: { 2: DIM } }
const METADATA: Schema = { 1: NONE }
const VALUE: Schema = { 5: NONE, 8: TENSOR, 9: METADATA }
export const EVENT: Schema = { 5: { 1: VALUE } }

/** One field, or bytes that are none (`key` -1). */
interface Field {
  key: number
  /** What follows the key, without a length; the varint as it is on the wire. */
  value: Uint8Array
  /** The fields of a message; null for what is none. */
  fields: Field[] | null
  /** What the length is said to be; null: what it is. */
  length: bigint | null
  /** Bytes by which key and length are longer than need be. */
  padding: number
}

/** Numbers of the fields that anything has here, and some that nobody has. */
const NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19000, 2 ** 29 - 1]
/** Wire types as the schema has them more often than others, so that what is inserted also means something. */
const WIRE_TYPES = [VARINT, VARINT, FIXED64, LENGTH_DELIMITED, LENGTH_DELIMITED, FIXED32, START_GROUP, END_GROUP, 6, 7]

/** One to four mutations of an Event's payload, and sometimes one of its bytes. */
export function mutateEvent(payload: Uint8Array, chance: Chance, other: () => Uint8Array): Uint8Array {
  const fields = fieldsOf(payload).map(copyOf)
  for (let left = 1 + chance.below(chance.below(4) + 1); left > 0; left--) mutateFields(fields, chance, other)
  const bytes = write(fields)
  return chance.once(6) ? mutateBytes(bytes, chance, [], other) : bytes
}

const parsed = new WeakMap<Uint8Array, readonly Field[]>()

/** The fields of an Event, not to be changed: most of what is mutated is mutated many times. */
function fieldsOf(payload: Uint8Array): readonly Field[] {
  const fields = parsed.get(payload) ?? parse(payload, EVENT)
  parsed.set(payload, fields)
  return fields
}

function field(key: number, value: Uint8Array, fields: Field[] | null = null): Field {
  return { key, value, fields, length: null, padding: 0 }
}

/** Only messages are copied: of what is none, `mutateFields` copies the one that it changes. */
function copyOf(original: Field): Field {
  return original.fields === null ? original : { ...original, fields: original.fields.map(copyOf) }
}

// ------------------------------------------------------------------------------------------------------ the mutations

function mutateFields(root: Field[], chance: Chance, other: () => Uint8Array): void {
  const lists = [root]
  for (const list of lists) {
    for (const { fields } of list) if (fields) lists.push(fields)
  }
  const list = chance.pick(lists)
  const at = chance.below(list.length)
  const chosen = list[at] && { ...list[at] }
  if (chosen) list[at] = chosen
  const kind = chance.below(chosen ? 20 : 1)
  switch (kind) {
    case 0:
      list.splice(chance.below(list.length + 1), 0, randomField(chance))
      return
    case 1:
      list.splice(at, 1)
      return
    case 2:
      list.splice(chance.below(list.length + 1), 0, copyOf(chosen!))
      return
    case 3: {
      const to = chance.below(list.length)
      list[at] = list[to]!
      list[to] = chosen!
      return
    }
    case 4:
      list.splice(at, 1)
      chance.pick(lists).splice(0, 0, chosen!)
      return
    case 5:
      shuffle(list, chance)
      return
    case 6:
      chosen!.padding = chance.pick([1, 2, 4, 8, 9, 10])
      return
    case 7:
      chosen!.length = chance.pick(EDGES)
      return
    case 8:
      // A little more, or less, than there is.
      chosen!.length = BigInt(Math.max(0, write([chosen!]).length + chance.below(9) - 6))
      return
    case 9:
      retype(chosen!, chosen!.key >>> 3, chance.pick(WIRE_TYPES), chance)
      return
    case 10:
      retype(chosen!, chance.pick(NUMBERS), chosen!.key & 7, chance)
      return
    case 11:
      putIntoGroup(list, at, chance)
      return
    case 12:
      nest(chosen!, chance)
      return
    case 13:
    case 14:
      split(list, at, chance)
      return
    case 15: {
      // A field of another Event, at the same depth or not.
      const strangers = [fieldsOf(other())]
      for (const some of strangers) for (const { fields } of some) if (fields) strangers.push(fields)
      const from = chance.pick(strangers)
      if (from.length > 0) list.splice(at, 0, copyOf(chance.pick(from)))
      return
    }
    case 16:
      list.splice(at, 0, ...Array.from({ length: 1 + chance.below(chance.once(8) ? 300 : 4) }, () => copyOf(chosen!)))
      return
    default:
      changeValue(chosen!, chance)
  }
}

function changeValue(chosen: Field, chance: Chance): void {
  const wireType = chosen.key & 7
  if (wireType === VARINT) {
    chosen.value = varint(chance.pick(EDGES), chance.once(3) ? chance.below(12) : 0)
  } else if (chosen.fields === null) {
    chosen.value = chance.once(6) ? new Uint8Array(0) : mutateBytes(chosen.value, chance)
  }
}

function randomField(chance: Chance): Field {
  const number = chance.pick(NUMBERS)
  const wireType = chance.pick(WIRE_TYPES)
  const made = field((number << 3) | wireType, new Uint8Array(0))
  retype(made, number, wireType, chance)
  return made
}

/** Makes a field another one, with a value that has the right form for it. */
function retype(chosen: Field, number: number, wireType: number, chance: Chance): void {
  const isSame = (chosen.key & 7) === wireType
  chosen.key = ((number << 3) | wireType) >>> 0
  if (isSame && chosen.value.length > 0) return
  // A length-delimited field keeps its bytes, so that a packed field becomes a string, and a string a message.
  if (wireType !== LENGTH_DELIMITED) chosen.fields = null
  if (wireType === VARINT) chosen.value = varint(chance.pick(EDGES))
  else if (wireType === FIXED64) chosen.value = Uint8Array.from({ length: 8 }, () => chance.below(256))
  else if (wireType === FIXED32) chosen.value = Uint8Array.from({ length: 4 }, () => chance.below(256))
  else if (wireType !== LENGTH_DELIMITED) chosen.value = new Uint8Array(0)
}

/** Opens a group before a field; it ends behind one of the next, with the wrong number, or not at all. */
function putIntoGroup(list: Field[], at: number, chance: Chance): void {
  const number = chance.pick(NUMBERS)
  const depth = chance.once(4) ? 1 + chance.below(200) : 1
  const none = new Uint8Array(0)
  const group = (key: number) => Array.from({ length: depth }, () => field(key >>> 0, none))
  if (!chance.once(3)) {
    const end = chance.once(6) ? chance.pick(NUMBERS) : number
    list.splice(at + chance.below(list.length - at + 1), 0, ...group((end << 3) | END_GROUP))
  }
  list.splice(at, 0, ...group((number << 3) | START_GROUP))
}

/** Puts a field into messages in messages. */
function nest(chosen: Field, chance: Chance): void {
  const number = chance.pick(NUMBERS)
  const depth = chance.once(8) ? chance.below(300) : 1 + chance.below(4)
  for (let i = 0; i < depth; i++) {
    const inner = { ...chosen }
    Object.assign(chosen, field(((number << 3) | LENGTH_DELIMITED) >>> 0, new Uint8Array(0), [inner]))
  }
}

/** Two fields of one: a message in two pieces, or the bytes of a packed field. */
function split(list: Field[], at: number, chance: Chance): void {
  const chosen = list[at]!
  if ((chosen.key & 7) !== LENGTH_DELIMITED) return
  if (chosen.fields) {
    const cut = chance.below(chosen.fields.length + 1)
    list.splice(at + 1, 0, field(chosen.key, chosen.value, chosen.fields.splice(cut)))
  } else {
    const cut = chance.below(chosen.value.length + 1)
    list.splice(at + 1, 0, field(chosen.key, chosen.value.subarray(cut)))
    chosen.value = chosen.value.subarray(0, cut)
  }
}

function shuffle(list: Field[], chance: Chance): void {
  for (let i = list.length - 1; i > 0; i--) {
    const k = chance.below(i + 1)
    const kept = list[i]!
    list[i] = list[k]!
    list[k] = kept
  }
}

// --------------------------------------------------------------------------------------------------- bytes and fields

/** The fields of a message. What can't be read as one is the last, as it is. */
function parse(bytes: Uint8Array, schema: Schema): Field[] {
  const fields: Field[] = []
  let at = 0
  while (at < bytes.length) {
    const start = at
    const [key, valueStart] = readVarint(bytes, at)
    const wireType = key & 7
    let end = valueStart
    let from = valueStart
    if (wireType === VARINT) end = readVarint(bytes, valueStart)[1]
    else if (wireType === FIXED64) end += 8
    else if (wireType === FIXED32) end += 4
    else if (wireType === LENGTH_DELIMITED) {
      const [length, contentStart] = readVarint(bytes, valueStart)
      from = contentStart
      end = contentStart + length
    } else if (wireType > END_GROUP) end = Number.POSITIVE_INFINITY
    if (!(key < 2 ** 32 && end <= bytes.length)) {
      fields.push(field(-1, bytes.subarray(start)))
      return fields
    }
    const value = bytes.subarray(from, end)
    const inner = wireType === LENGTH_DELIMITED ? schema[key >>> 3] : undefined
    fields.push(inner ? field(key, new Uint8Array(0), parse(value, inner)) : field(key, value))
    at = end
  }
  return fields
}

/** The number and where it ends; an endless position if it does not end. */
function readVarint(bytes: Uint8Array, start: number): [number, number] {
  let value = 0
  for (let at = start, factor = 1; at < bytes.length && at < start + 10; at++, factor *= 128) {
    value += (bytes[at]! & 127) * factor
    if (bytes[at]! < 128) return [value, at + 1]
  }
  return [value, Number.POSITIVE_INFINITY]
}

function varint(value: bigint, padding = 0): Uint8Array {
  const end = written.length
  return written.slice(putVarint(value, padding, end), end)
}

/** Messages are written from the end to the beginning, so that every length is known when it is its turn. */
let written = new Uint8Array(1 << 16)

function write(fields: readonly Field[]): Uint8Array {
  for (;;) {
    const start = put(fields, written.length)
    if (start >= 0) return written.slice(start)
    written = new Uint8Array(written.length * 2)
  }
}

/** @returns where the fields begin whose last one ends at `end`; below 0 if there is not room enough */
function put(fields: readonly Field[], end: number): number {
  let at = end
  for (let i = fields.length - 1; i >= 0; i--) {
    const { key, value, fields: inner, length, padding } = fields[i]!
    const fieldEnd = at
    if (inner) at = put(inner, at)
    else at -= value.length
    if (at < MAX_HEAD_BYTES) return -1
    if (!inner) written.set(value, at)
    if (key < 0) continue
    const isLong = (key & 7) === LENGTH_DELIMITED
    if (isLong) at = putVarint(length ?? fieldEnd - at, padding, at)
    at = putVarint(key, isLong ? 0 : padding, at)
  }
  return at
}

/** Key and length, both as long as they can be here. */
const MAX_HEAD_BYTES = 64

/** Writes a varint that ends at `end`; returns where it begins. */
function putVarint(value: number | bigint, padding: number, end: number): number {
  let byteLength = 1 + padding
  if (typeof value === 'number') for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) byteLength++
  else for (let rest = value; rest > 127n; rest >>= 7n) byteLength++
  const start = end - byteLength
  let rest = value
  for (let at = start; at < end; at++) {
    const more = at < end - 1 ? 128 : 0
    if (typeof rest === 'number') {
      written[at] = (rest & 127) | more
      rest = Math.floor(rest / 128)
    } else {
      written[at] = Number(rest & 127n) | more
      rest >>= 7n
    }
  }
  return start
}
