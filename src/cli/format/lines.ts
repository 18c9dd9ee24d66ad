/**
 * Lines for other programs: rows of a scan, cells, JSON. On a terminal, harmful characters are escaped; JSON still
 * parses to the same.
 */

import type { StatisticName } from '../../base/types.js'
import type { RowFormat, RowFormatName } from '../../scan/job/row.js'
import * as rowText from '../../scan/job/row.js'
import { safe, safeJson } from '../terminal.js'

/** The writer of rows as lines. */
export type RowWriter = Pick<RowFormat, 'head' | 'line'>

/**
 * Rows as comma-separated values (RFC 4180, with a header), or as JSON objects.
 * @param trial the path for a first column, if there are several trials
 */
export function rowLines(
  name: RowFormatName,
  reductions: readonly StatisticName[],
  onTerminal: boolean,
  trial?: string,
): RowWriter {
  const format = rowText.rowFormat(name, reductions, trial)
  if (!onTerminal) return format
  const escaped = name === 'csv' ? safe : safeJson
  // The final newline is not escaped.
  return { ...format, line: row => `${escaped(format.line(row).slice(0, -1))}\n` }
}

/** A line of cells. An unknown value is an empty cell. */
export function csvLine(cells: readonly (string | number | boolean | null | undefined)[], onTerminal: boolean): string {
  const line = cells.map(cell => rowText.csvCell(cell == null ? '' : String(cell))).join(',')
  return `${onTerminal ? safe(line) : line}\n`
}

export function jsonLine(value: unknown, onTerminal: boolean): string {
  const json = JSON.stringify(value)
  return `${onTerminal ? safeJson(json) : json}\n`
}
