/** scijs' ndarray. In a browser src/web/packages.ts stands in the place of this file. */

import { createRequire } from 'node:module'
import type ndarray from 'ndarray'

export type { NdArray } from 'ndarray'

let loaded: typeof ndarray | undefined

/** Loading it takes 3 ms. Most who read values never need it, and a synchronous caller can't wait for an import. */
export function loadNdarray(): typeof ndarray {
  loaded ??= createRequire(import.meta.url)('ndarray') as typeof ndarray
  return loaded
}
