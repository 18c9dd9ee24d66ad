/** The pump: runs work in order, with only as much in progress as keeps a runner busy. */

import { turnsWhenDue } from '../../base/turns.js'
import { isOutOfResources } from './runner.js'

export interface PumpOptions {
  /** The number of plans that may be in progress at once. */
  readonly ahead: number
  readonly signal?: AbortSignal | undefined
  /** True to wait for the plans in progress when the pump ends early. Default: false. */
  readonly settles?: boolean
}

/** The result of a plan. */
export interface Pumped<P, R> {
  readonly plan: P
  /** Null if the plan failed. */
  readonly reply: R | null
  /** The error of a failed plan. */
  readonly error: unknown
  /** The time that the caller waited for it, in milliseconds. */
  readonly waitMs: number
}

/**
 * Works on plans, several at once, and yields the results in order. Lazy: a plan is made just before it is worked on. A failed plan is a
 * result like any other; if nothing can run at all, the pump throws the error.
 */
export async function* pump<P, R>(
  plans: Iterable<P>,
  work: (plan: P) => Promise<R>,
  { ahead, signal, settles = false }: PumpOptions,
): AsyncGenerator<Pumped<P, R>> {
  const waiting = plans[Symbol.iterator]()
  // Many replies may arrive at once.
  const turnWhenDue = turnsWhenDue()
  const underWay: Promise<Omit<Pumped<P, R>, 'waitMs'>>[] = []
  try {
    for (;;) {
      while (underWay.length < ahead) {
        const next = waiting.next()
        if (next.done) break
        const plan = next.value
        underWay.push(
          work(plan).then(
            reply => ({ plan, reply, error: null }),
            (error: unknown) => ({ plan, reply: null, error }),
          ),
        )
      }
      if (underWay.length === 0) return
      const startedAt = performance.now()
      const pumped = await underWay.shift()!
      const waitMs = performance.now() - startedAt
      await turnWhenDue()
      signal?.throwIfAborted()
      if (isOutOfResources(pumped.error)) throw pumped.error
      yield { ...pumped, waitMs }
    }
  } finally {
    if (settles) await Promise.all(underWay)
  }
}

/** Like `pump`, for replies that are useless without each other: throws the first failure, in the order of the plans. */
export async function* pumpAll<P, R>(
  plans: Iterable<P>,
  work: (plan: P) => Promise<R>,
  options: PumpOptions,
): AsyncGenerator<R> {
  for await (const { reply, error } of pump(plans, work, options)) {
    if (error !== null) throw error
    yield reply as R
  }
}

/** Cuts items into plans of `count` each. */
export function* chunksOf<T>(items: readonly T[], count: number): Generator<readonly T[]> {
  for (let first = 0; first < items.length; first += count) yield items.slice(first, first + count)
}
