/** What a table must hold, made from the rows of a scan one by one. */

import type { Complex, ScanRow, StatisticName } from '#dist/index.js'
import { Distribution } from '#dist/index.js'

export type Cell = string | number | bigint | boolean | null | readonly Cell[] | { readonly [name: string]: Cell }

const EXACT = ['min', 'max', 'sum', 'prod', 'abs_min', 'abs_max', 'abs_sum', 'abs_prod']

/** A row as an object. Only numbers that are float64 stay numbers. */
export function cellsOf(trial: string, row: ScanRow, names: readonly StatisticName[]): Record<string, Cell> {
  const { tensor, step, mode, modeStep, worker, dtype, shape, saved, error, reductions } = row
  const cells: Record<string, Cell> = {
    trial,
    tensor,
    step: BigInt(step),
    mode,
    mode_step: BigInt(modeStep),
    worker,
    dtype,
    shape: shape?.map(BigInt) ?? null,
    saved,
  }
  const exact: Record<string, Cell> = {}
  const complex: Record<string, Cell> = {}
  for (const name of names) {
    const value = reductions[name]
    cells[name] = null
    if (typeof value === 'number') cells[name] = name.endsWith('count') ? BigInt(value) : value
    else if (typeof value === 'string') cells[name] = value
    else if (value instanceof Distribution) cells[name] = sketchCell(value)
    else if (value !== undefined && 'edges' in value) {
      cells[name] = { counts: value.counts.map(BigInt), edges: [...value.edges] }
    } else if (value !== undefined) complex[name] = { ...(value as Complex) }
    const digits = (row.exact as Record<string, bigint> | undefined)?.[name]
    if (digits === undefined || !EXACT.includes(name)) continue
    const isUnsigned = /^m/.test(name) && (dtype === 'uint64' || digits >= 2n ** 63n)
    exact[isUnsigned ? `${name}_uint64` : name] = digits
  }
  if (names.some(name => EXACT.includes(name))) cells.exact = Object.keys(exact).length > 0 ? exact : null
  if (names.some(name => name === 'mean' || name === 'sum')) {
    cells.complex = Object.keys(complex).length > 0 ? complex : null
  }
  const { url, offset } = error?.fields ?? {}
  return {
    ...cells,
    error_code: error?.code ?? null,
    error_message: error?.message ?? null,
    error_file: typeof url === 'string' ? url.replace(/^file:\/\//, '') : null,
    error_offset: typeof offset === 'number' ? BigInt(offset) : null,
  }
}

function sketchCell(sketch: Distribution): Cell {
  const { count, nan_count, positive_infinity_count, negative_infinity_count, buckets, counts, ...rest } =
    sketch.toJSON()
  return {
    ...rest,
    count: BigInt(count),
    nan_count: BigInt(nan_count),
    positive_infinity_count: BigInt(positive_infinity_count),
    negative_infinity_count: BigInt(negative_infinity_count),
    buckets: buckets.map(BigInt),
    counts: counts.map(BigInt),
  }
}

/** The same without fields that are null, and -0 apart from 0, so that readers who differ in these can be compared. */
export function normal(cell: unknown): unknown {
  if (typeof cell === 'number') return Object.is(cell, -0) ? '-0' : String(cell)
  if (Array.isArray(cell) || ArrayBuffer.isView(cell)) return Array.from(cell as ArrayLike<unknown>, normal)
  if (typeof cell !== 'object' || cell === null) return cell ?? null
  const entries = Object.entries(cell as Record<string, unknown>).map(([name, value]) => [name, normal(value)] as const)
  const there = entries.filter(([, value]) => value !== null)
  return there.length > 0 ? Object.fromEntries(there) : null
}
