/** Errors of torch files. */

import { FormatError } from '../../../base/errors.js'

/** A tensor of a file as errors call it: no more of its name than can be read. */
export function tensorUrl(url: string, name: string): string {
  return `${url}: ${name.slice(0, 200)}`
}

/** @param offset of the fault in the file; undefined: it has no place */
export function torchFault(url: string, offset: number | undefined, expected: string, got: string): FormatError {
  const message = `${url}${offset === undefined ? '' : `, byte ${offset}`}: expected ${expected}, got ${got}`
  return new FormatError('BadTorchFile', message, { url, ...(offset !== undefined && { offset }), expected, got })
}
