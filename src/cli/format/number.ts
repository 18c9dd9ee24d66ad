/** Numbers and shapes as text. */

import * as rowText from '../../scan/job/row.js'

export const {
  bucketsText,
  complexText,
  isComplex,
  isHistogram,
  isSketch,
  jsonNumber,
  plainNumber,
  reductionOf,
  shapeText,
} = rowText

/** Six significant digits at most; integers that fit stay whole. */
export function shortNumber(value: number | bigint, digits = 6): string {
  if (typeof value === 'bigint') {
    return value > -1_000_000_000_000n && value < 1_000_000_000_000n
      ? String(value)
      : shortNumber(Number(value), digits)
  }
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Inf' : '-Inf'
  if (Number.isSafeInteger(value) && Math.abs(value) < 1e9) return plainNumber(value)
  const size = Math.abs(value)
  if (size >= 1e-4 && size < 10 ** digits) return String(Number(value.toPrecision(digits)))
  return value.toExponential(digits - 1).replace(/\.?0+e/, 'e')
}

/** Two numbers, with as many digits as tell them apart. */
export function apartNumbers([a, b]: readonly [number, number]): readonly [string, string] {
  const texts = [shortNumber(a), shortNumber(b)] as const
  return texts[0] !== texts[1] || a === b ? texts : [String(a), String(b)]
}

const UNITS = ['KB', 'MB', 'GB', 'TB', 'PB']

/** 999 B, 1.2 KB, 3.4 GB: thousands, not 1,024s. */
export function bytesText(count: number): string {
  if (count < 1000) return `${count} B`
  const power = Math.min(UNITS.length, Math.floor(Math.log10(count) / 3))
  return `${(count / 1000 ** power).toFixed(1)} ${UNITS[power - 1]}`
}

/** 1,234,567 */
export function countText(count: number): string {
  // Most are small, and that is ten times as fast.
  return count >= 0 && count < 1000 ? String(count) : count.toLocaleString('en-US')
}

/** `0, 10, 20`; only the first of many. */
export function shortList(texts: readonly (string | number)[]): string {
  return texts.length > 8 ? `${texts.slice(0, 8).join(', ')} and ${countText(texts.length - 8)} more` : texts.join(', ')
}

/** `1 row`, `2 rows`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`
}
