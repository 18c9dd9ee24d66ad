/** Numbers and shapes as text. */

import { countText, shortNumber } from '../../base/number-text.js'
import * as rowText from '../../scan/job/row.js'

export { counted, countText, elementsText, shortNumber } from '../../base/number-text.js'

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

/** Two numbers, with as many digits as tell them apart. */
export function apartNumbers([a, b]: readonly [number, number]): readonly [string, string] {
  const texts = [shortNumber(a), shortNumber(b)] as const
  return texts[0] !== texts[1] || a === b ? texts : [String(a), String(b)]
}

const UNITS = ['KB', 'MB', 'GB', 'TB', 'PB']

/** A number of bytes in powers of 1,000: `999 B`, `1.2 KB`, `3.4 GB`. */
export function bytesText(count: number): string {
  if (count < 1000) return `${count} B`
  const power = Math.min(UNITS.length, Math.floor(Math.log10(count) / 3))
  return `${(count / 1000 ** power).toFixed(1)} ${UNITS[power - 1]}`
}

/** A list such as `0, 10, 20`; of many items, the first, eight by default, and the number of others. */
export function shortList(texts: readonly (string | number)[], most = 8): string {
  const rest = texts.length - most
  return rest > 0 ? `${texts.slice(0, most).join(', ')} and ${countText(rest)} more` : texts.join(', ')
}
