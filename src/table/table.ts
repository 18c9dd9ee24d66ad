/** The rows of scans as tables for other programs. */

import { expectArgument } from '../base/arguments.js'
import { pathOfUrl, quote, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import type { StatisticName } from '../base/types.js'
import { JOB_RECORDS } from '../scan/job/plan/memory.js'
import { Scan, tableRowsOf } from '../scan/rows/scan.js'
import { type Group, GroupBuilder } from './group.js'
import { fieldsOf } from './schema.js'

const GROUP_ROWS = 100_000
const MAX_GROUP_ROWS = 1_000_000

/** The table formats: Apache Parquet, and an Apache Arrow IPC stream. */
export type TableFormatName = 'parquet' | 'arrow'

export interface TableOptions {
  /** The text of the column `trial`. Default: the trial's path or URL. */
  readonly trial?: string
  /** The approximate number of rows in a row group or record batch. Default: 100,000. */
  readonly groupRows?: number
  /** Further key-value metadata of the file. */
  readonly metadata?: Readonly<Record<string, string>>
}

const TABLE_OPTIONS = optionsOf<TableOptions>({
  trial: kinds.text,
  groupRows: kinds.wholeNumber(1, MAX_GROUP_ROWS, 'a whole number from 1 to 1,000,000'),
  metadata: kinds.that('an object of texts', isTexts),
})

/** A scan, and the value of the column `trial` for its rows. */
export interface TableSource {
  readonly trial: string
  readonly scan: Scan
}

/**
 * Yields the rows of scans as the bytes of a table, as they are ready. Use this instead of iterating over the scan, which is possible
 * only once. The columns: docs/tables.md.
 * @param scans one scan, or those of several trials with the same reductions; each is started when the one before is done
 * @throws UsageError
 */
export function tableBytes(
  scans: Scan | AsyncIterable<TableSource> | Iterable<TableSource>,
  format: TableFormatName,
  options?: TableOptions,
): AsyncGenerator<Uint8Array> {
  const settings = checkOptions('tableBytes', TABLE_OPTIONS, options)
  if (format !== 'parquet' && format !== 'arrow') {
    throw new UsageError(`tableBytes: expected parquet or arrow, got ${quote(String(format))}`, { format })
  }
  const isSource =
    typeof scans === 'object' && scans !== null && (Symbol.iterator in scans || Symbol.asyncIterator in scans)
  expectArgument('tableBytes', 'scans', 'a scan, or an iterable of { scan, trial }', scans, isSource)
  return bytesOf(scans instanceof Scan ? [{ scan: scans, trial: settings.trial }] : scans, format, settings)
}

type AnySource = Pick<TableSource, 'scan'> & { readonly trial: string | undefined }

async function* bytesOf(
  sources: AsyncIterable<AnySource> | Iterable<AnySource>,
  format: TableFormatName,
  { groupRows = GROUP_ROWS, metadata = {} }: TableOptions,
): AsyncGenerator<Uint8Array> {
  const { tableFile } = format === 'parquet' ? await import('./parquet/parquet.js') : await import('./arrow.js')
  const rows = rowsOf(sources, format === 'parquet')
  const first = await rows.next()
  if (first.done) throw new UsageError('tableBytes: expected at least one scan, got none')
  const { names } = first.value
  yield* tableFile(fieldsOf(names), groupsOf(rows, names, groupRows), metadata)
}

/** The rows of scans, in groups. @param names the reductions of the first scan, which all must have */
async function* groupsOf(
  all: ReturnType<typeof rowsOf>,
  names: readonly StatisticName[],
  groupRows: number,
): AsyncGenerator<Group> {
  const open = () => new GroupBuilder(names, groupRows + JOB_RECORDS)
  let group = open()
  let isFirst = true
  for await (const { trial, names: others, rows } of all) {
    if (others.join() !== names.join()) {
      throw new UsageError(`tableBytes: expected scans of the same reductions, got ${others} after ${names}`)
    }
    if (rows === null) continue
    group.add(trial, rows)
    if (group.length < groupRows) continue
    yield group
    isFirst = false
    group = open()
  }
  // An empty group, too, if there is no other: hyparquet-writer writes an empty list of groups in a way that other readers refuse.
  if (group.length > 0 || isFirst) yield group
}

/** The sources in order; each scan begins with its description, without rows. */
async function* rowsOf(sources: AsyncIterable<AnySource> | Iterable<AnySource>, packed: boolean) {
  for await (const { scan, trial } of sources) {
    const { reductions: names, url, rows: all } = tableRowsOf(scan, packed)
    const context = { trial: trial ?? pathOfUrl(url), names }
    yield { ...context, rows: null }
    for await (const rows of all) yield { ...context, rows }
  }
}

function isTexts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every(text => typeof text === 'string')
}
