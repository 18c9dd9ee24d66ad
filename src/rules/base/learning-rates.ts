/** Saved learning rates, and unusual ones among them. */

import type { GlobalStep } from '../../base/types.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { silent } from '../finding.js'
import { Rule } from '../rule.js'
import { scalar } from './scalar.js'
import { numberText } from './wording.js'

/** An unusual learning rate, and the step from which on it holds. */
export interface UnusualRate {
  readonly tensor: string
  readonly step: GlobalStep
  readonly value: number
  /** The description, one sentence. */
  readonly message: string
}

/** A rate, its first step, and the number of its steps. */
interface Rate {
  readonly step: GlobalStep
  readonly value: number
  steps: number
}

const LEARNING_RATE = /(^|[/_.])(lr|learning_?rate)s?([/_.:]|\d|$)/i
/** The factor between two rates from which on one is far beyond the other. */
const FAR = 10
/** Steps after which a rate is no part of the beginning of a warm-up. */
const MIN_STEPS = 5
/** A learning rate that is hardly ever right. */
const HUGE = 10
/** A learning rate that is hardly ever right for all of a training. */
const TINY = 1e-8

/** The rules whose findings too high a learning rate can cause. */
const EFFECTS: ReadonlySet<string> = new Set([
  'ExplodingTensor',
  'ExplodingNorm',
  'WeightUpdateRatio',
  'LossNotDecreasing',
  'DeadRelu',
  'AllZero',
  'SaturatedActivation',
  'TensorVariance',
])

/** The rules whose findings too low a learning rate can cause. */
const EFFECTS_OF_TINY: ReadonlySet<string> = new Set([
  'UnchangedTensor',
  'UnchangedRows',
  'WeightUpdateRatio',
  'LossNotDecreasing',
  'PoorWeightInitialization',
])

/** Never fires; it only observes. It runs beside the rules, so that nothing is read twice. */
export class LearningRates extends Rule {
  readonly #names: readonly string[]
  readonly #questions = new Map<number, (readonly [tensor: string, rate: () => number | null])[]>()
  readonly #rates = new Map<string, Rate[]>()

  constructor(trial: Trial) {
    super(trial, { logger: silent })
    this.#names = stateOf(trial).catalog.names.filter(name => LEARNING_RATE.test(name) && !/gradient/i.test(name))
  }

  override get isObserver(): boolean {
    return true
  }

  override get hasJudgedStep(): boolean {
    return false
  }

  override setRequiredTensors(step: number): void {
    if (this.#names.length === 0) return
    const tensors = this.reqTensors.select(this.#names, step)
    this.#questions.set(
      step,
      tensors.map(tensor => [tensor.name, scalar(tensor)] as const),
    )
  }

  override invokeAtStep(step: number): boolean {
    for (const [tensor, rate] of this.#questions.get(step) ?? []) {
      const value = answered(rate)
      if (value === null || !Number.isFinite(value)) continue
      const rates = this.#rates.get(tensor) ?? []
      const last = rates.at(-1)
      if (last?.value === value) last.steps++
      else rates.push({ step: step as GlobalStep, value, steps: 1 })
      this.#rates.set(tensor, rates)
    }
    this.#questions.delete(step)
    return false
  }

  /** The unusual rates: each first step of a jump upwards, of a rate far beyond the others, of a huge one, and one that is always tiny. */
  get unusual(): readonly UnusualRate[] {
    return [...this.#rates].flatMap(([tensor, rates]) => {
      // A warm-up jumps, too, but not beyond what comes after it, and it is short.
      const usual = medianOf(rates)
      const most = rates.reduce((a, b) => (b.value > a.value ? b : a)).value
      if (most < TINY) {
        const { step, value } = rates[0]!
        const text = value === most ? 'is' : 'is never more than'
        const message = `the learning rate ${tensor} ${text} ${numberText(most)}: too low for anything to be learned`
        return [{ tensor, step, value, message }]
      }
      let [earlier, highest] = [0, 0]
      for (const [i, { step, value, steps }] of rates.entries()) {
        const before = rates[i - 1]?.value
        const text = `the learning rate ${tensor} is ${rateText(value)} from step ${step} on`
        const unusual = (what: string): UnusualRate[] => [{ tensor, step, value, message: `${text}, ${what}` }]
        // A rate that stays becomes the usual one: it is beyond all that held until then.
        const isJump = value > usual || (earlier >= MIN_STEPS && value >= FAR * highest)
        earlier += steps
        highest = Math.max(highest, value)
        if (before !== undefined && before > 0 && value >= FAR * before && isJump) {
          return unusual(`${numberText(value / before)} times what it was before`)
        }
        if (usual > 0 && value >= FAR * usual)
          return unusual(`${numberText(value / usual)} times what is usual in this trial`)
        if (value > HUGE) return unusual('far beyond what trainings take')
      }
      return []
    })
  }

  /** The unusual rates in force when a fault began that such a rate can cause. */
  besides(causes: readonly { readonly rule: string; readonly step: number }[]): readonly UnusualRate[] {
    return this.unusual.filter(rate => {
      const effects = rate.value < TINY ? EFFECTS_OF_TINY : EFFECTS
      return causes.some(({ rule, step }) => effects.has(rule) && rate.step <= step)
    })
  }
}

/** The median over all steps; the lower one of two. */
function medianOf(rates: readonly Rate[]): number {
  const half = rates.reduce((sum, { steps }) => sum + steps, 0) / 2
  let seen = 0
  for (const { value, steps } of [...rates].sort((a, b) => a.value - b.value)) {
    seen += steps
    if (seen >= half) return value
  }
  return 0
}

function rateText(value: number): string {
  return value < 1e6 ? numberText(value) : Number(value.toPrecision(4)).toExponential()
}

/** Null if it can't be read: the rules that judge it report that. */
function answered(rate: () => number | null): number | null {
  try {
    return rate()
  } catch {
    return null
  }
}
