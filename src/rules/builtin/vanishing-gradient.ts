/** VanishingGradient: see docs/rules.md. */

import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { flag, mode, number } from '../parameters.js'

/** The ends of the names of biases, and those that their layers' weights have in their place. */
const BIAS = /bias(?=(:\d+)?$)/
const WEIGHTS = ['weight', 'kernel']

/**
 * Fires if the mean absolute value of a gradient is below `threshold` and, if `relative_threshold` is given, is not zero and below that
 * share of the largest such mean at the step. Without `lone_biases`, a bias counts only if its layer's weight has such a gradient, too.
 */
export class VanishingGradient extends builtin({
  meaning: 'Gradients are so small that the layers they belong to hardly learn.',
  advice:
    'Use ReLU or another activation that does not saturate, normalise between layers, initialise weights with a larger variance, or make the network less deep.',
  parameters: {
    threshold: number(1e-7),
    relative_threshold: number(null, { above: 0 }),
    lone_biases: flag(true),
    mode: mode(),
  },
  suggested: {
    relative_threshold: [
      '0.001',
      'gradients that are equally small in all layers mean that the loss has converged; where they vanish, layers differ',
    ],
    lone_biases: [
      'false',
      'a bias before a normalisation, or of the keys of an attention, has no gradient in a healthy training either',
    ],
    mode: ['training', 'no layer learns at other steps'],
  },
}) {
  readonly #gradients = this.select({ collections: ['gradients'] })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold, relative_threshold, lone_biases } = this.parameters
    const gradients = this.#gradients.at(moment)
    const means = new Map(gradients.map(tensor => [keyOf(tensor.name, tensor.worker), tensor.reduction('abs_mean')]))
    let known: number | undefined
    const largest = (): number => {
      known ??= [...means.values()].reduce((most, { answer }) => Math.max(most, (answer as number) || 0), 0)
      return known
    }
    const hasVanished = (value: number): boolean =>
      value < threshold &&
      // A gradient of exactly zero has not vanished: nothing reaches the layer, which AllZero reports.
      (relative_threshold === null || (value > 0 && value < relative_threshold * largest()))
    /** True if the layer of a bias learns: its weight has a gradient. */
    const learns = (bias: string, worker: string | null): boolean =>
      WEIGHTS.some(weight => {
        const mean = means.get(keyOf(bias.replace(BIAS, weight), worker))?.answer
        return typeof mean === 'number' && mean >= threshold
      })
    yield each(
      gradients,
      tensor => tensor.reduction('abs_mean'),
      (mean, { name, worker }) => {
        const value = mean.value as number
        if (!hasVanished(value) || (!lone_biases && BIAS.test(name) && learns(name, worker))) return null
        const message = `the mean of the absolute values of ${name} is ${numberText(value)}, below ${numberText(threshold)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}

function keyOf(tensor: string, worker: string | null): string {
  return `${worker}\n${tensor}`
}
