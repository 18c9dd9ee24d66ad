/** The core's host in a browser. It replaces core/host. */

import { EngineError } from '../base/errors.js'

/** A `WebAssembly.Module`. */
export type CompiledCore = object

/**
 * Fails, since a page can't wait for a file: `loadCore` must have ended before.
 * @throws EngineError `NoCore`
 */
export function compileCore(): CompiledCore {
  const message = 'expected the WebAssembly core to be loaded: await createTrial, or loadCore, before the first call'
  throw new EngineError(message, {}, undefined, 'NoCore')
}

/** Returns null, since browsers report no limit of address space. */
export function addressSpaceLimit(): number | null {
  return null
}

/** Returns Infinity, since browsers report no limit of threads. */
export function threadsThatFit(): number {
  return Number.POSITIVE_INFINITY
}
