/** The inputs, and the expected answers: the 18 reductions in the most careful way, however slow. */

import { REDUCTIONS, type ReductionBase, type ReductionName } from '../../base/types.js'
import type { Floats } from './plain-js.js'

/** The reductions in the order of REDUCTIONS. There must be at least one value, and all must be finite. */
export function expectedReductions(values: Float64Array): Float64Array {
  const plain = nine(values)
  const absolute = nine(values.map(Math.abs))
  const value = (name: ReductionName) =>
    name.startsWith('abs_') ? absolute[name.slice(4) as ReductionBase] : plain[name as ReductionBase]
  return Float64Array.from(REDUCTIONS, value)
}

function nine(values: Float64Array): Record<ReductionBase, number> {
  const sum = compensatedSum(values, x => x)
  const mean = sum / values.length
  const variance = compensatedSum(values, x => (x - mean) ** 2) / values.length
  return {
    min: values.reduce((least, x) => Math.min(least, x), Number.POSITIVE_INFINITY),
    max: values.reduce((most, x) => Math.max(most, x), Number.NEGATIVE_INFINITY),
    mean,
    std: Math.sqrt(variance),
    variance,
    sum,
    prod: product(values),
    l1: compensatedSum(values, Math.abs),
    l2: Math.sqrt(compensatedSum(values, x => x * x)),
  }
}

/** Neumaier's compensated sum. */
function compensatedSum(values: Float64Array, term: (x: number) => number): number {
  let sum = 0
  let lost = 0
  for (let i = 0; i < values.length; i++) {
    const x = term(values[i]!)
    const next = sum + x
    lost += Math.abs(sum) >= Math.abs(x) ? sum - next + x : x - next + sum
    sum = next
  }
  return sum + lost
}

/** The product, without overflow or underflow on the way. */
function product(values: Float64Array): number {
  const big = 2 ** 500
  let mantissa = 1
  let exponent = 0
  for (let i = 0; i < values.length && mantissa !== 0; i++) {
    mantissa *= values[i]!
    while (Math.abs(mantissa) >= big) {
      mantissa /= big
      exponent += 500
    }
    while (mantissa !== 0 && Math.abs(mantissa) < 1 / big) {
      mantissa *= big
      exponent -= 500
    }
  }
  return mantissa === 0 ? 0 : mantissa * 2 ** (exponent / 2) * 2 ** (exponent / 2)
}

/** Numbers in pairs of about x and 1 / x, so that products stay in range; a quarter of them negative. The same in every run. */
export function makeElements(dtype: 'float32' | 'float64', bytes: number): Floats {
  const data = dtype === 'float32' ? new Float32Array(bytes / 4) : new Float64Array(bytes / 8)
  let state = 5
  // Numerical Recipes' generator of 32 bits; the high bits are the random ones.
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  let log = 0
  for (let i = 0; i < data.length; i++) {
    log = i % 2 === 0 ? 0.6 * random() - 0.3 : -log
    data[i] = Math.exp(log) * (random() < 0.25 ? -1 : 1)
  }
  return data
}
