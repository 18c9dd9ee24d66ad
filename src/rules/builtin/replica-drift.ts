/** ReplicaDrift, a rule of trialscan's own: what `diff --workers` reports, as a rule. */

import { quote } from '../../base/errors.js'
import type { Worker } from '../../base/types.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, type Judgement, type Judgements } from '../base/builtin.js'
import { lost } from '../base/lost.js'
import type { Moment } from '../base/moment.js'
import { list, number } from '../parameters.js'
import type { Found } from '../rule.js'

/** Names of workers that share a model between them: Megatron, DeepSpeed's ZeRO, FSDP as verl saves it. */
const SPLIT = /(?:^|[^a-z])(?:mp_rank|zero_pp_rank|model_world_size|[tpec]p_?(?:rank_?)?\d)/i
/** Names of tensor-parallel ranks without pipeline ranks (these would give layers other names). Each rank has a copy of the norms. */
const TENSOR_PARALLEL = /^mp_rank_\d+$/i
const NORM = /norm[^/]*\.(?:weight|bias)$/i
/** Each worker may have experts of its own under the same names. */
const EXPERTS = /(?:^|[._/])(?:local_)?experts?(?:[._/]|$)/i
/** Tensors that differ between workers by design, even if a collection of weights contains them. */
const OWN = new RegExp(`^gradients?/|${EXPERTS.source}`, 'i')

/**
 * Fires at a step for each weight and bias whose values on other workers are not close to those on the first one, for workers that train
 * copies of one model. For tensor-parallel ranks it judges the norms, which all ranks share. With `collection_names` or `tensor_regex`,
 * judges these tensors for any workers.
 */
export class ReplicaDrift extends builtin({
  meaning: 'Workers that train copies of one model no longer have the same weights.',
  advice:
    'Look at the first step: workers that differ from the start were initialised apart (seeds, no broadcast); otherwise a gradient was not averaged over all, or a layer is outside of what is synchronised.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    rtol: number(1e-5, { min: 0 }),
    atol: number(1e-8, { min: 0 }),
  },
}) {
  readonly #isGiven = this.parameters.collection_names.length + this.parameters.tensor_regex.length > 0
  readonly #weights = this.select({
    collections: this.#isGiven ? this.parameters.collection_names : ['weights', 'biases'],
    regex: this.parameters.tensor_regex,
    value: true,
    ...(!this.#isGiven && { except: OWN }),
  })

  /** The reasons why steps were not judged. */
  readonly #reasons = new Set<string>()
  /** True unless the trial is one of checkpoints whose workers have not shown equal weights yet. */
  #hasCopies = this.#isGiven || this.baseTrial.checkpoint === null

  protected override *examine(moment: Moment): Iterable<Judgement | Judgements> {
    const [first, ...others] = this.reqTensors.workers(moment.step)
    if (first !== moment.worker || others.length === 0 || this.#workersLack() !== null) return
    const areNorms = this.#haveOnlyNorms
    const at = (worker: Worker) =>
      this.#weights.at({ ...moment, worker }).filter(({ hasValue, name }) => hasValue && (!areNorms || NORM.test(name)))
    const originals = at(first)
    const copies = others.map(at).filter(tensors => this.#isGiven || tensors.length > 0)
    if (!this.#isGiven && originals.length > 0) {
      for (const tensors of copies) {
        const apart = unmatched(originals, tensors)
        if (apart === null) continue
        yield () => this.#passOver(`${apart} at step ${moment.step}, as where a model is split`)
        return
      }
    }
    const byName = new Map(originals.map(tensor => [tensor.name, tensor]))
    const { rtol, atol } = this.parameters
    const questions = copies.flat().flatMap(tensor => {
      const original = byName.get(tensor.name)
      return original ? [{ original, tensor, difference: original.difference(tensor, { rtol, atol }) }] : []
    })
    if (questions.length === 0) return
    yield () => {
      const read = questions.filter(({ difference }) => difference.error === undefined)
      const other = read.find(({ difference }) => difference.value === null)
      if (other && !this.#isGiven) {
        return this.#passOver(
          `${other.tensor.name} has another shape in ${other.tensor.worker}, as where a model is split`,
        )
      }
      const compared = read.flatMap(({ original, tensor, difference: { value } }) =>
        value === null ? [] : [{ original, tensor, ...value }],
      )
      this.#hasCopies ||= 2 * compared.filter(({ hasEqualBits }) => hasEqualBits).length > compared.length
      if (!this.#hasCopies) {
        return this.#passOver(
          `most weights differ between workers from step ${moment.step} on, as where each saves a part of its own`,
        )
      }
      return [...byName.keys()].flatMap((name): Found[] => {
        const apart = compared.filter(({ tensor, beyondCount }) => tensor.name === name && beyondCount > 0)
        const [worst] = apart.sort((a, b) => b.maxAbsolute - a.maxAbsolute)
        if (worst === undefined) return []
        const { beyondCount, count, maxAbsolute: value } = worst
        const more = apart.length > 1 ? `; ${apart.length} of ${others.length + 1} workers differ from ${first}` : ''
        const message = `${name} of ${first} and ${worst.tensor.worker} differs in ${beyondCount} of ${count} elements, by up to ${value.toPrecision(3)}${more}`
        return [{ tensor: name, value, message }]
      })
    }
    yield lost(questions.map(({ difference }) => difference))
  }

  #passOver(reason: string): undefined {
    this.#reasons.add(reason)
    return undefined
  }

  override lack(): string | null {
    return super.lack() ?? this.#workersLack()
  }

  /** True if workers have parts of a model, and copies only of its norms. */
  get #haveOnlyNorms(): boolean {
    return !this.#isGiven && this.baseTrial.workers().every(worker => TENSOR_PARALLEL.test(worker))
  }

  /** The reason why workers can't be judged at any step; null if they can. */
  #workersLack(): string | null {
    const workers = this.baseTrial.workers().filter(worker => this.workers === null || this.workers.has(worker))
    if (workers.length < 2) return 'several workers: there is one'
    const split = this.#isGiven || this.#haveOnlyNorms ? undefined : workers.find(worker => SPLIT.test(worker))
    if (split === undefined) return null
    return `copies of a model: workers such as ${split} have parts of one. What they have in common collection_names compares, such as norms of tensor-parallel ones`
  }

  protected override lacking(): readonly string[] {
    const lack = this.#workersLack()
    if (lack !== null) return [lack]
    const [reason] = this.#reasons
    const more = this.#reasons.size > 1 ? `; so it is at ${this.#reasons.size - 1} more steps` : ''
    const experts = this.#isGiven ? [] : this.baseTrial.tensorNames().filter(name => EXPERTS.test(name))
    return [
      ...(reason === undefined ? [] : [`copies of a model: ${reason}${more}`]),
      ...(experts.length === 0
        ? []
        : [`tensor_regex to compare experts, which may be different in each worker, such as ${quote(experts[0]!)}`]),
    ]
  }
}

/** The name of a tensor that only one of two workers has, in words; null if both have the same. */
function unmatched(a: readonly TensorAtStep[], b: readonly TensorAtStep[]): string | null {
  const lacks = (these: readonly TensorAtStep[], others: readonly TensorAtStep[]): string | null => {
    const names = new Set(others.map(({ name }) => name))
    const lacking = these.find(({ name }) => !names.has(name))
    return lacking === undefined ? null : `${others[0]!.worker} lacks ${lacking.name} of ${lacking.worker}`
  }
  return lacks(a, b) ?? lacks(b, a)
}
