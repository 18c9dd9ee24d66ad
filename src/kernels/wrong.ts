/** Errors for wrong arguments. */

import { nearestNames, quote, UsageError } from '../base/errors.js'

export function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** A short description of an argument, for messages. */
export function described(given: unknown): string {
  if (Array.isArray(given)) return list(given)
  if (isObject(given)) return given.constructor?.name ?? 'an object'
  return typeof given === 'string' ? quote(given) : String(given)
}

export function list(numbers: readonly unknown[]): string {
  return `[${numbers.slice(0, 8).join(', ')}${numbers.length > 8 ? ', …' : ''}]`
}

export function wrong(call: string, expected: string, got: string): UsageError {
  return new UsageError(`${call}: expected ${expected}, got ${got}`, { call })
}

/** Rejects unknown options. The kernels have few options; the general check takes 5 ms to load. */
export function expectOptions(call: string, given: unknown, known: readonly string[]): void {
  if (Object.prototype.toString.call(given) !== '[object Object]')
    throw wrong(call, `options { ${known.join(', ')} }`, described(given))
  const stray = Object.keys(given as object).find(name => !known.includes(name))
  if (stray === undefined) return
  const [nearest] = nearestNames(stray, known)
  const hint = nearest === undefined ? '' : `; did you mean ${quote(nearest)}?`
  throw new UsageError(`${call}: expected options { ${known.join(', ')} }, got ${quote(stray)}${hint}`, { call })
}
