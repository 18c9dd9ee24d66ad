/**
 * Follows a running trial in the background, at file events and at intervals. Timers and watchers don't keep the process alive, and a
 * trial without references is released.
 */

import { isRemote, type Store, type Watcher } from '../../storage/store.js'
import { pollMsOf, watchTrial } from './wait.js'

/** An object that is kept up to date. */
export interface KeptUp {
  /** Looks for news; never fails. */
  keepUp(): Promise<void>
  /** The times of the last look, by anyone, and of the last look that found something (`performance.now`). */
  readonly lookedAt: number
  readonly newsAt: number
  /** True if nothing more will come. */
  readonly hasEnded: boolean
}

/** The delay after a file event: a step is several files, and whoever just opens a trial needs no watcher. */
const SETTLE_MS = 50
/** The approximate share of time that looking may take. */
const SHARE_OF_TIME = 1 / 10
/** The polling interval as a share of the silence so far: after a long one (perhaps a crash), news are noticed later. */
const SHARE_OF_QUIET = 1 / 100

export class BackgroundRefresh {
  readonly #trial: WeakRef<KeptUp>
  readonly #store: Store
  readonly #pollMs: number
  #watcher: Watcher | undefined
  #timer: NodeJS.Timeout | undefined
  #isOn = true
  #isLooking = false
  #changedAt = Number.NEGATIVE_INFINITY
  #restMs = 0

  constructor(trial: KeptUp, store: Store) {
    this.#trial = new WeakRef(trial)
    this.#store = store
    this.#pollMs = pollMsOf(store)
    this.#lookIn(isRemote(store) ? this.#pollMs : SETTLE_MS)
  }

  /** True while it is looking for news. */
  get isOn(): boolean {
    return this.#isOn
  }

  close(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
    this.#watcher?.close()
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), ms)
    // In a browser a timer is a number and keeps nothing alive.
    if (typeof this.#timer === 'object') this.#timer.unref()
  }

  #listen(watcher: Watcher): void {
    void watcher.changed().then(() => {
      if (!this.#isOn) return
      const trial = this.#trial.deref()
      // If something had changed before, a look is in progress or will come soon.
      const isFirst = trial !== undefined && this.#changedAt <= trial.lookedAt
      this.#changedAt = performance.now()
      if (isFirst && !this.#isLooking) this.#lookIn(Math.max(SETTLE_MS, this.#restMs))
      this.#listen(watcher)
    })
  }

  async #look(): Promise<void> {
    const trial = this.#trial.deref()
    if (trial === undefined || trial.hasEnded) return this.close()
    if (this.#watcher === undefined) {
      this.#watcher = watchTrial(this.#store)
      this.#listen(this.#watcher)
      // Changes before the watcher started are unknown.
      this.#changedAt = performance.now()
    }
    if (this.#dueIn(trial) <= 0) {
      this.#isLooking = true
      const startedAt = performance.now()
      await trial.keepUp()
      this.#isLooking = false
      this.#restMs = (performance.now() - startedAt) / SHARE_OF_TIME
      if (!this.#isOn) return
      if (trial.hasEnded) return this.close()
    }
    this.#lookIn(Math.max(SETTLE_MS, this.#restMs, this.#dueIn(trial)))
  }

  /** The time until the next look is due, in milliseconds. Looks by others count, too. */
  #dueIn({ lookedAt, newsAt }: KeptUp): number {
    if (this.#changedAt > lookedAt) return 0
    const now = performance.now()
    return lookedAt + Math.max(this.#pollMs, (now - newsAt) * SHARE_OF_QUIET) - now
  }
}
