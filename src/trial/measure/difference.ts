/** Decodes how two tensors differ from the numbers that a thread computed (worker/task/difference.ts). */

import { type Kinds, kinds, optionsOf } from '../../base/options.js'
import type { DType } from '../../base/types.js'
import { DifferenceRow } from '../../core/border/abi.js'
import { dtypeOf } from '../../core/dtype.js'
import type { TaskAnswer } from './answers.js'
import { numbersOf, type QuestionSubject, type TensorDifference } from './question.js'

/** The tolerance of a comparison: a and b are close if |a − b| ≤ atol + rtol·|b|. */
export interface DifferenceTolerance {
  /** The relative tolerance. Default: 0. */
  readonly rtol?: number
  readonly atol?: number
  /**
   * A preset instead of numbers:
   * - exact: any difference counts (default)
   * - dtype: the tolerance of torch.testing.assert_close for the dtype (float16 1e-3 and 1e-5, bfloat16 1.6e-2 and 1e-5,
   *   float32 1.3e-6 and 1e-5, float64 1e-7 and 1e-7, integers exactly); for two dtypes the wider one
   * - numpy: 1e-5 and 1e-8, as numpy's allclose
   */
  readonly tolerance?: (typeof TOLERANCES)[number]
}

export const TOLERANCES = ['exact', 'dtype', 'numpy'] as const

export const DIFFERENCE_TOLERANCE_KINDS: Kinds<DifferenceTolerance> = {
  rtol: kinds.tolerance,
  atol: kinds.tolerance,
  tolerance: kinds.oneOf(TOLERANCES),
}

export const DIFFERENCE_TOLERANCE = optionsOf<DifferenceTolerance>(DIFFERENCE_TOLERANCE_KINDS)

/** The numbers of a tolerance: rtol and atol; NaN stands for those of the dtypes. */
export function toleranceNumbers({
  rtol = 0,
  atol = 0,
  tolerance = 'exact',
}: DifferenceTolerance): readonly [rtol: number, atol: number] {
  if (tolerance === 'dtype') return [Number.NaN, Number.NaN]
  return tolerance === 'numpy' ? [1e-5, 1e-8] : [rtol, atol]
}

const SIDES = ['neither', 'a', 'b', 'both'] as const

/** The difference; null if the shapes differ. */
export function readDifference(result: TaskAnswer, tensor: QuestionSubject): TensorDifference | null {
  const numbers = numbersOf(result, tensor)
  return numbers.length === 0 ? null : differenceIn(numbers)
}

/** The number of values in front of a row's moments. */
const HEAD = 14

/** The difference from the numbers that `differenceOf` returns. */
export function differenceIn(numbers: readonly number[]): TensorDifference {
  const slot = (at: DifferenceRow) => numbers[HEAD + at / 8] ?? 0
  const count = slot(DifferenceRow.count)
  const dtypes = { dtype: dtypeOf(numbers[10]!)!, otherDtype: dtypeOf(numbers[11]!)! }
  if (numbers[0] === 1) {
    return {
      ...dtypes,
      count,
      shape: null,
      hasEqualBits: true,
      first: null,
      unequalCount: 0,
      beyondCount: 0,
      maxAbsolute: 0,
      maxRelative: 0,
      meanAbsolute: 0,
      largest: null,
      largestPair: null,
      relativeNorm: 0,
      maxUlps: null,
      ulps: null,
      cosine: null,
      normRatio: null,
      notFinite: 'neither',
    }
  }
  const normA = Math.sqrt(slot(DifferenceRow.squaresA))
  const normB = Math.sqrt(slot(DifferenceRow.squaresB))
  const firstUnequal = slot(DifferenceRow.firstUnequal)
  const first = firstUnequal >= 0 ? firstUnequal : numbers[1]!
  const beyondCount = numbers[2]!
  const largest = numbers[3]!
  const hasUlps = !Number.isNaN(numbers[5]!)
  const maxUlps = slot(DifferenceRow.maxUlps)
  const ulpsAt = (at: number) => Math.min(numbers[at]!, maxUlps)
  return {
    ...dtypes,
    count,
    shape: numbers.slice(HEAD + DifferenceRow.size / 8),
    hasEqualBits: false,
    first: first >= 0 ? first : null,
    unequalCount: slot(DifferenceRow.unequalCount),
    beyondCount,
    maxAbsolute: slot(DifferenceRow.maxAbsolute),
    maxRelative: slot(DifferenceRow.maxRelative),
    meanAbsolute: ifFinite(slot(DifferenceRow.sumAbsolute) / count),
    largest: largest >= 0 ? largest : null,
    largestPair: largest >= 0 && !isComplex(dtypes.dtype, dtypes.otherDtype) ? [numbers[12]!, numbers[13]!] : null,
    relativeNorm: ifNumber(Math.sqrt(slot(DifferenceRow.squaresApart)) / normA),
    maxUlps: hasUlps ? maxUlps : null,
    ulps: hasUlps ? { p50: ulpsAt(5), p90: ulpsAt(6), p99: ulpsAt(7) } : null,
    cosine: ifFinite(Math.max(-1, Math.min(1, slot(DifferenceRow.dot) / (normA * normB)))),
    normRatio: ifFinite(normA / numbers[8]! / (normB / numbers[9]!)),
    notFinite: SIDES[numbers[4]!]!,
  }
}

/** Null for NaN: 0 / 0, or a result of NaN or infinities. */
function ifNumber(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

function isComplex(...dtypes: readonly DType[]): boolean {
  return dtypes.some(dtype => dtype.startsWith('complex'))
}

function ifFinite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
