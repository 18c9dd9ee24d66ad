/** Checks of arguments that are no options: plain JavaScript may pass anything. */

import { quote, UsageError } from './errors.js'

/** @throws UsageError that names the call, the argument, what was expected and what was given */
export function expectArgument(call: string, argument: string, expects: string, given: unknown, fits: boolean): void {
  if (fits) return
  const got = given === undefined ? 'none' : shown(given)
  throw new UsageError(`${call}: expected ${argument} to be ${expects}, got ${got}`, { call, argument })
}

export function expectText(call: string, argument: string, given: unknown, expects = 'a text'): void {
  expectArgument(call, argument, expects, given, typeof given === 'string')
}

/** Steps of TensorBoard's files may lie below 0. @throws UsageError */
export function expectStep(given: unknown): void {
  if (Number.isSafeInteger(given)) return
  const got = given === undefined ? 'none' : shown(given)
  throw new UsageError(`expected step to be a whole number, got ${got}`, { argument: 'step' })
}

export function expectWork(call: string, given: unknown): void {
  expectArgument(call, 'work', 'a function', given, typeof given === 'function')
}

export function expectArray(call: string, argument: string, expects: string, given: unknown): void {
  expectArgument(call, argument, expects, given, Array.isArray(given))
}

/** A value in the form that messages use, truncated if it is long. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  const name = value.constructor?.name ?? 'Object'
  if (!Array.isArray(value) && name !== 'Object') return `a ${name}`
  const text = jsonText(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function jsonText(value: object): string {
  try {
    return JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? 'an object'
  } catch {
    return 'an object that holds itself'
  }
}
