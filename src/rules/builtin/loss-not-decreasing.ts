/** LossNotDecreasing: see docs/rules.md. */

import type { WorkerStep } from '../../scan/catalog/worker-steps.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, type Judgement } from '../base/builtin.js'
import { type LossAtStep, LossSeries } from '../base/loss-series.js'
import { isMetric } from '../base/losses.js'
import { hasTraining, Memory, type Moment, momentOf, positionOf, type Sequence, stepNumber } from '../base/moment.js'
import { LOSSES } from '../base/names.js'
import { scalar } from '../base/scalar.js'
import { aboveText, numberText, riseText } from '../base/wording.js'
import { flag, integer, list, mode, number, olderNameOf } from '../parameters.js'
import type { Found } from '../rule.js'

/** The state of a judged loss. */
interface Judged {
  /** The number of the step in its sequence. */
  at: number
  /** The loss since which every judgement saw a rise; null if it went down. */
  risingFrom: LossAtStep | null
}

/** The range of steps at which a worker's loss was saved, by their numbers in its sequence. */
interface Span {
  readonly name: string
  readonly first: number
  last: number
  lastMoment: Moment
  /** True if no step of training lies between the last two. */
  isSameRun: boolean
  /** True if it has one element. */
  isLoss: boolean
  isJudged: boolean
}

/**
 * Every `num_steps` steps of a mode, compares each loss with the newest one that is at least `num_steps` older. Fires if it has decreased
 * by less than `diff_percent`, or increased by more than `increase_threshold_percent`, at once or over several judgements without a
 * decrease between them. With `min_difference`, every increase counts. With `since_start`, compares the mean of that many last losses
 * with the mean of as many first ones, at least `num_steps` earlier. It then also fires if a loss is NaN and, before there are enough
 * steps, if it has only risen, stands still, or has grown beyond all its earlier values.
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
    // The name of the parameter in Tornasole.
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
    num_steps: [
      '50',
      'over fewer steps the differences between batches hide the trend of a loss, unless it only rises or stands still',
    ],
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
  /** The last judged step of each loss of each worker, and the step since which it has not gone down. */
  readonly #judged = new Map<string, Judged>()
  readonly #seen = new Memory(() => new Map<string, LossSeries>())
  /** The range of each loss of each worker. */
  readonly #spans = new Map<string, Span>()
  /** Tensors that were checked for having one element, as a loss has. */
  readonly #checked = new Set<string>()
  #hasLoss = false

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { diff_percent, increase_threshold_percent, min_difference } = this.parameters
    // Tornasole's rule allows no increase, and to it an unchanged loss has not gone down.
    const isAtLeast = min_difference !== null
    const allowedRise = isAtLeast ? 0 : increase_threshold_percent
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
          return undefined
        }
      }
      const older = tensor.isSmall ? this.#older(tensor, moment) : undefined
      if (older === undefined) continue
      const [oldLoss, newLoss] = [scalar(older.tensor), scalar(tensor)]
      const { memory } = older
      yield () => {
        const [before, value] = [oldLoss(), newLoss()]
        if (before === null || value === null) return undefined
        const { name, worker } = tensor
        const findingFrom = (from: LossAtStep, threshold: number): Found => ({
          tensor: name,
          worker,
          value: Math.abs(percentDecrease(from.loss, value)),
          threshold,
          message: changeText(name, from, value),
        })
        const from = { loss: before, step: older.tensor.step }
        const decrease = percentDecrease(before, value)
        // Many small rises add up to a large one.
        const since = decrease < 0 ? (memory.risingFrom ?? from) : null
        const rise = since === null ? 0 : -percentDecrease(since.loss, value)
        const isLargeRise = decrease < 0 && -decrease > allowedRise
        memory.risingFrom = isLargeRise || rise > allowedRise ? null : since
        if (Number.isNaN(before) || Number.isNaN(value)) return findingFrom(from, diff_percent)
        if (isLargeRise) return findingFrom(from, allowedRise)
        if (since !== null && rise > allowedRise) return findingFrom(since, allowedRise)
        const isStill = isAtLeast && decrease === 0
        return decrease >= 0 && (decrease < diff_percent || isStill) ? findingFrom(from, diff_percent) : null
      }
    }
  }

  protected override lacking(): readonly string[] {
    const [name] = this.#checked
    if (!this.#hasLoss) {
      if (name === undefined) return []
      const more = this.#checked.size > 1 ? ` and ${this.#checked.size - 1} more` : ''
      return [`a tensor of one element, as a loss is; looked at were ${JSON.stringify(name)}${more}`]
    }
    return this.#tooShort()
  }

  /** The reasons why losses are too short to be judged, given for the longest one. */
  #tooShort(): readonly string[] {
    const { num_steps, since_start } = this.parameters
    if (since_start === null) return this.hasJudged ? [] : [`two values of a loss that are ${num_steps} steps apart`]
    const spans = [...this.#spans.values()].filter(({ isLoss, isJudged }) => isLoss && !isJudged)
    if (spans.length === 0) return []
    const { name, first, last } = spans.reduce((a, b) => (b.last - b.first > a.last - a.first ? b : a))
    const more = spans.length > 1 ? `; ${spans.length - 1} more have no more` : ''
    const steps = last - first + 1
    return steps < num_steps
      ? [`${num_steps} steps of a loss: ${name} has ${steps}, from ${first} to ${last}${more}`]
      : [`${3 * since_start} values of a loss: ${name} has fewer, from step ${first} to ${last}${more}`]
  }

  /** Judges losses; metrics for which larger is better are skipped. */
  *#sinceStart(losses: readonly TensorAtStep[], count: number, moment: Moment): Iterable<Judgement> {
    const { diff_percent, num_steps, increase_threshold_percent } = this.parameters
    const memory = this.#seen.of(moment)
    const number = stepNumber(moment, moment.sequence)
    for (const tensor of losses) {
      const { name, worker, step } = tensor
      if (isMetric(name)) continue
      this.#checked.add(name)
      const read = scalar(tensor)
      const span = this.#span(name, moment, number)
      const { isSameRun } = span
      yield () => {
        const loss = read()
        if (loss === null) return undefined
        this.#hasLoss = true
        span.isLoss = true
        const series = memory.get(name) ?? new LossSeries(count, number)
        memory.set(name, series)
        if (Number.isNaN(loss)) {
          span.isJudged = true
          series.nanSince ??= step
          const message = `${name} is NaN since step ${series.nanSince}`
          return { tensor: name, worker, value: loss, threshold: null, message }
        }
        series.nanSince = null
        series.add({ loss, step }, isSameRun)
        const early = series.unlikely(increase_threshold_percent)
        if (early !== null) {
          span.isJudged = true
          const value = Math.abs(percentDecrease(early.from.loss, loss))
          return { tensor: name, worker, value, threshold: early.threshold, message: `${name} ${early.message}` }
        }
        if (series.length < 3 * count || number - series.start + 1 < num_steps) return undefined
        span.isJudged = true
        const [before, now] = series.ends()
        const decrease = percentDecrease(before, now)
        if (!(decrease < diff_percent) || (before === 0 && now === 0)) return null
        const change = decrease < 0 ? aboveText(now, before) : `${numberText(decrease)} % below`
        const message = `the last ${count} values of ${name}, ${numberText(now)} on average, are ${change} the first ${count}, ${numberText(before)}`
        return { tensor: name, worker, value: Math.abs(decrease), threshold: diff_percent, message }
      }
    }
  }

  /** Records that a loss was saved at a step, given by its number in the sequence. */
  #span(name: string, moment: Moment, number: number): Span {
    const key = `${moment.key} ${name}`
    const before = this.#spans.get(key)
    const span = before ?? {
      name,
      first: number,
      last: number,
      lastMoment: moment,
      isSameRun: false,
      isLoss: false,
      isJudged: false,
    }
    // Between two saved steps of EVAL no other step lies, so nothing was trained.
    span.isSameRun =
      before !== undefined &&
      moment.mode !== 'TRAIN' &&
      hasTraining(this.baseTrial) &&
      moment.step - before.lastMoment.step === moment.modeStep - before.lastMoment.modeStep
    span.last = number
    span.lastMoment = moment
    this.#spans.set(key, span)
    return span
  }

  /** Without `mode`, each tensor has a sequence of its own: see `#sequenceOf`. */
  protected override sequenceOf(workerStep: WorkerStep): Sequence | undefined {
    return this.parameters.mode === null ? 'all' : super.sequenceOf(workerStep)
  }

  /** The loss to compare with at this step, and the memory of it; undefined if the loss is not judged now. */
  #older(tensor: TensorAtStep, moment: Moment): Older | undefined {
    const { num_steps, mode } = this.parameters
    const { name } = tensor
    const inSequence = mode === null ? momentOf(moment, this.#sequenceOf(name, moment)) : moment
    const steps = this.stepsOf(name, inSequence)
    const number = (i: number): number => stepNumber(steps.at(i)!, inSequence.sequence)
    const at = positionOf(moment.step, steps)
    if (at < 0) return undefined
    const key = `${inSequence.key} ${name}`
    const memory = this.#judged.get(key)
    if (memory !== undefined && number(at) - memory.at < num_steps) return undefined
    let older = at - 1
    while (older >= 0 && number(older) > number(at) - num_steps) older--
    if (older < 0) return undefined
    const judged = memory ?? { at: 0, risingFrom: null }
    judged.at = number(at)
    this.#judged.set(key, judged)
    const earlier = this.earlier(tensor, steps.at(older)!)
    return earlier && { tensor: earlier, memory: judged }
  }

  #sequenceOf(name: string, moment: Moment): Sequence {
    const modes = ['EVAL', 'TRAIN'] as const
    return modes.find(mode => this.stepsOf(name, momentOf(moment, mode)).length > 0) ?? 'all'
  }
}

interface Older {
  readonly tensor: TensorAtStep
  readonly memory: Judged
}

/** The decrease in percent; negative for an increase. */
function percentDecrease(before: number, now: number): number {
  if (before !== 0) return (100 * (before - now)) / Math.abs(before)
  return now === 0 ? 0 : before > now ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
}

function changeText(name: string, { loss, step }: LossAtStep, now: number): string {
  const decrease = percentDecrease(loss, now)
  if (Number.isNaN(decrease)) return `${name} is ${numberText(now)} after ${numberText(loss)} at step ${step}`
  const ends = `from ${numberText(loss)} to ${numberText(now)}`
  if (decrease >= 0) return `${name} went down by ${numberText(decrease)} % since step ${step}, ${ends}`
  if (!Number.isFinite(decrease) || now / loss >= 10) return `${name} rose since step ${step}: ${riseText(loss, now)}`
  return `${name} rose by ${numberText(-decrease)} % since step ${step}, ${ends}`
}
