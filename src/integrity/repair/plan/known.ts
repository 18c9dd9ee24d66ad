/** The facts about an event file and the index files that name it. */

import type { Worker } from '../../../base/types.js'
import type { IndexFile, TensorLocation } from '../../../format/index-file.js'

/** An intact record. */
export interface WholeRecord {
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  readonly values: readonly {
    readonly name: string
    /** The mode as its index in MODES, from 1 on; 0 if unknown. */
    readonly mode: number
    /** The mode step; -1 if unknown. */
    readonly modeStep: number
    /** The shape of a tensor, if an index file has it. */
    readonly shape?: readonly number[] | null
  }[]
}

/** A problem, and the first record that it affects. */
export interface FoundProblem {
  readonly offset: number
  readonly code: string
  readonly message: string
  /** The step of the record, if known. */
  readonly step?: number
  readonly tensors?: readonly string[]
}

/** The content of an event file. */
export interface FoundFile {
  readonly byteLength: number
  /** The records, in the order of the file, without overlap. */
  readonly records: readonly WholeRecord[]
  readonly problems: readonly FoundProblem[]
}

/** The facts about an index file. */
export interface KnownIndex {
  readonly step: number
  readonly worker: Worker
  /** The content; null if it is missing or can't be read. */
  readonly content: IndexFile | null
  /** True if the content includes the mode. In Tornasole's format only the records do. */
  readonly tellsMode: boolean
  /** True if it named another event file before. */
  readonly isMoved?: boolean
  /** The recovered part of an unreadable index file: mode and shapes. */
  readonly saved: Pick<IndexFile, 'mode' | 'modeStep' | 'shapes'> | null
}

/** A tensor in a record. */
export interface Place extends TensorLocation {
  readonly record: WholeRecord
  /** True if readers must not find this record by its name: another record of that name counts. */
  isStray: boolean
}
