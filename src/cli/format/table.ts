/** Rows as a table for people. Widths are set before the first row, so that rows are shown as they come. */

import type { TrialscanError } from '../../base/errors.js'
import type { StatisticName } from '../../base/types.js'
import type { ScanRow } from '../../scan/job/row.js'
import { besideOrBelow, type Colors, elided, padEnd, padStart, safe, safeName, widthOf, wrapped } from '../terminal.js'
import type { RowWriter } from './lines.js'
import {
  bucketsText,
  complexText,
  isComplex,
  isHistogram,
  isSketch,
  reductionOf,
  shapeText,
  shortNumber,
} from './number.js'

/** The columns that the rows can have. */
export interface TableScope {
  readonly names: readonly string[]
  /** The workers, shown only if there are several. */
  readonly workers: readonly string[]
  /** The modes, shown only if there are any. */
  readonly modes: readonly string[]
  readonly lastStep: number
  /** The width of a line in characters. Default: unlimited. */
  readonly width?: number
}

const TABLE_REDUCTIONS: readonly StatisticName[] = ['min', 'max', 'mean', 'std', 'l2']
/** The width from which a name overflows its column, instead of widening it for all rows. */
const MAX_NAME_WIDTH = 60
const NUMBER_WIDTH = 12
const SHA256_WIDTH = 64
/** The width of numbers with four digits, where space is short. */
const SHORT_NUMBER_WIDTH = 10
const SHORT_DIGITS = 4
/** The width of the columns of dtype and shape. */
const KIND_WIDTH = 26
/** The least width to which names are cut, and the width of cut workers. */
const MIN_NAME_WIDTH = 24
const CUT_WORKER_WIDTH = 16
/** The number of reductions that are shown even if names must be cut. */
const MIN_NUMBERS = 3

/** @param wanted the reductions; null for the usual ones, as far as they fit */
export function tableFormat(wanted: readonly StatisticName[] | null, scope: TableScope, colors: Colors): RowWriter {
  const { names, workers, modes, lastStep, width = Number.POSITIVE_INFINITY } = scope
  const hasModes = modes.length > 0
  const hasWorkers = workers.length > 1
  const stepWidth = Math.max(4, String(lastStep).length)
  const modeWidth = Math.max(4, ...modes.map(mode => mode.length + 1 + String(lastStep).length))
  const longest = widest('tensor', names)
  const all = wanted ?? TABLE_REDUCTIONS
  const longestWorker = widest('worker', workers)
  const beforeWorker = stepWidth + 2 + (hasModes ? modeWidth + 2 : 0)
  const whole = beforeWorker + (hasWorkers ? longestWorker + 2 : 0) + longest + KIND_WIDTH
  const isShort = whole + all.length * (NUMBER_WIDTH + 2) > width
  const workerWidth = isShort ? Math.min(longestWorker, CUT_WORKER_WIDTH) : longestWorker
  const before = beforeWorker + (hasWorkers ? workerWidth + 2 : 0)
  const space = Math.floor((width - before - Math.min(longest, MIN_NAME_WIDTH)) / (SHORT_NUMBER_WIDTH + 2))
  const reductions = wanted ?? (isShort ? all.slice(0, Math.max(MIN_NUMBERS, space)) : all)
  const numberWidth = isShort ? SHORT_NUMBER_WIDTH : NUMBER_WIDTH
  const numberWidths = reductions.map(name => (name === 'sha256' ? SHA256_WIDTH : Math.max(numberWidth, name.length)))
  const rest = width - before - numberWidths.reduce((sum, numberWidth) => sum + numberWidth + 2, 0)
  const nameWidth = isShort ? Math.min(longest, Math.max(MIN_NAME_WIDTH, rest)) : longest

  const place = (step: string, mode: string, worker: string, tensor: string, dtype: string, shape: string) => {
    const cells = [padStart(step, stepWidth)]
    if (hasModes) cells.push(padEnd(mode, modeWidth))
    if (hasWorkers) cells.push(padEnd(isShort ? elided(worker, workerWidth) : worker, workerWidth))
    cells.push(padEnd(isShort ? elided(tensor, Math.max(14, nameWidth)) : tensor, nameWidth))
    if (!isShort) cells.push(padEnd(dtype, 10), padEnd(shape, 12))
    return cells.join('  ')
  }
  const short = (value: number | bigint) => shortNumber(value, isShort ? SHORT_DIGITS : undefined)
  const number = (row: ScanRow, name: StatisticName, i: number): string => {
    const value = reductionOf(row, name)
    if (value === undefined) return padStart('', numberWidths[i]!)
    if (isHistogram(value)) return padStart(value.counts.join(' '), numberWidths[i]!)
    if (isSketch(value)) return padStart(bucketsText(value), numberWidths[i]!)
    if (typeof value === 'string') return padStart(value, numberWidths[i]!)
    const text = padStart(isComplex(value) ? complexText(value, short) : short(value), numberWidths[i]!)
    return /Inf|NaN/.test(text) ? colors.red(text) : text
  }
  const fit = Number.isFinite(width) ? width : null
  const lines = (start: string, cells: readonly string[]) =>
    besideOrBelow([start, ...cells], before + nameWidth + 2, fit)
  const errorLine = (start: string, { code, message }: TrialscanError) => {
    const text = safe(`${code}: ${message}`)
    const isLong = fit !== null && widthOf(start) + 2 + text.length > fit
    return isLong
      ? `${start}\n${colors.red(wrapped(text, fit, '      ', '      '))}\n`
      : `${start}  ${colors.red(text)}\n`
  }
  const head = reductions.map((name, i) => padStart(name, numberWidths[i]!))
  return {
    head: `${colors.bold(lines(place('step', 'mode', 'worker', 'tensor', 'dtype', 'shape'), head))}\n`,
    line(row: ScanRow): string {
      const { tensor, step, mode, modeStep, worker, dtype, shape, saved, error } = row
      const whole = tensor === null ? '(all of the step)' : safeName(tensor)
      // Where there is no column for it, the name has it.
      const name = isShort && saved ? `${elided(whole, Math.max(8, nameWidth - 6))} saved` : whole
      const kind = saved ? 'saved' : (dtype ?? '?')
      const start = place(String(step), `${mode} ${modeStep}`, safe(worker), name, kind, shapeText(shape))
      if (error && Object.keys(row.reductions).length === 0) return errorLine(start, error)
      const numbers = reductions.map((name, i) => number(row, name, i))
      const text = lines(start, numbers)
      return error ? errorLine(text, error) : `${text}\n`
    },
  }
}

function widest(head: string, names: readonly string[]): number {
  let width = head.length
  for (const name of names) {
    const nameWidth = widthOf(safeName(name))
    if (nameWidth <= MAX_NAME_WIDTH && nameWidth > width) width = nameWidth
  }
  return width
}
