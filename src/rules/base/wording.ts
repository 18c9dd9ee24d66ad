/** Numbers and ratios as findings word them. */

/** The ratio from which on it is given as a factor instead of percent. */
const TIMES = 10

/** A number in the form that findings use. */
export function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : String(Number(value.toPrecision(4)))
}

/** The excess of a number over another, in words: `12 % above`, `123 times`. */
export function aboveText(value: number, other: number): string {
  const ratio = value / other
  if (other > 0 && ratio >= TIMES && Number.isFinite(ratio)) return `${numberText(ratio)} times`
  return `${numberText((100 * (value - other)) / Math.abs(other))} % above`
}

/** A rise from one number to another: `it rose by 12 %, from 1 to 1.12`. */
export function riseText(before: number, now: number): string {
  const ends = `from ${numberText(before)} to ${numberText(now)}`
  const ratio = now / before
  if (!Number.isFinite(ratio)) return `it rose ${ends}`
  if (before > 0 && ratio >= TIMES) return `it rose to ${numberText(ratio)} times that, ${ends}`
  return `it rose by ${numberText((100 * (now - before)) / Math.abs(before))} %, ${ends}`
}
