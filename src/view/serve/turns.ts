/** The limit of concurrent work. */

/** The largest number of waiting requests; further ones are told to come again. */
const MAX_WAITING = 64

export class Busy extends Error {}

export class Turns {
  readonly #most: number
  #busy = 0
  readonly #waiting: (() => void)[] = []

  readonly #mostWaiting: number

  /** Limits concurrent work. @param most pieces of work at once @param mostWaiting requests that wait */
  constructor(most: number, mostWaiting = MAX_WAITING) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  /** The number of pieces of work in progress. */
  get busy(): number {
    return this.#busy
  }

  /** The number of waiting requests. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Waits for a turn. @returns a function that ends it @throws Busy if too many wait already; the signal's reason */
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

/** The turns of background work: the trials of a list are opened, read and judged a few at a time, so that requests come between. */
export const BACKGROUND = new Turns(2, Number.POSITIVE_INFINITY)
