/** The tensors on which a tensor can have an effect, by the order of execution, its layer and its kind. */

import { recordsInOrder } from '../scan/catalog/record-order.js'
import { type Kind, kindsOf } from '../trial/kinds/kinds.js'
import { layersOf, type Role, roleOf } from '../trial/kinds/roles.js'
import { stateOf, type Trial } from '../trial/trial.js'

/** A tensor as a worker has it at a step. */
interface Place {
  readonly tensor: string | null
  readonly worker: string | null
  readonly step: number
}

export class Flow {
  readonly #trial: Trial
  readonly #roles = new Map<string, Role['kind']>()
  #kindOf: ((name: string) => Kind) | undefined

  constructor(trial: Trial) {
    this.#trial = trial
  }

  /**
   * True if one finding can be the cause of a later one. What the step as a whole is about reaches everything.
   * @param isSameFault it is the same that is found of both: where NaN is in several tensors of a step, the first saved is its cause
   */
  reaches(from: Place, to: Place, isSameFault: boolean): boolean {
    if (from.tensor === null || to.tensor === null || from.tensor === to.tensor) return true
    const [cause, effect] = [this.#roleOf(from.tensor), this.#roleOf(to.tensor)]
    // What is no part of the network, as a metric, has no effect on it.
    if (cause === 'other') return effect === 'other'
    if (from.step < to.step) return true
    if (cause === 'parameter' && effect === 'parameter') return isSameFault
    const [at, own] = [this.#placeOf(from.tensor, from, isSameFault ? null : cause), this.#placeOf(to.tensor, to, null)]
    return at === undefined || own === undefined || at <= own
  }

  #roleOf(tensor: string): Role['kind'] {
    let role = this.#roles.get(tensor)
    if (role === undefined) {
      this.#kindOf ??= kindsOf(this.#trial)
      role = roleOf(tensor, this.#kindOf(tensor)).kind
      this.#roles.set(tensor, role)
    }
    return role
  }

  /** When a tensor comes in in its step: a parameter not before its layer, although it may be saved earlier. */
  #placeOf(tensor: string, { step, worker }: Place, role: Role['kind'] | null): number | undefined {
    const saved = stateOf(this.#trial)
      .catalog.atStep(step)
      .find(one => (worker === null ? one.tensors.has(tensor) : one.worker === worker))
    const order = saved && recordsInOrder(saved)
    if (order === undefined || role !== 'parameter') return order?.get(tensor)
    for (const layer of layersOf(tensor)) {
      const places = ['_input_0', '_output_0', '/inputs', '/outputs'].flatMap(end => order.get(layer + end) ?? [])
      if (places.length > 0) return Math.min(...places)
    }
    return order.get(tensor)
  }
}
