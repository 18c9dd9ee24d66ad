/**
 * A hold: state for one piece of work that nobody else sees: its view of trials, and what was read ahead for it. It applies to everything
 * that the work calls and awaits.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import type { StatisticName } from '../../base/types.js'
import type { StatisticValue } from '../../core/statistics/statistic.js'
import type { TensorValue } from '../job/tensor-value.js'
import type { TrialContents } from './load/load.js'
import type { WorkerStep } from './worker-steps.js'

/** Data that was read ahead. Tensors look here first. */
export interface Ahead {
  value(workerStep: WorkerStep, tensor: string): TensorValue | undefined
  reduction(workerStep: WorkerStep, tensor: string, name: StatisticName): StatisticValue | undefined
}

/** An object whose present state can be held. */
export interface Holdable {
  readonly contents: TrialContents
}

export interface HoldOptions {
  readonly ahead?: Ahead
  /** Objects that the work sees in their current state, despite any outer hold. */
  readonly released?: Iterable<Holdable>
  /** The objects on whose behalf the work is done. */
  readonly owners?: Iterable<object>
}

export class Hold {
  readonly ahead: Ahead | undefined
  readonly #outer: Hold | undefined
  readonly #contents: Map<Holdable, TrialContents>
  readonly #released: ReadonlySet<Holdable>
  readonly #owners: ReadonlySet<object>
  isOver = false

  constructor(held: readonly Holdable[], { ahead, released = [], owners = [] }: HoldOptions, outer: Hold | undefined) {
    this.#outer = outer
    this.#contents = new Map(held.map(holdable => [holdable, holdable.contents]))
    this.#released = new Set(released)
    this.#owners = new Set(owners)
    this.ahead = ahead ?? outer?.ahead
  }

  /** The contents that the work sees; undefined for the current ones. */
  contentsOf(holdable: Holdable): TrialContents | undefined {
    if (this.#released.has(holdable)) return undefined
    return this.#contents.get(holdable) ?? this.#outer?.contentsOf(holdable)
  }

  /** Shows the new contents to work that refreshes on purpose. */
  renew(holdable: Holdable, contents: TrialContents): void {
    if (this.#contents.has(holdable)) this.#contents.set(holdable, contents)
    this.#outer?.renew(holdable, contents)
  }

  /** True if this work, or work around it, is done for an owner. */
  isOf(owner: object): boolean {
    return this.#owners.has(owner) || (this.#outer?.isOf(owner) ?? false)
  }

  /** The hold around this one, while it lasts. */
  get outer(): Hold | undefined {
    return this.#outer
  }
}

const storage = new AsyncLocalStorage<Hold>()
let underWay = 0

/** The hold that the caller is in. */
export function currentHold(): Hold | undefined {
  if (underWay === 0) return undefined
  let hold = storage.getStore()
  while (hold?.isOver) hold = hold.outer
  return hold
}

/** Runs `work`, which sees each of `held` in its present state until it is done or refreshes it. */
export async function withHold<T>(
  held: readonly Holdable[],
  options: HoldOptions,
  work: () => Promise<T> | T,
): Promise<T> {
  const hold = new Hold(held, options, currentHold())
  underWay++
  try {
    return await storage.run(hold, work)
  } finally {
    hold.isOver = true
    underWay--
    // While it is on, on Node.js 20 every awaited promise of the process takes 0.16 µs longer (`for await` over 200,000 rows: 60 ms instead
    // of 28). Switching takes 1.4 µs.
    if (underWay === 0) storage.disable()
  }
}
