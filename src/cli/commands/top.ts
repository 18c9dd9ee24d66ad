/** `trialscan top`: the rows of a scan with the largest or smallest number, or those that an expression is true for. */

import {
  type CheckLevel,
  createTrial,
  parseColumns,
  parseWhere,
  type RowColumn,
  type RowFilter,
  type ScanRow,
  type Trial,
  UsageError,
} from '../../index.js'
import { EXIT } from '../exit.js'
import { type Cells, cellCsv, cellJson, cellsOf, cellTable } from '../format/cells.js'
import type { FormatOf } from '../format/formats.js'
import { counted, countText } from '../format/number.js'
import { settle } from '../options/given.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import { matchedText, matchingRows, newTally, type Tally } from '../scan/matching-rows.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedSteps } from '../scan/selection.js'
import { TopRows } from '../scan/top-rows.js'
import { colorsFor, note } from '../terminal.js'

export interface TopFlags extends SelectionFlags, S3Flags {
  readonly by?: string
  readonly asc?: boolean
  readonly desc?: boolean
  readonly limit?: number
  readonly where?: string
  readonly columns?: readonly string[]
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  readonly memory?: number
  readonly format?: FormatOf<'top'>
  readonly out?: string
}

const DEFAULT_LIMIT = 20

/** What is asked of the rows, read before the trial is opened. */
interface Asked {
  readonly by: RowColumn | null
  readonly filter: RowFilter | null
  readonly limit: number
  readonly order: 'ascending' | 'descending'
}

/** Rows by which a ranking is less than it seems. */
interface Unranked {
  /** Those without the number. */
  without: number
  nan: number
}

/** @returns the exit code */
export async function runTop(path: string, given: TopFlags, signal: AbortSignal): Promise<number> {
  const asked = askedOf(given)
  const chosen = given.columns && parseColumns(given.columns)
  const flags = settle('top', path, given)
  const { checkLevel, threads, memory, out, onTerminal } = flags
  if (out !== undefined) await expectReplaceable(path, out)
  const trial = await createTrial(path, {
    requireCollections: false,
    refresh: 'manual',
    ...s3OptionsFor(path, flags),
    ...(threads !== undefined && { threads }),
  })
  const columns = columnsFor(trial, flags, asked, chosen)
  const progress = new Progress(onTerminal)
  const rows = trial.scan({
    ...selectionOf(flags),
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memory: memory * 2 ** 20 }),
    reductions: [
      ...new Set([...columns, ...(asked.by ? [asked.by] : [])].flatMap(({ reduction }) => reduction ?? [])),
      ...(asked.filter?.reductions ?? []),
    ],
    ...(checkLevel && { checkLevel }),
    signal,
    onProgress: progress.update,
  })
  const tally = newTally()
  const unranked: Unranked = { without: 0, nan: 0 }
  try {
    // A file that can't be written is told before the scan.
    const shown = await writeTo(out, async output => {
      const found = await foundRows(matchingRows(rows, asked.filter, tally), asked, unranked, columns)
      progress.stop()
      await output.writeAll(linesOf(found, columns, flags.format, onTerminal))
      return found.length
    })
    if (tally.rows === 0) note(nothingSelected(trial, flags))
    for (const message of unscannedSteps(trial, flags, tally.rows > 0)) note(message)
    for (const message of notesOn(tally, unranked, asked, shown)) note(message)
    const { firstError, failed } = tally
    if (firstError !== null) {
      note(`${countText(failed)} of ${counted(tally.rows, 'row')} could not be had; the first: ${firstError.message}`)
    }
    const problems = rows.problems.map(({ message }) => message).filter(message => message !== firstError?.message)
    for (const message of problems) note(message)
    if (firstError !== null || problems.length > 0) return EXIT.format
    // That no row matches is an answer; that none has the number is not.
    const isAbsent = tally.rows === 0 ? isSelective(flags) : tally.matched > 0 && unranked.without === tally.matched
    return isAbsent ? EXIT.query : EXIT.ok
  } finally {
    progress.stop()
    await trial.close()
  }
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

/** Those that `--columns` names, or the place of a row and what it was found by. A table leaves out a place that all rows share. */
function columnsFor(
  trial: Trial,
  { format, worker }: TopFlags,
  { by, filter }: Asked,
  chosen: readonly RowColumn[] | undefined,
): readonly RowColumn[] {
  const isTable = format === 'table'
  const hasModes = !isTable || trial.modes().length > 0
  const hasWorkers = !isTable || (worker ?? trial.workers()).length > 1
  const names = [
    ...(hasModes ? ['mode', 'mode_step'] : []),
    ...(hasWorkers ? ['worker'] : []),
    ...(by ? [by.name] : []),
    ...(filter?.columns ?? []),
  ]
  return parseColumns([...new Set(['tensor', 'step', ...(chosen?.map(({ name }) => name) ?? names)])])
}

/** The rows to print, in their order. All others are only counted. */
async function foundRows(
  rows: AsyncIterable<ScanRow>,
  { by, limit, order }: Asked,
  unranked: Unranked,
  columns: readonly RowColumn[],
): Promise<readonly Cells[]> {
  const first: Cells[] = []
  const top = new TopRows<Cells>(limit, order)
  for await (const row of rows) {
    if (by === null) {
      if (first.length < limit) first.push(cellsOf(row, columns))
      continue
    }
    const value = by.value(row)
    if (typeof value === 'number' || typeof value === 'bigint') {
      if (Number.isNaN(value)) unranked.nan++
      top.add(value, () => cellsOf(row, columns))
    } else if (!row.error) unranked.without++
  }
  return by === null ? first : top.sorted()
}

function linesOf(
  rows: readonly Cells[],
  columns: readonly RowColumn[],
  format: FormatOf<'top'>,
  onTerminal: boolean,
): Iterable<string> {
  if (format === 'csv') return cellCsv(rows, columns, onTerminal)
  if (format === 'jsonl') return cellJson(rows, columns, onTerminal)
  return cellTable(rows, columns, colorsFor(onTerminal ? process.stdout : null))
}

/** What the rows that are printed don't tell. */
function notesOn(
  tally: Tally,
  { without, nan }: Unranked,
  { by, filter, order }: Asked,
  shown: number,
): readonly string[] {
  const notes: string[] = []
  const { rows, matched } = tally
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
