/** VanishingGradient: see docs/rules.md. */

import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { mode, number } from '../parameters.js'

/**
 * Fires if the mean absolute value of a gradient is below `threshold` and, if `relative_threshold` is given, is not zero and below that
 * share of the largest such mean at the step.
 */
export class VanishingGradient extends builtin({
  meaning: 'Gradients are so small that the layers they belong to hardly learn.',
  advice:
    'Use ReLU or another activation that does not saturate, normalise between layers, initialise weights with a larger variance, or make the network less deep.',
  parameters: { threshold: number(1e-7), relative_threshold: number(null, { above: 0 }), mode: mode() },
  suggested: {
    relative_threshold: [
      '0.001',
      'gradients that are equally small in all layers mean that the loss has converged; where they vanish, layers differ',
    ],
    mode: ['training', 'no layer learns at other steps'],
  },
}) {
  readonly #gradients = this.select({ collections: ['gradients'] })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold, relative_threshold } = this.parameters
    const means = this.#gradients.at(moment).map(tensor => tensor.reduction('abs_mean'))
    const largest = (): number => means.reduce((most, { answer }) => Math.max(most, (answer as number) || 0), 0)
    yield each(
      this.#gradients.at(moment),
      tensor => tensor.reduction('abs_mean'),
      (mean, { name, worker }) => {
        const value = mean.value as number
        if (!(value < threshold)) return null
        // A gradient of exactly zero has not vanished: nothing reaches the layer, which AllZero reports.
        if (relative_threshold !== null && !(value > 0 && value < relative_threshold * largest())) return null
        const message = `the mean of the absolute values of ${name} is ${numberText(value)}, below ${numberText(threshold)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}
