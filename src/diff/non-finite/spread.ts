/** How NaN and infinities spread: what each record that has any was computed from. */

import { recordsInOrder } from '../../catalog/record-order.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Worker } from '../../types.js'
import { kindsOf } from '../kinds.js'
import {
  isEarlier,
  type NonFiniteClass,
  type NonFiniteKind,
  type NonFiniteRecord,
  type RecordPlaceInTime,
} from '../records.js'
import { isOfLayer, type Role, roleOf } from './roles.js'

type Found = RecordPlaceInTime & {
  readonly rank: number
  readonly nan: number | null
  readonly infinite: number | null
  readonly kind: NonFiniteKind
}
type Classified = NonFiniteRecord & { readonly rank: number; readonly kind: NonFiniteKind }

/** Whether the inputs of a record were finite: with the input that was not, if one was not. */
type Cause = { readonly class: NonFiniteClass; readonly from: string | null }

const UNKNOWN: Cause = { class: 'unknown', from: null }

export class Spread {
  readonly #trial: Trial
  /** The first record of each tensor of a worker. */
  readonly #first = new Map<string, Found>()
  /** Of each tensor of a worker, the steps at which it has any. */
  readonly #steps = new Map<string, Map<number, number>>()
  readonly #roles = new Map<string, Role>()

  constructor(trial: Trial) {
    this.#trial = trial
    const kindOf = kindsOf(trial)
    const isParameter = (name: string) => kindOf(name) === 'weights' || kindOf(name) === 'biases'
    for (const name of stateOf(trial).catalog.names) this.#roles.set(name, roleOf(name, isParameter))
  }

  /** A record that has any. Rows come in the order of steps. */
  add(found: Found): void {
    const key = keyOf(found)
    if (!this.#first.has(key)) this.#first.set(key, found)
    const steps = this.#steps.get(key) ?? new Map<number, number>()
    this.#steps.set(key, steps.set(found.step, found.rank))
  }

  /** The workers whose record of a tensor at a step has any, sorted. */
  workersOf({ tensor, step }: RecordPlaceInTime): readonly Worker[] {
    return this.#trial.workersWithData().filter(worker => this.#has(tensor, worker, step))
  }

  trace(): {
    readonly first: Classified | null
    readonly later: readonly Classified[]
    readonly chain: readonly Classified[]
  } {
    const all = [...this.#first.values()].sort((a, b) => (isEarlier(a, b) ? -1 : 1))
    const classified = all.map((found): Classified => ({ ...found, ...this.#causeOf(found) }))
    const [first = null, ...later] = classified
    return { first, later, chain: chainOf(classified, name => this.#isLoss(name)) }
  }

  #has(tensor: string, worker: string, step: number): boolean {
    return this.#steps.get(keyOf({ tensor, worker }))?.has(step) ?? false
  }

  #isLoss(name: string): boolean {
    return kindsOf(this.#trial)(name) === 'losses'
  }

  #causeOf(found: Found): Cause {
    const role = this.#roles.get(found.tensor)
    switch (role?.kind) {
      case 'output':
        return this.#ofOutput(found, role.of)
      case 'input':
        return this.#ofInput(found)
      case 'gradient':
        return this.#ofGradient(found)
      case 'parameter':
        return this.#ofParameter(found)
      default:
        return UNKNOWN
    }
  }

  /** From the layer's inputs and its parameters, as they were at the step; of a model or a block, from the layers in it. */
  #ofOutput(found: Found, layer: string): Cause {
    const { worker, step } = found
    const inputs = [...this.#roles].filter(([, { kind, of }]) =>
      kind === 'input' ? of === layer : kind === 'parameter' && isOfLayer(of, layer),
    )
    const saved = inputs.filter(([name]) => this.#wasSaved(name, worker, step))
    const from = saved.map(([name]) => name).find(name => this.#has(name, worker, step))
    if (from !== undefined) return { class: 'propagator', from }
    const inside = this.#isBlock(layer) ? this.#before(found, 'output') : []
    const part = inside.find(name => this.#has(name, worker, step))
    if (part !== undefined) return { class: 'propagator', from: part }
    return saved.some(([, { kind }]) => kind === 'input') ? { class: 'producer', from: null } : UNKNOWN
  }

  /** Whether it has layers in it: parameters of theirs begin with its name. */
  #isBlock(layer: string): boolean {
    return [...this.#roles].some(
      ([, { kind, of }]) =>
        kind === 'parameter' && /^[._/]/.test(of.slice(layer.length)) && of.startsWith(layer) && !isOfLayer(of, layer),
    )
  }

  /** From the outputs before it: the nearest is what is given to a layer. */
  #ofInput(found: Found): Cause {
    const outputs = this.#before(found, 'output')
    const from = outputs.find(name => this.#has(name, found.worker, found.step))
    if (from !== undefined) return { class: 'propagator', from }
    // What the model itself is given comes from outside.
    return outputs.length === 0 ? { class: 'producer', from: null } : UNKNOWN
  }

  /** From the loss and the activations of its step, and from gradients that were computed before it. */
  #ofGradient(found: Found): Cause {
    const gradients = this.#before(found, 'gradient')
    const from = [...gradients, ...this.#before(found, 'output'), ...this.#before(found, 'input')].find(name =>
      this.#has(name, found.worker, found.step),
    )
    if (from !== undefined) return { class: 'propagator', from }
    const parameter = this.#parametersAt(found).find(name => this.#has(name, found.worker, found.step))
    if (parameter !== undefined) return { class: 'propagator', from: parameter }
    return this.#before(found, 'output').length + gradients.length > 0 ? { class: 'producer', from: null } : UNKNOWN
  }

  /** From itself and its gradient at the step before, if there was none between that was not saved. */
  #ofParameter(found: Found): Cause {
    const { tensor, worker, step, mode, modeStep } = found
    const own = stateOf(this.#trial).catalog.byTensor.get(tensor)
    const at = own === undefined ? -1 : own.before(step) - 1
    const before = [...Array(Math.max(0, at + 1)).keys()]
      .reverse()
      .map(i => own!.at(i)!)
      .find(saved => saved.worker === worker)
    if (before === undefined) return { class: 'producer', from: null }
    const gradients = [...this.#roles]
      .filter(([, { kind, of }]) => kind === 'gradient' && of === tensor)
      .map(([name]) => name)
    const from = [tensor, ...gradients].find(name => this.#has(name, worker, before.step))
    if (from !== undefined) return { class: 'propagator', from }
    const isNext = before.step === step - 1 || (before.mode === mode && before.modeStep === modeStep - 1)
    const isKnown = gradients.some(name => this.#wasSaved(name, worker, before.step))
    return isNext && isKnown ? { class: 'producer', from: null } : UNKNOWN
  }

  /** The tensors of a kind that were saved before a record at its step, the nearest first. */
  #before({ worker, step, rank }: Found, kind: Role['kind']): readonly string[] {
    return this.#ranked(worker, step)
      .filter(([name, at]) => at < rank && this.#roles.get(name)?.kind === kind)
      .sort(([, a], [, b]) => b - a)
      .map(([name]) => name)
  }

  #parametersAt({ worker, step }: Found): readonly string[] {
    return this.#ranked(worker, step)
      .map(([name]) => name)
      .filter(name => this.#roles.get(name)?.kind === 'parameter')
  }

  #ranked(worker: string, step: number): readonly (readonly [string, number])[] {
    const saved = stateOf(this.#trial)
      .catalog.atStep(step)
      .find(one => one.worker === worker)
    return saved === undefined ? [] : [...recordsInOrder(saved)]
  }

  #wasSaved(name: string, worker: string, step: number): boolean {
    const saved = stateOf(this.#trial)
      .catalog.atStep(step)
      .find(one => one.worker === worker)
    return saved?.tensors.has(name) ?? false
  }
}

/** From the first to the first loss, following what each has its from. */
function chainOf(all: readonly Classified[], isLoss: (name: string) => boolean): readonly Classified[] {
  const [origin] = all
  const loss = all.find(({ tensor }) => isLoss(tensor) && !/_input(_\d+)?$/.test(tensor))
  if (origin === undefined || loss === undefined) return []
  const chain = [loss]
  for (let at = loss; at !== origin && at.from !== null; ) {
    const next = all.find(({ tensor, worker }) => tensor === at.from && worker === at.worker)
    if (next === undefined || chain.includes(next)) break
    chain.unshift(next)
    at = next
  }
  return chain[0] === origin ? chain : [origin, ...chain]
}

function keyOf({ tensor, worker }: { readonly tensor: string; readonly worker: string }): string {
  return `${worker}\n${tensor}`
}
