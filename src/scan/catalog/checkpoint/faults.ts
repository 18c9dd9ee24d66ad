/** The faults of a checkpoint. */

import { FormatError, quote, type TrialscanError } from '../../../base/errors.js'

/** The number of faults of a kind that are listed. */
export const MAX_FAULTS = 100

/** The faults so far, with a limit for each kind. */
export class Faults {
  readonly #faults: TrialscanError[] = []
  /** The number of faults by code. */
  readonly #counts = new Map<string, number>()

  add(error: TrialscanError): void {
    const count = (this.#counts.get(error.code) ?? 0) + 1
    this.#counts.set(error.code, count)
    if (count <= MAX_FAULTS) this.#faults.push(error)
  }

  index(url: string, expected: string, got: string): void {
    this.add(new FormatError('IndexMismatch', `${url}: expected ${expected}, got ${got}`, { url, expected, got }))
  }

  duplicate(url: string, name: string, other: string): void {
    const [expected, got] = ['each tensor once', `${quote(name)} again, beside that in ${other}, which counts`]
    this.add(new FormatError('DuplicateTensor', `${url}: expected ${expected}, got ${got}`, { url, expected, got }))
  }

  all(): TrialscanError[] {
    const rest = [...this.#counts].flatMap(([code, count]) => {
      if (count <= MAX_FAULTS) return []
      const { url } = (this.#faults.find(error => error.code === code) as FormatError).fields as {
        readonly url: string
      }
      return new FormatError(code, `${url}: and ${count - MAX_FAULTS} faults more of this kind (${code})`, { url })
    })
    return [...this.#faults, ...rest]
  }
}
