/** Errors and shapes as text. */

import { type RowFormat as AnyRowFormat, rowText, type TrialscanError } from '../../index.js'

/** How rows become lines here. */
export type RowFormat = Pick<AnyRowFormat, 'head' | 'line'>
export const { errorObject, placeOfError: placeOf, shapeText } = rowText

/** An error's message for people. */
export function messageOf({ message }: TrialscanError): string {
  return message
}
