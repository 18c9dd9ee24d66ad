/** AllZero (rules.md §2.7). */

import { list, number } from '../parameters.js'
import { builtin, figure, type Judgement } from './builtin.js'

/** Fires where at least `threshold` percent of a tensor's elements are zero. */
export class AllZero extends builtin({
  meaning: 'Tensors are all zero: a layer is dead, was never used, or its gradient does not reach it.',
  advice: 'Look whether the layer is part of the graph and trainable, and how it was initialised.',
  parameters: { collection_names: list(), tensor_regex: list(), threshold: number(100) },
  suggested: { collection_names: 'weights,gradients' },
}) {
  readonly #tensors = this.select({
    collections: this.parameters.collection_names,
    regex: this.parameters.tensor_regex,
  })

  protected override check(): void {
    const { collection_names, tensor_regex } = this.parameters
    if (collection_names.length + tensor_regex.length === 0) throw this.unselected()
  }

  protected override *examine(step: number): Iterable<Judgement> {
    const { threshold } = this.parameters
    for (const tensor of this.#tensors.at(step)) {
      const { name, worker, savedReductions: saved } = tensor
      const share = tensor.hasValue
        ? tensor.moments()
        : (['abs_max', 'min', 'max'] as const).filter(name => saved.includes(name)).map(name => tensor.reduction(name))
      yield () => {
        let value = 0
        if (!Array.isArray(share)) value = (100 * share.value.zeroCount) / share.value.count
        else if (share.length !== 1 || saved.includes('abs_max'))
          value = share.length > 0 && share.every(one => one.value === 0) ? 100 : 0
        const message = `${figure(value)} % of the elements of ${name} are zero`
        return value >= threshold && { tensor: name, worker, value, threshold, message }
      }
    }
  }
}
