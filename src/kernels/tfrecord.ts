/** Reads and checks the records of a TFRecord file, in memory or as a stream. */

import { FormatError, type TrialscanError } from '../base/errors.js'
import { CHECK_LEVELS, type CheckLevel } from '../base/types.js'
import { CheckLevelNumber, Status } from '../core/border/abi.js'
import { FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../core/border/framing.js'
import type { Address } from '../core/border/memory.js'
import { faultError } from '../core/border/status.js'
import { withEngineSync } from '../core/engines.js'
import { WINDOW_BYTES } from '../scan/worker/reduce-arrays.js'
import { type BytesInput, checksumOutside } from './checksum.js'
import { bytesOf } from './elements.js'
import { described, expectOptions, isObject, wrong } from './wrong.js'

export interface TFRecord {
  /** The offset of the record in the file. */
  readonly startByte: number
  /** The length of the record in bytes, framing included. */
  readonly byteLength: number
  /** The payload: a view of the given bytes, or a copy if the record spanned two pieces. */
  readonly payload: Uint8Array
}

export interface TFRecordOptions {
  /** The checksums to verify. Default: `full`, both. For a payload, smdebug's constant is accepted as well. */
  readonly checkLevel?: CheckLevel
  /** The limit for a record's length. Default: 2 GiB, the limit of a protobuf message. */
  readonly maxByteLength?: number
  /** The name of the file in errors. Default: `bytes`, or a File's name. */
  readonly name?: string
  /** Called with each error; reading continues at the next record that can be found. Default: the first error is thrown. */
  readonly onDamage?: (error: TrialscanError) => void
}

interface Reading {
  readonly level: number
  readonly maxByteLength: number
  readonly name: string
  readonly onDamage: ((error: TrialscanError) => void) | undefined
}

const CALL = 'readTFRecords'

/**
 * Reads the records of bytes in memory, or of a stream of pieces of any length. For a stream, memory holds a piece and the record that
 * spans its end. A stream that is compressed with gzip or zlib is decompressed.
 * @throws UsageError
 * @throws FormatError for the first wrong record, after those before it, unless `onDamage` is given; for compressed bytes in memory
 */
export function readTFRecords(bytes: BytesInput, options?: TFRecordOptions): Generator<TFRecord, void, undefined>
export function readTFRecords(
  bytes: AsyncIterable<Uint8Array> | Blob,
  options?: TFRecordOptions,
): AsyncGenerator<TFRecord, void, undefined>
export function readTFRecords(
  bytes: BytesInput | AsyncIterable<Uint8Array> | Blob,
  options: TFRecordOptions = {},
): Generator<TFRecord, void, undefined> | AsyncGenerator<TFRecord, void, undefined> {
  const reading = readingOf(bytes, options)
  if (bytes instanceof Blob) return recordsOfStream(bytes.stream(), reading)
  if (isObject(bytes) && Symbol.asyncIterator in bytes) return recordsOfStream(bytes, reading)
  return recordsInMemory(bytesOf(CALL, bytes), reading)
}

function readingOf(bytes: unknown, options: TFRecordOptions): Reading {
  expectOptions(CALL, options, ['checkLevel', 'maxByteLength', 'name', 'onDamage'])
  const { checkLevel = 'full', maxByteLength = 2 ** 31, onDamage } = options
  const { name = bytes instanceof File ? bytes.name : 'bytes' } = options
  const level = CHECK_LEVELS.indexOf(checkLevel)
  if (level < 0) throw wrong(CALL, `one of ${CHECK_LEVELS.join(', ')} as checkLevel`, described(checkLevel))
  if (!Number.isSafeInteger(maxByteLength) || maxByteLength < FRAMING_LENGTH) {
    throw wrong(CALL, `maxByteLength to be a number of bytes from ${FRAMING_LENGTH}`, described(maxByteLength))
  }
  if (typeof name !== 'string') throw wrong(CALL, 'a name in text', described(name))
  if (onDamage !== undefined && typeof onDamage !== 'function')
    throw wrong(CALL, 'a function as onDamage', described(onDamage))
  return { level, maxByteLength, name, onDamage }
}

function* recordsInMemory(bytes: Uint8Array, reading: Reading): Generator<TFRecord, void, undefined> {
  const format = compressionOf(bytes)
  if (format !== null) throw compressed(format, reading)
  yield* new RecordReader(reading).take(bytes, true)
}

async function* recordsOfStream(
  stream: AsyncIterable<Uint8Array>,
  reading: Reading,
): AsyncGenerator<TFRecord, void, undefined> {
  const reader = new RecordReader(reading)
  // The beginning of an incomplete record, and the number of bytes that decide more about it.
  let held: Uint8Array[] = []
  let heldByteLength = 0
  let needed = 0
  for await (const piece of plainStream(stream, reading)) {
    heldByteLength += piece.length
    held.push(heldByteLength < needed ? piece.slice() : piece)
    if (heldByteLength < needed) continue
    const bytes = joined(held)
    needed = yield* reader.take(bytes, false)
    const rest = bytes.subarray(bytes.length - reader.left)
    held = rest.length === 0 ? [] : [rest.slice()]
    heldByteLength = rest.length
  }
  yield* reader.take(joined(held), true)
}

/** Reads the records of a file, of which it gets one run of bytes after another, and reports each damaged stretch once. */
class RecordReader {
  readonly #reading: Reading
  /** The offset in the file of the next bytes. */
  #startByte = 0
  #isDamageTold = false
  /** The number of the last bytes that come again, with more behind them. */
  left = 0

  constructor(reading: Reading) {
    this.#reading = reading
  }

  /**
   * @param isAll true if the file ends with these bytes
   * @returns the number of bytes, from those left on, that decide more; 0 if none are left
   */
  *take(bytes: Uint8Array, isAll: boolean): Generator<TFRecord, number, undefined> {
    const from = this.#startByte
    const end = (at: number, needed: number): number => {
      this.#startByte = from + at
      this.left = bytes.length - at
      return needed
    }
    for (let at = 0; at < bytes.length; ) {
      const {
        records,
        end: checked,
        needed,
        error,
        badByteLength,
      } = checkRecords(bytes.subarray(at), from + at, this.#reading)
      if (records.length > 0) this.#isDamageTold = false
      yield* records
      at += checked
      const rest = bytes.subarray(at)
      if (error) {
        const wanted = (badByteLength ?? 0) + HEADER_LENGTH
        // The following bytes show if the length is right.
        if (!isAll && this.#reading.onDamage && badByteLength !== undefined && rest.length < wanted)
          return end(at, wanted)
        this.#tell(error)
        at += skippedBehind(rest, badByteLength, isAll ? rest.length : UNKNOWN)
      } else if (needed > 0) {
        if (!isAll) return end(at, needed)
        this.#tell(truncated(from + at, needed, rest.length, this.#reading))
        // Records may have been appended to a cut-off one.
        at += searched(rest, rest.length)
        if (bytes.length - at < HEADER_LENGTH) break
      }
    }
    return end(bytes.length, 0)
  }

  /** @throws the error, unless a callback takes it */
  #tell(error: TrialscanError): void {
    const { onDamage } = this.#reading
    if (onDamage === undefined || error.code === 'RecordTooLarge') throw error
    if (!this.#isDamageTold) onDamage(error)
    this.#isDamageTold = true
  }
}

/** The remaining length of a stream: unknown, more than any record has. */
const UNKNOWN = Number.POSITIVE_INFINITY

/**
 * The number of bytes to skip at a wrong record.
 * @param bytes the bytes from that record on
 * @param byteLength the length of the record, if its frame is right
 * @param remaining the number of bytes up to the end of the file
 */
function skippedBehind(bytes: Uint8Array, byteLength: number | undefined, remaining: number): number {
  if (byteLength !== undefined) {
    const next = bytes.subarray(byteLength, byteLength + HEADER_LENGTH)
    // If no record begins behind it, its length is wrong, or bytes are missing.
    if (next.length < HEADER_LENGTH || searched(next, UNKNOWN, 0) === 0) return byteLength
  }
  return searched(bytes, remaining)
}

/** Searches for the next valid header. @returns its position; without one, the first position at which a header would be incomplete */
function searched(bytes: Uint8Array, remaining: number, from = 1): number {
  return withEngineSync(engine => {
    const windowLength = Math.min(WINDOW_BYTES, bytes.length)
    for (let at = from; ; ) {
      engine.reset()
      const held = Math.min(windowLength, bytes.length - at)
      if (held < HEADER_LENGTH) return Math.min(bytes.length, at)
      const window = engine.reserveBytes(held)
      engine.view(window, held).set(bytes.subarray(at, at + held))
      const frame = engine.survey.findFrame(window, held, remaining - at)
      at += frame
      if (frame + HEADER_LENGTH <= held || from === 0) return at
    }
  })
}

/** The compression of a file; null for none. A length can look like gzip's magic number, but not with a valid checksum. */
function compressionOf(head: Uint8Array): 'gzip' | 'deflate' | null {
  const [first = 0, second = 0] = head
  const isGzip = first === 0x1f && second === 0x8b
  const isZlib = (first & 0x8f) === 8 && ((first << 8) | second) % 31 === 0
  if (
    (!isGzip && !isZlib) ||
    (head.length >= HEADER_LENGTH && searched(head.subarray(0, HEADER_LENGTH), UNKNOWN, 0) === 0)
  )
    return null
  return isGzip ? 'gzip' : 'deflate'
}

const COMPRESSIONS = { gzip: 'gzip', deflate: 'zlib' } as const

function compressed(format: keyof typeof COMPRESSIONS, { name: url }: Reading): FormatError {
  const [expected, got] = [
    'TFRecords',
    `what is compressed with ${COMPRESSIONS[format]}: give it as a stream or a Blob`,
  ]
  return new FormatError('Compressed', `${url}, offset 0: expected ${expected}, got ${got}`, {
    url,
    offset: 0,
    expected,
    got,
  })
}

/** The stream itself, or decompressed. */
async function* plainStream(stream: AsyncIterable<Uint8Array>, reading: Reading): AsyncGenerator<Uint8Array> {
  const pieces = piecesOf(stream)
  const head = (await pieces.next()).value as Uint8Array
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      yield head
      yield* pieces
    } finally {
      await pieces.return(undefined)
    }
  }
  const format = compressionOf(head)
  yield* format === null ? all() : decompressed(all(), format, reading)
}

/** The pieces of a stream. The first holds a header, or all of the stream. */
async function* piecesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined, undefined> {
  let head: Uint8Array | null = new Uint8Array(0)
  for await (const piece of stream) {
    if (!(piece instanceof Uint8Array)) throw wrong(CALL, 'a stream of Uint8Array', `one of ${described(piece)}`)
    if (head === null) {
      yield piece
      continue
    }
    head = joined([head, piece])
    if (head.length < HEADER_LENGTH) continue
    yield head
    head = null
  }
  if (head !== null) yield head
  return undefined
}

async function* decompressed(
  stream: AsyncGenerator<Uint8Array>,
  format: keyof typeof COMPRESSIONS,
  { name: url }: Reading,
): AsyncGenerator<Uint8Array> {
  let failure: { readonly error: unknown } | undefined
  const source = new ReadableStream({
    async pull(controller) {
      const next = await stream.next().catch((error: unknown) => {
        failure = { error }
        throw error
      })
      if (next.done) controller.close()
      else controller.enqueue(next.value as Uint8Array<ArrayBuffer>)
    },
    async cancel() {
      await stream.return(undefined)
    },
  })
  try {
    yield* source.pipeThrough(new DecompressionStream(format))
  } catch (error) {
    if (failure !== undefined) throw failure.error
    const [expected, got] = [`bytes that are compressed with ${COMPRESSIONS[format]}`, 'others, or not all of them']
    throw new FormatError('BadCompression', `${url}: expected ${expected}, got ${got}`, { url, expected, got }, error)
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

interface CheckedRecords {
  readonly records: readonly TFRecord[]
  /** The end of the last record. */
  readonly end: number
  /** The number of bytes that the next record needs at least, if more are needed; otherwise 0. */
  readonly needed: number
  /** The error of the next record, and its length if the frame is valid. */
  readonly error?: TrialscanError
  readonly badByteLength?: number
}

/** Checks as many records as fit into a window, at least one. */
function checkRecords(bytes: Uint8Array, startByte: number, { level, maxByteLength, name }: Reading): CheckedRecords {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const records: TFRecord[] = []
  const refusal = (status: Status, at: number, faultOffset: number, expected: number, got: number): TrialscanError => {
    return faultError(
      { status, faultOffset, expected, got, tag: '' },
      { url: name, startByte: startByte + at, tensor: '' },
    )
  }
  return withEngineSync(engine => {
    engine.reset()
    const held = Math.min(WINDOW_BYTES, bytes.length)
    const window = engine.reserveBytes(held)
    engine.view(window, held).set(bytes.subarray(0, held))
    const crcOf = (at: number, byteLength: number): number => engine.crc32c((window + at) as Address, byteLength)
    for (let at = 0; ; ) {
      const remaining = bytes.length - at
      if (remaining < HEADER_LENGTH) return { records, end: at, needed: remaining === 0 ? 0 : HEADER_LENGTH }
      if (at + HEADER_LENGTH > held) return { records, end: at, needed: 0 }
      if (level >= CheckLevelNumber.minimal) {
        const [computed, stored] = [engine.maskedCrc(crcOf(at, 8)), view.getUint32(at + 8, true)]
        if (computed !== stored) {
          return { records, end: at, needed: 0, error: refusal(Status.badLengthCrc, at, 8, computed, stored) }
        }
      }
      const payloadLength = view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
      const byteLength = payloadLength + FRAMING_LENGTH
      if (byteLength > maxByteLength) {
        return { records, end: at, needed: 0, error: tooLong(startByte + at, byteLength, maxByteLength, name) }
      }
      if (remaining < byteLength) return { records, end: at, needed: byteLength }
      const payload = bytes.subarray(at + HEADER_LENGTH, at + HEADER_LENGTH + payloadLength)
      if (level === CheckLevelNumber.full) {
        const isHeld = at + byteLength <= held
        if (!isHeld && at > 0) return { records, end: at, needed: 0 }
        const crc = isHeld ? crcOf(at + HEADER_LENGTH, payloadLength) : checksumOutside(engine, payload, 0)
        const [computed, stored] = [engine.maskedCrc(crc), view.getUint32(at + HEADER_LENGTH + payloadLength, true)]
        if (computed !== stored && stored !== UNCHECKED_CRC) {
          const offset = HEADER_LENGTH + payloadLength
          const error = refusal(Status.badPayloadCrc, at, offset, computed, stored)
          return { records, end: at, needed: 0, error, badByteLength: byteLength }
        }
      }
      records.push({ startByte: startByte + at, byteLength, payload })
      at += byteLength
    }
  })
}

function tooLong(offset: number, byteLength: number, maxByteLength: number, url: string): FormatError {
  const [expected, got] = [`a record of at most ${maxByteLength} bytes`, `one of ${byteLength}`]
  const message = `${url}, offset ${offset}: expected ${expected}, got ${got}`
  return new FormatError('RecordTooLarge', message, { url, offset, expected, got })
}

function truncated(startByte: number, expected: number, got: number, { name }: Reading): TrialscanError {
  return faultError(
    { status: Status.truncated, faultOffset: 0, expected, got, tag: '' },
    { url: name, startByte, tensor: '' },
  )
}
