/** What is known of an event file, and of the index files that name it. */

import type { Worker } from '../../../base/types.js'
import type { IndexFile, TensorLocation } from '../../../format/index-file.js'

/** A whole record, all of which can be read. */
export interface WholeRecord {
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  readonly values: readonly {
    readonly name: string
    /** As MODES counts, from 1 on; 0: not told. */
    readonly mode: number
    /** -1: not told. */
    readonly modeStep: number
    /** Of a tensor, where index files have saved shapes. */
    readonly shape?: readonly number[] | null
  }[]
}

/** What is wrong, and from which record on. */
export interface FoundProblem {
  readonly offset: number
  readonly code: string
  readonly message: string
  /** What is there, if that is known. */
  readonly step?: number
  readonly tensors?: readonly string[]
}

/** An event file as it was found. */
export interface FoundFile {
  readonly byteLength: number
  /** In the order of the file; none overlaps another. */
  readonly records: readonly WholeRecord[]
  readonly problems: readonly FoundProblem[]
}

/** What is known of an index file. */
export interface KnownIndex {
  readonly step: number
  readonly worker: Worker
  /** What it says; null where it can't be read, or is not there. */
  readonly content: IndexFile | null
  /** Whether that has the mode in it; in Tornasole's it stands in the records alone. */
  readonly tellsMode: boolean
  /** Whether it was about another event file. */
  readonly isMoved?: boolean
  /** What could be saved of one that can't be read: mode and shapes. */
  readonly saved: Pick<IndexFile, 'mode' | 'modeStep' | 'shapes'> | null
}

/** A tensor in a record. */
export interface Place extends TensorLocation {
  readonly record: WholeRecord
  /** Whether it must not answer: another record of the name is the one that counts. */
  isStray: boolean
}
