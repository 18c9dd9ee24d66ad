// Rows of moments as lines of text: pieces that the host has spelled, numbers, each behind its label, and an end.

import { copy, writeNumber } from './decimal'
import { Column, Form, Line, Moments } from './layout'

/**
 * Writes lines of rows whose elements are real, finite, at least one, and not extreme: what is asked of them is there.
 * @param lines count × Line
 * @param columns columnCount × Column
 * @param end what each line ends with
 * @param isJson 1: what JSON has no number for is put in quotes
 * @param out has room for all pieces and NUMBER_BYTES a number, and 32 bytes more
 * @param ends a u32 a line: where it ends, from `out` on
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
  const columnsEnd = columns + <usize>columnCount * Column.SIZE
  let at = out
  for (let i: u32 = 0; i < count; i++) {
    const row = <usize>load<u32>(lines, Line.ROW)
    for (let piece = lines + Line.PIECES; piece != lines + Line.SIZE; piece += 8) at = put(at, piece)
    for (let column = columns; column != columnsEnd; column += Column.SIZE) {
      at = put(at, column)
      at = writeNumber(numberOf(row, column), isJson, at)
    }
    copy(at, end, endLength)
    at += endLength
    store<u32>(ends, <u32>(at - out))
    ends += 4
    lines += Line.SIZE
  }
}

/** Writes what lies at an address, of a byte length. @returns where it ends */
// @ts-ignore: decorator
@inline
function put(at: usize, piece: usize): usize {
  const byteLength = load<u32>(piece, 4)
  copy(at, load<u32>(piece), byteLength)
  return at + byteLength
}

function numberOf(row: usize, column: usize): f64 {
  const value = load<f64>(row + load<u32>(column, Column.SLOT))
  switch (load<u32>(column, Column.FORM)) {
    case Form.SLOT:
      return value
    case Form.ROOT:
      return sqrt(value)
    case Form.PER_COUNT:
      return max<f64>(0, value) / load<f64>(row, Moments.COUNT)
    case Form.ROOT_PER_COUNT:
      return sqrt(max<f64>(0, value) / load<f64>(row, Moments.COUNT))
    default: {
      const product = scale(value, load<f64>(row, Moments.PROD_EXPONENT))
      return load<u32>(column, Column.FORM) == Form.ABS_PRODUCT ? abs(product) : product
    }
  }
}

/** x · 2^exponent, in the steps of src/engine/moments.ts. */
function scale(x: f64, exponent: f64): f64 {
  if (exponent > 3000) return x * Infinity
  if (exponent < -3000) return x * 0
  for (let left = <i64>exponent; left != 0; ) {
    const step = max<i64>(-1000, min<i64>(1000, left))
    x *= reinterpret<f64>((1023 + step) << 52)
    left -= step
  }
  return x
}
