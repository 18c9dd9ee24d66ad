/** WeightUpdateRatio (rules.md §2.6). */

import { integer, number } from '../parameters.js'
import { builtin, figure, type Judgement, positionOf } from './builtin.js'

/**
 * Fires where mean |W − W₀| / (mean |W₀| + epsilon), W₀ the same weights earlier, is above `large_threshold` or below
 * `small_threshold`. Earlier: the oldest saved step of the last `num_steps`; if that is not given, the step before.
 * Only steps of TRAIN are judged, if there are any.
 */
export class WeightUpdateRatio extends builtin({
  meaning: 'The weights change far too much, or hardly at all, from one step to the next.',
  advice: 'Lower the learning rate if the ratio is large, raise it if it is small; about 1e-3 a step is a good sign.',
  parameters: {
    num_steps: integer(null, { min: 1 }),
    large_threshold: number(10),
    small_threshold: number(1e-8),
    epsilon: number(1e-9),
  },
}) {
  readonly #weights = this.select({ collections: ['weights'], value: true })

  protected override *examine(step: number): Iterable<Judgement> {
    const { num_steps, large_threshold, small_threshold, epsilon } = this.parameters
    const mode = this.baseTrial.steps({ mode: 'TRAIN' }).length > 0 ? 'TRAIN' : 'GLOBAL'
    for (const tensor of this.#weights.at(step)) {
      const { name, worker } = tensor
      const steps = this.stepsOf(name, mode)
      const at = positionOf(step, steps)
      if (at < 0) continue
      const number = (i: number): number => (mode === 'TRAIN' ? steps[i]!.modeStep : steps[i]!.globalStep)
      const earlier = num_steps === null ? at - 1 : steps.findIndex((_, i) => number(i) >= number(at) - num_steps)
      if (earlier < 0 || earlier >= at) continue
      const older = this.reqTensors.find(name, steps[earlier]!.globalStep)
      if (older === undefined) continue
      const change = tensor.meanAbsChange(older)
      const moments = older.moments('abs_mean')
      yield () => {
        if (change.value === null) return null
        const value = change.value / ((moments.value.reduction('abs_mean') as number) + epsilon)
        const isLarge = value > large_threshold
        if (!isLarge && !(value < small_threshold)) return null
        const threshold = isLarge ? large_threshold : small_threshold
        const message = `${name} changed since step ${older.step} by ${figure(value)} of its size, ${isLarge ? 'more' : 'less'} than ${figure(threshold)}`
        return { tensor: name, worker, value, threshold, message }
      }
    }
  }
}
