/** The version of this package. */

import { readFileSync } from 'node:fs'

/** The directory of the package, with a slash at the end. */
export const PACKAGE = new URL('../../', import.meta.url)
const text = readFileSync(new URL('package.json', PACKAGE), 'utf8')

export const VERSION: string = (JSON.parse(text) as { readonly version: string }).version
