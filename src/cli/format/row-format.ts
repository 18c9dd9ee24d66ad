/** Errors and shapes as text. */

import { type RowFormat as AnyRowFormat, rowText } from '../../index.js'

/** How rows become lines here. */
export type RowWriter = Pick<AnyRowFormat, 'head' | 'line'>
export const { errorObject, shapeText } = rowText
