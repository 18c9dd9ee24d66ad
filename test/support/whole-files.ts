/** Which whole files of trials on the local disk are read. */

import { vi } from 'vitest'
import { LocalStore } from '#dist/storage/local/local-store.js'

/** Watches, until it is told to stop. */
export class WholeFiles {
  readonly #read = vi.spyOn(LocalStore.prototype, 'read')
  readonly #small = vi.spyOn(LocalStore.prototype, 'readSmall')

  /** Those that were read, each as often as it was. */
  get paths(): string[] {
    const small = this.#small.mock.calls.filter((_, i) => (this.#small.mock.results[i]!.value as number) >= 0)
    return [...small, ...this.#read.mock.calls].map(([path]) => path)
  }

  stop(): void {
    this.#read.mockRestore()
    this.#small.mockRestore()
  }
}
