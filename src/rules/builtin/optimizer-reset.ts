/** OptimizerReset, a rule of trialscan's own, for checkpoints. */

import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, each, type Judged, type Judgements } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { scalar } from '../base/scalar.js'
import { numberText } from '../base/wording.js'
import { list } from '../parameters.js'

/** A state when it was last saved. */
interface Seen {
  readonly step: number
  /** The count of updates, or the number of nonzero elements. */
  readonly value: number
}

/** Fires if a moment of an optimizer is all zero at any step but its first, or if the count of updates has decreased. */
export class OptimizerReset extends builtin({
  meaning: 'The state of the optimizer is gone, or was never there: moments are all zero, or updates are counted anew.',
  advice:
    'If the training was resumed there, load the state of the optimizer with the weights (optimizer.pt, load_state_dict); a moment that is zero from the start belongs to a weight that gets no gradient.',
  parameters: {
    moments_regex: list('(^|[._])(exp_avg|exp_avg_sq|momentum_buffer)([.]|$)'),
    updates_regex: list('^optim.*[.]step$'),
  },
}) {
  readonly #moments = this.select({ regex: this.parameters.moments_regex, value: true })
  readonly #updates = this.select({ regex: this.parameters.updates_regex, value: true, optional: true, quiet: true })
  readonly #seen = new Memory(() => new Map<string, Seen>())

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const seen = this.#seen.of(moment)
    const compared = (tensor: TensorAtStep, value: number, judge: (before: Seen) => string | null): Judged => {
      const { name, worker, step } = tensor
      const before = seen.get(name)
      seen.set(name, { step, value })
      if (before === undefined) return undefined
      const message = judge(before)
      return message === null ? null : { tensor: name, worker, value, threshold: before.value, message }
    }
    yield each(
      this.#moments.at(moment),
      tensor => tensor.counts(),
      ({ value: { count, zeroCount } }, tensor) => {
        if (count === 0) return undefined
        return compared(tensor, count - zeroCount, ({ step, value }) => {
          if (zeroCount < count) return null
          const then = value === 0 ? `as at step ${step}` : `${value} of ${count} elements were not at step ${step}`
          return `${tensor.name} is all zero, ${then}`
        })
      },
    )
    yield each(this.#updates.at(moment), scalar, (read, tensor) => {
      const count = read()
      if (count === null || Number.isNaN(count)) return undefined
      return compared(tensor, count, ({ step, value }) =>
        count < value
          ? `${tensor.name} counts ${numberText(count)} updates, less than the ${numberText(value)} at step ${step}`
          : null,
      )
    })
  }
}
