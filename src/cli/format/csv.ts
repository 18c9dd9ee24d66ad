/** Comma-separated values, quoted as RFC 4180 says, one header row, lines ended by a newline. */

import { type ReductionName, rowText } from '../../index.js'
import { safe } from '../terminal.js'
import type { RowWriter } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal */
export function csvFormat(reductions: readonly ReductionName[], onTerminal: boolean): RowWriter {
  const format = rowText.rowFormat('csv', reductions)
  // The newline that ends a line is no part of it.
  return onTerminal ? { ...format, line: row => `${safe(format.line(row).slice(0, -1))}\n` } : format
}

/** A line of cells; what is not known is an empty one. */
export function csvLine(cells: readonly (string | number | boolean | null | undefined)[], onTerminal: boolean): string {
  const line = cells.map(cell => rowText.csvCell(cell == null ? '' : String(cell))).join(',')
  return `${onTerminal ? safe(line) : line}\n`
}
