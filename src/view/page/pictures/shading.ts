/** The mapping from numbers to the shades that a heat map can tell apart. */

import { pixel, type Scheme, shades } from './colors.js'

export type ScaleName = 'log' | 'linear'

/** The colour of NaN and infinities. */
export const NOT_FINITE = pixel(214, 0, 147)
/** The colour of an exact 0, which has no logarithm. */
export const ZERO = pixel(128, 128, 128)

/** Numbers beyond the ends of a scale. They are drawn in the colours of the ends. */
export interface Beyond {
  readonly count: number
  /** The number of finite numbers. */
  readonly of: number
  /** The farthest of them; of magnitudes, if the scale is diverging. */
  readonly low: number
  readonly high: number
}

/** A range of numbers, and its shades. */
export interface Shading {
  readonly scheme: Scheme
  readonly scale: ScaleName
  /** True if 0 lies in the middle, for signed numbers. */
  readonly isDiverging: boolean
  /** The ends; of magnitudes, if the scale is diverging. */
  readonly low: number
  readonly high: number
  /** Numbers beyond the ends; null: there are none. */
  readonly beyond: Beyond | null
  /** The count of all numbers. */
  readonly count: number
  /** True if some are NaN or infinite, and if some are 0. */
  readonly hasLost: boolean
  readonly hasZero: boolean
  /** False if there is no number that the scale has a place for. */
  readonly hasRange: boolean
  pixel(value: number): number
}

/** The share of the numbers that may lie beyond each end. */
const FAR_SHARE = 0.005
/** An end is cut off if the extreme is this many times the robust end: FAR at the upper end of a linear scale of MANY numbers, else VERY_FAR. */
const [FAR, VERY_FAR] = [100, 1e6]
const MANY = 20
/** The decades that shades can tell apart. */
const DECADES = 1e12

/** The shading of numbers. @param numbers all that are drawn @param isSigned true if they can be negative */
export function shadingOf(numbers: Iterable<number>, isSigned: boolean, scale: ScaleName): Shading {
  const all: number[] = []
  let count = 0
  for (const value of numbers) {
    count++
    if (Number.isFinite(value)) all.push(value)
  }
  const sorted = Float64Array.from(all).sort()
  const sizes = Float64Array.from(all, Math.abs).sort()
  const isDiverging = isSigned && (sorted[0] ?? 0) < 0
  const ends = endsOf(sizes, scale)
  const linearLow = Math.max(-ends.high, sorted[0] ?? 0)
  const isLog = scale === 'log'
  const low = isLog || isDiverging ? ends.low : linearLow
  const high = isLog || isDiverging ? ends.high : Math.min(ends.high, sorted.at(-1) ?? 1)
  const shade = isDiverging ? diverging(scale, low, high) : ascending(scale, low, high)
  return {
    ...shade,
    scale,
    isDiverging,
    low,
    high,
    beyond: beyondOf(sizes, low, high, isLog),
    count,
    hasLost: all.length < count,
    hasZero: sizes[0] === 0,
    hasRange: isLog ? sizes.at(-1)! > 0 : all.length > 0,
  }
}

/** The shading of ratios, as powers of 2 around equal: ±∞ if one number is 0. */
export function ratioShading(ratios: readonly number[]): Shading {
  const sizes = Float64Array.from(ratios.filter(Number.isFinite), Math.abs).sort()
  // Colours need a range: a difference of less than 10 % stays pale.
  const high = Math.max(Math.log2(1.1), endsOf(sizes, 'linear').high)
  const shade = diverging('linear', 0, high, 'ratio')
  return {
    ...shade,
    scale: 'linear',
    isDiverging: true,
    low: 0,
    high,
    beyond: beyondOf(sizes, 0, high, false),
    count: ratios.length,
    hasLost: ratios.some(Number.isNaN),
    hasZero: ratios.some(ratio => Math.abs(ratio) === Number.POSITIVE_INFINITY),
    hasRange: true,
    pixel: ratio => (Math.abs(ratio) === Number.POSITIVE_INFINITY ? ZERO : shade.pixel(ratio)),
  }
}

/** The shading of shares of elements that are NaN or infinite: grey for none, and any share stands out from it. */
export function lostShading(): Shading {
  const table = shades('lost')
  return {
    ...{ scheme: 'lost', scale: 'linear', isDiverging: false, low: 0, high: 1, beyond: null, count: 0 },
    ...{ hasLost: false, hasZero: true, hasRange: true },
    pixel: share => (share === 0 ? ZERO : table[Math.round(share * 255)]!),
  }
}

/** The least and the largest magnitude that the scale has room for. @param sizes ascending */
function endsOf(sizes: Float64Array, scale: ScaleName): { readonly low: number; readonly high: number } {
  const some = sizes.subarray(sizes.findIndex(size => size > 0) < 0 ? sizes.length : sizes.findIndex(size => size > 0))
  const { length } = some
  if (length === 0) return { low: 1, high: 1 }
  const far = Math.max(1, Math.floor(length * FAR_SHARE))
  const factor = scale === 'log' || length < MANY ? VERY_FAR : FAR
  const [least, most] = [some[0]!, some[length - 1]!]
  const [inner, outer] = [some[Math.min(length - 1, far)]!, some[Math.max(0, length - 1 - far)]!]
  const high = most > outer * factor ? outer : most
  const low = least * VERY_FAR < inner ? Math.min(inner, high) : least
  return { low: Math.max(low, high / DECADES), high }
}

/** The numbers beyond the ends. @param hasLow true if the scale has a lower end */
function beyondOf(sizes: Float64Array, low: number, high: number, hasLow: boolean): Beyond | null {
  let count = 0
  for (const size of sizes) if (size > high || (hasLow && size > 0 && size < low)) count++
  const least = sizes.find(size => size > 0) ?? low
  return count === 0
    ? null
    : { count, of: sizes.length, low: hasLow ? Math.min(low, least) : low, high: Math.max(high, sizes.at(-1)!) }
}

function ascending(scale: ScaleName, low: number, high: number): Pick<Shading, 'scheme' | 'pixel'> {
  const scheme = 'viridis'
  const table = shades(scheme)
  const [from, to] = scale === 'log' ? [Math.log(low), Math.log(high)] : [low, high]
  const width = to - from || 1
  return {
    scheme,
    pixel(value) {
      if (!Number.isFinite(value)) return NOT_FINITE
      if (scale === 'log' && value === 0) return ZERO
      const at = ((scale === 'log' ? Math.log(value) : value) - from) / width
      return table[Math.max(0, Math.min(255, Math.round(at * 255)))]!
    },
  }
}

function diverging(
  scale: ScaleName,
  low: number,
  high: number,
  scheme: Scheme = 'PuOr',
): Pick<Shading, 'scheme' | 'pixel'> {
  const table = shades(scheme)
  const [from, width] = [Math.log(low), Math.log(high) - Math.log(low) || 1]
  return {
    scheme,
    pixel(value) {
      if (!Number.isFinite(value)) return NOT_FINITE
      const size = Math.abs(value)
      // The smallest numbers lie a little off the middle, so that their sign is visible.
      const at =
        scale === 'linear' ? size / high : size === 0 ? 0 : 0.1 + 0.9 * Math.max(0, (Math.log(size) - from) / width)
      return table[Math.max(0, Math.min(255, Math.round(127.5 + Math.sign(value) * at * 127.5)))]!
    },
  }
}
