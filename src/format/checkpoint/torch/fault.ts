/** Errors of torch files. */

import { FormatError } from '../../../base/errors.js'

/** @param offset of the fault in the file; undefined: it has no place */
export function torchFault(url: string, offset: number | undefined, expected: string, got: string): FormatError {
  const message = `${url}${offset === undefined ? '' : `, byte ${offset}`}: expected ${expected}, got ${got}`
  return new FormatError('BadTorchFile', message, { url, ...(offset !== undefined && { offset }), expected, got })
}
