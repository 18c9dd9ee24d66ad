/** CheckInputImages: see docs/rules.md. */

import type { Framework } from '../../base/types.js'
import { ChannelLayout } from '../../scan/job/measure-job.js'
import { stateOf } from '../../trial/trial.js'
import { builtin, type Judgement } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { frameworkOf, MODEL_INPUTS } from '../base/names.js'
import { numberText } from '../base/wording.js'
import { flag, integer, number, text } from '../parameters.js'

/** Their images are NHWC. */
const CHANNELS_LAST: readonly Framework[] = ['tensorflow', 'tfjs']

/**
 * Collects input images over the steps. Once there are `threshold_samples` of them, fires if the mean of a channel is further from zero
 * than `threshold_mean`. Channels lie along the axis `channel`. By default the shape decides the axis or, if it is ambiguous, the
 * framework.
 */
export class CheckInputImages extends builtin({
  meaning: 'The input images are not normalised: their mean is not zero.',
  advice: 'Subtract the mean of each channel of the training data (and divide by its standard deviation).',
  parameters: {
    threshold_mean: number(0.2),
    threshold_samples: integer(500),
    regex: text('.*hybridsequential0_input_0'),
    channel: integer(null, { min: 0 }),
    images_only: flag(false),
  },
  suggested: {
    regex: [MODEL_INPUTS, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'],
    threshold_mean: ['1', 'images within [0, 1] are not centred, but train well: what hurts is bytes up to 255'],
    images_only: ['true', 'inputs with those names may also be tables or tokens'],
  },
}) {
  readonly #images = this.select({ regex: [this.parameters.regex], value: true })
  /** Sums and counts are per channel. */
  readonly #seen = new Memory(() => ({ samples: 0, sums: [] as number[], counts: [] as number[] }))

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { threshold_mean, threshold_samples, channel, images_only } = this.parameters
    const seen = this.#seen.of(moment)
    let hasImages = false
    const framework = frameworkOf(stateOf(this.baseTrial).contents)
    const layout = framework !== null && CHANNELS_LAST.includes(framework) ? ChannelLayout.last : ChannelLayout.first
    for (const tensor of this.#images.at(moment)) {
      const channelSums = tensor.channelSums(channel ?? layout)
      yield () => {
        const { samples, sums, count } = channelSums.value
        // An image has more axes than those of samples and channels.
        if (images_only && !(count > samples)) {
          return this.needs(`images, which have more axes than those of samples and channels; ${tensor.name} has not`)
        }
        hasImages = true
        seen.samples += samples
        sums.forEach((sum, i) => {
          seen.sums[i] = (seen.sums[i] ?? 0) + sum
          seen.counts[i] = (seen.counts[i] ?? 0) + count
        })
        return undefined
      }
    }
    yield () => {
      if (!hasImages) return undefined
      if (seen.samples < threshold_samples) {
        return this.needs(`at least ${threshold_samples} images; up to step ${moment.step} there were ${seen.samples}`)
      }
      const means = seen.sums.map((sum, i) => Math.abs(sum / seen.counts[i]!))
      const value = means.reduce((most, mean) => (mean > most ? mean : most), 0)
      if (!(value > threshold_mean)) return null
      const message = `the mean of channel ${means.indexOf(value)} over ${seen.samples} images is ${numberText(value)} from zero, more than ${numberText(threshold_mean)}`
      return { worker: moment.worker, value, threshold: threshold_mean, message }
    }
  }
}
