/** Long work on the main thread in pieces, so that whoever shares it is not kept waiting. */

import { setImmediate as turnOfLoop } from 'node:timers/promises'

/** Items that are done at once: some milliseconds. */
const AT_ONCE = 4096

/** Does something with each of some items, in order; of many, with a turn of the event loop now and then. */
export async function inTurns<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % AT_ONCE === 0) await turnOfLoop()
    work(item)
  }
  if (items.length > AT_ONCE) await turnOfLoop()
}

/** How long pieces of unequal length may keep the thread together. */
const PIECE_MS = 10

/** For loops of unequal pieces: to be awaited after each of them. @returns a turn of the event loop where it is due */
export function turnsWhenDue(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < PIECE_MS) return undefined
    return turnOfLoop().then(() => {
      since = performance.now()
    })
  }
}
