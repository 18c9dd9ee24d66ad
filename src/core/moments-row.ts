/** Rows of moments in a Float64Array. The numbers called `…Exact` are 64-bit integers. */

import { MomentsRow } from './border/abi.js'

/** The slots except the rounding errors of sums, which only the core uses. */
export type MomentSlot = Exclude<keyof typeof MomentsRow, 'size' | `${string}Low`>

/** The number of slots in a row. */
export const ROW_LENGTH = MomentsRow.size / 8

export const MOMENT_SLOTS = Object.keys(MomentsRow).filter((name): name is MomentSlot => !/^\d|^size$|Low$/.test(name))

/** The index of each number in a row. */
export const MOMENT_INDEX = Object.fromEntries(MOMENT_SLOTS.map(name => [name, MomentsRow[name] / 8])) as Readonly<
  Record<MomentSlot, number>
>
