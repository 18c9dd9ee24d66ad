/** CheckInputImages (rules.md §2.16). */

import { integer, number, text } from '../parameters.js'
import { builtin, figure, type Judgement } from './builtin.js'

/**
 * Gathers input images over the steps. Once there are `threshold_samples` of them, fires where the mean of a channel is
 * further from zero than `threshold_mean`.
 */
export class CheckInputImages extends builtin({
  meaning: 'The input images are not normalised: their mean is not zero.',
  advice: 'Subtract the mean of each channel of the training data (and divide by its standard deviation).',
  parameters: {
    threshold_mean: number(0.2),
    threshold_samples: integer(500),
    regex: text('.*hybridsequential0_input_0'),
    channel: integer(1, { min: 0 }),
  },
}) {
  readonly #images = this.select({ regex: [this.parameters.regex], value: true })
  #samples = 0
  /** Of each channel. */
  readonly #sums: number[] = []
  readonly #counts: number[] = []

  protected override *examine(step: number): Iterable<Judgement> {
    const { threshold_mean, threshold_samples, channel } = this.parameters
    const asked = this.#images.at(step).map(tensor => tensor.channelSums(channel))
    if (asked.length === 0) return
    yield () => {
      for (const { value } of asked) {
        this.#samples += value.samples
        value.sums.forEach((sum, i) => {
          this.#sums[i] = (this.#sums[i] ?? 0) + sum
          this.#counts[i] = (this.#counts[i] ?? 0) + value.count
        })
      }
      if (this.#samples < threshold_samples) return null
      const means = this.#sums.map((sum, i) => Math.abs(sum / this.#counts[i]!))
      const value = means.reduce((most, mean) => (mean > most ? mean : most), 0)
      if (!(value > threshold_mean)) return null
      const message = `the mean of channel ${means.indexOf(value)} over ${this.#samples} images is ${figure(value)} from zero, more than ${figure(threshold_mean)}`
      return { value, threshold: threshold_mean, message }
    }
  }
}
