/** Numbers in readable form. */

/** A number with at most six significant digits; integers that fit stay whole. */
export function shortNumber(value: number | bigint, digits = 6): string {
  if (typeof value === 'bigint') {
    return value > -1_000_000_000_000n && value < 1_000_000_000_000n
      ? String(value)
      : shortNumber(Number(value), digits)
  }
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Inf' : '-Inf'
  if (Number.isSafeInteger(value) && Math.abs(value) < 1e9) return Object.is(value, -0) ? '-0' : String(value)
  const size = Math.abs(value)
  if (size >= 1e-4 && size < 10 ** digits) return String(Number(value.toPrecision(digits)))
  return value.toExponential(digits - 1).replace(/\.?0+e/, 'e')
}

/** A count with separators: 1,234,567. */
export function countText(count: number): string {
  // Intl takes 20 ms until it has formatted its first number.
  return Number.isSafeInteger(count) ? String(count).replace(/\B(?=(?:\d{3})+$)/g, ',') : count.toLocaleString('en-US')
}

/** `1 row`, `2 rows`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `73,909 parameters in 24 tensors`; of a dump its elements. */
export function elementsText(counts: Readonly<Record<'parameters' | 'elements' | 'tensors', number>>): string {
  const { parameters, elements, tensors } = counts
  return `${counted(elements, parameters > 0 ? 'parameter' : 'element')} in ${counted(tensors, 'tensor')}`
}
