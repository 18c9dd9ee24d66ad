/** Rows as comma-separated values. */

import { type ReductionName, rowText } from '../../index.js'
import { safe } from '../terminal.js'
import type { RowFormat } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal */
export function csvFormat(reductions: readonly ReductionName[], onTerminal: boolean): RowFormat {
  const format = rowText.rowFormat('csv', reductions)
  // The newline that ends a line is no part of it.
  return onTerminal ? { ...format, line: row => `${safe(format.line(row).slice(0, -1))}\n` } : format
}
