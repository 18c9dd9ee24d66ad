/** Rows as comma-separated values, quoted as RFC 4180 says, one header row, lines ended by a newline. */

import type { ReductionName, ScanRow } from '../../index.js'
import { safe } from '../terminal.js'
import { complexText, isComplex, plainNumber, reductionOf } from './number.js'
import { type RowFormat, shapeText } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal */
export function csvFormat(reductions: readonly ReductionName[], onTerminal: boolean): RowFormat {
  const text = (value: string) => quote(onTerminal ? safe(value) : value)
  const head = ['tensor', 'step', 'mode', 'mode_step', 'worker', 'dtype', 'shape', ...reductions]
  return {
    head: `${[...head, 'saved', 'error_code', 'error_message'].join(',')}\n`,
    line(row: ScanRow): string {
      const { tensor, step, mode, modeStep, worker, dtype, shape, saved, error } = row
      let line = `${text(tensor ?? '')},${step},${mode},${modeStep},${text(worker)},${dtype ?? ''},${shapeText(shape)}`
      for (const name of reductions) {
        const value = reductionOf(row, name)
        line += ','
        if (value !== undefined) line += isComplex(value) ? complexText(value) : plainNumber(value)
      }
      return `${line},${saved},${error?.code ?? ''},${text(error?.message ?? '')}\n`
    },
  }
}

function quote(value: string): string {
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
}
