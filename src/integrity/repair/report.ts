/** The report of a repair. */

import type { ErrorData } from '../../base/errors.js'

/** Why a repair leaves out what no error tells of. */
export interface Reason {
  readonly code:
    | 'BadIndexEntry'
    | 'BadIndexFile'
    | 'DamagedRecord'
    | 'DuplicateFile'
    | 'EventFileMissing'
    | 'LaterRecordLost'
    | 'MissingCollectionFiles'
    | 'NameTooLong'
    | 'NoTensor'
    | 'RecordNotIndexed'
    | 'StepMismatch'
    | 'UnsafePath'
  readonly message: string
}

/** Bytes or records of the trial that are not in the copy. */
export interface LeftOut {
  /** Relative to the trial. */
  readonly file: string
  /** The offset in the file; null: the whole file. */
  readonly offset: number | null
  /** Null where nothing tells it: of a file that can't be read, or is not there. */
  readonly byteLength: number | null
  /** The global step, where it is known. */
  readonly step: number | null
  /** Names that the index file gives to what was there, 100 at the most. */
  readonly tensors: readonly string[]
  /** Records, as far as the index file tells; a stretch of which nothing is known counts as one, a file of another kind as 0. */
  readonly records: number
  /** The error's code: `TruncatedRecord`, `BadPayloadChecksum`, `NotFound`, … */
  readonly code: string
  /** The reason as a sentence. */
  readonly reason: string
}

/** A file that is not a copy of the trial's, although nothing it told is lost. */
export interface RebuiltFile {
  /** Relative to the trial. */
  readonly file: string
  readonly reason: string
}

export interface RepairReport {
  /** The trial, and the copy, as URLs. */
  readonly url: string
  readonly out: string
  readonly files: {
    /** The number of records copied unchanged, apart from their checksums if `checksums` is set. */
    readonly copied: number
    /** Index and collections files that were made again, and event files of which records were left out. */
    readonly rebuilt: number
    /** Files of the trial that are not in the copy. */
    readonly leftOut: number
    /** Files that are no part of a trial, or were never finished (`*.tmp`). */
    readonly ignored: number
  }
  readonly records: { readonly kept: number; readonly leftOut: number }
  /** The bytes of event files. */
  readonly bytes: { readonly kept: number; readonly leftOut: number }
  /** By file and offset: 100 of a file and 10,000 in all. */
  readonly leftOut: readonly LeftOut[]
  /** The number of all omissions, including those that are not listed. */
  readonly leftOutCount: number
  /** 10,000 at the most; `files.rebuilt` counts event files, too. */
  readonly rebuilt: readonly RebuiltFile[]
  /** Relative to the trial, 10,000 at the most. */
  readonly ignored: readonly string[]
}

export const MAX_OF_FILE = 100
const MAX_REPORTED = 10_000
export const MAX_TENSORS = 100

/** Gathers a report. */
export class RepairNotes {
  readonly #leftOut: LeftOut[] = []
  readonly #ofFile = new Map<string, number>()
  readonly #rebuilt: RebuiltFile[] = []
  readonly #ignored: string[] = []
  readonly #files = { copied: 0, rebuilt: 0, leftOut: 0, ignored: 0 }
  readonly #records = { kept: 0, leftOut: 0 }
  readonly #bytes = { kept: 0, leftOut: 0 }
  #leftOutCount = 0

  /** True if the copy has anything that makes it a trial: a record, an index file or a collections file. */
  get hasKept(): boolean {
    return this.#files.copied + this.#files.rebuilt > 0
  }

  leaveOut(one: LeftOut): void {
    this.#leftOutCount++
    this.#records.leftOut += one.records
    const known = this.#ofFile.get(one.file) ?? 0
    if (known >= MAX_OF_FILE || this.#leftOut.length >= MAX_REPORTED) return
    this.#ofFile.set(one.file, known + 1)
    this.#leftOut.push(one)
  }

  /** Records of a file of which enough are listed. */
  leaveOutMore(records: number): void {
    this.#leftOutCount += records
    this.#records.leftOut += records
  }

  /** A whole file that can't be kept, or is not there. */
  leaveOutFile(file: string, { code, message }: ErrorData | Reason, of: Partial<LeftOut> = {}): void {
    const nothing = { offset: null, byteLength: null, step: null, tensors: [], records: 0 }
    this.leaveOut({ ...nothing, ...of, file, code, reason: message })
  }

  /** Adds an omission, and counts the file as missing from the copy. */
  loseFile(file: string, error: ErrorData | Reason, of: Partial<LeftOut> = {}): void {
    this.countFile('leftOut')
    this.leaveOutFile(file, error, of)
  }

  rebuild(file: string, reason: string): void {
    this.#files.rebuilt++
    if (this.#rebuilt.length < MAX_REPORTED) this.#rebuilt.push({ file, reason })
  }

  ignore(file: string): void {
    this.#files.ignored++
    if (this.#ignored.length < MAX_REPORTED) this.#ignored.push(file)
  }

  countFile(as: 'copied' | 'rebuilt' | 'leftOut'): void {
    this.#files[as]++
  }

  /** Counts the records and bytes kept of an event file, and the bytes left out. */
  keep(records: number, bytes: number, leftOutBytes: number): void {
    this.#records.kept += records
    this.#bytes.kept += bytes
    this.#bytes.leftOut += leftOutBytes
  }

  report(url: string, out: string): RepairReport {
    return {
      url,
      out,
      files: this.#files,
      records: this.#records,
      bytes: this.#bytes,
      leftOut: this.#leftOut.sort((a, b) => compareTexts(a.file, b.file) || (a.offset ?? -1) - (b.offset ?? -1)),
      leftOutCount: this.#leftOutCount,
      rebuilt: this.#rebuilt.sort((a, b) => compareTexts(a.file, b.file)),
      ignored: this.#ignored.sort(compareTexts),
    }
  }
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
