/** Scans as lists of rows. */

import type { ScanOptions, ScanRow, Trial } from '#dist/index.js'

export async function rowsOf(trial: Trial, options: ScanOptions = {}): Promise<ScanRow[]> {
  const rows: ScanRow[] = []
  for await (const row of trial.scan(options)) rows.push(row)
  return rows
}

/** A row without what is an object of its own, to be compared; moments by their bits. */
export function plainRow({ moments, error, ...row }: ScanRow): unknown {
  const bits =
    moments && Buffer.from(moments.row.buffer, moments.row.byteOffset, moments.row.byteLength).toString('hex')
  return { ...row, ...(bits && { bits }), ...(error && { error: error.toJSON() }) }
}

export function plainRows(rows: readonly ScanRow[]): unknown[] {
  return rows.map(plainRow)
}

/** What a rejected promise was rejected with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('expected a rejection')
}

/** What a call throws. */
export function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('expected an error')
}
