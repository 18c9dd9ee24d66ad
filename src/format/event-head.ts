/**
 * Finds the content of an Event without reading its elements: tags, modes and the step. The core reads records that an index file lists;
 * this produces what an index file would say, from pieces of a file, and skips whatever is long.
 */

/** The bytes of a file, partly in memory. Positions are offsets in the file. */
export interface FileBytes {
  has(at: number, byteLength: number): boolean
  byte(at: number): number
  slice(at: number, byteLength: number): Uint8Array
}

/** The bytes that a walk needs before it goes on. */
export interface Needed {
  readonly at: number
  readonly byteLength: number
}

/** One Value of an Event. */
export interface EventValue {
  readonly tag: string
  /** The readable content: a tensor (or a `simple_value`), a histogram, or none. */
  readonly kind: 'tensor' | 'histogram' | null
  /** 1 + the index of the mode in MODES; 0 if not stored. */
  readonly mode: number
  /** The mode step; -1 if not stored. */
  readonly modeStep: number
}

export interface EventHead {
  /** The step, rounded beyond 2^53. */
  readonly step: number
  /** True if a training starts at this step (SessionLog START): earlier records from that step on are abandoned. */
  readonly isStart: boolean
  /** The Values with content or a mode. */
  readonly values: readonly EventValue[]
}

/** The bytes are not an Event, or the Event is rejected. */
export class MalformedEvent extends Error {
  constructor(
    readonly at: number,
    readonly expected = 'a well-formed Event message',
    readonly got = 'bytes that do not parse as one',
  ) {
    super('malformed Event')
  }
}

/** The expected and the actual length of a text. */
export function longText(byteLength: number): [expected: string, got: string] {
  return [`a name of at most ${MAX_TEXT_BYTES} bytes`, `one of ${byteLength}`]
}

/** The largest size of a field's key and length, in bytes. */
const FIELD_HEAD_BYTES = 20
/** The limit for a tag's length; a longer one can't be a name. */
export const MAX_TEXT_BYTES = 32 << 10
/** The limit for Values in an Event: an empty one takes two bytes in the file and a hundred in memory. */
const MAX_EVENT_VALUES = 1 << 20

/** Keys of the fields that are read: number << 3 | wire type. */
const VARINT = 0
const FIXED64 = 1
export const LENGTH_DELIMITED = 2
const START_GROUP = 3
const END_GROUP = 4
const FIXED32 = 5
export const EVENT_STEP = (2 << 3) | VARINT
const EVENT_GRAPH = (4 << 3) | LENGTH_DELIMITED
const EVENT_META_GRAPH = (9 << 3) | LENGTH_DELIMITED
export const EVENT_SUMMARY = (5 << 3) | LENGTH_DELIMITED
const EVENT_SESSION_LOG = (7 << 3) | LENGTH_DELIMITED
const SESSION_STATUS = (1 << 3) | VARINT
/** SessionLog.SessionStatus START. */
const SESSION_START = 1
const SUMMARY_VALUE = (1 << 3) | LENGTH_DELIMITED
const VALUE_TAG = (1 << 3) | LENGTH_DELIMITED
const VALUE_SIMPLE = (2 << 3) | FIXED32
const VALUE_IMAGE = (4 << 3) | LENGTH_DELIMITED
const VALUE_AUDIO = (6 << 3) | LENGTH_DELIMITED
const VALUE_HISTOGRAM = (5 << 3) | LENGTH_DELIMITED
export const VALUE_TENSOR = (8 << 3) | LENGTH_DELIMITED
const VALUE_METADATA = (9 << 3) | LENGTH_DELIMITED
const METADATA_PLUGIN = (1 << 3) | LENGTH_DELIMITED
const PLUGIN_NAME = (1 << 3) | LENGTH_DELIMITED
const PLUGIN_CONTENT = (2 << 3) | LENGTH_DELIMITED

type Walk<T> = Generator<Needed, T, void>

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Walks the Event in bytes `[start, end)`. Yields what it needs; the caller loads that into memory. @throws MalformedEvent */
export function* walkEventHead(bytes: FileBytes, start: number, end: number): Walk<EventHead> {
  const cursor = new Cursor(bytes, start)
  const values: EventValue[] = []
  let step = 0
  let isStart = false
  while (yield* cursor.next(end)) {
    if (cursor.key === EVENT_STEP) step = cursor.signedValue
    else if (cursor.key === EVENT_SESSION_LOG) isStart = yield* cursor.beginsWith(SESSION_STATUS, SESSION_START)
    else if (cursor.key === EVENT_SUMMARY) {
      const summaryEnd = cursor.enter()
      while (yield* cursor.next(summaryEnd)) {
        if (cursor.key !== SUMMARY_VALUE) continue
        const value = yield* walkValue(cursor, cursor.enter())
        if (value.kind === null && value.mode === 0) continue
        if (values.length === MAX_EVENT_VALUES) throw new MalformedEvent(cursor.at)
        values.push(value)
      }
    }
  }
  return { step, isStart, values }
}

/** The kinds of Values that are neither a number, a histogram nor a tensor. */
export type UnreadKind = 'image' | 'audio' | 'graph'

export interface UnreadValue {
  readonly kind: UnreadKind
  /** The tag; empty for a graph. */
  readonly tag: string
}

/** Yields the Values that `walkEventHead` skips. @throws MalformedEvent */
export function* walkUnread(bytes: FileBytes, start: number, end: number): Walk<readonly UnreadValue[]> {
  const cursor = new Cursor(bytes, start)
  const values: UnreadValue[] = []
  while (yield* cursor.next(end)) {
    if (cursor.key === EVENT_GRAPH || cursor.key === EVENT_META_GRAPH) values.push({ kind: 'graph', tag: '' })
    if (cursor.key !== EVENT_SUMMARY) continue
    const summaryEnd = cursor.enter()
    while (yield* cursor.next(summaryEnd)) {
      if (cursor.key !== SUMMARY_VALUE) continue
      const valueEnd = cursor.enter()
      let [tag, kind]: [string, UnreadKind | null] = ['', null]
      while (yield* cursor.next(valueEnd)) {
        if (cursor.key === VALUE_TAG) tag = yield* cursor.text()
        else if (cursor.key === VALUE_IMAGE) kind = 'image'
        else if (cursor.key === VALUE_AUDIO) kind = 'audio'
      }
      if (kind !== null) values.push({ kind, tag })
    }
  }
  return values
}

function* walkValue(cursor: Cursor, end: number): Walk<EventValue> {
  let tag = ''
  let kind: EventValue['kind'] = null
  let mode = 0
  let modeStep = -1
  while (yield* cursor.next(end)) {
    if (cursor.key === VALUE_TAG) tag = yield* cursor.text()
    else if (cursor.key === VALUE_TENSOR || cursor.key === VALUE_SIMPLE) kind = 'tensor'
    else if (cursor.key === VALUE_HISTOGRAM) kind ??= 'histogram'
    else if (cursor.key === VALUE_METADATA) {
      const metadataEnd = cursor.enter()
      while (yield* cursor.next(metadataEnd)) {
        if (cursor.key !== METADATA_PLUGIN) continue
        const { name, content } = yield* walkPlugin(cursor, cursor.enter())
        // As in the core, the last one counts.
        const number = /^\d{1,15}$/.test(content) ? Number(content) : -1
        if (name === 'mode') mode = number >= 1 && number <= 4 ? number : 0
        else if (name === 'mode_step') modeStep = number
      }
    }
  }
  return { tag, kind, mode, modeStep }
}

function* walkPlugin(cursor: Cursor, end: number): Walk<{ name: string; content: string }> {
  let name = ''
  let content = ''
  while (yield* cursor.next(end)) {
    // A longer name belongs to another plugin.
    const isOurs = cursor.byteLength <= 16
    if (cursor.key === PLUGIN_NAME) name = isOurs ? yield* cursor.text() : ''
    else if (cursor.key === PLUGIN_CONTENT) content = isOurs ? yield* cursor.text() : ''
  }
  return { name, content }
}

/** Moves from field to field through nested messages. */
export class Cursor {
  key = 0
  /** The value of a varint field. */
  value = 0
  /** The value as an int64. */
  signedValue = 0
  readonly #bytes: FileBytes
  #at: number
  /** The start and the end of the field's content. */
  #start = 0
  #end: number

  constructor(bytes: FileBytes, at: number) {
    this.#bytes = bytes
    this.#at = at
    this.#end = at
  }

  /** The start of the field, with its key. */
  get at(): number {
    return this.#at
  }

  /** The position of the field's first byte. */
  get start(): number {
    return this.#start
  }

  /** The number of bytes of the field. */
  get byteLength(): number {
    return this.#end - this.#start
  }

  /** Enters the message in the field; returns its end. */
  enter(): number {
    const end = this.#end
    this.#end = this.#start
    return end
  }

  /** Moves to the next field of the message that ends at `end`, past any groups; false after the last one. */
  *next(end: number): Walk<boolean> {
    let depth = 0
    while (this.#end < end) {
      this.#at = this.#end
      const byteLength = Math.min(FIELD_HEAD_BYTES, end - this.#at)
      if (!this.#bytes.has(this.#at, byteLength)) yield { at: this.#at, byteLength }
      this.#readHead(end)
      const wireType = this.key & 7
      if (wireType === START_GROUP) depth++
      else if (wireType === END_GROUP) depth--
      else if (depth === 0) return true
      if (depth < 0) throw new MalformedEvent(this.#at)
    }
    // An unterminated group.
    if (depth > 0) throw new MalformedEvent(this.#at)
    return false
  }

  /** True if the field is a message that begins with a short number. Its rest is not examined. */
  *beginsWith(key: number, value: number): Walk<boolean> {
    if (this.byteLength < 2) return false
    const needed = { at: this.#start, byteLength: 2 }
    if (!this.#bytes.has(needed.at, needed.byteLength)) yield needed
    return this.#bytes.byte(needed.at) === key && this.#bytes.byte(needed.at + 1) === value
  }

  /** The field as text. */
  *text(): Walk<string> {
    if (this.byteLength > MAX_TEXT_BYTES) {
      throw new MalformedEvent(this.#start, ...longText(this.byteLength))
    }
    const needed = { at: this.#start, byteLength: this.byteLength }
    if (!this.#bytes.has(needed.at, needed.byteLength)) yield needed
    return decoder.decode(this.#bytes.slice(needed.at, needed.byteLength))
  }

  #readHead(end: number): void {
    const start = this.#at
    this.key = this.#varint(end)
    if (this.key < 8 || this.key > 0xffffffff) throw new MalformedEvent(start)
    const wireType = this.key & 7
    let byteLength = 0
    if (wireType === VARINT) this.value = this.#varint(end)
    else if (wireType === FIXED64) byteLength = 8
    else if (wireType === LENGTH_DELIMITED) byteLength = this.#varint(end)
    else if (wireType === FIXED32) byteLength = 4
    else if (wireType !== START_GROUP && wireType !== END_GROUP) throw new MalformedEvent(start)
    this.#start = this.#at
    this.#end = this.#at + byteLength
    if (this.#end > end) throw new MalformedEvent(start)
  }

  #varint(end: number): number {
    let value = 0
    // The lower 63 bits inverted: a small number for a small negative int64.
    let inverse = 0
    let factor = 1
    for (let i = 0; i < 10 && this.#at < end; i++) {
      const byte = this.#bytes.byte(this.#at++)
      value += (byte & 127) * factor
      if (byte < 128) {
        this.signedValue = i === 9 && (byte & 1) === 1 ? -1 - inverse : value
        return value
      }
      inverse += (~byte & 127) * factor
      factor *= 128
    }
    throw new MalformedEvent(this.#at)
  }
}
