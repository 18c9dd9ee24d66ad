/** The regex engine that runs in linear time. In a browser src/web/packages.ts stands in the place of this file. */

import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

let loaded: typeof RE2JS | undefined

/** Loading re2js takes 15 ms. Most commands never need it, and a synchronous caller can't wait for an import. */
export function loadEngine(): typeof RE2JS {
  loaded ??= (createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS
  return loaded
}
