/** The rows of scans as tables for other programs. */

import { pathOfUrl, quote, UsageError } from '../errors.js'
import { JOB_RECORDS } from '../job/plan/memory.js'
import { checkOptions, kinds, optionsOf } from '../options.js'
import { type Scan, tableRowsOf } from '../scan/scan.js'
import { type Group, GroupBuilder } from './group.js'
import { fieldsOf } from './schema.js'

const GROUP_ROWS = 100_000
const MAX_GROUP_ROWS = 1_000_000

/** Apache Parquet, and an Apache Arrow IPC stream. */
export type TableFormatName = 'parquet' | 'arrow'

export interface TableOptions {
  /** What the column `trial` says. Default: the trial's path or URL. */
  readonly trial?: string
  /** Rows that are collected before they are written, about: a row group, or a record batch. Default: 100,000. */
  readonly groupRows?: number
  /** What else the file says of itself, by key. */
  readonly metadata?: Readonly<Record<string, string>>
}

const TABLE_OPTIONS = optionsOf<TableOptions>({
  trial: kinds.text,
  groupRows: kinds.wholeNumber(1, MAX_GROUP_ROWS, 'a whole number from 1 to 1,000,000'),
  metadata: kinds.that('an object of texts', isTexts),
})

/**
 * The rows of a scan as a table, in the bytes of a file, as many at a time as are ready. Use this instead of iterating over the
 * scan; it, too, can be done once. The columns: docs/tables.md.
 * @throws UsageError
 */
export function tableBytes(scan: Scan, format: TableFormatName, options?: TableOptions): AsyncGenerator<Uint8Array> {
  const asked = checkOptions('tableBytes', TABLE_OPTIONS, options)
  if (format === 'parquet' || format === 'arrow') return bytesOf(scan, format, asked)
  throw new UsageError(`tableBytes: expected parquet or arrow, got ${quote(String(format))}`, { format })
}

async function* bytesOf(scan: Scan, format: TableFormatName, options: TableOptions): AsyncGenerator<Uint8Array> {
  const { trial, groupRows = GROUP_ROWS, metadata = {} } = options
  const { reductions, url, rows } = tableRowsOf(scan)
  const write = format === 'parquet' ? await import('./parquet/parquet.js') : await import('./arrow.js')
  yield* write.tableFile(fieldsOf(reductions), groups(), metadata)

  async function* groups(): AsyncGenerator<Group> {
    const name = trial ?? pathOfUrl(url)
    const open = () => new GroupBuilder(reductions, groupRows + JOB_RECORDS)
    let group = open()
    let isFirst = true
    for await (const some of rows) {
      group.add(name, some)
      if (group.length < groupRows) continue
      yield group
      isFirst = false
      group = open()
    }
    // One without rows, too, if there is no other: hyparquet-writer does not write an empty list of groups as others read it.
    if (group.length > 0 || isFirst) yield group
  }
}

function isTexts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every(text => typeof text === 'string')
}
