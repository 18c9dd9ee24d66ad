/** Formats problems, one line per file: a truncated file has an error for each of its records. */

import { expectArgument } from './arguments.js'
import { TrialscanError } from './errors.js'

interface FileProblems {
  first: Error
  /** The messages without a file. */
  readonly others: Set<string>
}

/** Collects errors, and formats them. */
export class ProblemLines {
  readonly #files = new Map<string, FileProblems>()

  add(error: Error): void {
    const key = fileOf(error) ?? error.message
    const known = this.#files.get(key)
    if (known === undefined) {
      this.#files.set(key, { first: error, others: new Set() })
      return
    }
    if (error.message === known.first.message) return
    known.others.delete(error.message)
    if (offsetOf(error) < offsetOf(known.first)) {
      known.others.add(known.first.message)
      known.first = error
    } else known.others.add(error.message)
  }

  get isEmpty(): boolean {
    return this.#files.size === 0
  }

  /** The first problem in each file, and the number of its others. */
  get lines(): string[] {
    return [...this.#files.values()].map(({ first: { message }, others: { size } }) =>
      size === 0 ? message : `${message} (and ${size} more ${size === 1 ? 'problem' : 'problems'} in this file)`,
    )
  }
}

/** The lines for errors: one per file, and one for each error without a file. */
export function problemLines(errors: Iterable<Error>): string[] {
  const all = typeof errors === 'object' && errors !== null && Symbol.iterator in errors ? [...errors] : null
  const isAll = all?.every(error => error instanceof Error) === true
  expectArgument('problemLines', 'errors', 'errors in an array', errors, isAll)
  const problems = new ProblemLines()
  for (const error of errors) problems.add(error)
  return problems.lines
}

function fileOf(error: Error): string | undefined {
  const url = error instanceof TrialscanError ? error.fields.url : undefined
  return typeof url === 'string' ? url : undefined
}

function offsetOf(error: Error): number {
  const offset = error instanceof TrialscanError ? error.fields.offset : undefined
  return typeof offset === 'number' ? offset : Number.POSITIVE_INFINITY
}
