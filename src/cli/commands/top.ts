/** `trialscan top`: the rows of a scan with the largest or smallest number, or those that match an expression. */

import { UsageError } from '../../base/errors.js'
import type { ScanRow } from '../../scan/job/row.js'
import type { Scan } from '../../scan/rows/scan.js'
import { parseColumns, type RowColumn } from '../../table/columns.js'
import { parseWhere, type RowFilter } from '../../table/where.js'
import { damageAmong } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { EXIT } from '../exit.js'
import { type Cells, cellCsv, cellJson, cellsOf, cellTable } from '../format/cells.js'
import type { FormatOf } from '../format/formats.js'
import { counted, countText } from '../format/number.js'
import { type OutputFlags, type ReadingFlags, readingOptions, settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { matchedText, matchingRows, newTally, type Tally } from '../scan/matching-rows.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { TopRows } from '../scan/top-rows.js'
import { Losses, opened, trialsAt } from '../scan/trials.js'
import { note } from '../terminal.js'

export interface TopFlags extends SelectionFlags, S3Flags, ReadingFlags, OutputFlags<'top'> {
  readonly by?: string
  readonly asc?: boolean
  readonly desc?: boolean
  readonly limit?: number
  readonly where?: string
  readonly columns?: readonly string[]
  readonly failFast?: boolean
}

const DEFAULT_LIMIT = 20

/** The requested ranking and filter, parsed before the trial is opened. */
interface Asked {
  readonly by: RowColumn | null
  readonly filter: RowFilter | null
  readonly limit: number
  readonly order: 'ascending' | 'descending'
}

/** The numbers of rows that a ranking lacks or places apart. */
interface Unranked {
  /** The number of rows without the ranked number. */
  without: number
  nan: number
}

/** @returns the exit code */
export async function runTop(places: readonly string[], given: TopFlags, signal: AbortSignal): Promise<number> {
  const request = askedOf(given)
  const chosen = given.columns && parseColumns(given.columns)
  const flags = settle('top', places[0]!, given)
  const { out, onTerminal } = flags
  expectS3(flags, places)
  const paths = await trialsAt(places, flags)
  if (out !== undefined) await expectReplaceableIn(paths, out)
  const isOnly = paths.length === 1
  const losses = new Losses(paths, flags.failFast)
  const progress = new Progress(onTerminal, isOnly ? 'rows' : 'trials')
  const ranking = new Ranking(request)
  const notes: string[] = []
  // A file that can't be written is reported before the scan.
  await writeTo(out, async output => {
    let columns = columnsFor(null, flags, request, chosen)
    let done = 0
    for await (const { path, trial } of opened(paths, flags, losses)) {
      if (isOnly) columns = columnsFor(trial, flags, request, chosen)
      const before = ranking.tally.rows
      const rows = scanOf(trial, path, flags, request, columns, signal, isOnly ? progress.update : () => {}, losses)
      if (rows === null) continue
      const { failedRows, firstError } = await ranking.add(rows, isOnly ? columns : [trialColumn(path), ...columns])
      const count = ranking.tally.rows - before
      if (isOnly) {
        if (count === 0) notes.push(nothingSelected(trial, flags))
        notes.push(...unscannedParts(trial, flags, count > 0))
      }
      const problems = damageAmong(rows.problems)
      losses.add(path, { rows: count, failedRows, first: firstError?.message ?? null, problems })
      progress.update({ doneRows: ++done, totalRows: paths.length })
    }
    progress.stop()
    const shown = isOnly ? columns : [trialColumn(''), ...columns]
    await output.writeAll(linesOf(ranking.sorted(), shown, flags.format, onTerminal))
  })
  if (!isOnly && ranking.tally.rows === 0) notes.push('no trial has rows that the options select')
  for (const message of [...notes, ...notesOn(ranking, request)]) note(message)
  // An empty result is an answer if no row matches, but not if no row has the number.
  const { tally, unranked } = ranking
  const isAbsent = tally.rows === 0 ? isSelective(flags) : tally.matched > 0 && unranked.without === tally.matched
  losses.outcome(isAbsent ? EXIT.query : EXIT.ok)
  return losses.tell()
}

/**
 * Begins a scan.
 * @returns null for a trial that lacks what is requested, such as a collection; the error is recorded as a loss
 */
function scanOf(
  trial: Trial,
  path: string,
  flags: TopFlags,
  { by, filter }: Asked,
  columns: readonly RowColumn[],
  signal: AbortSignal,
  onProgress: Progress['update'],
  losses: Losses,
): Scan | null {
  try {
    return trial.scan({
      ...selectionOf(flags),
      ...readingOptions(flags),
      reductions: [
        ...new Set([...columns, ...(by ? [by] : [])].flatMap(({ reduction }) => reduction ?? [])),
        ...(filter?.reductions ?? []),
      ],
      signal,
      onProgress,
    })
  } catch (error) {
    losses.trial(path, error)
    return null
  }
}

/** The column that names a row's trial, for several trials. */
function trialColumn(path: string): RowColumn {
  return { name: 'trial', kind: 'text', reduction: null, value: () => path }
}

function askedOf({ by: name, where, asc, desc, limit = DEFAULT_LIMIT }: TopFlags): Asked {
  if (name === undefined && where === undefined) throw new UsageError('expected --by or --where, got neither')
  if (name === undefined && (asc || desc)) throw new UsageError(`expected --by beside ${asc ? '--asc' : '--desc'}`)
  const filter = where === undefined ? null : parseWhere(where)
  const [by] = name === undefined ? [] : parseColumns([name.trim()])
  if (by && by.kind !== 'number') {
    throw new UsageError(`expected --by to name a column of numbers, got ${by.name}`, { name: by.name })
  }
  return { by: by ?? null, filter, limit, order: asc ? 'ascending' : 'descending' }
}

/**
 * The columns that `--columns` names, or else the place of a row and the ranked or filtered numbers. A table of one
 * trial leaves out a place that all rows share.
 */
function columnsFor(
  trial: Trial | null,
  { format, worker }: TopFlags,
  { by, filter }: Asked,
  chosen: readonly RowColumn[] | undefined,
): readonly RowColumn[] {
  const isTable = format === 'table'
  const hasModes = !isTable || trial === null || trial.modes().length > 0
  const hasWorkers = !isTable || trial === null || (worker ?? trial.workers()).length > 1
  const names = [
    ...(hasModes ? ['mode', 'mode_step'] : []),
    ...(hasWorkers ? ['worker'] : []),
    ...(by ? [by.name] : []),
    ...(filter?.columns ?? []),
  ]
  return parseColumns([...new Set(['tensor', 'step', ...(chosen?.map(({ name }) => name) ?? names)])])
}

/** The rows to print, and the counts of all others. */
class Ranking {
  readonly #request: Asked
  readonly #first: Cells[] = []
  readonly #top: TopRows<Cells>
  readonly tally = newTally()
  readonly unranked: Unranked = { without: 0, nan: 0 }

  constructor(request: Asked) {
    this.#request = request
    this.#top = new TopRows(request.limit, request.order)
  }

  /**
   * Adds the rows of a trial.
   * @returns the number of failed rows, and the first error
   */
  async add(
    rows: AsyncIterable<ScanRow>,
    columns: readonly RowColumn[],
  ): Promise<Pick<Tally, 'failedRows' | 'firstError'>> {
    const { by, filter, limit } = this.#request
    const tally = newTally()
    for await (const row of matchingRows(rows, filter, tally)) {
      if (by === null) {
        if (this.#first.length < limit) this.#first.push(cellsOf(row, columns))
        continue
      }
      const value = by.value(row)
      // numpy's mean of an empty array is NaN, which is not a number of the tensor.
      if (Number.isNaN(value) && row.shape?.includes(0)) {
        this.unranked.without++
        continue
      }
      if (typeof value === 'number' || typeof value === 'bigint') {
        if (Number.isNaN(value)) this.unranked.nan++
        this.#top.add(value, () => cellsOf(row, columns))
      } else if (!row.error) this.unranked.without++
    }
    this.tally.rows += tally.rows
    this.tally.matched += tally.matched
    return tally
  }

  /** The rows to print, in order. */
  sorted(): readonly Cells[] {
    return this.#request.by === null ? this.#first : this.#top.sorted()
  }
}

function linesOf(
  rows: readonly Cells[],
  columns: readonly RowColumn[],
  format: FormatOf<'top'>,
  onTerminal: boolean,
): Iterable<string> {
  if (format === 'csv') return cellCsv(rows, columns, onTerminal)
  if (format === 'jsonl') return cellJson(rows, columns, onTerminal)
  return cellTable(rows, columns, onTerminal)
}

/** Notes on facts that the printed rows don't show. */
function notesOn(ranking: Ranking, { by, filter, order }: Asked): readonly string[] {
  const notes: string[] = []
  const { tally, unranked } = ranking
  const { rows, matched } = tally
  const { without, nan } = unranked
  const shown = ranking.sorted().length
  if (filter !== null && rows > 0) {
    const cut = shown < matched - without ? `; ${countText(shown)} ${shown === 1 ? 'is' : 'are'} shown` : ''
    notes.push(`${matchedText(tally)}${cut}`)
  }
  if (by === null) return notes
  if (without > 0) {
    notes.push(`${counted(without, 'row')} without ${by.name} ${without === 1 ? 'is' : 'are'} left out`)
  }
  if (nan > 0) {
    const place = order === 'descending' ? 'first' : 'last'
    const rest = `--where '${by.name} is not nan' leaves ${nan === 1 ? 'it' : 'them'} out`
    notes.push(
      `of ${counted(nan, 'row')} ${by.name} is NaN, which counts as larger than any number and comes ${place}; ${rest}`,
    )
  }
  return notes
}
