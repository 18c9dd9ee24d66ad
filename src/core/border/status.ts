/** Turns the core's statuses into errors; the only place where a number becomes a sentence. */

import { EngineError, FormatError, quote, type TrialscanError } from '../../base/errors.js'
import { MAX_DIMENSIONS, Status } from './abi.js'

/** The fault that the core found in a record. */
export interface Fault {
  readonly status: Status
  /** The offset in the record. Default: 0. */
  readonly faultOffset?: number
  readonly expected: number
  readonly got: number
  /** The tag that the record has, if it is the wrong one. */
  readonly tag?: string
}

/** The record with the fault. */
export interface FaultPlace {
  readonly url: string
  /** The start of the record in the file. */
  readonly startByte: number
  /** The name; empty if unknown. */
  readonly tensor: string
}

/** The text for a status: a stable code, what was expected of the record, and what was found. */
type RefusalText = readonly [code: string, expected: (fault: Fault) => string, got: (fault: Fault) => string]

const TOO_LARGE: RefusalText = [
  'RecordTooLarge',
  () => 'a record whose tensor_content is its only large field',
  () => 'another large field',
]

const REFUSALS: Readonly<Record<Exclude<Status, Status.ok | Status.outOfMemory>, RefusalText>> = {
  [Status.truncated]: [
    'TruncatedRecord',
    ({ expected }) => `a record of ${expected} bytes`,
    ({ got }) => `${got} bytes before the file ends`,
  ],
  [Status.badLengthCrc]: [
    'BadLengthChecksum',
    ({ expected }) => `checksum ${hex(expected)} of the record's length`,
    ({ got }) => hex(got),
  ],
  [Status.badPayloadCrc]: [
    'BadPayloadChecksum',
    ({ expected }) => `checksum ${hex(expected)} of the payload`,
    ({ got }) => hex(got),
  ],
  [Status.lengthMismatch]: [
    'LengthMismatch',
    ({ expected }) => `a record of ${expected} bytes, as its index entry says`,
    ({ got }) => `one of ${got} bytes`,
  ],
  [Status.malformedEvent]: [
    'MalformedEvent',
    () => 'a well-formed Event message',
    () => 'bytes that do not parse as one',
  ],
  [Status.tagMismatch]: ['TagMismatch', () => 'a record of this tensor', ({ tag = '' }) => `one of ${quote(tag)}`],
  [Status.stepMismatch]: [
    'StepMismatch',
    ({ expected }) => `a record of step ${expected}`,
    ({ got }) => `one of step ${got}`,
  ],
  [Status.noTensor]: ['NoTensor', () => 'an Event with a tensor', () => 'one without'],
  [Status.unknownDType]: [
    'UnknownDType',
    () => 'a TensorFlow data type of numbers or strings',
    ({ got }) => `type number ${got}`,
  ],
  [Status.shapeMismatch]: [
    'ShapeMismatch',
    ({ expected }) => `${expected} bytes or values, as the shape says`,
    ({ got }) => `${got}`,
  ],
  [Status.badShape]: [
    'BadShape',
    () => `at most ${MAX_DIMENSIONS} dimensions, none negative or above 2^53, and at most 2^53 elements`,
    ({ got }) => `${got}`,
  ],
  [Status.needMore]: TOO_LARGE,
  [Status.needTail]: TOO_LARGE,
}

/** The code of a fault; null if the status is not a fault of the record. */
export function faultCode(status: Status): string | null {
  return (REFUSALS as Readonly<Record<number, RefusalText | undefined>>)[status]?.[0] ?? null
}

/** The error for a fault. */
export function faultError(fault: Fault, { url, startByte, tensor }: FaultPlace): TrialscanError {
  const { status } = fault
  if (status === Status.outOfMemory) {
    return new EngineError(`${url}, offset ${startByte}: out of memory for this record`, { url, offset: startByte })
  }
  const refusal = (REFUSALS as Readonly<Record<number, RefusalText | undefined>>)[status]
  if (refusal === undefined) {
    return new EngineError(`expected a known status from the core, got ${status}`, { url })
  }
  const [code, expectedOf, gotOf] = refusal
  const [expected, got] = [expectedOf(fault), gotOf(fault)]
  const offset = startByte + (fault.faultOffset ?? 0)
  const name = tensor === '' ? '' : `, tensor ${quote(tensor)}`
  const message = `${url}, offset ${offset}${name}: expected ${expected}, got ${got}`
  return new FormatError(code, message, { url, offset, expected, got, tensor })
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`
}
