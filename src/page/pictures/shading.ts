/** From numbers to shades: which of them a heat map can tell apart. */

import { pixel, type Scheme, shades } from './colors.js'

export type ScaleName = 'log' | 'linear'

/** Not a number, or infinite. */
export const NOT_FINITE = pixel(214, 0, 147)
/** Exactly 0, which has no logarithm. */
export const ZERO = pixel(128, 128, 128)

/** What numbers lie between, and how they are shaded. */
export interface Shading {
  readonly scheme: Scheme
  readonly scale: ScaleName
  /** Whether 0 lies in the middle: of signed numbers. */
  readonly isDiverging: boolean
  /** The smallest and the largest: of magnitudes, where it is diverging and logarithmic. */
  readonly low: number
  readonly high: number
  pixel(value: number): number
}

/** @param numbers all that are shown @param isSigned whether they can be negative */
export function shadingOf(numbers: Iterable<number>, isSigned: boolean, scale: ScaleName): Shading {
  let [low, high, least] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const value of numbers) {
    if (!Number.isFinite(value)) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
    const size = Math.abs(value)
    if (size > 0 && size < least) least = size
  }
  if (low > high) [low, high] = [0, 1]
  const isDiverging = isSigned && low < 0
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1
  // Twelve decades are as many as shades can tell apart.
  if (!Number.isFinite(least)) least = most
  least = Math.max(least, most * 1e-12)
  if (isDiverging) return diverging(scale, least, most)
  const scheme = 'viridis'
  const table = shades(scheme)
  const [from, to] = scale === 'log' ? [Math.log(least), Math.log(most)] : [low, high]
  const width = to - from || 1
  return {
    scheme,
    scale,
    isDiverging,
    low: scale === 'log' ? least : low,
    high: scale === 'log' ? most : high,
    pixel(value) {
      if (!Number.isFinite(value)) return NOT_FINITE
      if (scale === 'log' && value === 0) return ZERO
      const at = ((scale === 'log' ? Math.log(value) : value) - from) / width
      return table[Math.max(0, Math.min(255, Math.round(at * 255)))]!
    },
  }
}

function diverging(scale: ScaleName, least: number, most: number): Shading {
  const scheme = 'PuOr'
  const table = shades(scheme)
  const [from, width] = [Math.log(least), Math.log(most) - Math.log(least) || 1]
  return {
    scheme,
    scale,
    isDiverging: true,
    low: least,
    high: most,
    pixel(value) {
      if (!Number.isFinite(value)) return NOT_FINITE
      const size = Math.abs(value)
      // The smallest are a little off the middle, so that their sign is seen.
      const at =
        scale === 'linear' ? size / most : size === 0 ? 0 : 0.1 + 0.9 * Math.max(0, (Math.log(size) - from) / width)
      return table[Math.max(0, Math.min(255, Math.round(127.5 + Math.sign(value) * at * 127.5)))]!
    },
  }
}
