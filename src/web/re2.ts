/** The regex engine, in a browser: stands in the place of format/regex/re2. */

import type { RE2JS } from 're2js'
import { EngineError } from '../errors.js'

let loaded: typeof RE2JS | undefined

/** Loads the engine, a quarter of all code. Whoever compiles a pattern later can't wait for it. */
export async function prepareEngine(): Promise<void> {
  loaded ??= (await import('re2js')).RE2JS
}

export function loadEngine(): typeof RE2JS {
  if (loaded !== undefined) return loaded
  const message = 'expected a trial to be opened, which loads what patterns need, before the first pattern is compiled'
  throw new EngineError(message, {}, undefined, 'NoCore')
}
