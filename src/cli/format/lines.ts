/**
 * Lines for other programs: rows of a scan, cells, JSON. On a terminal, harmful characters are escaped; JSON still
 * parses to the same.
 */

import type { StatisticName } from '../../base/types.js'
import type { RowFormat, RowFormatName } from '../../scan/job/row.js'
import * as rowText from '../../scan/job/row.js'
import { safe, safeJson } from '../terminal.js'
import { jsonNumber } from './number.js'

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

/** A value as JSON, as lines of a scan have it: NaN and the infinities are texts; integers have all their digits. */
export function jsonOf(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') return jsonNumber(value)
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  if ('toJSON' in value) return JSON.stringify(value)
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${jsonOf(field)}`).join(',')}}`
}
