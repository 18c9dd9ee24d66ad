/** AllZero: see docs/rules.md. */

import type { Moments, ReductionValue } from '../../core/moments.js'
import type { Question } from '../../trial/measure/question.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { integer, list, number } from '../parameters.js'

/**
 * Fires if at least `threshold` percent of a tensor's elements are zero at `num_steps` consecutive steps that have it. Fires at once if a
 * step has several tensors besides gradients, and all of them are zero.
 */
export class AllZero extends builtin({
  meaning: 'Tensors are all zero: a layer is dead, was never used, or its gradient does not reach it.',
  advice: 'Look whether the layer is part of the graph and trainable, and how it was initialised.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    threshold: number(100),
    num_steps: integer(1, { min: 1 }),
  },
  suggested: {
    collection_names: ['weights,gradients', 'one of collection_names and tensor_regex has to be given'],
    num_steps: ['2', 'weights that start at zero on purpose are no longer zero at the next step'],
  },
}) {
  readonly #tensors = this.selectGiven({})

  /** The number of latest consecutive steps at which each tensor was zero. */
  readonly #seen = new Memory(() => new Map<string, number>())

  protected override check(): void {
    const { collection_names, tensor_regex } = this.parameters
    if (collection_names.length + tensor_regex.length === 0) throw this.unselected()
  }

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold, num_steps } = this.parameters
    const seen = this.#seen.of(moment)
    const weights: ZeroQuestions[] = []
    const ask = (tensor: TensorAtStep): ZeroQuestions => {
      const questions = askAboutZeros(tensor)
      if (!/gradient/i.test(tensor.name)) weights.push(questions)
      return questions
    }
    // No network starts with all weights zero on purpose: its nodes would stay equal.
    let areAllZero: boolean | undefined
    const areAllWeightsZero = (): boolean => {
      areAllZero ??=
        weights.length > 1 &&
        weights.every(questions => (percentOfZeros(questions, threshold) ?? Number.NaN) >= threshold)
      return areAllZero
    }
    yield each(this.#tensors.at(moment), ask, (questions, { name, worker }) => {
      const value = percentOfZeros(questions, threshold)
      if (value === undefined) {
        seen.delete(name)
        if (this.isUnavailable(name)) return undefined
        for (const { error } of [questions].flat()) if (error !== undefined) throw error
        return undefined
      }
      const steps = value >= threshold ? (seen.get(name) ?? 0) + 1 : 0
      seen.set(name, steps)
      if (steps === 0) return null
      if (steps < num_steps && !(weights.includes(questions) && areAllWeightsZero())) return undefined
      const message = `${numberText(value)} % of the elements of ${name} are zero${steps > 1 && num_steps > 1 ? `, at ${steps} consecutive steps` : ''}`
      return { tensor: name, worker, value, threshold, message }
    })
  }
}

/** Questions about the value or, without it, about saved extremes and then about the value, which tells why there is none. */
type ZeroQuestions = Question<Moments> | readonly [...Question<ReductionValue>[], Question<Moments>]

/** Asks for the counts of a tensor or, without its value, for saved reductions that show if every element is zero. */
function askAboutZeros(tensor: TensorAtStep): ZeroQuestions {
  if (tensor.hasValue) return tensor.counts()
  const saved = tensor.savedReductions
  const extremes = saved.includes('abs_max') ? (['abs_max'] as const) : (['min', 'max'] as const)
  const areSaved = extremes.every(name => saved.includes(name))
  return [...(areSaved ? extremes.map(name => tensor.reduction(name)) : []), tensor.counts()]
}

/**
 * The percentage of zeros; undefined if it is unknown. Saved reductions show if all elements are zero. If not, they show that the
 * percentage is below 100, for which NaN stands.
 */
function percentOfZeros(questions: ZeroQuestions, threshold: number): number | undefined {
  if ('value' in questions) {
    const { answer } = questions
    return answer && (100 * answer.zeroCount) / answer.count
  }
  const extremes = questions.slice(0, -1) as Question<ReductionValue>[]
  if (extremes.length === 0 || extremes.some(({ answer }) => answer === undefined)) return undefined
  if (extremes.every(({ answer }) => answer === 0)) return 100
  return threshold < 100 ? undefined : Number.NaN
}
