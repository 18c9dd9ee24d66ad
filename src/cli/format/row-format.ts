/** Errors and shapes as text. */

import { type RowFormat as AnyRowFormat, rowText, type TrialscanError } from '../../index.js'

/** How rows become lines here. */
export type RowFormat = Pick<AnyRowFormat, 'head' | 'line'>
export const { errorObject, placeOfError: placeOf, shapeText } = rowText

/** An error's message for people: with paths in place of `file://` URLs. */
export function messageOf({ message, fields: { url } }: TrialscanError): string {
  return typeof url === 'string' ? message.replaceAll(url, () => rowText.pathOfUrl(url)) : message
}
