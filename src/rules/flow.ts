/** The tensors that a tensor can affect, by the order of execution, the layer and the kind. */

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
   * True if one finding can be the cause of a later one. A finding about a whole step reaches everything.
   * @param isSameFault true if both findings are of the same fault: if NaN is in several tensors of a step, the first saved one is the
   *   cause
   */
  reaches(from: Place, to: Place, isSameFault: boolean): boolean {
    if (from.tensor === null || to.tensor === null || from.tensor === to.tensor) return true
    const [cause, effect] = [this.#roleOf(from.tensor), this.#roleOf(to.tensor)]
    // A tensor outside the network, such as a metric, does not affect it.
    if (cause === 'other') return effect === 'other'
    if (from.step < to.step) return true
    if (cause === 'parameter' && effect === 'parameter') return isSameFault
    const [at, effectPlace] = [
      this.#placeOf(from.tensor, from, isSameFault ? null : cause),
      this.#placeOf(to.tensor, to, null),
    ]
    return at === undefined || effectPlace === undefined || at <= effectPlace
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

  /** The position of a tensor within its step. A parameter comes no earlier than its layer, although it may be saved before. */
  #placeOf(tensor: string, { step, worker }: Place, role: Role['kind'] | null): number | undefined {
    const saved = stateOf(this.#trial)
      .catalog.atStep(step)
      .find(workerStep => (worker === null ? workerStep.tensors.has(tensor) : workerStep.worker === worker))
    const order = saved && recordsInOrder(saved)
    if (order === undefined || role !== 'parameter') return order?.get(tensor)
    for (const layer of layersOf(tensor)) {
      const places = ['_input_0', '_output_0', '/inputs', '/outputs'].flatMap(end => order.get(layer + end) ?? [])
      if (places.length > 0) return Math.min(...places)
    }
    return order.get(tensor)
  }
}
