/** The common part of commands that scan: the selection by options, and the writing of rows. */

import { REDUCTIONS } from '../../base/types.js'
import type { RowFormatName, ScanRow } from '../../scan/job/row.js'
import type { Scan } from '../../scan/rows/scan.js'
import { type TableFormatName, type TableOptions, type TableSource, tableBytes } from '../../table/table.js'
import type { RowFilter } from '../../table/where.js'
import { type ScanOptions, selectTensorNames } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { FormatOf } from '../format/formats.js'
import { type RowWriter, rowLines } from '../format/lines.js'
import { tableFormat } from '../format/table.js'
import { type OutputFlags, type ReadingFlags, readingOptions, type settle } from '../options/given.js'
import type { S3Flags } from '../options/s3.js'
import type { Output } from '../output.js'
import { colorsFor, screenWidth } from '../terminal.js'
import { VERSION } from '../version.js'
import { requestedStatistics, type SelectionFlags, selectionOf } from './selection.js'

export interface ScanFlags extends SelectionFlags, S3Flags, ReadingFlags, OutputFlags<'scan'> {
  readonly reductions?: readonly string[]
  readonly where?: string
  readonly resume?: boolean
  readonly failFast?: boolean
  readonly stats?: boolean
}

/** The settings that are fixed before a scan begins. */
export type SettledScan = ReturnType<typeof settle<'scan', ScanFlags>>

/** The options of the scan. */
export function scanOptions(flags: SettledScan, filter: RowFilter | null): ScanOptions {
  const named = requestedStatistics(flags.reductions)
  return {
    ...selectionOf(flags),
    ...readingOptions(flags),
    reductions: filter === null ? (named ?? 'all') : [...(named ?? REDUCTIONS), ...filter.reductions],
    timed: flags.stats === true,
    callerWorks: true,
  }
}

/** Writes rows that come as text from the threads. */
export async function writeLines(rows: Scan, format: RowFormatName, output: Output): Promise<void> {
  for await (const lines of rows.lines(format)) await output.writeBytes(lines)
}

/** Writes rows that become text here: tables, rows for a terminal, and those that an expression selects. */
export async function writeRows(rows: AsyncIterable<ScanRow>, format: RowWriter, output: Output): Promise<void> {
  await output.write(format.head)
  for await (const row of rows) {
    const written = output.write(format.line(row))
    if (written) await written
  }
}

/** Writes a Parquet file or an Arrow stream. */
export async function writeTable(
  scans: Scan | AsyncIterable<TableSource>,
  format: TableFormatName,
  options: TableOptions,
  output: Output,
): Promise<void> {
  for await (const bytes of tableBytes(scans, format, options)) await output.writeBytes(bytes)
}

/** The metadata of a table file. */
export function metadataOf(
  trials: readonly string[],
  { checkLevel = 'minimal' }: ScanFlags,
): Readonly<Record<string, string>> {
  return {
    'trialscan.version': VERSION,
    'trialscan.trial': trials.length === 1 ? trials[0]! : JSON.stringify(trials),
    'trialscan.arguments': JSON.stringify(process.argv.slice(2)),
    'trialscan.check_level': checkLevel,
  }
}

export function rowWriterFor(
  trial: Trial,
  flags: ScanFlags,
  format: Exclude<FormatOf<'scan'>, TableFormatName>,
  onTerminal: boolean,
): RowWriter | RowFormatName {
  if (format === 'table') {
    const scope = {
      names: [...(selectTensorNames(stateOf(trial), trial.name, selectionOf(flags)) ?? trial.tensorNames())],
      workers: flags.worker ?? trial.workers(),
      modes: trial.modes(),
      lastStep: trial.steps({ showIncompleteSteps: true }).at(-1) ?? 0,
      width: screenWidth(onTerminal),
    }
    return tableFormat(
      flags.reductions === undefined ? null : (requestedStatistics(flags.reductions) ?? REDUCTIONS),
      scope,
      colorsFor(onTerminal ? process.stdout : null),
    )
  }
  if (!onTerminal && flags.where === undefined) return format
  return rowLines(format, requestedStatistics(flags.reductions) ?? REDUCTIONS, onTerminal)
}
