/** Loads scijs' ndarray. In a browser src/web/packages.ts replaces this module. */

import { createRequire } from 'node:module'
import type ndarray from 'ndarray'

export type { NdArray } from 'ndarray'

let loaded: typeof ndarray | undefined

/** Loaded on demand, since that takes 3 ms and few callers need it. They are synchronous, so `import` can't be used. */
export function loadNdarray(): typeof ndarray {
  loaded ??= createRequire(import.meta.url)('ndarray') as typeof ndarray
  return loaded
}
