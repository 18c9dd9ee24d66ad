/** A bar on standard error, where that is a terminal and the work is long. */

import type { SingleBar } from 'cli-progress'
import type { ScanProgress } from '../index.js'

const SHORT_MS = 500

export class Progress {
  readonly #startedAt = performance.now()
  /** off: no bar is wanted, now or any more. */
  #state: 'waiting' | 'loading' | 'shown' | 'off'
  #bar: SingleBar | undefined

  /** @param rowsOnTerminal rows are printed there: a bar among them would be in the way */
  constructor(rowsOnTerminal: boolean) {
    this.#state = rowsOnTerminal || process.stderr.isTTY !== true ? 'off' : 'waiting'
  }

  readonly update = ({ doneRows, totalRows }: ScanProgress): void => {
    if (this.#state === 'shown') this.#bar?.update(doneRows)
    else if (this.#state === 'waiting' && performance.now() - this.#startedAt > SHORT_MS) {
      this.#state = 'loading'
      void this.#show(totalRows, doneRows)
    }
  }

  stop(): void {
    this.#state = 'off'
    this.#bar?.stop()
    this.#bar = undefined
  }

  async #show(totalRows: number, doneRows: number): Promise<void> {
    const { default: progress } = await import('cli-progress')
    if (this.#state !== 'loading') return
    const format = '{bar} {percentage} %, {value} of {total} rows, {eta_formatted} to go'
    this.#bar = new progress.SingleBar(
      { format, stream: process.stderr, clearOnComplete: true, hideCursor: true },
      progress.Presets.shades_classic,
    )
    this.#bar.start(totalRows, doneRows)
    this.#state = 'shown'
  }
}
