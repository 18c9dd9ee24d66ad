/** Whose turn it is: what has the same rule judge does so one after the other. */

import { currentHold } from '../catalog/hold.js'
import { UsageError } from '../errors.js'

/** A rule, which holds in itself what it knows of the step in hand. */
interface Judge {
  readonly name: string
}

class Turns {
  /** For each rule, what settles when the last who asked for it is done with it. */
  readonly #last = new WeakMap<Judge, Promise<void>>()

  /**
   * Runs `work` when all who asked for any of the rules before are done with them.
   * @throws the signal's reason while it waits; UsageError for work that would wait for itself
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
    // All are asked for at once, so that no two wait for each other.
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

/** Over all steps that are asked for: a rule may keep what it likes from one to the next. */
export const runs = new Turns()

/** Over a step, or as many as are read at once. */
export const judgements = new Turns()

/** Waits, at the most until the signal. */
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
