/** Read and write errors of an export or import: all are counted, and the first hundred kept. */

import { StoreError, type TrialscanError } from '../../base/errors.js'

const MAX_PROBLEMS = 100

type StoreFields = ConstructorParameters<typeof StoreError>

export class Problems {
  readonly #kept: TrialscanError[] = []
  /** The number of failed reads by message: all tensors of a file fail alike. */
  readonly #ofFiles = new Map<string, number>()
  #count = 0

  add(error: TrialscanError): void {
    this.#count++
    if (error instanceof StoreError) {
      const before = this.#ofFiles.get(error.message) ?? 0
      this.#ofFiles.set(error.message, before + 1)
      if (before > 0) return
    }
    if (this.#kept.length < MAX_PROBLEMS) this.#kept.push(error)
  }

  /** The distinct problems; that of a file says how many tensors it affects. */
  get report(): { readonly problems: readonly TrialscanError[]; readonly problemCount: number } {
    const problems = this.#kept.map(error => {
      const times = this.#ofFiles.get(error.message) ?? 1
      if (!(error instanceof StoreError) || times === 1) return error
      const [code, fields] = [error.code as StoreFields[0], error.fields as StoreFields[2]]
      return new StoreError(code, `${error.message} (needed for ${times} tensors)`, fields, error)
    })
    const again = [...this.#ofFiles.values()].reduce((sum, times) => sum + times - 1, 0)
    return { problems, problemCount: this.#count - again }
  }
}
