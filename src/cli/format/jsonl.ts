/** Rows as JSON objects, one a line. */

import { type ReductionName, rowText } from '../../index.js'
import { safeJson } from '../terminal.js'
import type { RowWriter } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal; the JSON parses to the same */
export function jsonlFormat(reductions: readonly ReductionName[], onTerminal: boolean): RowWriter {
  const format = rowText.rowFormat('jsonl', reductions)
  // The newline that ends a line is no part of its JSON.
  return onTerminal ? { ...format, line: row => `${safeJson(format.line(row).slice(0, -1))}\n` } : format
}
