/** LossNotDecreasing (rules.md §2.9). */

import type { WorkerStep } from '../../catalog/worker-steps.js'
import type { TensorAtStep } from '../../measure/tensor-at-step.js'
import { builtin, type Judgement, numberText } from '../base/builtin.js'
import { NOT_A_LOSS } from '../base/losses.js'
import { Memory, type Moment, momentOf, positionOf, type Sequence, stepNumber } from '../base/moment.js'
import { LOSSES } from '../base/names.js'
import { meanOf, scalar } from '../base/scalar.js'
import { flag, integer, list, mode, number, olderNameOf } from '../parameters.js'

/**
 * Every `num_steps` steps of a mode, compares each loss with the newest one that is at least `num_steps` older. Fires where
 * it has decreased by less than `diff_percent`, or increased by more than `increase_threshold_percent`. With `since_start`,
 * compares the mean of that many last losses with the mean of as many first ones, at least `num_steps` earlier. It then also
 * fires where a loss is NaN.
 */
export class LossNotDecreasing extends builtin({
  meaning: 'The loss no longer goes down.',
  advice:
    'Early in the training: raise or lower the learning rate, and look at the gradients. Late: the training may have converged, and can be ended.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    use_losses_collection: flag(true),
    num_steps: integer(10, { min: 1 }),
    diff_percent: number(0.1, { min: 0, below: 100 }),
    // Tornasole's name for it.
    min_difference: olderNameOf('diff_percent', number(null, { min: 0, below: 100 })),
    increase_threshold_percent: number(5, { above: 0, below: 100 }),
    since_start: integer(null, { min: 1 }),
    mode: mode(),
  },
  suggested: {
    tensor_regex: [LOSSES, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'],
    since_start: [
      '3',
      'a loss goes up and down from batch to batch: what matters is whether it has ever left its initial level',
    ],
    num_steps: ['50', 'over fewer steps the differences between batches hide the trend of a loss'],
    mode: ['each', 'the losses of two modes are not one sequence'],
  },
}) {
  readonly #chosen = this.select({
    collections: [...(this.parameters.use_losses_collection ? ['losses'] : []), ...this.parameters.collection_names],
    regex: this.parameters.tensor_regex,
    optional: this.parameters.since_start === null,
    // By default, a missing collection `losses` is not reported: all tensors are searched for losses then.
    quiet:
      this.parameters.collection_names.length + this.parameters.tensor_regex.length === 0 &&
      this.parameters.since_start === null,
  })
  readonly #all = this.select({ all: true, optional: this.parameters.since_start !== null })
  /** The last step at which each loss of each worker was judged. */
  readonly #judged = new Map<string, number>()
  /** For each loss: its first and last values, the number of its first step, and since which step it is NaN. */
  readonly #seen = new Memory(() => new Map<string, { losses: number[]; start: number; nanSince: number | null }>())
  /** Tensors that were checked for having one element, as a loss has. */
  readonly #checked = new Set<string>()
  #hasLoss = false

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { diff_percent, increase_threshold_percent } = this.parameters
    // Without a selection, or if nothing of it was saved, every tensor of one element counts as a loss.
    const losses = this.#chosen.names.length > 0 || this.parameters.since_start !== null ? this.#chosen : this.#all
    if (this.parameters.since_start !== null) {
      yield* this.#sinceStart(losses.at(moment), this.parameters.since_start, moment)
      return
    }
    for (const tensor of losses.at(moment)) {
      if (!this.#hasLoss && !this.#checked.has(tensor.name)) {
        this.#checked.add(tensor.name)
        const first = scalar(tensor)
        yield () => {
          if (first() !== null) this.#hasLoss = true
          return null
        }
      }
      const older = tensor.isSmall ? this.#older(tensor, moment) : undefined
      if (older === undefined) continue
      const [oldLoss, newLoss] = [scalar(older), scalar(tensor)]
      yield () => {
        const [before, value] = [oldLoss(), newLoss()]
        if (before === null || value === null) return null
        const decrease = percentDecrease(before, value)
        const isRise = decrease < 0
        const fires =
          Number.isNaN(before) ||
          Number.isNaN(value) ||
          (isRise ? -decrease > increase_threshold_percent : decrease < diff_percent)
        if (!fires) return null
        const { name, worker } = tensor
        const threshold = isRise ? increase_threshold_percent : diff_percent
        const change = isRise ? `rose by ${numberText(-decrease)} %` : `went down by ${numberText(decrease)} %`
        const message = Number.isNaN(decrease)
          ? `${name} is ${numberText(value)} after ${numberText(before)} at step ${older.step}`
          : `${name} ${change} since step ${older.step}, from ${numberText(before)} to ${numberText(value)}`
        return { tensor: name, worker, value: Math.abs(decrease), threshold, message }
      }
    }
  }

  protected override lacking(): readonly string[] {
    const [name] = this.#checked
    if (this.#hasLoss || name === undefined) return []
    const more = this.#checked.size > 1 ? ` and ${this.#checked.size - 1} more` : ''
    return [`a tensor of one element, as a loss is; looked at were ${JSON.stringify(name)}${more}`]
  }

  /** Judges losses; metrics for which larger is better are skipped. */
  *#sinceStart(losses: readonly TensorAtStep[], count: number, moment: Moment): Iterable<Judgement> {
    const { diff_percent, num_steps } = this.parameters
    const memory = this.#seen.of(moment)
    const number = stepNumber(moment, moment.sequence)
    for (const tensor of losses) {
      const { name, worker, step } = tensor
      if (NOT_A_LOSS.test(name)) continue
      this.#checked.add(name)
      const read = scalar(tensor)
      yield () => {
        const loss = read()
        if (loss === null) return null
        this.#hasLoss = true
        const seen = memory.get(name) ?? { losses: [], start: number, nanSince: null }
        memory.set(name, seen)
        if (Number.isNaN(loss)) {
          seen.nanSince ??= step
          const message = `${name} is NaN since step ${seen.nanSince}`
          return { tensor: name, worker, value: loss, threshold: null, message }
        }
        seen.losses.push(loss)
        if (seen.losses.length > 3 * count) seen.losses.splice(count, 1)
        if (seen.losses.length < 3 * count || number - seen.start < num_steps) return null
        const [before, now] = [meanOf(seen.losses.slice(0, count))!, meanOf(seen.losses.slice(-count))!]
        const decrease = percentDecrease(before, now)
        if (!(decrease < diff_percent) || (before === 0 && now === 0)) return null
        const change = decrease < 0 ? `${numberText(-decrease)} % above` : `${numberText(decrease)} % below`
        const message = `the last ${count} values of ${name}, ${numberText(now)} on average, are ${change} the first ${count}, ${numberText(before)}`
        return { tensor: name, worker, value: Math.abs(decrease), threshold: diff_percent, message }
      }
    }
  }

  /** Without `mode`, each tensor has a sequence of its own: see `#sequenceOf`. */
  protected override sequenceOf(workerStep: WorkerStep): Sequence | undefined {
    return this.parameters.mode === null ? 'all' : super.sequenceOf(workerStep)
  }

  /** The loss to compare with at this step. Undefined: the loss is not judged now. */
  #older(tensor: TensorAtStep, moment: Moment): TensorAtStep | undefined {
    const { num_steps, mode } = this.parameters
    const { name } = tensor
    const inSequence = mode === null ? momentOf(moment, this.#sequenceOf(name, moment)) : moment
    const steps = this.stepsOf(name, inSequence)
    const number = (i: number): number => stepNumber(steps.at(i)!, inSequence.sequence)
    const at = positionOf(moment.step, steps)
    const key = `${inSequence.key} ${name}`
    const last = this.#judged.get(key)
    if (at < 0 || (last !== undefined && number(at) - last < num_steps)) return undefined
    let older = at - 1
    while (older >= 0 && number(older) > number(at) - num_steps) older--
    if (older < 0) return undefined
    this.#judged.set(key, number(at))
    return this.earlier(tensor, steps.at(older)!)
  }

  #sequenceOf(name: string, moment: Moment): Sequence {
    const modes = ['EVAL', 'TRAIN'] as const
    return modes.find(mode => this.stepsOf(name, momentOf(moment, mode)).length > 0) ?? 'all'
  }
}

/** Negative for an increase. */
function percentDecrease(before: number, now: number): number {
  if (before !== 0) return (100 * (before - now)) / Math.abs(before)
  return now === 0 ? 0 : before > now ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
}
