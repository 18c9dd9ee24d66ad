/** JSON that others wrote, believed only after a look: every fault is a FormatError that names the file and the place. */

import { FormatError } from '../errors.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** Where a value stands, for the errors: the file, the error code of its kind, and the way to the value in it. */
export interface Place {
  readonly url: string
  readonly code: string
  readonly at: string
}

/** The place of a field or an element of the value at `place`. */
export function inside(place: Place, key: string | number): Place {
  const at = typeof key === 'number' ? `${place.at}[${key}]` : place.at === '' ? key : `${place.at}.${key}`
  return { url: place.url, code: place.code, at }
}

/** Longer texts are looked over before they are parsed: a byte of JSON can become a hundred in memory. */
const PARSED_UNSEEN = 1 << 20
/** A million tensors are four. */
const MAX_VALUES = 1 << 23
const MAX_DEPTH = 100

/**
 * The object that a JSON file holds.
 * @throws FormatError `code`, with the byte offset where the engine's message tells it; also for a text of more than a
 *   MiB that holds more than 2^23 values, or that is nested more than 100 deep
 */
export function parseJsonObject(text: string, url: string, code: string): JsonObject {
  const place = { url, code, at: '' }
  if (text.trim() === '') throw fault(place, 'a JSON object', 'an empty file', undefined, 0)
  const excess = text.length > PARSED_UNSEEN ? excessAt(text) : undefined
  if (excess !== undefined) {
    const wanted = `at most ${MAX_VALUES} values, nested no more than ${MAX_DEPTH} deep`
    throw fault(place, wanted, 'more', undefined, Buffer.byteLength(text.slice(0, excess)))
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // Not as its cause: V8's error holds all of the text, for as long as somebody holds the error.
    throw fault(place, 'JSON', reason, undefined, faultOffset(text, reason))
  }
  return expectObject(value, place)
}

/** Where a text holds more values, or nests them deeper, than is parsed. It may be no JSON at all. */
function excessAt(text: string): number | undefined {
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
    if (values > MAX_VALUES || depth > MAX_DEPTH) return at
  }
  return undefined
}

/** Where a string ends that begins at `start`, with its last quote. */
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

export function expectObject(value: unknown, place: Place): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(place, 'an object', show(value))
  return value as JsonObject
}

export function expectString(value: unknown, place: Place): string {
  if (typeof value !== 'string') throw fault(place, 'a string', show(value))
  return value
}

/** A whole number from `minimum` on that a double holds exactly. */
export function expectInteger(value: unknown, place: Place, minimum = 0): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < minimum) {
    throw fault(place, `a whole number from ${minimum} to 2^53 - 1`, show(value))
  }
  // JSON knows -0; nobody who counts bytes does.
  return value + 0
}

export function expectBoolean(value: unknown, place: Place): boolean {
  if (typeof value !== 'boolean') throw fault(place, 'true or false', show(value))
  return value
}

/** The elements of a list, each read by `element`; nothing (absent or null) is an empty list. */
export function expectList<T>(value: unknown, place: Place, element: (value: unknown, place: Place) => T): T[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw fault(place, 'a list', show(value))
  return value.map((item, index) => element(item, inside(place, index)))
}

/** The error to throw for a value that is not what it should be. */
export function fault(place: Place, expected: string, got: string, cause?: unknown, offset?: number): FormatError {
  const { url, code, at } = place
  const where = `${url}${offset === undefined ? '' : `, byte ${offset}`}${at === '' ? '' : `: ${at}`}`
  const fields = { url, expected, got, ...(at === '' ? {} : { at }), ...(offset === undefined ? {} : { offset }) }
  return new FormatError(code, `${where}: expected ${expected}, got ${got}`, fields, cause)
}

/** JSON as Python's json.dumps writes it: a blank after each `,` and `:`, and everything beyond ASCII escaped. */
export function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, field]) => `${pythonJson(key)}: ${pythonJson(field)}`)
      .join(', ')}}`
  }
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped)
}

/** A value as an error message shows it: short, and never more of a hostile file than 60 characters. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, 61)) : String(value)
  return text.length > 62 ? `${text.slice(0, 60)}…` : text
}

/**
 * The byte offset of a syntax error. V8 tells it for most errors (Node 20: "at position 5", Node 24 adds "(line 1
 * column 6)"), in UTF-16 units; for an unexpected token Node 20 tells only the text around it.
 */
function faultOffset(text: string, reason: string): number | undefined {
  const position = /at position (\d+)/.exec(reason)?.[1]
  if (position === undefined && !/end of JSON input/.test(reason)) return undefined
  return new TextEncoder().encode(text.slice(0, position === undefined ? text.length : Number(position))).length
}
