/**
 * A table of records as bytes, which threads share where the platform lets them: columns of numbers, names as JSON, then
 * the heads of all records, bytes that no file holds, and what ends a record.
 */

/** A table as data, ready to cross a thread. */
export interface TableData {
  /** The number of this table, unique within the process that made it. */
  readonly id: number
  readonly bytes: SharedArrayBuffer | ArrayBuffer
}

/** Bytes that no file holds. */
export const LITERAL = -1

export interface TableNames {
  readonly files: readonly string[]
  /** The version of each file when its header was read; null: nothing is known. */
  readonly versions: readonly (string | null)[]
  /** Name, what it stands for in errors, and the number of its first record. */
  readonly composed: readonly (readonly [name: string, place: string, first: number])[]
}

export const TABLE_COLUMNS = [
  'starts',
  'heads',
  'blocks',
  'geometries',
  'files',
  'begins',
  'lengths',
  'geometry',
] as const
export type TableColumns = Record<(typeof TABLE_COLUMNS)[number], Float64Array>
