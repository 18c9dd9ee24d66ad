/**
 * Files that stay open for a moment after what was asked for alone has been read: the next call is often about the same file. It is
 * looked at by name before it is read again, which takes half as long as opening it.
 */

/** What has files open between two jobs. */
interface Keeper {
  /** Closes them. */
  release(): void
}

/** Of how many trials a file stays open, at most. */
const MOST_KEEPERS = 8
const KEPT_MS = 1000

/** The one that kept a file last is last. */
const keepers = new Set<Keeper>()
let timer: NodeJS.Timeout | undefined

/** Has a keeper release its files in a moment, or when others keep theirs. */
export function keepOpen(keeper: Keeper): void {
  keepers.delete(keeper)
  keepers.add(keeper)
  if (keepers.size > MOST_KEEPERS) {
    const [eldest] = keepers
    keepers.delete(eldest!)
    eldest!.release()
  }
  timer ??= setTimeout(closeKept, KEPT_MS).unref()
}

/** @returns whether there were any */
export function closeKept(): boolean {
  clearTimeout(timer)
  timer = undefined
  const had = keepers.size > 0
  for (const keeper of keepers) keeper.release()
  keepers.clear()
  return had
}
