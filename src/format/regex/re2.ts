/** Loads the regex engine that runs in linear time. In a browser src/web/packages.ts replaces this module. */

import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

let loaded: typeof RE2JS | undefined

/** Loaded on demand, since that takes 15 ms and most commands don't need it. Callers are synchronous, so `import` can't be used. */
export function loadEngine(): typeof RE2JS {
  loaded ??= (createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS
  return loaded
}
