/** The compiled core: read and compiled once per process, and passed to threads. */

import { instantiateSync } from '@assemblyscript/loader'
import type { instantiate } from '../../../build/release.js'
import { EngineError } from '../../base/errors.js'
import { addressSpaceLimit, type CompiledCore, compileCore } from '../host.js'

// No types of WebAssembly here: declarations are published, and a user's compiler knows them only with the DOM library.

type Exports = Awaited<ReturnType<typeof instantiate>>
/** The core has numbers alone: what the compiler's own wrappers would make of 0 and 1 is left to the callers. */
type Numbers<A> = { [I in keyof A]: A[I] extends boolean ? number : A[I] }

/** The exports of assembly/index.ts, as its compiler describes them. Addresses are unsigned 32-bit numbers, taken as `>>> 0`. */
export type Core = {
  readonly [K in keyof Exports]: Exports[K] extends (...args: infer A extends unknown[]) => infer R
    ? (...args: Numbers<A>) => R extends boolean ? number : R
    : Exports[K]
}

let compiled: CompiledCore | undefined

/** The compiled core. Compiles it on the first call. */
export function coreModule(): CompiledCore {
  compiled ??= compileCore()
  return compiled
}

/** Uses a module that another thread has compiled. */
export function adoptModule(module: CompiledCore): void {
  compiled = module
}

/** A fresh instance. */
export function instantiateCore(): Core {
  return instance().exports as unknown as Core
}

function instance() {
  const module = coreModule() as WebAssembly.Module
  try {
    return instantiateSync(module, {}).instance
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const needed = 'expected 10 GiB of address space (not memory) for each thread, up to 20 for the calling one'
    const limit = addressSpaceLimit()
    const got = limit === null ? 'no more' : `a limit of ${(limit / 2 ** 30).toFixed(1)} GiB (ulimit -v)`
    const hint =
      'raise the limit (ulimit -v unlimited), use no threads (`threads: 0`, --threads 0), or have Node.js reserve none ' +
      '(slower: NODE_OPTIONS=--disable-wasm-trap-handler)'
    throw new EngineError(`${needed}, got ${got}: ${hint}`, { limit }, cause, 'NoAddressSpace')
  }
}
