/** WeightUpdateRatio: see docs/rules.md. */

import type { WorkerStep } from '../../scan/catalog/worker-steps.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import { hasTraining, type Moment, positionOf, type Sequence, stepNumber } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { choice, integer, mode, number } from '../parameters.js'

/**
 * Fires if |W − W₀| / (|W₀| + epsilon) is above `large_threshold` or below `small_threshold`. |W| is the mean absolute value or, with
 * `norm=l2` and in checkpoints, the root mean square. W₀ are the same weights at the oldest saved step of the last `num_steps` or,
 * without it, at the step before. Judges only TRAIN steps, if there are any.
 */
export class WeightUpdateRatio extends builtin({
  meaning: 'The weights change far too much, or hardly at all, from one step to the next.',
  advice: 'Lower the learning rate if the ratio is large, raise it if it is small; about 1e-3 a step is a good sign.',
  parameters: {
    num_steps: integer(null, { min: 1 }),
    large_threshold: number(10),
    small_threshold: number(1e-8),
    epsilon: number(1e-9),
    norm: choice('l1', 'l2'),
    mode: mode(),
  },
  suggested: {
    large_threshold: ['1000', 'weights that start small grow many times over in a sound training'],
    small_threshold: [
      '0',
      'UnchangedTensor reports weights that never move; at the end of a training they may well stand still',
    ],
    epsilon: ['0.001', 'weights may start at zero, and any change is infinitely large compared with zero'],
    mode: ['training', 'weights do not change at other steps'],
  },
}) {
  readonly #weights = this.select({ collections: ['weights'], value: true })

  readonly #isL2 = (this.parameters.norm ?? (this.baseTrial.checkpoint === null ? 'l1' : 'l2')) === 'l2'

  protected override sequenceOf(workerStep: WorkerStep): Sequence | undefined {
    if (this.parameters.mode !== null) return super.sequenceOf(workerStep)
    if (!hasTraining(this.baseTrial)) return 'all'
    return workerStep.mode === 'TRAIN' ? 'TRAIN' : undefined
  }

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { num_steps, large_threshold, small_threshold, epsilon } = this.parameters
    yield each(
      this.#weights.at(moment),
      tensor => {
        const { name } = tensor
        const steps = this.stepsOf(name, moment)
        const number = (i: number): number => stepNumber(steps.at(i)!, moment.sequence)
        const at = positionOf(moment.step, steps)
        let earlier = at - 1
        // The oldest saved step that is at most `num_steps` back.
        if (num_steps !== null) {
          const from = number(at) - num_steps
          while (earlier > 0 && number(earlier - 1) >= from) earlier--
          if (earlier >= 0 && number(earlier) < from) return undefined
        }
        const older = earlier < 0 ? undefined : this.earlier(tensor, steps.at(earlier)!)
        if (older === undefined) return undefined
        older.moments(this.#isL2 ? 'l2' : 'abs_mean')
        return { older, change: this.#isL2 ? tensor.distance(older) : tensor.meanAbsChange(older) }
      },
      ({ older, change }, { name, worker }) => {
        if (change.value === null) return null
        const before = older.counts().value
        // The root mean square, so that `epsilon` means the same for tensors of every size.
        const root = this.#isL2 ? Math.sqrt(before.count) : 1
        const size = before.reduction(this.#isL2 ? 'l2' : 'abs_mean') as number
        const value = change.value / root / (size / root + epsilon)
        const isLarge = value > large_threshold
        if (!isLarge && !(value < small_threshold)) return null
        const threshold = isLarge ? large_threshold : small_threshold
        const message = `${name} changed since step ${older.step} by ${numberText(value)} ${value >= 10 ? 'times its size' : 'of its size'}, ${isLarge ? 'more' : 'less'} than ${numberText(threshold)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}
