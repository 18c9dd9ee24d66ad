/** Parses untrusted JSON: every fault is a FormatError with the file and the place. */

import { FormatError } from '../base/errors.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** The place of a value, for errors: the file, the file's error code, and the path to the value. */
export interface JsonPlace {
  readonly url: string
  readonly code: string
  readonly at: string
}

/** The place of a field or an element of the value at `place`. */
export function inside(place: JsonPlace, key: string | number): JsonPlace {
  const at = typeof key === 'number' ? `${place.at}[${key}]` : place.at === '' ? key : `${place.at}.${key}`
  return { url: place.url, code: place.code, at }
}

/** The length from which texts are checked before they are parsed: a byte of JSON can take a hundred in memory. */
const PARSED_UNSEEN = 1 << 20
/** The limit of values in a text; a million tensors have four million. */
const MAX_JSON_VALUES = 1 << 23
const MAX_NESTING = 100

/**
 * The object in a JSON file.
 * @throws FormatError `code`, with the byte offset if the engine's message has it; also for a text of more than 1 MiB with more than 2^23
 *   values, or nested more than 100 deep
 */
export function parseJsonObject(text: string, url: string, code: string): JsonObject {
  const place = { url, code, at: '' }
  if (text.trim() === '') throw jsonFault(place, 'a JSON object', 'an empty file', undefined, 0)
  const excess = text.length > PARSED_UNSEEN ? nestingExcessAt(text) : undefined
  if (excess !== undefined) {
    const wanted = `at most ${MAX_JSON_VALUES} values, nested no more than ${MAX_NESTING} deep`
    throw jsonFault(place, wanted, 'more', undefined, Buffer.byteLength(text.slice(0, excess)))
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Without its cause: V8's error retains the whole text.
    const at = syntaxErrorAt(text)
    const before = text.slice(0, at)
    // If the bytes were not UTF-8, their number is unknown.
    const offset = before.includes('\ufffd') ? undefined : Buffer.byteLength(before)
    const got = at < text.length ? JSON.stringify(text.slice(at, at + 20)) : 'the end of the file'
    throw jsonFault(place, 'JSON', got, undefined, offset)
  }
  return expectObject(value, place)
}

/** The position at which a text exceeds the limits of values or depth; undefined if it doesn't. It need not be JSON. */
function nestingExcessAt(text: string): number | undefined {
  let values = 0
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = stringEnd(text, at)
        break
      case 0x5b: // [
      case 0x7b: // {
        depth++
        values++
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        break
      case 0x2c: // ,
        values++
        break
    }
    if (values > MAX_JSON_VALUES || depth > MAX_NESTING) return at
  }
  return undefined
}

/** The closing quote of the string that begins at `start`. Regular expressions overflow the stack on long ones. */
function stringEnd(text: string, start: number): number {
  let at = start
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at < 0) return text.length
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return at
  }
}

export function expectObject(value: unknown, place: JsonPlace): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw jsonFault(place, 'an object', jsonExcerpt(value))
  return value as JsonObject
}

export function expectString(value: unknown, place: JsonPlace): string {
  if (typeof value !== 'string') throw jsonFault(place, 'a string', jsonExcerpt(value))
  return value
}

/** An integer, at least `minimum`, that a double represents exactly. */
export function expectInteger(value: unknown, place: JsonPlace, minimum = 0): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < minimum) {
    throw jsonFault(place, `a whole number from ${minimum} to 2^53 - 1`, jsonExcerpt(value))
  }
  // JSON has -0; byte counts do not.
  return value + 0
}

export function expectBoolean(value: unknown, place: JsonPlace): boolean {
  if (typeof value !== 'boolean') throw jsonFault(place, 'true or false', jsonExcerpt(value))
  return value
}

/** The elements of a list, each read by `element`. An absent list, or null, is an empty one. */
export function expectList<T>(value: unknown, place: JsonPlace, element: (value: unknown, place: JsonPlace) => T): T[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw jsonFault(place, 'a list', jsonExcerpt(value))
  return value.map((item, index) => element(item, inside(place, index)))
}

/** The error for a wrong value. */
export function jsonFault(
  place: JsonPlace,
  expected: string,
  got: string,
  cause?: unknown,
  offset?: number,
): FormatError {
  const { url, code, at } = place
  const where = `${url}${offset === undefined ? '' : `, byte ${offset}`}${at === '' ? '' : `: ${at}`}`
  const fields = { url, expected, got, ...(at === '' ? {} : { at }), ...(offset === undefined ? {} : { offset }) }
  return new FormatError(code, `${where}: expected ${expected}, got ${got}`, fields, cause)
}

/** JSON in the form of Python's json.dumps: a space after each `,` and `:`, and everything beyond ASCII escaped. */
export function pythonJson(value: unknown): string {
  // Only texts and keys have such characters.
  return spacedJson(value).replace(/[\u007f-\uffff]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${spacedJson(field)}`)
    return `{${fields.join(', ')}}`
  }
  return JSON.stringify(value)
}

/** The position behind a text in JSON; the end if it is not closed. */
export function jsonTextEnd(json: string, start: number): number {
  return Math.min(stringEnd(json, start) + 1, json.length)
}

/** Texts with their quotes, marks and words of JSON, in their order. */
export function* jsonTokens(json: string): Generator<{ readonly token: string; readonly at: number }> {
  const word = /[^\s{}[\]:,"]+/y
  for (let at = 0, end = 0; at < json.length; at = end) {
    const char = json[at]!
    if (char === '"') end = jsonTextEnd(json, at)
    else {
      word.lastIndex = at
      end = word.test(json) ? word.lastIndex : at + 1
    }
    if (!BLANKS.has(char)) yield { token: json.slice(at, end), at }
  }
}

/** A value in the form that messages use: at most 60 characters, since the file may be hostile. */
export function jsonExcerpt(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, 61)) : String(value)
  return text.length > 62 ? `${text.slice(0, 60)}…` : text
}

/**
 * The position at which a text stops being JSON, in UTF-16 units; its length if it ends too soon. V8 gives this only in some errors, in
 * changing words.
 */
function syntaxErrorAt(text: string): number {
  /** The closing brackets of the open objects and lists, the innermost last. */
  const open: string[] = []
  let wanted: 'value' | 'value or ]' | 'key' | 'key or }' | ':' | 'more' = 'value'
  for (const { token, at } of jsonTokens(text)) {
    if (token === open.at(-1) && (wanted === 'more' || wanted.endsWith(` ${token}`))) {
      open.pop()
      wanted = 'more'
    } else if (wanted === 'more' && token === ',' && open.length > 0) wanted = open.at(-1) === '}' ? 'key' : 'value'
    else if (wanted === ':' && token === ':') wanted = 'value'
    else if (wanted === 'more' || wanted === ':') return at
    else if (token[0] === '"') {
      const wrong = wrongInString(text, at + 1, stringEnd(text, at))
      if (wrong !== null) return wrong
      wanted = wanted.startsWith('key') ? ':' : 'more'
    } else if (wanted.startsWith('key')) return at
    else if (token === '{' || token === '[') {
      open.push(token === '{' ? '}' : ']')
      wanted = token === '{' ? 'key or }' : 'value or ]'
    } else {
      const [scalar = ''] = SCALAR.exec(token) ?? []
      if (scalar !== token) return at + scalar.length
      wanted = 'more'
    }
  }
  return text.length
}

const BLANKS: ReadonlySet<string> = new Set(' \n\r\t')
const SCALAR = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/
const CUT_ESCAPE = /^\\(?:u[0-9a-fA-F]{0,3})?$/
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** The first forbidden character inside a string, from `start` to `end`; `end` if the closing quote is missing; null if there is none. */
function wrongInString(text: string, start: number, end: number): number | null {
  for (let at = start; at < end; ) {
    const code = text.charCodeAt(at)
    if (code < 0x20) return at
    if (code === 0x5c) {
      ESCAPE.lastIndex = at
      if (!ESCAPE.test(text)) return CUT_ESCAPE.test(text.slice(at, at + 6)) ? text.length : at
      at = ESCAPE.lastIndex
    } else at++
  }
  return end >= text.length ? text.length : null
}
