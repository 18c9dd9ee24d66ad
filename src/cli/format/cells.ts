/** Selected columns of rows as lines, with values in the form of `scan`. */

import type { TrialscanError } from '../../base/errors.js'
import type { ScanRow } from '../../scan/job/row.js'
import * as rowText from '../../scan/job/row.js'
import type { ColumnValue, RowColumn } from '../../table/columns.js'
import { type Colors, colorsFor, columnLines, safe, safeJson, safeName, tableWidth } from '../terminal.js'
import { csvLine, jsonOf } from './lines.js'
import {
  bucketsText,
  complexText,
  isComplex,
  isHistogram,
  isSketch,
  plainNumber,
  shapeText,
  shortNumber,
} from './number.js'

/**
 * The printed part of a row. It holds no reference to the row, whose moments share memory with those of many others.
 */
export interface Cells {
  readonly values: readonly ColumnValue[]
  readonly error: TrialscanError | undefined
}

export function cellsOf(row: ScanRow, columns: readonly RowColumn[]): Cells {
  return { values: columns.map(column => column.value(row)), error: row.error }
}

/** A header and aligned columns. */
export function* cellTable(
  rows: readonly Cells[],
  columns: readonly RowColumn[],
  onTerminal: boolean,
): Generator<string> {
  const colors = colorsFor(onTerminal ? process.stdout : null)
  const head = columns.map(({ name }) => colors.bold(safe(name)))
  const body = rows.map(({ values, error }) => {
    const texts = values.map((value, i) => shownText(value, columns[i]!, colors))
    return error ? [...texts, colors.red(safe(`${error.code}: ${error.message}`))] : texts
  })
  const right = columns.flatMap(({ kind }, i) => (kind === 'number' ? [i] : []))
  yield* columnLines([head, ...body], right, tableWidth(onTerminal))
}

function shownText(value: ColumnValue, { name, reduction }: RowColumn, colors: Colors): string {
  if (name === 'tensor' && value === null) return '(all of the step)'
  if (typeof value === 'string') return safeName(value)
  if (reduction === null) return cellText(value)
  if (typeof value === 'number' || typeof value === 'bigint') return red(shortNumber(value), colors)
  if (isComplex(value)) return red(complexText(value, shortNumber), colors)
  return cellText(value)
}

function red(number: string, colors: Colors): string {
  return /Inf|NaN/.test(number) ? colors.red(number) : number
}

/** Comma-separated values with a header (RFC 4180). */
export function* cellCsv(
  rows: readonly Cells[],
  columns: readonly RowColumn[],
  onTerminal: boolean,
): Generator<string> {
  yield csvLine(
    columns.map(({ name }) => name),
    onTerminal,
  )
  for (const { values } of rows) yield csvLine(values.map(cellText), onTerminal)
}

/** A value with all digits; empty for null. */
function cellText(value: ColumnValue): string {
  if (value === null) return ''
  if (typeof value === 'number' || typeof value === 'bigint') return plainNumber(value)
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (isComplex(value)) return complexText(value)
  if (isHistogram(value)) return value.counts.join(' ')
  if (isSketch(value)) return bucketsText(value)
  return shapeText(value)
}

/** One object per line, without the reductions that a row lacks. */
export function* cellJson(
  rows: readonly Cells[],
  columns: readonly RowColumn[],
  onTerminal: boolean,
): Generator<string> {
  for (const { values, error } of rows) {
    const members = values.flatMap((value, i) => {
      const { name, reduction } = columns[i]!
      return value === null && reduction !== null ? [] : [`${JSON.stringify(name)}:${jsonOf(value)}`]
    })
    if (error) members.push(`"error":${JSON.stringify(rowText.errorObject(error))}`)
    const json = `{${members.join(',')}}`
    yield `${onTerminal ? safeJson(json) : json}\n`
  }
}
