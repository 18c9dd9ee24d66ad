/** Errors and shapes as text. */

import { type RowFormat, rowText, type TrialscanError } from '../../index.js'

export type { RowFormat }
export const { errorObject, placeOfError: placeOf, shapeText } = rowText

/** An error's message for people: with paths in place of `file://` URLs. */
export function messageOf({ message, fields: { url } }: TrialscanError): string {
  return typeof url === 'string' ? message.replaceAll(url, rowText.pathOfUrl(url)) : message
}
