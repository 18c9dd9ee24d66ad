/** The records of a TFRecord file, in memory or as it comes, with their checks. */

import { CheckLevelNumber, Status } from '../engine/border/abi.js'
import { FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../engine/border/framing.js'
import type { Address } from '../engine/border/memory.js'
import { faultError } from '../engine/border/status.js'
import { withEngineSync } from '../engine/engines.js'
import { FormatError, type TrialscanError } from '../errors.js'
import { CHECK_LEVELS, type CheckLevel } from '../types.js'
import { WINDOW_BYTES } from '../worker/arrays.js'
import { type BytesInput, checksumOutside } from './checksum.js'
import { bytesOf } from './elements.js'
import { described, expectOptions, isObject, wrong } from './wrong.js'

export interface TFRecord {
  /** Where the record begins in the file. */
  readonly startByte: number
  /** Its length, framing included. */
  readonly byteLength: number
  /** What it holds. A view of the bytes that were given, unless they came in pieces and the record lay across two. */
  readonly payload: Uint8Array
}

export interface TFRecordOptions {
  /** What is checked: default `full`, both checksums. A payload may have the constant that smdebug writes as its checksum. */
  readonly checkLevel?: CheckLevel
  /** A longer record is refused, before it is read. Default: 2 GiB, more than a protobuf message has. */
  readonly maxByteLength?: number
  /** What errors call the file. Default `bytes`, or a File's name. */
  readonly name?: string
}

interface Reading {
  readonly level: number
  readonly maxByteLength: number
  readonly name: string
}

const CALL = 'readTFRecords'

/**
 * Reads the records of bytes in memory, or of a stream of pieces of any length. Of a stream, no more is held than a piece and the
 * record that it ends in.
 * @throws UsageError
 * @throws FormatError for the first record that is not right, after those before it
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
  return recordsOfBytes(bytesOf(CALL, bytes), reading)
}

function readingOf(bytes: unknown, options: TFRecordOptions): Reading {
  expectOptions(CALL, options, ['checkLevel', 'maxByteLength', 'name'])
  const { checkLevel = 'full', maxByteLength = 2 ** 31, name = bytes instanceof File ? bytes.name : 'bytes' } = options
  const level = CHECK_LEVELS.indexOf(checkLevel)
  if (level < 0) throw wrong(CALL, `one of ${CHECK_LEVELS.join(', ')} as checkLevel`, described(checkLevel))
  if (!Number.isSafeInteger(maxByteLength) || maxByteLength < FRAMING_LENGTH) {
    throw wrong(CALL, `maxByteLength to be a number of bytes from ${FRAMING_LENGTH}`, described(maxByteLength))
  }
  if (typeof name !== 'string') throw wrong(CALL, 'a name in text', described(name))
  return { level, maxByteLength, name }
}

function* recordsOfBytes(bytes: Uint8Array, reading: Reading): Generator<TFRecord, void, undefined> {
  for (let at = 0; at < bytes.length; ) {
    const { records, end, needed, error } = checkRecords(bytes.subarray(at), at, reading)
    yield* records
    if (error) throw error
    at += end
    if (needed > 0) throw truncated(at, needed, bytes.length - at, reading)
  }
}

async function* recordsOfStream(
  stream: AsyncIterable<Uint8Array>,
  reading: Reading,
): AsyncGenerator<TFRecord, void, undefined> {
  let startByte = 0
  // The beginning of a record whose rest is yet to come, and how many bytes of it tell more.
  let held: Uint8Array[] = []
  let heldByteLength = 0
  let needed = 0
  for await (const piece of stream) {
    if (!(piece instanceof Uint8Array)) throw wrong(CALL, 'a stream of Uint8Array', `one of ${described(piece)}`)
    for (let rest = piece; rest.length > 0; ) {
      let bytes = rest
      if (heldByteLength > 0) {
        const taken = rest.slice(0, needed - heldByteLength)
        held.push(taken)
        heldByteLength += taken.length
        rest = rest.subarray(taken.length)
        if (heldByteLength < needed) break
        bytes = joined(held, heldByteLength)
      }
      const checked = checkRecords(bytes, startByte, reading)
      yield* checked.records
      if (checked.error) throw checked.error
      startByte += checked.end
      needed = checked.needed
      if (heldByteLength === 0) {
        bytes = rest = rest.subarray(checked.end)
        if (needed === 0) continue
        rest = rest.subarray(rest.length)
      }
      held = needed === 0 ? [] : [bytes.slice()]
      heldByteLength = needed === 0 ? 0 : bytes.length
    }
  }
  if (heldByteLength > 0) throw truncated(startByte, needed, heldByteLength, reading)
}

function joined(pieces: readonly Uint8Array[], byteLength: number): Uint8Array {
  const bytes = new Uint8Array(byteLength)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

interface CheckedRecords {
  readonly records: readonly TFRecord[]
  /** Where the last of them ends. */
  readonly end: number
  /** How many bytes the next one needs, at least, if there are not as many; else 0. */
  readonly needed: number
  /** What is wrong with the next one. */
  readonly error?: TrialscanError
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
      const left = bytes.length - at
      if (left < HEADER_LENGTH) return { records, end: at, needed: left === 0 ? 0 : HEADER_LENGTH }
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
      if (left < byteLength) return { records, end: at, needed: byteLength }
      const payload = bytes.subarray(at + HEADER_LENGTH, at + HEADER_LENGTH + payloadLength)
      if (level === CheckLevelNumber.full) {
        const isHeld = at + byteLength <= held
        if (!isHeld && at > 0) return { records, end: at, needed: 0 }
        const crc = isHeld ? crcOf(at + HEADER_LENGTH, payloadLength) : checksumOutside(engine, payload, 0)
        const [computed, stored] = [engine.maskedCrc(crc), view.getUint32(at + HEADER_LENGTH + payloadLength, true)]
        if (computed !== stored && stored !== UNCHECKED_CRC) {
          const offset = HEADER_LENGTH + payloadLength
          return { records, end: at, needed: 0, error: refusal(Status.badPayloadCrc, at, offset, computed, stored) }
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
