/** Parses digest lists: JSON Lines as `scan --format jsonl` or other programs write them. docs/checkpoints.md describes the format. */

import { quote, UsageError } from '../../base/errors.js'
import { DIGESTS, type DigestName } from '../../base/types.js'

/** The text of a list, as a whole or in pieces of any length, such as a file's stream. */
export type DigestListSource = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

/** A tensor in a list. */
export interface ListedTensor {
  /** The number of its line, from 1 on. */
  readonly line: number
  readonly tensor: string
  /** The step; null if the line has none. */
  readonly step: number | null
  readonly worker: string | null
  readonly dtype: string
  readonly shape: readonly number[]
  readonly digests: Readonly<Partial<Record<DigestName, string>>>
}

/** A wrong line of a list, which is ignored. */
export interface DigestListFault {
  readonly line: number
  readonly expected: string
  readonly got: string
}

/** The limit for a line's length. Of a longer line, no more is held in memory. */
const MAX_LINE_LENGTH = 1 << 20
/** The limits for a list, which may be compressed a thousandfold: several times a million tensors. */
const MAX_LINES = 10_000_000
const MAX_LENGTH = 2 ** 31
const MAX_DIMENSIONS = 254
const SHOWN_LENGTH = 60
const DIGEST_LENGTHS = { crc32c: 8, sha256: 64 } as const

/**
 * The lines of a list, without blank lines and those of strings or saved reductions, which have no digest.
 * @throws UsageError for a list that is longer than any
 */
export async function* digestLines(
  source: DigestListSource,
): AsyncGenerator<ListedTensor | DigestListFault, void, undefined> {
  let line = 0
  for await (const text of linesOf(source)) {
    line++
    if (line > MAX_LINES) throw new UsageError(`expected a digest list of at most ${MAX_LINES} lines, got more`)
    const tooLong = { line, expected: `at most ${MAX_LINE_LENGTH} characters`, got: 'more' }
    const parsed = text === null ? tooLong : text.trim() === '' ? null : parseLine(text, line)
    if (parsed !== null) yield parsed
  }
}

/** Lines without their ends; null for one that is too long. */
async function* linesOf(source: DigestListSource): AsyncGenerator<string | null> {
  const decoder = new TextDecoder()
  let open: string | null = ''
  const extend = (text: string) => {
    open = open === null || open.length + text.length > MAX_LINE_LENGTH ? null : open + text
    return open
  }
  let length = 0
  const isWhole = typeof source === 'string' || source instanceof Uint8Array
  for await (const chunk of isWhole ? [source] : source) {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      throw new UsageError(`expected pieces of a digest list as text or bytes, got ${typeof chunk}`)
    }
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    length += text.length
    if (length > MAX_LENGTH)
      throw new UsageError(`expected a digest list of at most ${MAX_LENGTH} characters, got more`)
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      yield extend(text.slice(from, end))
      open = ''
      from = end + 1
    }
    extend(text.slice(from))
  }
  if (extend(decoder.decode()) !== '') yield open
}

function parseLine(text: string, line: number): ListedTensor | DigestListFault | null {
  const fault = (expected: string, got: unknown): DigestListFault => ({ line, expected, got: shown(got) })
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return { line, expected: 'a JSON object', got: quote(text.slice(0, SHOWN_LENGTH)) }
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return fault('a JSON object', json)
  const { tensor, step = null, worker = null, dtype, shape, saved, error, ...others } = json as Record<string, unknown>
  if (error !== undefined)
    return { line, expected: 'a digest', got: `a tensor that could not be read: ${shown(error)}` }
  if (typeof tensor !== 'string') return fault('tensor, a name', tensor)
  const given = DIGESTS.filter(name => others[name] !== undefined)
  if (given.length === 0 && (saved === true || dtype === 'string')) return null
  if (step !== null && !Number.isSafeInteger(step)) return fault('step, a whole number', step)
  if (worker !== null && typeof worker !== 'string') return fault('worker, a name', worker)
  if (typeof dtype !== 'string') return fault('dtype, such as "float32"', dtype)
  if (!isShape(shape)) return fault('shape, such as [3, 5]', shape)
  for (const name of given) {
    const length = DIGEST_LENGTHS[name]
    const digest = others[name]
    const isRight = typeof digest === 'string' && digest.length === length && /^[0-9a-f]+$/.test(digest)
    if (!isRight) return fault(`${name}, ${length} hexadecimal digits in lower case`, digest)
  }
  if (given.length === 0) return { line, expected: 'crc32c or sha256', got: 'neither' }
  const digests = Object.fromEntries(given.map(name => [name, others[name] as string]))
  return { line, tensor, step: step as number | null, worker, dtype, shape, digests }
}

/** True for a text, and for pieces of one. */
export function isDigestSource(given: unknown): given is DigestListSource {
  if (typeof given === 'string') return true
  // A Map has pairs.
  return (
    typeof given === 'object' &&
    given !== null &&
    !(given instanceof Map) &&
    (Symbol.iterator in given || Symbol.asyncIterator in given)
  )
}

function isShape(shape: unknown): shape is readonly number[] {
  return Array.isArray(shape) && shape.length <= MAX_DIMENSIONS && shape.every(n => Number.isSafeInteger(n) && n >= 0)
}

function shown(value: unknown): string {
  if (value === undefined) return 'none'
  const json = JSON.stringify(value)
  return json.length > SHOWN_LENGTH ? `${json.slice(0, SHOWN_LENGTH)}…` : json
}
