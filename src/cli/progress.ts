/** A progress bar on standard error, if that is a terminal and the work is long. */

import type { SingleBar } from 'cli-progress'
import type { ScanProgress } from '../scan/rows/scan.js'

/** The duration of work from which a bar is shown. */
const SHORT_MS = 500

export class Progress {
  static readonly #running = new Set<Progress>()

  readonly #startedAt = performance.now()
  readonly #noun: string
  readonly #isFollowing: boolean
  /** The state of the bar; `off`: it is not wanted, or no longer. */
  #state: 'waiting' | 'loading' | 'shown' | 'off'
  #bar: SingleBar | undefined

  /**
   * @param rowsOnTerminal rows are printed on the terminal, where a bar would be in the way
   * @param noun what is counted
   * @param isFollowing more may come of what is counted
   */
  constructor(rowsOnTerminal: boolean, noun = 'rows', isFollowing = false) {
    this.#noun = noun
    this.#isFollowing = isFollowing
    this.#state = rowsOnTerminal ? 'off' : 'waiting'
    Progress.#running.add(this)
  }

  /** Stops all that a failed command has left. */
  static stopAll(): void {
    for (const progress of Progress.#running) progress.stop()
  }

  readonly update = ({ doneRows, totalRows }: Pick<ScanProgress, 'doneRows' | 'totalRows'>): void => {
    if (this.#state === 'shown') {
      this.#bar?.setTotal(totalRows)
      this.#bar?.update(doneRows, { rest: restText(doneRows, totalRows) })
    } else if (this.#state === 'waiting' && performance.now() - this.#startedAt > SHORT_MS) {
      this.#state = process.stderr.isTTY ? 'loading' : 'off'
      if (this.#state === 'loading') void this.#show(totalRows, doneRows)
    }
  }

  /** Clears the bar's line for other text. The bar is drawn again below it. */
  makeWay(): void {
    if (this.#state === 'shown') process.stderr.write('\r\x1b[K')
  }

  stop(): void {
    this.#state = 'off'
    Progress.#running.delete(this)
    this.#bar?.stop()
    this.#bar = undefined
  }

  async #show(totalRows: number, doneRows: number): Promise<void> {
    const { default: progress } = await import('cli-progress')
    if (this.#state !== 'loading') return
    const format = this.#isFollowing
      ? `{value} ${this.#noun}, {rest}`
      : `{bar} {percentage} %, {value} of {total} ${this.#noun}, {eta_formatted} to go`
    this.#bar = new progress.SingleBar(
      { format, stream: process.stderr, clearOnComplete: true, hideCursor: true, forceRedraw: true },
      progress.Presets.shades_classic,
    )
    this.#bar.start(totalRows, doneRows, { rest: restText(doneRows, totalRows) })
    this.#state = 'shown'
  }
}

/** The rest of the work in words; no time, since nobody knows when the next item comes. */
export function restText(done: number, total: number): string {
  return done < total ? `${total - done} to go` : 'waiting for the next'
}
