/** The limit of concurrent work: a server that begins everything it is asked for finishes nothing. */

/** Requests that wait, at most: what is more is told to come again. */
const MAX_WAITING = 64

export class Busy extends Error {}

export class Turns {
  readonly #most: number
  #busy = 0
  readonly #waiting: (() => void)[] = []

  readonly #mostWaiting: number

  /** @param most pieces of work at once @param mostWaiting requests that wait */
  constructor(most: number, mostWaiting = MAX_WAITING) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  /** Pieces of work that have a turn. */
  get busy(): number {
    return this.#busy
  }

  /** Requests that wait for one. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Waits for a turn. @returns how to end it. @throws Busy if too many wait already; the signal's reason */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#busy >= this.#most) {
      if (this.#waiting.length >= this.#mostWaiting)
        throw new Busy(`expected at most ${this.#mostWaiting} requests to wait`)
      await new Promise<void>((resolve, reject) => {
        const begin = () => {
          signal.removeEventListener('abort', leave)
          resolve()
        }
        const leave = () => {
          this.#waiting.splice(this.#waiting.indexOf(begin), 1)
          reject(signal.reason)
        }
        this.#waiting.push(begin)
        signal.addEventListener('abort', leave, { once: true })
      })
    } else this.#busy++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const next = this.#waiting.shift()
      if (next) next()
      else this.#busy--
    }
  }
}

/** Turns of work that nobody waits for: trials of a list are opened, read and judged a few at a time, so that requests come between. */
export const BACKGROUND = new Turns(2, Number.POSITIVE_INFINITY)
