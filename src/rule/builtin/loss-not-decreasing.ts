/** LossNotDecreasing (rules.md §2.9). */

import type { WorkerStep } from '../../trial/catalog.js'
import type { TensorAtStep } from '../../trial/measure.js'
import { choice, flag, integer, list, number } from '../parameters.js'
import {
  builtin,
  figure,
  type Judgement,
  type Moment,
  momentOf,
  numberOf,
  positionOf,
  type Sequence,
} from './builtin.js'
import { scalar } from './scalar.js'

/**
 * Every `num_steps` steps of a mode, holds each loss against the newest one at least `num_steps` older. Fires where it
 * has decreased by less than `diff_percent`, or increased by more than `increase_threshold_percent`.
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
    diff_percent: number(0.1, { above: 0, below: 100 }),
    increase_threshold_percent: number(5, { above: 0, below: 100 }),
    mode: choice('EVAL', 'TRAIN', 'GLOBAL'),
  },
}) {
  readonly #chosen = this.select({
    collections: [...(this.parameters.use_losses_collection ? ['losses'] : []), ...this.parameters.collection_names],
    regex: this.parameters.tensor_regex,
    optional: true,
    // What nobody asked for by name is not missed: all others are looked at then.
    quiet: this.parameters.collection_names.length + this.parameters.tensor_regex.length === 0,
  })
  readonly #all = this.select({ all: true })
  /** The last step at which each loss of each worker was judged. */
  readonly #judged = new Map<string, number>()
  /** Tensors of which it is known whether they have one element, as a loss has. */
  readonly #known = new Set<string>()
  #hasLoss = false

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { diff_percent, increase_threshold_percent } = this.parameters
    // Where nothing was chosen, or nothing of it was saved, every tensor of one element is taken for a loss.
    const losses = this.#chosen.names.length > 0 ? this.#chosen : this.#all
    for (const tensor of losses.at(moment)) {
      if (!this.#hasLoss && !this.#known.has(tensor.name)) {
        this.#known.add(tensor.name)
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
        const change = isRise ? `rose by ${figure(-decrease)} %` : `went down by ${figure(decrease)} %`
        const message = `${name} ${change} since step ${older.step}, from ${figure(before)} to ${figure(value)}`
        return { tensor: name, worker, value: Math.abs(decrease), threshold, message }
      }
    }
  }

  protected override lacking(): readonly string[] {
    const [name] = this.#known
    if (this.#hasLoss || name === undefined) return []
    const more = this.#known.size > 1 ? ` and ${this.#known.size - 1} more` : ''
    return [`a tensor of one element, as a loss is; looked at were ${JSON.stringify(name)}${more}`]
  }

  /** Steps of all modes, until it is known of which tensor: each has a mode of its own. */
  protected override sequenceOf(workerStep: WorkerStep): Sequence | undefined {
    const { mode } = this.parameters
    return mode === null || mode === 'GLOBAL' ? 'all' : workerStep.mode === mode ? mode : undefined
  }

  /** The loss that one is to be held against at this step; undefined: it is not judged now. */
  #older(tensor: TensorAtStep, moment: Moment): TensorAtStep | undefined {
    const { num_steps, mode } = this.parameters
    const { name } = tensor
    const own = mode === null ? momentOf(moment, this.#sequenceOf(name, moment)) : moment
    const steps = this.stepsOf(name, own)
    const number = (i: number): number => numberOf(steps[i]!, own.sequence)
    const at = positionOf(moment.step, steps)
    const key = `${own.key} ${name}`
    const last = this.#judged.get(key)
    if (at < 0 || (last !== undefined && number(at) - last < num_steps)) return undefined
    let older = at - 1
    while (older >= 0 && number(older) > number(at) - num_steps) older--
    if (older < 0) return undefined
    this.#judged.set(key, number(at))
    return this.earlier(tensor, steps[older]!)
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
