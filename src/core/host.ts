/**
 * The core's host: its file, and address space. The only module of the engine that uses Node.js; in a browser src/web/host.ts replaces
 * it.
 */

import { EngineError } from '../base/errors.js'

/** A `WebAssembly.Module`. */
export type CompiledCore = object

/** The file system, loaded on its only use in a process with an engine. */
const fileSystem = (): typeof import('node:fs') => process.getBuiltinModule('fs')

const CORE_URL = new URL('../../build/release.wasm', import.meta.url)

/** Reads and compiles the core. @throws EngineError `NoCore` */
export function compileCore(): CompiledCore {
  try {
    return new WebAssembly.Module(fileSystem().readFileSync(CORE_URL))
  } catch (cause) {
    const what = cause instanceof WebAssembly.CompileError ? 'that file cannot run here' : 'it could not be read'
    const hint = 'a bundler leaves it behind (keep trialscan external); in a clone, `npm run build` makes it'
    const message = `expected the WebAssembly core at ${CORE_URL.href}, but ${what}: ${hint}`
    throw new EngineError(message, { url: CORE_URL.href }, cause, 'NoCore')
  }
}

/**
 * The address space that V8 reserves for an instance, in bytes: everything that a 32-bit address and a 32-bit offset can reach, with a
 * margin on both sides, so that no access needs a check. Only pages that are written to take memory.
 */
const RESERVED_BYTES = 10 * 2 ** 30
/** The address space of a thread in bytes: code and heaps. */
const THREAD_BYTES = 2 ** 30

let fitting: number | undefined

/**
 * The number of threads that fit into the address space, besides an instance of the calling thread: unlimited, unless `ulimit -v` is set.
 * V8 ends the process if there is no address space for a thread. The result is that of the first call, before there are threads.
 */
export function threadsThatFit(): number {
  fitting ??= countThatFit()
  return fitting
}

function countThatFit(): number {
  const limit = addressSpaceLimit()
  if (limit === null) return Number.POSITIVE_INFINITY
  const taken =
    Number(/VmSize:\s*(\d+) kB/.exec(fileSystem().readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0) * 1024
  return Math.max(0, Math.floor((limit - taken - RESERVED_BYTES) / (RESERVED_BYTES + THREAD_BYTES)))
}

/** The limit of `ulimit -v` in bytes; null if there is none, or it can't be determined. */
export function addressSpaceLimit(): number | null {
  try {
    const match = /^Max address space\s+(\d+)/m.exec(fileSystem().readFileSync('/proc/self/limits', 'latin1'))
    return match ? Number(match[1]) : null
  } catch {
    return null
  }
}
