/** VanishingGradient (rules.md §2.1). */

import { number } from '../parameters.js'
import { builtin, each, figure, type Judgements, type Moment } from './builtin.js'

/** Fires where the mean of the absolute values of a gradient is below `threshold`. */
export class VanishingGradient extends builtin({
  meaning: 'Gradients are so small that the layers they belong to hardly learn.',
  advice:
    'Use ReLU or another activation that does not saturate, normalise between layers, initialise weights with a larger variance, or make the network less deep.',
  parameters: { threshold: number(1e-7) },
}) {
  readonly #gradients = this.select({ collections: ['gradients'] })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold } = this.parameters
    yield each(
      this.#gradients.at(moment),
      tensor => tensor.reduction('abs_mean'),
      (mean, { name, worker }) => {
        const value = mean.value as number
        if (!(value < threshold)) return null
        const message = `the mean of the absolute values of ${name} is ${figure(value)}, below ${figure(threshold)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}
