/**
 * A table of records as bytes, which threads share if the platform allows it: columns of numbers, names as JSON, then
 * the heads of all records, literal bytes, and the end of a record.
 */

/** A table as data, which can be posted to a thread. */
export interface TableData {
  /** The number of this table, unique within the process that made it. */
  readonly id: number
  readonly bytes: SharedArrayBuffer | ArrayBuffer
}

/** The file number of literal bytes, which no file holds. */
export const LITERAL = -1

export interface TableNames {
  readonly files: readonly string[]
  /** The version of each file when its header was read; null if unknown. */
  readonly versions: readonly (string | null)[]
  /** The name of each composed file, its name in errors, and the number of its first record. */
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
