/** The check of reductions against the expected answers. */
import type { ReductionName } from '#dist/base/types.js'
import { expectClose, type Judge } from './definition.js'

/** The fault of reductions that were made in doubles, as ours are. */
export function expectReductions(expected: Float64Array, names: readonly ReductionName[]): Judge<ArrayLike<number>> {
  return expectClose(expected, i => names[i]!)
}

/** The tolerance of sums of float32 in float32. A plain BLAS, as Debian's numpy has it, also adds norms one by one. */
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
