/** The map from tensors of one trial to those of another with other names. */

import { quote, UsageError } from '../base/errors.js'

/**
 * Names of the first trial, or patterns that match whole names, each with the name in the second, in which `$1` is the first group:
 * `{ "module\\.(.*)": "$1" }`.
 */
export type TensorMap = Readonly<Record<string, string>>

/** A name, or a pattern of whole names, and what it stands for. */
export interface NamePattern<T> {
  readonly pattern: string
  readonly regex: RegExp
  readonly value: T
}

/** @throws UsageError for a pattern that is none */
export function namePatterns<T>(map: Readonly<Record<string, T>>): readonly NamePattern<T>[] {
  return Object.entries(map).map(([pattern, value]) => {
    try {
      return { pattern, value, regex: new RegExp(`^(?:${pattern})$`, 'u') }
    } catch (error) {
      throw new UsageError(
        `expected a name or a pattern in the map, got ${quote(pattern)}: ${(error as Error).message}`,
        { pattern },
      )
    }
  })
}

/** @throws UsageError for a pattern that is none */
export function namesInFirst(map: TensorMap, first: readonly string[]): ReadonlyMap<string, string> {
  const patterns = namePatterns(map)
  const found = new Map<string, string>()
  for (const own of first) {
    const match = patterns.find(({ pattern, regex }) => pattern === own || regex.test(own))
    if (match === undefined) continue
    found.set(match.pattern === own ? match.value : own.replace(match.regex, match.value), own)
  }
  return found
}

export function isTensorMap(given: unknown): given is TensorMap {
  if (typeof given !== 'object' || given === null || Object.getPrototypeOf(given) !== Object.prototype) return false
  return Object.values(given).every(name => typeof name === 'string')
}
