/** Values of DuckDB as text and as JSON. */

import { jsonNumber, plainNumber, shortNumber } from '../format/number.js'

/** A value as JSON. NaN and the infinities are texts; integers have all their digits. */
export function jsonOf(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') return jsonNumber(value)
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const fields = Object.entries(value).map(([name, value]) => `${JSON.stringify(name)}:${jsonOf(value)}`)
  return `{${fields.join(',')}}`
}

/** A value as a cell of a CSV file: empty for null. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'bigint') return plainNumber(value)
  return typeof value === 'object' ? jsonOf(value) : String(value)
}

/** A value for people: numbers are short. */
export function shortText(value: unknown): string {
  return typeof value === 'number' ? shortNumber(value) : textOf(value)
}
