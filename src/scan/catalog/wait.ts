/** Waits for a running job, always with a limit and a description of what is missing. */

import { setTimeout as sleep } from 'node:timers/promises'
import { WaitTimeout } from '../../base/errors.js'
import { type Kinds, kinds } from '../../base/options.js'
import { COLLECTIONS_DIRECTORY, INDEX_DIRECTORY } from '../../format/paths.js'
import { isRemote, type Store, type Watcher } from '../../storage/store.js'

export interface WaitOptions {
  /** The time before a WaitTimeout is thrown, in milliseconds. Default: ten minutes. */
  readonly timeoutMs?: number | undefined
  /**
   * The interval between two looks if the platform does not report changes, and the longest interval in any case, in milliseconds.
   * Default: 2,000; on S3, where a look takes two listing requests, 5,000, and at least 250.
   */
  readonly pollMs?: number | undefined
  /** Aborts the waiting, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Called after every look that found nothing, but the last, with what is missing. */
  readonly onWait?: ((waiting: Waiting) => void) | undefined
}

export const WAIT_OPTIONS: Kinds<WaitOptions> = {
  timeoutMs: kinds.milliseconds,
  pollMs: kinds.milliseconds,
  signal: kinds.signal,
  onWait: kinds.callback(),
}

/** The waiting options among others. */
export function waitingOf({ timeoutMs, pollMs, signal, onWait }: WaitOptions): WaitOptions {
  return { timeoutMs, pollMs, signal, onWait }
}

/** A wait, and its duration so far. */
export interface Waiting {
  readonly missing: string
  readonly present: string
  readonly elapsedMs: number
}

const DEFAULT_TIMEOUT_MS = 600_000
const DEFAULT_POLL_MS = 2000
const REMOTE_POLL_MS = 5000
const MIN_REMOTE_POLL_MS = 250
/** The longest timer of Node.js; beyond it, it doesn't wait at all. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The default interval between two looks, in milliseconds. */
export function pollMsOf(store: Store): number {
  return isRemote(store) ? REMOTE_POLL_MS : DEFAULT_POLL_MS
}

/** Reports when a trial may have something new; never for a store without events, where callers look again after a while. */
export function watchTrial(store: Store): Watcher {
  const unwatched: Watcher = { changed: () => new Promise(() => {}), close() {} }
  return store.watch?.([INDEX_DIRECTORY, COLLECTIONS_DIRECTORY, '']) ?? unwatched
}

/** Looks repeatedly until there is an answer. @param look returns the answer, or what is missing and what exists */
export async function waitFor<T>(
  store: Store,
  look: () => Promise<{ readonly answer: T } | { readonly missing: string; readonly present: string }>,
  options: WaitOptions,
): Promise<T> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, signal, onWait } = options
  const pollMs = options.pollMs ?? pollMsOf(store)
  signal?.throwIfAborted()
  const pauseMs = isRemote(store) ? Math.max(pollMs, MIN_REMOTE_POLL_MS) : pollMs
  const startedAt = performance.now()
  const watcher = watchTrial(store)
  try {
    for (;;) {
      const seen = await look()
      if ('answer' in seen) return seen.answer
      const elapsedMs = performance.now() - startedAt
      if (elapsedMs >= timeoutMs) throw new WaitTimeout(timeoutMs, seen.missing, seen.present)
      onWait?.({ ...seen, elapsedMs })
      await changeOrTime(watcher.changed(), Math.min(pauseMs, timeoutMs - elapsedMs, LONGEST_TIMER_MS), signal)
    }
  } finally {
    watcher.close()
  }
}

async function changeOrTime(change: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const timer = new AbortController()
  const ends = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal
  try {
    await Promise.race([change, sleep(ms, undefined, { signal: ends })])
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    timer.abort()
  }
}
