/** Rows as JSON objects, one a line: the contract for other programs. Its keys and their order don't change. */

import type { ReductionName, ScanRow } from '../../index.js'
import { safeJson } from '../terminal.js'
import { isComplex, jsonNumber, reductionOf } from './number.js'
import { errorObject, type RowFormat } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal; the JSON parses to the same */
export function jsonlFormat(reductions: readonly ReductionName[], onTerminal: boolean): RowFormat {
  const keys = reductions.map(name => [name, `,"${name}":`] as const)
  const line = (row: ScanRow): string => {
    const { tensor, step, mode, modeStep, worker, dtype, shape, error } = row
    let text = `{"tensor":${JSON.stringify(tensor)},"step":${step},"mode":"${mode}","mode_step":${modeStep},"worker":${JSON.stringify(worker)}`
    // A record that could not be read at all has neither.
    if (!error || dtype !== null || row.saved)
      text += `,"dtype":${JSON.stringify(dtype)},"shape":${JSON.stringify(shape)}`
    for (const [name, key] of keys) {
      const value = reductionOf(row, name)
      if (value === undefined) continue
      text += isComplex(value)
        ? `${key}{"re":${jsonNumber(value.re)},"im":${jsonNumber(value.im)}}`
        : key + jsonNumber(value)
    }
    if (row.saved) text += ',"saved":true'
    if (error) text += `,"error":${JSON.stringify(errorObject(error))}`
    return `${text}}\n`
  }
  // The newline that ends a line is no part of its JSON.
  return { head: '', line: onTerminal ? row => `${safeJson(line(row).slice(0, -1))}\n` : line }
}
