/** UnchangedTensor (rules.md §2.15). */

import type { Question } from '../../trial/measure.js'
import { flag, integer, list, number } from '../parameters.js'
import { builtin, each, type Judgements, type Moment, positionOf } from './builtin.js'

/** Fires where a tensor was all close (as numpy.allclose means it) over the last `num_steps` steps that have it. */
export class UnchangedTensor extends builtin({
  meaning: 'Tensors no longer change: that part of the network does not learn.',
  advice:
    'Look whether the layer is frozen, its gradient zero, or the learning rate too low; a loss that stands still may have converged.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    num_steps: integer(3, { min: 2 }),
    rtol: number(1e-5),
    atol: number(1e-8),
    equal_nan: flag(false),
  },
  suggested: { collection_names: 'weights,losses' },
}) {
  readonly #tensors = this.select({
    collections: this.parameters.collection_names,
    regex: this.parameters.tensor_regex,
    value: true,
  })

  protected override check(): void {
    const { collection_names, tensor_regex } = this.parameters
    if (collection_names.length + tensor_regex.length === 0) throw this.unselected()
  }

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { num_steps, rtol, atol, equal_nan } = this.parameters
    const tolerance = { rtol, atol, equalNan: equal_nan }
    yield each(
      this.#tensors.at(moment),
      tensor => {
        const { name } = tensor
        const steps = this.stepsOf(name, moment)
        const at = positionOf(moment.step, steps)
        if (at + 1 < num_steps) return undefined
        tensor.counts()
        const pairs = new Array<Question<boolean>>(num_steps - 1)
        let newer = tensor
        for (let i = 1; i < num_steps; i++) {
          const older = this.earlier(tensor, steps[at - i]!)!
          pairs[num_steps - 1 - i] = older.allclose(newer, tolerance)
          newer = older
        }
        return pairs
      },
      (pairs, tensor) => {
        if (tensor.counts().value.count === 0 || !pairs.every(({ value }) => value)) return null
        const { name, worker } = tensor
        const steps = this.stepsOf(name, moment)
        const end = positionOf(moment.step, steps) + 1
        const last = steps.slice(end - num_steps, end).map(({ step }) => step)
        const message = `${name} has not changed over the steps ${last.join(', ')}`
        return { tensor: name, worker, value: num_steps, threshold: num_steps, message }
      },
    )
  }
}
