/** The pump: work in order, and no more of it under way than keeps a runner busy. */

import { isLackOfMeans } from './runner.js'

export interface PumpOptions {
  /** Plans that may be under way at once. */
  readonly ahead: number
  readonly signal?: AbortSignal | undefined
  /** Whether nothing is under way any more when the pump ends early. Default: what runs is left to itself. */
  readonly settles?: boolean
}

/** What became of a plan. */
export interface Pumped<P, R> {
  readonly plan: P
  /** Null where the plan has failed. */
  readonly reply: R | null
  /** Why. */
  readonly error: unknown
  /** How long the caller waited for it. */
  readonly waitMs: number
}

/**
 * Works on plans, several at once, and tells what became of each in their order. Lazy: a plan is made when it is about to
 * be worked on. A plan that fails is told as such; where nothing can run at all, the pump ends with that error.
 */
export async function* pump<P, R>(
  plans: Iterable<P>,
  work: (plan: P) => Promise<R>,
  { ahead, signal, settles = false }: PumpOptions,
): AsyncGenerator<Pumped<P, R>> {
  const waiting = plans[Symbol.iterator]()
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
      signal?.throwIfAborted()
      if (isLackOfMeans(pumped.error)) throw pumped.error
      yield { ...pumped, waitMs }
    }
  } finally {
    if (settles) await Promise.all(underWay)
  }
}

/** As `pump`, for replies that are of no use without each other: the first failure, in their order, is thrown. */
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

/** What is to be worked on, cut into plans of so many. */
export function* chunksOf<T>(items: readonly T[], count: number): Generator<readonly T[]> {
  for (let first = 0; first < items.length; first += count) yield items.slice(first, first + count)
}
