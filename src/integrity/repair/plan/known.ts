/** The facts about an event file and the index files that name it. */

import type { Worker } from '../../../base/types.js'
import type { IndexFile, TensorLocation } from '../../../format/index-file.js'

/** A whole record, all of which can be read. */
export interface WholeRecord {
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  readonly values: readonly {
    readonly name: string
    /** The mode by its number in MODES, from 1 on; 0: unknown. */
    readonly mode: number
    /** -1: not told. */
    readonly modeStep: number
    /** The shape of a tensor, if index files have saved it. */
    readonly shape?: readonly number[] | null
  }[]
}

/** A problem, and the record from which on it holds. */
export interface FoundProblem {
  readonly offset: number
  readonly code: string
  readonly message: string
  /** The step of the record, if known. */
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

/** The facts about an index file. */
export interface KnownIndex {
  readonly step: number
  readonly worker: Worker
  /** The content; null if it is missing or can't be read. */
  readonly content: IndexFile | null
  /** True if the content has the mode. In Tornasole's format only the records have it. */
  readonly tellsMode: boolean
  /** True if it named another event file before. */
  readonly isMoved?: boolean
  /** The recovered part of an unreadable index file: mode and shapes. */
  readonly saved: Pick<IndexFile, 'mode' | 'modeStep' | 'shapes'> | null
}

/** A tensor in a record. */
export interface Place extends TensorLocation {
  readonly record: WholeRecord
  /** True if the record must not be found by its name: another record of that name counts. */
  isStray: boolean
}
