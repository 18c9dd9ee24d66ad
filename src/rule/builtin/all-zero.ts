/** AllZero (rules.md §2.7). */

import type { TensorAtStep } from '../../trial/measure.js'
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
      const { name, worker } = tensor
      const zeros = percentOfZeros(tensor)
      yield () => {
        const value = zeros()
        if (!(value >= threshold)) return null
        return {
          tensor: name,
          worker,
          value,
          threshold,
          message: `${figure(value)} % of the elements of ${name} are zero`,
        }
      }
    }
  }
}

/** Of saved reductions all that can be told is whether every element is zero; else NaN. */
function percentOfZeros(tensor: TensorAtStep): () => number {
  if (tensor.hasValue) {
    const moments = tensor.counts()
    return () => (100 * moments.value.zeroCount) / moments.value.count
  }
  const saved = tensor.savedReductions
  const telling = saved.includes('abs_max') ? (['abs_max'] as const) : (['min', 'max'] as const)
  if (!telling.every(name => saved.includes(name))) return () => Number.NaN
  const extremes = telling.map(name => tensor.reduction(name))
  return () => (extremes.every(({ value }) => value === 0) ? 100 : Number.NaN)
}
