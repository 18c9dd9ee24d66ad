/** The core's host in a browser: stands in the place of core/host. */

import { EngineError } from '../base/errors.js'

/** A `WebAssembly.Module`. */
export type CompiledCore = object

/** A page can't wait for a file: `loadCore` must have ended before. @throws EngineError `NoCore` */
export function compileCore(): CompiledCore {
  const message = 'expected the WebAssembly core to be loaded: await createTrial, or loadCore, before the first call'
  throw new EngineError(message, {}, undefined, 'NoCore')
}

/** Browsers tell no limit of address space. */
export function addressSpaceLimit(): number | null {
  return null
}

/** The number of threads that fit: as many as are asked for. */
export function threadsThatFit(): number {
  return Number.POSITIVE_INFINITY
}
