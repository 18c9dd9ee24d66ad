/** ExplodingTensor (rules.md §2.2). */

import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { NOT_OF_TREES } from '../base/names.js'
import { flag, list } from '../parameters.js'

/** Fires where an element is NaN, or, unless `only_nan`, infinite. */
export class ExplodingTensor extends builtin({
  meaning: 'Values have grown beyond all bounds: there are NaN or infinite elements.',
  advice:
    'Lower the learning rate, or clip gradients. Look at the first step: the trouble begins in what the first tensor is computed from.',
  parameters: { collection_names: list(), tensor_regex: list(), only_nan: flag(false) },
  suggested: { tensor_regex: [NOT_OF_TREES, "XGBoost's trees have NaN for whatever a leaf lacks"] },
}) {
  readonly #tensors = this.select({
    collections: this.parameters.collection_names,
    regex: this.parameters.tensor_regex,
    all: this.parameters.collection_names.length + this.parameters.tensor_regex.length === 0,
  })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const onlyNan = this.parameters.only_nan
    const tensors = this.#tensors.at(moment)
    yield each(
      tensors,
      tensor => (tensor.hasValue ? tensor.counts() : undefined),
      ({ value: { nanCount, infinityCount, count } }, { name, worker }) => {
        const value = onlyNan ? nanCount : nanCount + infinityCount
        if (value === 0) return null
        const kinds = [nanCount > 0 && `${nanCount} NaN`, !onlyNan && infinityCount > 0 && `${infinityCount} infinite`]
        const message = `${name} has ${kinds.filter(Boolean).join(' and ')} among its ${count} elements`
        return { tensor: name, worker, value, threshold: 0, message }
      },
    )
    yield each(
      tensors.filter(({ hasValue }) => !hasValue),
      tensor => tensor.savedReductions.map(reduction => [reduction, tensor.reduction(reduction)] as const),
      (saved, { name, worker }) => {
        const found = saved.find(([, { value }]) => (onlyNan ? Number.isNaN(value) : !Number.isFinite(value)))
        if (!found) return null
        const value = found[1].value as number
        return { tensor: name, worker, value, threshold: null, message: `the saved ${found[0]} of ${name} is ${value}` }
      },
    )
  }
}
