/** Checks the values of all tensors: NaN, infinities, zeros, constants, and values beyond half precision. */

import { quote } from '../../base/errors.js'
import type { StatisticName } from '../../base/types.js'
import { reductionOf, type ScanRow } from '../../scan/job/row.js'
import type { Findings } from './findings.js'
import type { VerifyCode } from './problem.js'

/** The reductions that this needs, computed in one pass. */
const VALUE_REDUCTIONS: readonly StatisticName[] = [
  'count',
  'nan_count',
  'inf_count',
  'zero_count',
  'min',
  'max',
  'abs_max',
]

/** The largest finite float16. */
const HALF_MAX = 65504
/** The second matrix of a LoRA adapter. It starts as zeros, so that the adapter changes nothing before it is trained. */
const ADAPTER_B = /(^|[._])lora_(embedding_)?(B|up)([._]|$)/
/** Biases, and the weights and statistics of norms: they start as zeros or ones, and may stay so. */
const BEGINS_CONSTANT = /bias|norm|(^|[._/])(ln|bn)[._\d]|gamma|beta|running_|moving_/i

/** The number of tensors whose values were read, counted per step and worker. */
export interface ValueCounts {
  read: number
  of: number
}

/** Judges the values of one tensor after another. */
export class ValueCheck {
  readonly reductions = VALUE_REDUCTIONS
  readonly counts: ValueCounts = { read: 0, of: 0 }
  readonly #findings: Findings

  constructor(findings: Findings) {
    this.#findings = findings
  }

  check(row: ScanRow): void {
    // Only reductions of this tensor were saved.
    if (row.saved) return
    this.counts.of++
    const { tensor, step, dtype } = row
    const [count, nan, infinite, zeros] = (['count', 'nan_count', 'inf_count', 'zero_count'] as const).map(name =>
      Number(reductionOf(row, name)),
    )
    if (tensor === null || !(count! >= 0 && nan! >= 0)) return
    this.counts.read++
    const isB = ADAPTER_B.test(tensor)
    const elements = `${count} ${count === 1 ? 'element' : 'elements'} of ${quote(tensor)}`
    const tell = (severity: 'problem' | 'note', code: VerifyCode, expected: string, found: string) =>
      this.#findings.tell(severity, code, '', () => ({ tensor, step, expected, found }))
    if (nan! > 0) {
      tell('problem', 'NaNValues', isB ? 'the numbers of an adapter' : 'numbers', `${nan} NaN among ${elements}`)
    }
    if (infinite! > 0) tell('problem', 'InfiniteValues', 'finite numbers', `${infinite} infinite among ${elements}`)
    if (nan! > 0 || infinite! > 0 || count === 0) return
    const largest = reductionOf(row, 'abs_max')
    if ((dtype === 'float32' || dtype === 'bfloat16') && typeof largest === 'number' && largest > HALF_MAX) {
      tell('note', 'BeyondHalf', `at most ${HALF_MAX}, as float16 has it`, `${largest} among ${elements}`)
    }
    // A tensor of one element is always constant, and masks often are.
    if (count === 1 || dtype === 'bool') return
    if (zeros === count) {
      if (isB) tell('note', 'AdapterWithoutEffect', 'an adapter that changes something', `zeros alone: ${elements}`)
      else if (!BEGINS_CONSTANT.test(tensor))
        tell('note', 'ZeroTensor', 'some that are not zero', `zeros alone: ${elements}`)
      return
    }
    const [min, max] = [reductionOf(row, 'min'), reductionOf(row, 'max')]
    if ((typeof min !== 'number' && typeof min !== 'bigint') || min !== max) return
    if (Number(min) === 1 && BEGINS_CONSTANT.test(tensor)) return
    tell('note', 'ConstantTensor', 'some that differ', `${min} alone: ${elements}`)
  }
}
