/** The report of a repair. */

import type { ErrorData } from '../../base/errors.js'

/** The reason for an omission without an error. */
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

/** Bytes or records of the trial that are missing from the copy. */
export interface LeftOut {
  /** Relative to the trial. */
  readonly file: string
  /** The offset in the file; null: the whole file. */
  readonly offset: number | null
  /** The number of bytes; null if it is unknown: the file is missing or can't be read. */
  readonly byteLength: number | null
  /** The global step; null if unknown. */
  readonly step: number | null
  /** Up to 100 names that the index file gives to the lost data. */
  readonly tensors: readonly string[]
  /** The number of records according to the index file; 1 for a range without entries, 0 for other kinds of files. */
  readonly records: number
  /** The error's code: `TruncatedRecord`, `BadPayloadChecksum`, `NotFound`, … */
  readonly code: string
  /** The reason as a sentence. */
  readonly reason: string
}

/** A file that was written anew without losing data. */
export interface RebuiltFile {
  /** Relative to the trial. */
  readonly file: string
  readonly reason: string
}

export interface RepairReport {
  /** The URLs of the trial and of the copy. */
  readonly url: string
  readonly out: string
  readonly files: {
    /** The number of records copied unchanged, apart from their checksums if `checksums` is set. */
    readonly copied: number
    /** The number of index and collections files that were written anew, and of event files that lost records. */
    readonly rebuilt: number
    /** The number of files that are missing from the copy. */
    readonly leftOut: number
    /** The number of files that are no part of a trial, or were never finished (`*.tmp`). */
    readonly ignored: number
  }
  readonly records: { readonly kept: number; readonly leftOut: number }
  /** Bytes of event files. */
  readonly bytes: { readonly kept: number; readonly leftOut: number }
  /** The omissions by file and offset: up to 100 for a file and 10,000 in all. */
  readonly leftOut: readonly LeftOut[]
  /** The number of all omissions, including those that are not listed. */
  readonly leftOutCount: number
  /** Up to 10,000; `files.rebuilt` also counts event files. */
  readonly rebuilt: readonly RebuiltFile[]
  /** Paths relative to the trial, up to 10,000. */
  readonly ignored: readonly string[]
}

export const MAX_OF_FILE = 100
const MAX_REPORTED = 10_000
export const MAX_TENSORS = 100

/** Collects a report. */
export class RepairNotes {
  readonly #leftOut: LeftOut[] = []
  readonly #ofFile = new Map<string, number>()
  readonly #rebuilt: RebuiltFile[] = []
  readonly #ignored: string[] = []
  readonly #files = { copied: 0, rebuilt: 0, leftOut: 0, ignored: 0 }
  readonly #records = { kept: 0, leftOut: 0 }
  readonly #bytes = { kept: 0, leftOut: 0 }
  #leftOutCount = 0

  /** True if the copy has a record, an index file or a collections file, and so is a trial. */
  get hasKept(): boolean {
    return this.#files.copied + this.#files.rebuilt > 0
  }

  leaveOut(omission: LeftOut): void {
    this.#leftOutCount++
    this.#records.leftOut += omission.records
    const known = this.#ofFile.get(omission.file) ?? 0
    if (known >= MAX_OF_FILE || this.#leftOut.length >= MAX_REPORTED) return
    this.#ofFile.set(omission.file, known + 1)
    this.#leftOut.push(omission)
  }

  /** Counts further records of a file that has enough omissions listed. */
  leaveOutMore(records: number): void {
    this.#leftOutCount += records
    this.#records.leftOut += records
  }

  /** Reports a whole file that can't be kept or is missing. */
  leaveOutFile(file: string, { code, message }: ErrorData | Reason, place: Partial<LeftOut> = {}): void {
    const nothing = { offset: null, byteLength: null, step: null, tensors: [], records: 0 }
    this.leaveOut({ ...nothing, ...place, file, code, reason: message })
  }

  /** Adds an omission, and counts the file as missing from the copy. */
  loseFile(file: string, error: ErrorData | Reason, place: Partial<LeftOut> = {}): void {
    this.countFile('leftOut')
    this.leaveOutFile(file, error, place)
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

  /** Counts the kept records and bytes of an event file, and the bytes that are left out. */
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
