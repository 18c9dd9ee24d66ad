/** Where the numbers of a row of moments are in a Float64Array. */

import { MomentsRow, ValueKind } from './abi.js'

/** Numbers of a row of moments; what rounding took from the sums is for the core alone. The *exact ones hold 64-bit integers. */
export type MomentSlot = Exclude<keyof typeof MomentsRow, 'size' | `${string}Low`>

export interface MomentsLayout {
  /** Doubles a row takes. */
  readonly doubles: number
  readonly byteLength: number
  readonly at: Readonly<Record<MomentSlot, number>>
}

export interface Layout {
  readonly moments: MomentsLayout
  readonly holds: typeof ValueKind
}

export const MOMENT_SLOTS = Object.keys(MomentsRow).filter(
  (name): name is MomentSlot => !/^\d|^size$|Low$/.test(name),
) satisfies readonly MomentSlot[]

export const LAYOUT: Layout = {
  moments: {
    doubles: MomentsRow.size / 8,
    byteLength: MomentsRow.size,
    at: Object.fromEntries(MOMENT_SLOTS.map(name => [name, MomentsRow[name] / 8])) as Record<MomentSlot, number>,
  },
  holds: ValueKind,
}
