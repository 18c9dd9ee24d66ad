/** Queues for rules: callers that share an instance of a rule use it one after another. */

import { UsageError } from '../base/errors.js'
import { currentHold } from '../scan/catalog/hold.js'

/** A rule. Its instance holds the state of the step that it judges, so it serves one caller at a time. */
interface Judge {
  readonly name: string
}

class Turns {
  /** A promise for each rule that settles when the last caller in its queue is done. */
  readonly #last = new WeakMap<Judge, Promise<void>>()

  /**
   * Runs `work` once all earlier callers are done with the rules.
   * @throws the signal's reason, while waiting; UsageError for work that would wait for itself
   */
  async take<T>(rules: readonly Judge[], signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    for (const rule of rules) {
      if (currentHold()?.isOf(rule)) {
        throw new UsageError(`expected another instance of rule ${rule.name}: this one is in the middle of judging`)
      }
    }
    let end = (): void => {}
    const done = new Promise<void>(resolve => {
      end = resolve
    })
    // Joins all queues at once, so that two callers can't wait for each other.
    const free = Promise.all(rules.map(rule => this.#last.get(rule))).then(() => {})
    const turn = free.then(() => done)
    for (const rule of rules) this.#last.set(rule, turn)
    try {
      await orAborted(free, signal)
      return await work()
    } finally {
      end()
    }
  }
}

/** Queues for whole runs over steps: a rule may keep state from step to step. */
export const runs = new Turns()

/** Queues for a single step, or for steps that are read together. */
export const judgements = new Turns()

/** Waits for a turn, or until the signal. */
async function orAborted(free: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return free
  signal.throwIfAborted()
  let stop = (): void => {}
  const aborted = new Promise<void>(resolve => {
    stop = resolve
  })
  signal.addEventListener('abort', stop, { once: true })
  await Promise.race([free, aborted])
  signal.removeEventListener('abort', stop)
  signal.throwIfAborted()
}
