/** The first checkpoint with NaN or infinities: its tensors, and what the training logged around it. */

import { entryOf } from '../../base/maps.js'
import type { GlobalStep } from '../../base/types.js'
import type { Trial } from '../../trial/trial.js'

/** A number that was logged at some steps. */
export interface LoggedAround {
  readonly name: string
  readonly values: readonly { readonly step: GlobalStep; readonly value: number }[]
}

export interface NonFiniteCheckpoint {
  /** The first checkpoint of which a tensor is not finite; null: none is, only what was logged. */
  readonly step: GlobalStep | null
  /** Its first such tensor, in the order of names, with the first such element; null: a scalar. */
  readonly tensor: string | null
  readonly element: readonly number[] | null
  /** The last checkpoint before it; all that was read of it, and of those before, is finite. Null: it is the first. */
  readonly wholeStep: GlobalStep | null
  /** The number of its tensors that are not finite. */
  readonly affected: number
  /** Its tensors that are finite. */
  readonly whole: readonly string[]
  /** Losses, norms of gradients and learning rates around the origin. */
  readonly logged: readonly LoggedAround[]
}

const LOGGED = /loss|grad_?norm|(?:^|[/_.])lr$|learning_?rate/i
/** Logged steps before the origin, and from there on. */
const BEFORE = 3
const FROM = 2

/** Is told of each tensor, step by step. */
export class CheckpointTrace {
  readonly #scalars: ReadonlySet<string>
  readonly #logged = new Map<string, { readonly step: GlobalStep; readonly value: number }[]>()
  #step: GlobalStep | null = null
  #wholeStep: GlobalStep | null = null
  #whole = new Set<string>()
  #affected = new Set<string>()

  constructor(trial: Trial) {
    this.#scalars = new Set(trial.collections().get('scalars')?.members ?? [])
  }

  /** @param value of a scalar */
  add(tensor: string, step: GlobalStep, isWhole: boolean, value: unknown): void {
    if (this.#scalars.has(tensor)) {
      if (!LOGGED.test(tensor) || typeof value !== 'number') return
      entryOf(this.#logged, tensor, () => []).push({ step, value })
      return
    }
    if (this.#step !== step) {
      if (this.#affected.size > 0) return
      this.#wholeStep = this.#step
      this.#step = step
      this.#whole = new Set()
    }
    if (!isWhole) this.#affected.add(tensor)
    this.#whole.add(tensor)
  }

  /** The first of some tensors at the first affected checkpoint. */
  firstOf<R extends { readonly tensor: string; readonly step: number }>(records: readonly R[]): R | undefined {
    return records.find(({ tensor, step }) => step === this.#step && this.#affected.has(tensor))
  }

  /** @param origin the first step with NaN or infinities, of a tensor or a scalar */
  result(origin: number, tensor: string | null, element: readonly number[] | null): NonFiniteCheckpoint {
    const isAffected = this.#affected.size > 0
    const logged = [...this.#logged].map(([name, values]) => {
      const at = values.filter(({ step }) => step < origin).length
      return { name, values: values.slice(Math.max(0, at - BEFORE), at + FROM) }
    })
    return {
      step: isAffected ? this.#step : null,
      tensor,
      element,
      wholeStep: isAffected ? this.#wholeStep : this.#step,
      affected: this.#affected.size,
      whole: [...this.#whole].filter(name => !this.#affected.has(name)),
      logged,
    }
  }
}
