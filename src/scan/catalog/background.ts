/**
 * Follows a running trial in the background: at file events, and after a while in any case. Neither timers nor watchers
 * keep the process alive, and a trial that nothing refers to any more is let go.
 */

import { isRemote, type Store, type Watcher } from '../../storage/store.js'
import { pollMsOf, watchTrial } from './wait.js'

/** An object that is kept up to date. */
export interface KeptUp {
  /** Looks for what is new, and never fails. */
  keepUp(): Promise<void>
  /** When anyone's last look began, and when one last found something (`performance.now`). */
  readonly lookedAt: number
  readonly newsAt: number
  /** True if nothing more will come. */
  readonly hasEnded: boolean
}

/** A step is several files, so we look a little after a change. Someone who only opens a trial needs no watcher. */
const SETTLE_MS = 50
/** The share of the time that looking takes, at most and approximately. */
const SHARE_OF_TIME = 1 / 10
/** After a long silence, perhaps because the job crashed, new files are noticed later: by this share of the silence. */
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
    // In a browser a timer is a number, and keeps nothing alive.
    if (typeof this.#timer === 'object') this.#timer.unref()
  }

  #listen(watcher: Watcher): void {
    void watcher.changed().then(() => {
      if (!this.#isOn) return
      const trial = this.#trial.deref()
      // If something changed before that, a look is under way or will come soon.
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
      // There is no telling what came before the watcher was there.
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

  /** Milliseconds until the next look is due. Looks by others count, too. */
  #dueIn({ lookedAt, newsAt }: KeptUp): number {
    if (this.#changedAt > lookedAt) return 0
    const now = performance.now()
    return lookedAt + Math.max(this.#pollMs, (now - newsAt) * SHARE_OF_QUIET) - now
  }
}
