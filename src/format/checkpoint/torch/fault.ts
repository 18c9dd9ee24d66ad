/** Errors of torch files. */

import { FormatError, quote } from '../../../base/errors.js'

/** The code of tensors that are whole, and of a kind that is not read. */
export const UNREADABLE = 'UnreadableDType'

/**
 * @param offset of the fault in the file; undefined: it has no place
 * @param about the tensor that it costs, and another code than `BadTorchFile`
 */
export function torchFault(
  url: string,
  offset: number | undefined,
  expected: string,
  got: string,
  { tensor, code = 'BadTorchFile' }: { readonly tensor?: string; readonly code?: string } = {},
): FormatError {
  const at = offset === undefined ? '' : `, byte ${offset}`
  const about = tensor === undefined ? '' : `, tensor ${quote(tensor)}`
  const place = {
    url,
    ...(offset !== undefined && { offset }),
    ...(tensor !== undefined && { tensor: tensor.slice(0, 200) }),
  }
  return new FormatError(code, `${url}${at}${about}: expected ${expected}, got ${got}`, { ...place, expected, got })
}
