/** The findings in a range of an event file: a row per record, a row per Value, problems and notes. */

import { type ErrorData, FormatError, type TrialscanError } from '../../../base/errors.js'
import type { Status } from '../../../core/border/abi.js'
import { faultCode } from '../../../core/border/status.js'
import { isTensorBoardFile } from '../../../format/paths.js'
import { type RecordProblem, VALUE_KINDS, type VerifiedRange } from '../../job/verify-job.js'

/** The number of problems of a range that are reported one by one; the others are counted. */
const MAX_PROBLEMS = 100
/** The number of Values or records at which a job ends, and leaves the rest of its range to another. */
const MAX_VALUES = 1 << 20

const KIND_NUMBERS = {
  other: VALUE_KINDS.indexOf('other'),
  tensor: VALUE_KINDS.indexOf('tensor'),
  histogram: VALUE_KINDS.indexOf('histogram'),
}

/** A problem of the last record: the first one, and any that shows that the payload has changed. */
export interface RecordFault extends Omit<RecordProblem, 'error'> {
  readonly code: string
}

/** True if an Event of a file can have a step. TensorBoard's can be below 0 (`add_scalar(name, value, -1)`). */
export function isStep(step: number, path: string): boolean {
  return Number.isSafeInteger(step) && (step >= 0 || isTensorBoardFile(path))
}

export function expectedStep(path: string): string {
  return `an Event of a step from ${isTensorBoardFile(path) ? '-2^53 + 1' : '0'} to 2^53 - 1`
}

export class FoundRecords {
  /** The faults of the last record that matter to the search for the next one. */
  faults: RecordFault[] = []
  /** True if the checksum of the last payload is wrong. */
  isSpoilt = false
  withoutChecksum = 0
  readonly #url: string
  readonly #path: string
  readonly #withShapes: boolean
  readonly #recordStart: number[] = []
  readonly #recordByteLength: number[] = []
  readonly #step: number[] = []
  readonly #isBad: number[] = []
  readonly #record: number[] = []
  readonly #tag: number[] = []
  readonly #mode: number[] = []
  readonly #modeStep: number[] = []
  readonly #shape: (readonly number[] | null)[] = []
  readonly #kind: number[] = []
  readonly #skipped: number[] = []
  readonly #problems = new Problems()
  readonly #notes = new Problems()

  constructor(url: string, path: string, withShapes: boolean) {
    this.#url = url
    this.#path = path
    this.#withShapes = withShapes
  }

  /** True if a job has found so much that the rest of its range goes to another job. */
  get isMuch(): boolean {
    return this.#record.length >= MAX_VALUES || this.#recordStart.length >= MAX_VALUES
  }

  /** The index of the last record. */
  get last(): number {
    return this.#recordStart.length - 1
  }

  startOf(record: number): number {
    return this.#recordStart[record]!
  }

  endOf(record: number): number {
    return this.#recordStart[record]! + this.#recordByteLength[record]!
  }

  byteLengthOf(record: number): number {
    return this.#recordByteLength[record]!
  }

  stepOf(record: number): number {
    return this.#step[record]!
  }

  isBad(record: number): boolean {
    return this.#isBad[record] === 1
  }

  /** The number of the first tag of the last record; null if it has none. */
  get firstTag(): number | null {
    const first = this.#record.lastIndexOf(this.last)
    return first < 0 ? null : this.#tag[first]!
  }

  /** The number of the only tag of the last record; null if it has several, or none. */
  get onlyTag(): number | null {
    const value = this.#record.lastIndexOf(this.last)
    return value < 0 || this.#record[value - 1] === this.last ? null : this.#tag[value]!
  }

  openRecord(start: number, byteLength: number, step: number): void {
    this.checkStep()
    this.#recordStart.push(start)
    this.#recordByteLength.push(byteLength)
    this.#step.push(step)
    this.#isBad.push(0)
    this.isSpoilt = false
    this.faults = []
    this.#problems.startRecord()
  }

  /** Sets the step of the last record; NaN if it is unknown. */
  setStep(step: number): void {
    this.#step[this.last] = step
  }

  /** Sets the end of the last record. */
  setEnd(end: number): void {
    this.#recordByteLength[this.last] = end - this.#recordStart[this.last]!
  }

  addValue(tag: number, mode: number, modeStep: number, kind: (typeof VALUE_KINDS)[number]): void {
    this.#record.push(this.last)
    this.#tag.push(tag)
    this.#mode.push(mode)
    this.#modeStep.push(modeStep)
    if (this.#withShapes) this.#shape.push(null)
    this.#kind.push(KIND_NUMBERS[kind])
  }

  /** Sets the shape of the last Value. */
  setShape(shape: readonly number[]): void {
    if (this.#withShapes) this.#shape[this.#shape.length - 1] = shape
  }

  /** Adds a range of bytes without a record. */
  skip(startByte: number, endByte: number): void {
    if (endByte > startByte) this.#skipped.push(startByte, endByte)
  }

  /** Checks the step of the last record. */
  checkStep(): void {
    const step = this.#step[this.last]
    if (step === undefined || Number.isNaN(step) || isStep(step, this.#path)) return
    const startByte = this.#recordStart[this.last]!
    this.setStep(Number.NaN)
    this.fail('BadStep', null, () => this.error('BadStep', startByte, expectedStep(this.#path), `one of step ${step}`))
  }

  error(code: string, offset: number, expected: string, got: string): FormatError {
    const message = `${this.#url}, offset ${offset}: expected ${expected}, got ${got}`
    return new FormatError(code, message, { url: this.#url, offset, expected, got })
  }

  /** Adds a problem of the last record. @param status the core's status @param error made only if the problem is reported */
  failAs(status: Status, tag: string | null, error: () => TrialscanError): void {
    // A status that is no fault of the record has no code; the error is reported as it is.
    this.fail(faultCode(status) ?? error().code, tag, error)
  }

  /** Adds a problem of the last record. @param error made only if the problem is reported, with that code */
  fail(code: string, tag: string | null, error: () => TrialscanError): void {
    const { last } = this
    this.#isBad[last] = 1
    const fault = { code, startByte: this.startOf(last), endByte: this.endOf(last), tag, step: this.#step[last]! }
    if (this.faults.length === 0 || code === 'BadPayloadChecksum') this.faults.push(fault)
    this.#problems.add(fault, () => error().toJSON(), true)
  }

  /** Adds a problem of an earlier record. */
  failRecord(record: number, tag: string, code: string, error: () => TrialscanError, step = this.stepOf(record)): void {
    this.#problems.add({ code, ...this.#placeOf(record), tag, step }, () => error().toJSON())
  }

  setBad(record: number): void {
    this.#isBad[record] = 1
  }

  /** Adds a problem of a place without a record. */
  problem(error: TrialscanError, startByte: number, endByte: number): void {
    const fault = { code: error.code, startByte, endByte, tag: null, step: Number.NaN }
    this.#problems.add(fault, () => error.toJSON())
  }

  /** Adds a harmless note. */
  note(code: string, record: number, tag: string | null, error: () => TrialscanError): void {
    this.#notes.add({ code, ...this.#placeOf(record), tag, step: this.stepOf(record) }, () => error().toJSON())
  }

  /** Replaces one problem of the last record, or all of them. */
  replace(before: RecordFault, endByte: number, error: FormatError, isOnly: boolean): void {
    this.#problems.removeOfRecord(isOnly ? before.code : null)
    this.#problems.add({ ...before, code: error.code, endByte }, () => error.toJSON())
    this.faults = []
  }

  reply(byteLength: number, startByte: number, endByte: number): VerifiedRange {
    return {
      byteLength,
      startByte,
      endByte,
      recordStart: Float64Array.from(this.#recordStart),
      recordByteLength: Float64Array.from(this.#recordByteLength),
      withoutChecksum: this.withoutChecksum,
      step: Float64Array.from(this.#step),
      isBad: Uint8Array.from(this.#isBad),
      record: Int32Array.from(this.#record),
      tag: Int32Array.from(this.#tag),
      mode: Uint8Array.from(this.#mode),
      modeStep: Float64Array.from(this.#modeStep),
      shape: this.#shape,
      kind: Uint8Array.from(this.#kind),
      skipped: Float64Array.from(this.#skipped),
      problems: this.#problems.inOrder,
      problemCounts: this.#problems.counts,
      notes: this.#notes.inOrder,
      noteCounts: this.#notes.counts,
    }
  }

  #placeOf(record: number): Pick<RecordProblem, 'startByte' | 'endByte'> {
    return { startByte: this.startOf(record), endByte: this.endOf(record) }
  }
}

/** Problems, of which the first are reported. */
class Problems {
  readonly counts: Record<string, number> = {}
  readonly #reported: RecordProblem[] = []
  /** The problems of the last record: the reported ones, and the number of each code. */
  #ofRecord: RecordProblem[] = []
  #countsOfRecord = new Map<string, number>()

  startRecord(): void {
    if (this.#countsOfRecord.size === 0) return
    this.#ofRecord = []
    this.#countsOfRecord = new Map()
  }

  /** @param isOfRecord true for one of the last record, so that it can be taken back */
  add({ code, ...place }: RecordFault, error: () => ErrorData, isOfRecord = false): void {
    this.counts[code] = (this.counts[code] ?? 0) + 1
    if (isOfRecord) this.#countsOfRecord.set(code, (this.#countsOfRecord.get(code) ?? 0) + 1)
    if (this.#reported.length >= MAX_PROBLEMS) return
    const problem = { error: error(), ...place }
    this.#reported.push(problem)
    if (isOfRecord) this.#ofRecord.push(problem)
  }

  /** Takes back problems of the last record. @param code only the first with this code; null for all of them */
  removeOfRecord(code: string | null): void {
    const matching =
      code === null ? this.#ofRecord : this.#ofRecord.filter(({ error }) => error.code === code).slice(0, 1)
    for (const problem of matching) this.#reported.splice(this.#reported.lastIndexOf(problem), 1)
    if (code !== null) this.counts[code]!--
    else for (const [code, count] of this.#countsOfRecord) this.counts[code]! -= count
    this.#ofRecord = []
    this.#countsOfRecord = new Map()
  }

  /** The reported problems in the order of the file. */
  get inOrder(): RecordProblem[] {
    return this.#reported.sort((a, b) => a.startByte - b.startByte)
  }
}
