/** The rows of scans as tables for other programs. */

import { expectArgument } from '../base/arguments.js'
import { pathOfUrl, quote, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import type { StatisticName } from '../base/types.js'
import { JOB_RECORDS } from '../scan/job/plan/memory.js'
import { Scan, tableRowsOf } from '../scan/rows/scan.js'
import type { ScanColumns } from '../scan/rows/scan-columns.js'
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
  const groups = new Groups(sources, groupRows, format === 'parquet')
  const fields = fieldsOf(await groups.reductions())
  const all = groups.all()
  // Threads start while the writer of the format is loaded.
  const first = all.next()
  first.catch(() => {})
  const write = format === 'parquet' ? await import('./parquet/parquet.js') : await import('./arrow.js')
  yield* write.tableFile(fields, begunWith(first, all), metadata)
}

async function* begunWith<T>(first: Promise<IteratorResult<T>>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    const { done, value } = await first
    if (done) return
    yield value
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

/** The rows of scans, in groups. */
class Groups {
  readonly #rows: AsyncGenerator<{
    readonly trial: string
    readonly names: readonly StatisticName[]
    readonly rows: ScanColumns | null
  }>
  readonly #groupRows: number
  #names: readonly StatisticName[] = []

  constructor(sources: AsyncIterable<AnySource> | Iterable<AnySource>, groupRows: number, packed: boolean) {
    this.#rows = rowsOf(sources, packed)
    this.#groupRows = groupRows
  }

  /** The reductions of the first scan. @throws UsageError if there is no scan */
  async reductions(): Promise<readonly StatisticName[]> {
    const first = await this.#rows.next()
    if (first.done) throw new UsageError('tableBytes: expected at least one scan, got none')
    this.#names = first.value.names
    return this.#names
  }

  async *all(): AsyncGenerator<Group> {
    const open = () => new GroupBuilder(this.#names, this.#groupRows + JOB_RECORDS)
    let group = open()
    let isFirst = true
    for await (const { trial, names, rows } of this.#rows) {
      if (names.join() !== this.#names.join()) {
        throw new UsageError(`tableBytes: expected scans of the same reductions, got ${names} after ${this.#names}`)
      }
      if (rows === null) continue
      group.add(trial, rows)
      if (group.length < this.#groupRows) continue
      yield group
      isFirst = false
      group = open()
    }
    // An empty group, too, if there is no other: hyparquet-writer writes an empty list of groups in a way that other readers refuse.
    if (group.length > 0 || isFirst) yield group
  }
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
