/** Long work on the main thread in pieces, so that nothing else on the thread is kept waiting for long. */

import { setImmediate as turnOfLoop } from 'node:timers/promises'

/** Items to work on at a time, for some milliseconds. */
const AT_ONCE = 4096

/** Calls `work` for each item, in order, with a turn of the event loop now and then if there are many. */
export async function inTurns<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  await countInTurns(items.length, i => work(items[i]!))
}

/** Runs `work` for the numbers from 0 up to `count`, in turns as `inTurns`. */
export async function countInTurns(count: number, work: (i: number) => void): Promise<void> {
  for (let i = 0; i < count; i++) {
    if (i > 0 && i % AT_ONCE === 0) await turnOfLoop()
    work(i)
  }
  if (count > AT_ONCE) await turnOfLoop()
}

/** The time, in milliseconds, after which pieces of unequal length yield. */
const PIECE_MS = 10

/** Yields in loops of unequal pieces: await the result after each piece. @returns a turn of the event loop when one is due */
export function turnsWhenDue(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < PIECE_MS) return undefined
    return turnOfLoop().then(() => {
      since = performance.now()
    })
  }
}
