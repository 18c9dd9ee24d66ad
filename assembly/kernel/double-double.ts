// Double-double arithmetic: a number is the sum of two float64, high and low, where low is the rounding error of high.

/** The rounding error of the last `twoSum` or `twoProduct`. */
export let roundOff: f64 = 0

/** Knuth's sum. */
// @ts-ignore: decorator
@inline
export function twoSum(a: f64, b: f64): f64 {
  const sum = a + b
  const ofB = sum - a
  roundOff = a - (sum - ofB) + (b - ofB)
  return sum
}

/** Dekker's product: halves of 26 bits multiply without rounding. */
// @ts-ignore: decorator
@inline
export function twoProduct(a: f64, b: f64): f64 {
  const product = a * b
  const a1 = upperHalf(a)
  const a2 = a - a1
  const b1 = upperHalf(b)
  const b2 = b - b1
  roundOff = a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2
  return product
}

/** Veltkamp's split: the upper 26 bits. */
// @ts-ignore: decorator
@inline
function upperHalf(x: f64): f64 {
  const shifted = x * 134217729
  return shifted - (shifted - x)
}
