/** A trial that the reader has opened, as the page sees it. */

import { SERVED_STATISTICS, type ServedStatistic } from '../../view/data.js'
import type { LoadedTrial } from '../../view/page/live.js'
import { elementStepsOf, upTo } from '../../view/page/trials.js'
import type { Change, PARTS, Part } from '../../view/serve/served-trial.js'
import type { Calls, FromReader, Picked, Refusal, ToReader } from './messages.js'

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

export class Opened {
  readonly #worker = new Worker(new URL('./reader.js', import.meta.url), { type: 'module', name: 'trialscan-reader' })
  readonly #waiting = new Map<number, Waiting>()
  #count = 0
  #latest: Change | undefined
  #onChange: (change: Change) => void = () => {}

  private constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<FromReader>) => {
      if ('change' in data) {
        this.#latest = data.change
        return this.#onChange(data.change)
      }
      const waiting = this.#waiting.get(data.id)
      this.#waiting.delete(data.id)
      if ('error' in data) waiting?.reject(new Error(data.error))
      else waiting?.resolve(data.value)
    }
    this.#worker.onerror = event => {
      event.preventDefault()
      const error = new Error(`the reader has failed: ${event.message || 'it could not be loaded; reload the page'}`)
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    }
  }

  /** Opens a place. @returns a refusal if it can't be opened */
  static async open(picked: Picked): Promise<Opened | Refusal> {
    const opened = new Opened()
    try {
      const refusal = await opened.#call('open', picked)
      if (refusal === null) return opened
      opened.close()
      return refusal
    } catch (error) {
      opened.close()
      throw error
    }
  }

  /** Reads no more of the trial. */
  close(): void {
    this.#worker.terminate()
  }

  /** Adds a listener to changes, which gets the last change at once. */
  listen(onChange: (change: Change) => void): void {
    this.#onChange = onChange
    if (this.#latest !== undefined) onChange(this.#latest)
  }

  async load(): Promise<LoadedTrial> {
    const view = await this.#call('view')
    return {
      view,
      source: upTo(view, {
        statistics: SERVED_STATISTICS,
        column: (name, scope) => this.#call('column', name as ServedStatistic, scope),
        ridges: tensor => this.#call('ridges', tensor),
        classes: () => this.#part('classes'),
        units: () => this.#part('units'),
        trees: () => this.#part('trees'),
        embedsAny: true,
        embedding: tensor => this.#call('embedding', tensor),
        elementSteps: elementStepsOf(view),
        elements: (series, step) => {
          const { tensor, worker } = view.series[series]!
          return this.#call('elements', view.tensors[tensor]!.name, view.steps[step]!, view.workers[worker]!)
        },
      }),
    }
  }

  #part<K extends keyof typeof PARTS>(name: K): Promise<Part<K>> {
    return this.#call('part', name) as Promise<Part<K>>
  }

  #call<K extends keyof Calls>(name: K, ...args: Parameters<Calls[K]>): ReturnType<Calls[K]> {
    const id = this.#count++
    this.#worker.postMessage({ id, name, args } satisfies ToReader)
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
    }) as ReturnType<Calls[K]>
  }
}
