/** UnchangedTensor: see docs/rules.md. */

import type { Question } from '../../trial/measure/question.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import { Memory, type Moment, positionOf } from '../base/moment.js'
import { flag, integer, list, mode, number } from '../parameters.js'

/**
 * Fires if a tensor was all close (as by numpy.allclose) over the last `num_steps` steps that have it. With `since_start`, fires if it
 * was close to its first value at all steps, at least `num_steps` of them.
 */
export class UnchangedTensor extends builtin({
  meaning: 'Tensors no longer change: that part of the network does not learn.',
  advice:
    'Check whether the layer is frozen, its gradient zero, the learning rate too low, or each update too small for 16 bits (keep master weights of float32); a loss that stands still may have converged.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    num_steps: integer(3, { min: 2 }),
    rtol: number(1e-5),
    atol: number(1e-8),
    equal_nan: flag(false),
    since_start: flag(false),
    trained_only: flag(false),
    mode: mode(),
  },
  suggested: {
    collection_names: [
      'weights',
      'one of collection_names and tensor_regex has to be given; LossNotDecreasing looks at losses',
    ],
    since_start: [
      'true',
      'weights that moved before and now stand still have converged, or their learning rate has dropped to zero',
    ],
    trained_only: ['true', 'a layer that gets no gradient while others do was frozen on purpose'],
    mode: ['training', 'weights do not change at other steps'],
  },
}) {
  readonly #tensors = this.selectGiven({ value: true })

  /** One object, since a tolerance that is not the last one is checked. */
  readonly #tolerance = { rtol: this.parameters.rtol, atol: this.parameters.atol, equalNan: this.parameters.equal_nan }

  /** Tensors that have changed since their first step. */
  readonly #moved = new Memory(() => new Set<string>())

  protected override check(): void {
    const { collection_names, tensor_regex } = this.parameters
    if (collection_names.length + tensor_regex.length === 0) throw this.unselected()
  }

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { num_steps, since_start, trained_only } = this.parameters
    const tolerance = this.#tolerance
    const tensors = this.#tensors.at(moment).filter(({ name }) => !trained_only || this.isTrained(name))
    if (since_start) {
      yield this.#sinceStart(tensors, moment)
      return
    }
    yield each(
      tensors,
      tensor => {
        const { name } = tensor
        const steps = this.stepsOf(name, moment)
        const at = positionOf(moment.step, steps)
        if (at + 1 < num_steps) return undefined
        tensor.counts()
        const pairs = new Array<Question<boolean>>(num_steps - 1)
        let newer = tensor
        for (let i = 1; i < num_steps; i++) {
          const older = this.earlier(tensor, steps.at(at - i)!)!
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
        const last = Array.from({ length: num_steps }, (_, i) => steps.stepAt(end - num_steps + i))
        const message = `${name} has not changed over the steps ${last.join(', ')}`
        return { tensor: name, worker, value: num_steps, threshold: num_steps, message }
      },
    )
  }

  /** Judges tensors until they have changed. */
  #sinceStart(tensors: readonly TensorAtStep[], moment: Moment): Judgements {
    const { num_steps } = this.parameters
    const moved = this.#moved.of(moment)
    return each(
      tensors.filter(({ name }) => !moved.has(name)),
      tensor => {
        const steps = this.stepsOf(tensor.name, moment)
        const at = positionOf(moment.step, steps)
        if (at < 1) return undefined
        tensor.counts()
        const first = this.earlier(tensor, steps.at(0)!)!
        return { first, steps: at + 1, isClose: first.allclose(tensor, this.#tolerance) }
      },
      ({ first, steps, isClose }, tensor) => {
        const { name, worker } = tensor
        if (!isClose.value) moved.add(name)
        if (moved.has(name) || tensor.counts().value.count === 0) return null
        if (steps < num_steps) return undefined
        const message = `${name} has not changed since step ${first.step}, over ${steps} steps`
        return { tensor: name, worker, value: steps, threshold: num_steps, message }
      },
    )
  }
}
