/** ExplodingNorm, a rule of trialscan's own, for checkpoints. */

import { builtin, each, type Judgements } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { list, number } from '../parameters.js'

/** The size of a tensor at the last step at which it was finite. */
interface Size {
  readonly step: number
  readonly norm: number
  /** The root mean square, ‖W‖ / √n. */
  readonly magnitude: number
}

/** Fires if the root mean square of a weight exceeds `threshold` times that (plus `epsilon`) at the last step at which it was finite. */
export class ExplodingNorm extends builtin({
  meaning: 'The norm of weights is many times what it was at the checkpoint before.',
  advice: 'Lower the learning rate or clip gradients, and go on from the checkpoint before.',
  parameters: {
    collection_names: list('weights'),
    tensor_regex: list(),
    threshold: number(20, { above: 1 }),
    epsilon: number(0.01, { min: 0 }),
  },
  isOfCheckpoints: true,
}) {
  readonly #weights = this.selectGiven({ value: true })
  readonly #sizes = new Memory(() => new Map<string, Size>())

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const sizes = this.#sizes.of(moment)
    const { threshold, epsilon } = this.parameters
    yield each(
      this.#weights.at(moment),
      tensor => (tensor.hasValue ? tensor.moments('l2') : undefined),
      ({ value: moments }, { name, worker, step }) => {
        if (moments.count === 0) return undefined
        const norm = moments.reduction('l2') as number
        // ExplodingTensor reports what is not finite.
        if (!Number.isFinite(norm)) return null
        const magnitude = norm / Math.sqrt(moments.count)
        const before = sizes.get(name)
        sizes.set(name, { step, norm, magnitude })
        if (before === undefined) return undefined
        const value = magnitude / (before.magnitude + epsilon)
        if (!(value > threshold)) return null
        const message = `‖${name}‖ is ${numberText(norm)}, at step ${before.step} it was ${numberText(before.norm)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}
