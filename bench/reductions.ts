/** The expected answers: the 18 reductions in the most careful way, however slow. */
import { REDUCTIONS, type ReductionBase, type ReductionName } from '#dist/types.js'
import { expectClose, type Judge } from './definition.js'

/** In the order of REDUCTIONS. The values must be finite, and at least one. */
export function expectedReductions(values: Float64Array): Float64Array {
  const plain = nine(values)
  const absolute = nine(values.map(Math.abs))
  const value = (name: ReductionName) =>
    name.startsWith('abs_') ? absolute[name.slice(4) as ReductionBase] : plain[name as ReductionBase]
  return Float64Array.from(REDUCTIONS, value)
}

/** The fault of reductions that were made in doubles, as ours are. */
export function expectReductions(expected: Float64Array, names: readonly ReductionName[]): Judge<ArrayLike<number>> {
  return expectClose(expected, i => names[i]!)
}

/** Of what adds float32 in float32; norms by a plain BLAS, as Debian's numpy has it, add one after the other. */
const TOLERANCE_OF_FLOAT32 = 2e-3
const TOLERANCE_OF_NORMS = 3e-2

/**
 * The fault of reductions that were made in float32: sums that cancel are held against the numbers that cancelled;
 * products, which float32 seldom holds, are not looked at.
 */
export function expectReductionsOfFloat32(
  expected: Float64Array,
  names: readonly ReductionName[],
): Judge<ArrayLike<number>> {
  const scaleOf = (i: number) => {
    const absolute = { sum: 'abs_sum', mean: 'abs_mean' }[names[i] as string] as ReductionName | undefined
    const at = absolute === undefined ? -1 : names.indexOf(absolute)
    return Math.abs(expected[at < 0 ? i : at]!)
  }
  return answer => {
    if (answer.length !== expected.length) return `expected ${expected.length} numbers, got ${answer.length}`
    const i = expected.findIndex((value, i) => {
      const tolerance = names[i]!.endsWith('l2') ? TOLERANCE_OF_NORMS : TOLERANCE_OF_FLOAT32
      return !names[i]!.endsWith('prod') && !(Math.abs(answer[i]! - value) <= tolerance * scaleOf(i))
    })
    return i < 0 ? undefined : `${names[i]}: expected ${expected[i]}, got ${answer[i]}`
  }
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

/** Neumaier's. */
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

/** Without overflow or underflow on the way. */
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
