/** How rows of a scan become text. */

import { fileURLToPath } from 'node:url'
import type { ScanRow, TrialscanError } from '../../index.js'

export interface RowFormat {
  /** What comes before the rows; whole lines. */
  readonly head: string
  /** A row as a whole line. */
  line(row: ScanRow): string
}

export interface ErrorPlace {
  readonly file: string | undefined
  readonly offset: number | undefined
}

/** The file an error is about, as a path, and where in it. */
export function placeOf({ fields }: TrialscanError): ErrorPlace {
  const { url, offset } = fields
  return {
    file: typeof url === 'string' ? pathOf(url) : undefined,
    offset: typeof offset === 'number' ? offset : undefined,
  }
}

/** An error as other programs get it; what is not known is left out. */
export function errorObject(error: TrialscanError): Record<string, unknown> {
  const { file, offset } = placeOf(error)
  const { code, message } = error
  return { code, message, ...(file !== undefined && { file }), ...(offset !== undefined && { offset }) }
}

/** An error's message for people: with paths in place of `file://` URLs. */
export function messageOf({ message, fields: { url } }: TrialscanError): string {
  return typeof url === 'string' ? message.replaceAll(url, pathOf(url)) : message
}

function pathOf(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

/** `3x5`, or `scalar` for no dimensions; empty where it is not known. */
export function shapeText(shape: readonly number[] | null): string {
  return shape === null ? '' : shape.length === 0 ? 'scalar' : shape.join('x')
}
