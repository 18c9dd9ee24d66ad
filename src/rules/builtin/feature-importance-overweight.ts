/** FeatureImportanceOverweight: see docs/rules.md. */

import { builtin, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { scalar } from '../base/scalar.js'
import { numberText } from '../base/wording.js'
import { integer, list, number } from '../parameters.js'

/** Fires where the `nfeatures` most important features have more than `threshold` of all importance. */
export class FeatureImportanceOverweight extends builtin({
  meaning: 'A few features decide nearly everything: the model may rest on a leak.',
  advice: 'Check whether those features would be known when the model is used, and how well it does without them.',
  parameters: {
    threshold: number(0.8),
    nfeatures: integer(3, { min: 1 }),
    tensor_regex: list('.*feature_importance/weight'),
    least_features: integer(1, { min: 1 }),
  },
  suggested: {
    least_features: [
      '10',
      'with few features, or only the first trees, three features have most of the importance in any case',
    ],
  },
}) {
  readonly #features = this.select({ regex: this.parameters.tensor_regex })

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { threshold, nfeatures, least_features } = this.parameters
    const features = this.#features.at(moment).map(tensor => ({ tensor, read: scalar(tensor) }))
    yield () => {
      const weights = features
        .flatMap(({ tensor, read }) => {
          const weight = read()
          return weight === null ? [] : [{ tensor, weight }]
        })
        .sort((a, b) => b.weight - a.weight)
      if (features.length === 0) return undefined
      if (weights.length < least_features) {
        return this.needs(`at least ${least_features} importances at a step; step ${moment.step} has ${weights.length}`)
      }
      const total = weights.reduce((sum, { weight }) => sum + weight, 0)
      const top = weights.slice(0, nfeatures)
      const sum = top.reduce((sum, { weight }) => sum + weight, 0)
      const value = total > 0 ? sum / total : sum
      if (!(value > threshold)) return null
      const { name, worker } = top[0]!.tensor
      const names = top.map(({ tensor }) => tensor.name.split('/').at(-1)).join(', ')
      const message = `${names} have ${numberText(100 * value)} % of the importance, more than ${numberText(100 * threshold)} %`
      return { tensor: name, worker, value, threshold, message }
    }
  }
}
