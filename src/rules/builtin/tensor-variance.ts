/** TensorVariance: see docs/rules.md. */

import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { list, number } from '../parameters.js'

/** Fires if the variance of a tensor is above `max_threshold`, below `min_threshold`, or NaN. */
export class TensorVariance extends builtin({
  meaning: 'The values of tensors are spread too wide, or hardly at all.',
  advice:
    'A very small variance of weights or activations points to vanishing gradients, a very large one to exploding ones: look at the initialisation and the learning rate.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    max_threshold: number(null),
    min_threshold: number(null),
  },
  onlyByName:
    'the right variance depends on the size of a layer: it has no default thresholds, and needs max_threshold or min_threshold',
}) {
  readonly #tensors = this.selectGiven({})

  protected override check(): void {
    const { collection_names, tensor_regex, max_threshold, min_threshold } = this.parameters
    if (collection_names.length + tensor_regex.length === 0) throw this.unselected()
    if (max_threshold === null && min_threshold === null) {
      throw this.insufficient('expected max_threshold or min_threshold, got neither')
    }
  }

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { max_threshold, min_threshold } = this.parameters
    yield each(
      this.#tensors.at(moment),
      tensor => {
        if (tensor.hasValue) tensor.counts()
        return tensor.reduction('variance')
      },
      (variance, tensor) => {
        if (tensor.hasValue && tensor.counts().value.count === 0) return null
        const { name, worker } = tensor
        const value = variance.value as number
        const isLarge = max_threshold !== null && value > max_threshold
        const isSmall = min_threshold !== null && value < min_threshold
        if (!isLarge && !isSmall && !Number.isNaN(value)) return null
        const threshold = isLarge ? max_threshold : min_threshold
        const relation = Number.isNaN(value) ? '' : `, ${isLarge ? 'above' : 'below'} ${numberText(threshold!)}`
        const message = `the variance of ${name} is ${numberText(value)}${relation}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}
