import { readFileSync } from 'node:fs'

/** The core's functions and constants by their names in assembly/index.ts. */
// biome-ignore lint/suspicious/noExplicitAny: each test knows the signatures of what it calls
export type CoreExports = Record<string, any>

export interface Core {
  exports: CoreExports
  memory: WebAssembly.Memory
}

/** A fresh instance of build/release.wasm, or of the module that the environment variable TRIALSCAN_CORE names. */
export function loadCore(): Core {
  const path = process.env.TRIALSCAN_CORE ?? new URL('../../build/release.wasm', import.meta.url)
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), {})
  return { exports, memory: exports.memory as WebAssembly.Memory }
}
