// Rows of moments as lines of text: pieces that the host has written, labelled numbers, and an end.

import { MomentsRow, NumberForm, TextColumn, TextLine } from '../src/engine/border/abi'
import { copy, writeNumber } from './decimal'

/**
 * Writes lines from rows of real, finite elements: at least one, none extreme. The rows must know what is asked for.
 * @param lines count × TextLine
 * @param columns columnCount × TextColumn
 * @param end what each line ends with
 * @param isJson 1: NaN and the infinities are written in quotes
 * @param out has space for all pieces, NUMBER_BYTES per number and TEXT_SLACK more bytes
 * @param ends one u32 per line: where it ends, relative to `out`
 */
export function writeLines(
  lines: usize,
  count: u32,
  columns: usize,
  columnCount: u32,
  end: usize,
  endLength: u32,
  isJson: u32,
  out: usize,
  ends: usize,
): void {
  const columnsEnd = columns + <usize>columnCount * TextColumn.size
  let at = out
  for (let i: u32 = 0; i < count; i++) {
    const row = <usize>load<u32>(lines, TextLine.row)
    for (let piece = lines + TextLine.pieces; piece != lines + TextLine.size; piece += 8) at = put(at, piece)
    for (let column = columns; column != columnsEnd; column += TextColumn.size) {
      at = put(at, column)
      at = writeNumber(numberOf(row, column), isJson, at)
    }
    copy(at, end, endLength)
    at += endLength
    store<u32>(ends, <u32>(at - out))
    ends += 4
    lines += TextLine.size
  }
}

/** Copies a piece, given by address and byte length. @returns where the copy ends */
// @ts-ignore: decorator
@inline
function put(at: usize, piece: usize): usize {
  const byteLength = load<u32>(piece, 4)
  copy(at, load<u32>(piece), byteLength)
  return at + byteLength
}

/** A number of a row of real, finite elements. @param column TextColumn, whose label is of no meaning here */
export function numberOf(row: usize, column: usize): f64 {
  const value = load<f64>(row + load<u32>(column, TextColumn.slot))
  switch (load<u32>(column, TextColumn.form)) {
    case NumberForm.slot:
      return value
    case NumberForm.root:
      return sqrt(value)
    case NumberForm.perCount:
      return max<f64>(0, value) / load<f64>(row, MomentsRow.count)
    case NumberForm.rootPerCount:
      return sqrt(max<f64>(0, value) / load<f64>(row, MomentsRow.count))
    default: {
      const product = scale(value, load<f64>(row, MomentsRow.prodExponent))
      return load<u32>(column, TextColumn.form) == NumberForm.absProduct ? abs(product) : product
    }
  }
}

/** x · 2^exponent, in the same steps as src/engine/moments.ts. */
function scale(x: f64, exponent: f64): f64 {
  if (exponent > 3000) return x * Infinity
  // Of rows that are not finite it may be NaN, which can't be made a whole number.
  if (!(exponent >= -3000)) return x * 0
  for (let left = <i64>exponent; left != 0; ) {
    const step = max<i64>(-1000, min<i64>(1000, left))
    x *= reinterpret<f64>((1023 + step) << 52)
    left -= step
  }
  return x
}
