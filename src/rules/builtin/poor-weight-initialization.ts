/** PoorWeightInitialization: see docs/rules.md. */

import { entryOf } from '../../base/maps.js'
import type { Mode, Worker } from '../../base/types.js'
import type { Catalog } from '../../scan/catalog/catalog.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { builtin, type Judgement, type Judgements } from '../base/builtin.js'
import { lost } from '../base/lost.js'
import { Memory, type Moment } from '../base/moment.js'
import { RELU_INPUTS } from '../base/names.js'
import { meanOf, scalar } from '../base/scalar.js'
import type { Selection } from '../base/selection.js'
import { numberText } from '../base/wording.js'
import { flag, integer, list, number } from '../parameters.js'
import type { Found } from '../rule.js'

/**
 * Fires, at the first `steps` training steps, if (a) the variances of activation inputs differ by more than a factor of `threshold`
 * between layers, (b) the 5th and 95th percentiles of a gradient are less than `distribution_range` apart, or (c) the loss has not
 * decreased for `patience` steps. If `initial`, judges only step 0, and fires if the variance of activation inputs grows by more than a
 * factor of `threshold` from one layer to the next.
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
  /** True once there were activation inputs of a network as it was initialised. */
  #hasInputs = false
  readonly #loss = new Memory(() => ({ best: Number.POSITIVE_INFINITY, waited: 0, steps: 0 }))

  protected override *examine(moment: Moment): Iterable<Judgement | Judgements> {
    const { threshold, distribution_range, patience } = this.parameters
    if (!this.#isEarly(moment)) return
    if (this.parameters.initial) {
      yield* this.#growth(moment)
      return
    }

    const variances = this.#inputs.at(moment).map(tensor => ({ tensor, variance: tensor.reduction('variance') }))
    yield () => {
      const finite = variances.filter(({ variance }) => Number.isFinite(variance.answer))
      if (variances.length === 0) return undefined
      if (finite.length < 2)
        return this.needs(
          `two activation inputs of a step whose variances are finite and can be read; step ${moment.step} has ${finite.length}`,
        )
      const sorted = finite.sort((a, b) => (a.variance.value as number) - (b.variance.value as number))
      const [least, most] = [sorted[0]!, sorted.at(-1)!]
      const value = (most.variance.value as number) / (least.variance.value as number)
      if (!(value > threshold)) return null
      const { name, worker } = most.tensor
      const message = `the variance of ${name} is ${numberText(value)} times that of ${least.tensor.name}, more than ${numberText(threshold)} times`
      return { tensor: name, worker, value, threshold, message }
    }
    yield lost(variances.map(({ variance }) => variance))

    const spreads = this.#gradients.at(moment).map(tensor => ({ tensor, percentiles: tensor.percentiles(5, 95) }))
    yield () => {
      const narrow = spreads
        .filter(({ percentiles }) => percentiles.answer)
        .map(({ tensor, percentiles }) => ({ tensor, value: percentiles.value[1]! - percentiles.value[0]! }))
        .filter(({ value }) => !Number.isNaN(value))
        .sort((a, b) => a.value - b.value)
      const [narrowest] = narrow
      if (!narrowest) return undefined
      if (!(narrowest.value < distribution_range)) return null
      const { tensor, value } = narrowest
      const message = `the middle 90 % of ${tensor.name} lie within ${numberText(value)}, less than ${numberText(distribution_range)}`
      return { tensor: tensor.name, worker: tensor.worker, value, threshold: distribution_range, message }
    }
    yield lost(spreads.map(({ percentiles }) => percentiles))

    const losses = this.#losses.at(moment).map(scalar)
    const history = this.#loss.of(moment)
    yield () => {
      const loss = meanOf(losses.map(loss => loss()))
      if (loss === null) return undefined
      history.steps++
      if (loss < history.best) {
        history.best = loss
        history.waited = 0
      } else history.waited++
      if (history.waited < patience) return history.steps > patience ? null : undefined
      const message = `the loss has not decreased for ${history.waited} steps; its best was ${numberText(history.best)}`
      return { worker: moment.worker, value: history.waited, threshold: patience, message }
    }
  }

  /** The largest growth of variance from one layer's inputs to the next layer's, in the order of saving. */
  *#growth(moment: Moment): Iterable<Judgement | Judgements> {
    const { threshold } = this.parameters
    const tensors = [...this.#inputs.at(moment)].sort((a, b) => a.place - b.place)
    const layers = tensors.map(tensor => ({ tensor, variance: tensor.reduction('variance') }))
    yield () => {
      this.#hasInputs ||= layers.length > 0
      let worst: Found | null = null
      let compared = 0
      for (const [i, { tensor, variance }] of layers.entries()) {
        // Only of neighbours: what lies across a layer that is not known is not the growth of one.
        const before = layers[i - 1]
        if (before === undefined || !Number.isFinite(before.variance.answer) || !Number.isFinite(variance.answer))
          continue
        compared++
        const value = (variance.value as number) / (before.variance.value as number)
        // A layer with equal inputs has a variance of zero: any growth after it would be infinite.
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
      if (compared > 0) return worst
      if (layers.length === 0) return undefined
      return this.needs(
        'two activation inputs of step 0, one saved right after the other, whose variances are finite and can be read',
      )
    }
    yield lost(layers.map(({ variance }) => variance))
  }

  /** With `initial`, the activation inputs alone. */
  protected override get wanted(): readonly Selection[] {
    return this.parameters.initial ? [this.#inputs] : super.wanted
  }

  protected override lacking(): readonly string[] {
    return this.parameters.initial && !this.#hasInputs
      ? ['activation inputs of step 0, among the steps that were judged']
      : []
  }

  /** True if a step is among the first training steps of its worker. */
  #isEarly({ step, worker }: Moment): boolean {
    if (this.parameters.initial) return step === 0
    return firstSteps(this.baseTrial, worker, this.parameters.steps).has(step)
  }
}

const first = new WeakMap<Catalog, Map<string, ReadonlySet<number>>>()

/** The first steps of a worker's training. */
function firstSteps(trial: Trial, worker: Worker, count: number): ReadonlySet<number> {
  const { catalog } = stateOf(trial)
  const cached = entryOf(first, catalog, () => new Map<string, ReadonlySet<number>>())
  return entryOf(cached, `${count} ${worker}`, () => {
    const isTraining = catalog.steps.modes.length > 0 ? (mode: Mode) => mode === 'TRAIN' : () => true
    const training = catalog.workerSteps.filter(saved => saved.worker === worker && isTraining(saved.mode))
    return new Set(training.globalSteps().slice(0, count))
  })
}
