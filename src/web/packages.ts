/**
 * The packages that synchronous calls need, loaded in advance in a browser. It replaces format/regex/re2 and
 * scan/job/tensor/ndarray.
 */

import type ndarray from 'ndarray'
import type { RE2JS } from 're2js'
import { EngineError } from '../base/errors.js'

let loadedRe2: typeof RE2JS | undefined
let loadedNdarray: typeof ndarray | undefined

/** Loads the packages: the engine of patterns, which is a quarter of all code, and ndarray. */
export async function preparePackages(): Promise<void> {
  const [re2js, { default: ndarray }] = await Promise.all([import('re2js'), import('ndarray')])
  loadedRe2 = re2js.RE2JS
  loadedNdarray = ndarray
}

export function loadEngine(): typeof RE2JS {
  return loadedRe2 ?? notLoaded('before the first pattern is compiled')
}

export function loadNdarray(): typeof ndarray {
  return loadedNdarray ?? notLoaded('before toNdarray is called')
}

function notLoaded(before: string): never {
  const message = `expected a trial to be opened, which loads what is needed, ${before}`
  throw new EngineError(message, {}, undefined, 'NoCore')
}
