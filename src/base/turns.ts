/** Runs long work on the main thread in pieces, so that nothing else on it waits for long. */

import { setImmediate as turnOfLoop } from 'node:timers/promises'

/** The number of items per piece, which take some milliseconds. */
const AT_ONCE = 4096

/** Calls `work` for each item, in order, with turns of the event loop if there are many. */
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

/** The number of items that are sorted in one piece, which takes some milliseconds. */
const SORTED_AT_ONCE = 1 << 15

/** Sorts items, stably, like `sort`. */
export async function sortedInTurns<T>(items: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  const due = turnsWhenDue()
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += SORTED_AT_ONCE) {
    runs.push(items.slice(at, at + SORTED_AT_ONCE).sort(compare))
    await due()
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let i = 0; i < runs.length; i += 2) {
      merged.push(runs[i + 1] === undefined ? runs[i]! : await mergedInTurns(runs[i]!, runs[i + 1]!, compare, due))
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function mergedInTurns<T>(
  first: readonly T[],
  other: readonly T[],
  compare: (a: T, b: T) => number,
  due: () => Promise<void> | undefined,
): Promise<T[]> {
  // Most lists are already sorted.
  if (compare(first.at(-1)!, other[0]!) <= 0) return first.concat(other)
  const merged: T[] = []
  for (let i = 0, j = 0; i < first.length || j < other.length; ) {
    const isOther = i === first.length || (j < other.length && compare(first[i]!, other[j]!) > 0)
    merged.push(isOther ? other[j++]! : first[i++]!)
    if (merged.length % AT_ONCE === 0) await due()
  }
  return merged
}
