/** The core's statuses as errors: the one place where a number becomes a sentence. Mirrors assembly/status.ts. */

import { EngineError, FormatError, quote, type TrialscanError } from '../errors.js'

/** What the core found wrong with a record, and what it was asked for. */
export interface Fault {
  readonly status: number
  /** Bytes from the start of the record. */
  readonly faultOffset: number
  readonly expected: number
  readonly got: number
  /** The tag that the record has, where it is the wrong one. */
  readonly tag: string
}

/** The record the fault is in. */
export interface FaultPlace {
  readonly url: string
  /** Where the record starts in the file. */
  readonly startByte: number
  /** '' where it is not known. */
  readonly tensor: string
}

export const OK = 0
export const TRUNCATED = 1
export const BAD_PAYLOAD_CRC = 3
export const TAG_MISMATCH = 6
export const MALFORMED_EVENT = 5
export const NO_TENSOR = 8
export const NEED_MORE = 13
export const NEED_TAIL = 14

/** The error that a fault is. */
export function faultError(fault: Fault, { url, startByte, tensor }: FaultPlace): TrialscanError {
  const { expected, got } = fault
  const format = (code: string, wanted: string, found: string): FormatError => {
    const offset = startByte + fault.faultOffset
    const name = tensor === '' ? '' : `, tensor ${quote(tensor)}`
    const message = `${url}, offset ${offset}${name}: expected ${wanted}, got ${found}`
    return new FormatError(code, message, { url, offset, expected: wanted, got: found, tensor })
  }
  switch (fault.status) {
    case TRUNCATED:
      return format('TruncatedRecord', `a record of ${expected} bytes`, `${got} bytes before the file ends`)
    case 2:
      return format('BadLengthChecksum', `checksum ${hex(expected)} of the record's length`, hex(got))
    case BAD_PAYLOAD_CRC:
      return format('BadPayloadChecksum', `checksum ${hex(expected)} of the payload`, hex(got))
    case 4:
      return format('LengthMismatch', `a record of ${expected} bytes, as its index entry says`, `one of ${got} bytes`)
    case MALFORMED_EVENT:
      return format('MalformedEvent', 'a well-formed Event message', 'bytes that are none')
    case TAG_MISMATCH:
      return format('TagMismatch', `a record of that tensor`, `one of ${quote(fault.tag)}`)
    case 7:
      return format('StepMismatch', `a record of step ${expected}`, `one of step ${got}`)
    case NO_TENSOR:
      return format('NoTensor', 'an Event with a tensor', 'one without')
    case 9:
      return format('UnknownDType', 'a data type of TensorFlow that holds numbers or strings', `number ${got}`)
    case 10:
      return format('ShapeMismatch', `${expected} bytes or values, as the shape says`, `${got}`)
    case 11:
      return format(
        'BadShape',
        'at most 254 dimensions, none negative or above 2^53, and at most 2^53 elements',
        `${got}`,
      )
    case 12:
      return new EngineError(`${url}: no memory left for the record at ${startByte}`, { url, offset: startByte })
    case NEED_MORE:
    case NEED_TAIL:
      return format('RecordTooLarge', 'a record whose tensor_content is its only large field', 'another large field')
    default:
      return new EngineError(`the core answered with status ${fault.status}, which means nothing`, { url })
  }
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`
}
