/** A row of a scan, and how it is written: as CSV, or as a line of JSON. Threads write the rows that they make. */

import { expectArgument } from '../../base/arguments.js'
import { FormatError, pathOfUrl, StoreError, type TrialscanError } from '../../base/errors.js'
import type {
  DType,
  GlobalStep,
  Mode,
  ModeStep,
  MomentName,
  ReductionName,
  StatisticName,
  Worker,
} from '../../base/types.js'
import type { Complex, ExactExtremes, Moments, ReductionValue } from '../../core/moments.js'
import type { ElementHistogram } from '../../core/statistics/distribution.js'
import { Distribution, partsOf } from '../../core/statistics/distribution.js'
import type { Statistics, StatisticValue } from '../../core/statistics/statistic.js'

/** The step, mode and worker of a row. */
interface SavedAt {
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly worker: Worker
}

interface AnyRow<S extends Statistics> extends SavedAt {
  /** The requested reductions that the tensor has, in the requested order. */
  readonly reductions: S
  /** When the record was written, in seconds since 1970, if that was asked for. */
  readonly wallTime?: number
  /** The exact values: min and max of int64 and uint64, and what was saved as such. */
  readonly exact?: ExactExtremes | Readonly<Partial<Record<ReductionName, bigint>>>
}

/** A tensor whose value was read. */
export interface ValueRow<S extends Statistics = Statistics> extends AnyRow<S> {
  readonly tensor: string
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly saved: false
  /** The moments from which the reductions were computed. */
  readonly moments: Moments
  readonly error?: undefined
}

/**
 * A tensor whose reductions are those that the hook saved; also a histogram of TensorBoard's, whose reductions are
 * those of the data it was made from, as far as it tells them.
 */
export interface SavedRow<S extends Statistics = Statistics> extends AnyRow<S> {
  readonly tensor: string
  /** Null if it is not known, because only reductions were saved. */
  readonly dtype: DType | null
  /** Null if it is not known. */
  readonly shape: readonly number[] | null
  readonly saved: true
  readonly moments?: undefined
  readonly error?: undefined
}

/** A tensor that could not be read, or of which a reduction is missing. */
export interface FailedRow extends AnyRow<Statistics> {
  /** Null if the index file itself could not be read, so that nothing says what was saved. */
  readonly tensor: string | null
  /** Null if it is not known. */
  readonly dtype: DType | null
  readonly shape: readonly number[] | null
  readonly saved: boolean
  /** Set if some of the reductions are known. */
  readonly moments?: Moments | undefined
  /** Why the tensor, or one of the requested reductions, is missing. */
  readonly error: TrialscanError
}

/** One tensor of one worker at one step. `error` and `saved` tell which of the three it is. */
export type ScanRow<S extends Statistics = Statistics> = ValueRow<S> | SavedRow<S> | FailedRow

/** Why a row's record could not be read. Nothing is wrong with a dtype that lacks some reductions, nor with one that the hook did not save. */
export function faultOf({ error }: ScanRow): TrialscanError | undefined {
  return error instanceof FormatError || error instanceof StoreError ? error : undefined
}

export type RowFormatName = 'csv' | 'jsonl'

export interface RowFormat {
  /** The text before the rows, in whole lines. */
  readonly head: string
  /** A row as a whole line. */
  line(row: ScanRow): string
  /** Appends a row to a text. */
  write(row: ScanRow, text: TextWriter): void
  /** The pieces of a row whose reductions are all present and real: the tensor, */
  name(tensor: string | null): string
  /** where it was saved, */
  place(row: Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker'>): string
  /** its dtype, and what follows up to its shape, */
  dtype(dtype: DType | null): string
  /** what stands before each reduction, */
  readonly labels: readonly string[]
  /** whether NaN and the infinities are written as strings, */
  readonly isJson: boolean
  /** and what follows them if there is no error. */
  readonly end: string
}

/**
 * @param reductions those that get a column (CSV) or a key (JSON)
 * @param trial what stands in a first column, for rows of several trials. Default: there is none
 */
export function rowFormat(name: RowFormatName, reductions: readonly StatisticName[], trial?: string): RowFormat {
  expectArgument('rowFormat', 'name', 'csv or jsonl', name, name === 'csv' || name === 'jsonl')
  const writer = (name === 'csv' ? csv : jsonl)(reductions, trial)
  return {
    ...writer,
    line(row) {
      const text = new TextWriter()
      writer.write(row, text)
      return decoder.decode(text.finish())
    },
  }
}

type RowPieces = Omit<RowFormat, 'line'>

/** Comma-separated values, quoted as RFC 4180 says, with one header row; lines end with a newline. */
function csv(reductions: readonly StatisticName[], trial?: string): RowPieces {
  const first = trial === undefined ? '' : `${csvCell(trial)},`
  const name: RowPieces['name'] = tensor => first + csvCell(tensor ?? '')
  const place: RowPieces['place'] = ({ step, mode, modeStep, worker }) =>
    `,${step},${mode},${modeStep},${csvCell(worker)}`
  const dtypeText: RowPieces['dtype'] = dtype => `,${dtype ?? ''},`
  return {
    head: `${first && 'trial,'}tensor,step,mode,mode_step,worker,dtype,shape,${reductions.map(name => `${name},`).join('')}saved,error_code,error_message\n`,
    name,
    place,
    dtype: dtypeText,
    labels: reductions.map(() => ','),
    isJson: false,
    end: ',false,,\n',
    write(row, text) {
      const { tensor, dtype, shape, saved, error } = row
      let line = name(tensor) + place(row) + dtypeText(dtype) + shapeText(shape)
      for (const name of reductions) {
        const value = reductionOf(row, name)
        line += ','
        if (value === undefined) continue
        if (isHistogram(value)) line += value.counts.join(' ')
        else if (isSketch(value)) {
          text.utf8(line)
          writeBuckets(value, text)
          line = ''
        } else if (typeof value === 'string') line += value
        else line += isComplex(value) ? complexText(value) : plainNumber(value)
      }
      text.utf8(`${line},${saved},${error ? `${error.code},${csvCell(error.message)}` : ','}\n`)
    },
  }
}

/** JSON objects, one per line: the contract with other programs. The keys and their order don't change. */
function jsonl(reductions: readonly StatisticName[], trial?: string): RowPieces {
  const first = trial === undefined ? '' : `"trial":${JSON.stringify(trial)},`
  const keys = reductions.map(name => [name, `,"${name}":`] as const)
  const name: RowPieces['name'] = tensor => `{${first}"tensor":${JSON.stringify(tensor)}`
  const place: RowPieces['place'] = ({ step, mode, modeStep, worker }) =>
    `,"step":${step},"mode":"${mode}","mode_step":${modeStep},"worker":${JSON.stringify(worker)}`
  const dtypeText: RowPieces['dtype'] = dtype => `,"dtype":${JSON.stringify(dtype)},"shape":`
  return {
    head: '',
    name,
    place,
    dtype: dtypeText,
    labels: keys.map(([, key]) => key),
    isJson: true,
    end: '}\n',
    write(row, text) {
      const { tensor, dtype, shape, saved, error } = row
      let line = name(tensor) + place(row)
      // A record that could not be read at all has neither dtype nor shape.
      if (!error || dtype !== null || saved) line += dtypeText(dtype) + JSON.stringify(shape)
      for (const [name, key] of keys) {
        const value = reductionOf(row, name)
        if (value === undefined) continue
        line += key
        if (isHistogram(value)) line += histogramText(value)
        else if (isSketch(value)) {
          text.utf8(line)
          writeSketch(value, text)
          line = ''
        } else if (typeof value === 'string') line += `"${value}"`
        else if (isComplex(value)) line += `{"re":${jsonNumber(value.re)},"im":${jsonNumber(value.im)}}`
        else line += jsonNumber(value)
      }
      if (saved) line += ',"saved":true'
      if (error) line += `,"error":${JSON.stringify(errorObject(error))}`
      text.utf8(`${line}}\n`)
    },
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A sign, the digits of a whole number up to 2^53, and a separator take no more. */
const INTEGER_BYTES = 18

/** A growing UTF-8 text, line by line. It holds bytes, so that a large text is never a string as well. */
export class TextWriter {
  #bytes: Uint8Array<ArrayBuffer>
  #length = 0

  /** @param byteLength about how much will be written @param spare bytes to write to, if they are enough */
  constructor(byteLength = 1 << 10, spare: Uint8Array<ArrayBuffer> | null = null) {
    this.#bytes = spare !== null && spare.length >= byteLength ? spare : new Uint8Array(byteLength)
  }

  get length(): number {
    return this.#length
  }

  /** Appends whole numbers: every `step`th, from the `first` on. @param separators two characters, which stand before them by turns */
  integers(numbers: Float64Array, first: number, step: number, separators: string): void {
    this.#reserve(INTEGER_BYTES * Math.ceil(numbers.length / step))
    const bytes = this.#bytes
    let at = this.#length
    for (let i = first; i < numbers.length; i += step) {
      if (i > first) bytes[at++] = separators.charCodeAt(i & 1)
      const number = numbers[i]!
      let rest = Math.abs(number)
      if (number < 0) bytes[at++] = 0x2d
      let end = at + 1
      for (let power = 10; power <= rest; power *= 10) end++
      at = end
      do {
        const tenth = Math.floor(rest / 10)
        bytes[--end] = 0x30 + rest - 10 * tenth
        rest = tenth
      } while (rest > 0)
    }
    this.#length = at
  }

  utf8(text: string): void {
    this.bytes(encoder.encode(text))
  }

  /** The text that was written, with some capacity behind it. The writer can't be used any more. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length)
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #reserve(byteLength: number): void {
    const needed = this.#length + byteLength
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    grown.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
  }
}

/** A cell of a CSV file, quoted if necessary. */
export function csvCell(value: string): string {
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
}

/** The reduction of a row; exact for the extremes of 64-bit integers. */
export function reductionOf(row: ScanRow, name: MomentName): ReductionValue | bigint | undefined
export function reductionOf(row: ScanRow, name: StatisticName): StatisticValue | bigint | undefined
export function reductionOf(row: ScanRow, name: StatisticName): StatisticValue | bigint | undefined {
  const { exact } = row
  if (exact && name in exact) return exact[name as keyof ExactExtremes]
  return row.reductions[name]
}

export function isComplex(value: unknown): value is Complex {
  return typeof value === 'object' && value !== null && 're' in value
}

export function isHistogram(value: unknown): value is ElementHistogram {
  return typeof value === 'object' && value !== null && 'edges' in value
}

export function isSketch(value: unknown): value is Distribution {
  return value instanceof Distribution
}

/** The buckets of a sketch that hold elements, with their counts: `16256:3 16257:1`. */
export function bucketsText(sketch: Distribution): string {
  const text = new TextWriter()
  writeBuckets(sketch, text)
  return decoder.decode(text.finish())
}

function writeBuckets(sketch: Distribution, text: TextWriter): void {
  text.integers(partsOf(sketch).pairs, 0, 1, ' :')
}

/** Writes a sketch as `toJSON` does. Sketches make up most of the text of a scan that has them. */
function writeSketch(sketch: Distribution, text: TextWriter): void {
  const { head, pairs } = partsOf(sketch)
  text.utf8(`${JSON.stringify(head).slice(0, -1)},"buckets":[`)
  text.integers(pairs, 0, 2, ',,')
  text.utf8('],"counts":[')
  text.integers(pairs, 1, 2, ',,')
  text.utf8(']}')
}

/** A histogram as JSON: all of its numbers are finite. */
function histogramText({ counts, edges }: ElementHistogram): string {
  return `{"counts":[${counts.join(',')}],"edges":[${edges.map(jsonNumber).join(',')}]}`
}

/** The shortest text that reads back as the same number, with the sign of zero: NaN, Infinity, -0, 1e-7. */
export function plainNumber(value: number | bigint): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

/** A number in JSON, where NaN and the infinities are strings. */
export function jsonNumber(value: number | bigint): string {
  return typeof value === 'number' && !Number.isFinite(value) ? `"${value}"` : plainNumber(value)
}

/** `1.5+2j`, as Python reads it. */
export function complexText({ re, im }: Complex, text: (part: number) => string = plainNumber): string {
  const imaginary = text(im)
  return `${text(re)}${/^[-+]/.test(imaginary) ? '' : '+'}${imaginary}j`
}

/** `3x5`, or `scalar` for no dimensions; empty if the shape is not known. */
export function shapeText(shape: readonly number[] | null): string {
  return shape === null ? '' : shape.length === 0 ? 'scalar' : shape.join('x')
}

export interface ErrorPlace {
  readonly file: string | undefined
  readonly offset: number | undefined
}

/** The path of the file that an error is about, and the place in it. */
export function placeOfError({ fields }: TrialscanError): ErrorPlace {
  const { url, offset } = fields
  return {
    file: typeof url === 'string' ? pathOfUrl(url) : undefined,
    offset: typeof offset === 'number' ? offset : undefined,
  }
}

/** An error as other programs get it; unknown facts are left out. */
export function errorObject(error: TrialscanError): Record<string, unknown> {
  const { file, offset } = placeOfError(error)
  const { code, message } = error
  return { code, message, ...(file !== undefined && { file }), ...(offset !== undefined && { offset }) }
}
