/** PoorWeightInitialization (rules.md §2.3). */

import type { Catalog } from '../../catalog/catalog.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Mode, Worker } from '../../types.js'
import { builtin, type Judgement, numberText } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { RELU_INPUTS } from '../base/names.js'
import { meanOf, scalar } from '../base/scalar.js'
import { flag, integer, list, number } from '../parameters.js'
import type { Found } from '../rule.js'

/**
 * Fires, at the first `steps` steps of the training, where (a) the variances of activation inputs differ by more than
 * `threshold` times between layers, (b) between the 5th and the 95th percentile of a gradient lies less than
 * `distribution_range`, or (c) the loss has not decreased for `patience` steps. If `initial`, looks at step 0 alone, and
 * fires where the variance of activation inputs grows by more than `threshold` times from one layer to the next.
 */
export class PoorWeightInitialization extends builtin({
  meaning: 'The weights were initialised so that layers start out of balance, or do not learn.',
  advice:
    'Use an initialiser that keeps variances alike over the layers: Xavier (Glorot) for tanh and sigmoid, He (Kaiming) for ReLU.',
  parameters: {
    activation_inputs_regex: list('.*relu_input'),
    threshold: number(10),
    distribution_range: number(0.001),
    patience: integer(5, { min: 1 }),
    steps: integer(10, { min: 0 }),
    initial: flag(false),
  },
  suggested: {
    activation_inputs_regex: [RELU_INPUTS, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'],
    initial: [
      'true',
      'spreads of gradients and changes of a loss have no natural scale, and common initialisers lose variance from layer to layer; it is growth that does harm',
    ],
  },
}) {
  readonly #inputs = this.select({
    regex: this.parameters.activation_inputs_regex,
    except: /gradient/,
    optional: true,
  })
  readonly #gradients = this.select({ collections: ['gradients'], optional: true, value: true })
  readonly #losses = this.select({ collections: ['losses'], optional: true })
  readonly #loss = new Memory(() => ({ best: Number.POSITIVE_INFINITY, waited: 0 }))

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { threshold, distribution_range, patience } = this.parameters
    if (!this.#isEarly(moment)) return
    if (this.parameters.initial) {
      yield this.#growth(moment)
      return
    }

    const variances = this.#inputs.at(moment).map(tensor => ({ tensor, variance: tensor.reduction('variance') }))
    yield () => {
      const known = variances.filter(({ variance }) => Number.isFinite(variance.answer))
      if (known.length < 2) return null
      const sorted = known.sort((a, b) => (a.variance.value as number) - (b.variance.value as number))
      const [least, most] = [sorted[0]!, sorted.at(-1)!]
      const value = (most.variance.value as number) / (least.variance.value as number)
      if (!(value > threshold)) return null
      const { name, worker } = most.tensor
      const message = `the variance of ${name} is ${numberText(value)} times that of ${least.tensor.name}, more than ${numberText(threshold)} times`
      return { tensor: name, worker, value, threshold, message }
    }

    const spreads = this.#gradients.at(moment).map(tensor => ({ tensor, percentiles: tensor.percentiles(5, 95) }))
    yield () => {
      const narrow = spreads
        .filter(({ percentiles }) => percentiles.answer)
        .map(({ tensor, percentiles }) => ({ tensor, value: percentiles.value[1]! - percentiles.value[0]! }))
        .filter(({ value }) => !Number.isNaN(value))
        .sort((a, b) => a.value - b.value)
      const [narrowest] = narrow
      if (!narrowest || !(narrowest.value < distribution_range)) return null
      const { tensor, value } = narrowest
      const message = `the middle 90 % of ${tensor.name} lie within ${numberText(value)}, less than ${numberText(distribution_range)}`
      return { tensor: tensor.name, worker: tensor.worker, value, threshold: distribution_range, message }
    }

    const losses = this.#losses.at(moment).map(scalar)
    const kept = this.#loss.of(moment)
    yield () => {
      const loss = meanOf(losses.map(loss => loss()))
      if (loss === null) return null
      if (loss < kept.best) {
        kept.best = loss
        kept.waited = 0
      } else kept.waited++
      if (kept.waited < patience) return null
      const message = `the loss has not decreased for ${kept.waited} steps; its best was ${numberText(kept.best)}`
      return { worker: moment.worker, value: kept.waited, threshold: patience, message }
    }
  }

  /** The largest growth of variance from one layer's inputs to the next one's, in the order in which they were saved. */
  #growth(moment: Moment): Judgement {
    const { threshold } = this.parameters
    const tensors = [...this.#inputs.at(moment)].sort((a, b) => a.place - b.place)
    const layers = tensors.map(tensor => ({ tensor, variance: tensor.reduction('variance') }))
    return () => {
      const known = layers.filter(({ variance }) => Number.isFinite(variance.answer))
      let worst: Found | null = null
      for (const [i, { tensor, variance }] of known.entries()) {
        const before = known[i - 1]
        if (before === undefined) continue
        const value = (variance.value as number) / (before.variance.value as number)
        // Behind a layer that puts out one value there is nothing to compare.
        if (
          !(
            value > threshold &&
            value < Number.POSITIVE_INFINITY &&
            value > ((worst?.value as number | undefined) ?? 0)
          )
        )
          continue
        const { name, worker } = tensor
        const message = `as initialised, the variance of ${name} is ${numberText(value)} times that of ${before.tensor.name} before it, more than ${numberText(threshold)} times`
        worst = { tensor: name, worker, value, threshold, message }
      }
      return worst
    }
  }

  /** Whether a step is among the first of its worker's training. */
  #isEarly({ step, worker }: Moment): boolean {
    if (this.parameters.initial) return step === 0
    return firstSteps(this.baseTrial, worker, this.parameters.steps).has(step)
  }
}

const first = new WeakMap<Catalog, Map<string, ReadonlySet<number>>>()

/** The first steps of a worker's training. */
function firstSteps(trial: Trial, worker: Worker, count: number): ReadonlySet<number> {
  const { catalog } = stateOf(trial)
  const known = first.get(catalog) ?? new Map<string, ReadonlySet<number>>()
  first.set(catalog, known)
  const key = `${count} ${worker}`
  let steps = known.get(key)
  if (steps === undefined) {
    const isTraining = catalog.steps.modes.length > 0 ? (mode: Mode) => mode === 'TRAIN' : () => true
    const own = catalog.workerSteps.filter(saved => saved.worker === worker && isTraining(saved.mode))
    steps = new Set(own.slice(0, count).map(({ step }) => step))
    known.set(key, steps)
  }
  return steps
}
