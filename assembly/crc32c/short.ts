// Folding down to three units, which are left to lookups: short inputs, and what is left of long ones. The multiple of P reaches back
// 47 bytes, in steps of half a byte: with these there is one that is short enough, and has but nine taps. Those of whole bytes are 27,
// 28, 38, 43, 45 and 47 bytes back, the others 34½, 37½ and 38½. No tap of half bytes, which take longer, reaches the unit before.

import { advance16 } from './lookups'
import { back2, back5, back6, back8, back11, back12, back13, back15, xor4 } from './shuffles'
import { SEED_MASK, START_MASK } from './tables'

const UNIT: usize = 16
const REST: usize = memory.data(48, 128)

/** The register after at least 49 bytes. */
export function foldShort(data: usize, byteLength: usize, register: u32): u32 {
  const padding = -byteLength & 15
  const start = data - padding
  // Zeros in front of a message don't change a CRC that starts from 0.
  const seed = i32x4.splat(rotl(register, (<u32>padding) << 3))
  const seedAt = SEED_MASK + 128 - padding
  const first = v128.and(v128.load(start), v128.load(START_MASK + 128 - padding))
  return foldUnits(
    v128.xor(first, v128.and(seed, v128.load(seedAt))),
    v128.xor(v128.load(start, 16), v128.and(seed, v128.load(seedAt, 16))),
    start + UNIT,
    data + byteLength - 3 * UNIT,
  )
}

/** The register after `count` units, at least four, from 0. */
export function foldWhole(units: usize, count: usize): u32 {
  return foldUnits(v128.load(units), v128.load(units, 16), units + UNIT, units + (count - 3) * UNIT)
}

/**
 * @param message the second unit, which lies at `at`
 * @param last where the third but last lies
 */
function foldUnits(first: v128, message: v128, at: usize, last: usize): u32 {
  const zero = i64x2.splat(0)
  let v1 = first
  let v2 = zero
  let v3 = zero
  let p1 = v1
  let p2 = zero
  let s2 = zero
  let s3 = zero
  for (; at < last; at += UNIT) {
    const v = folded(message, v1, v2, v3, p1, p2, s2, s3)
    message = v128.load(at, 16)
    s3 = s2
    s2 = half(v2, v1)
    p2 = p1
    p1 = v128.xor(v, v1)
    v3 = v2
    v2 = v1
    v1 = v
  }
  const s1 = half(v2, v1)
  v128.store(REST, folded(message, v1, v2, v3, p1, p2, s2, s3))
  v128.store(REST, folded(v128.load(at, 16), zero, v1, v2, v1, p1, s1, s2), 16)
  v128.store(REST, folded(v128.load(at, 32), zero, zero, v1, zero, v1, half(v1, zero), s1), 32)
  return advance16(REST + 32, advance16(REST + 16, advance16(REST, 0)))
}

/** A unit half a byte later. */
// @ts-ignore: decorator
@inline
function half(before: v128, unit: v128): v128 {
  return v128.xor(i64x2.shl(unit, 4), i64x2.shr_u(back8(before, unit), 60))
}

/** @param v1 the unit before, v2 that before it; p1 the sum of both; s the same as v, half a byte later */
// @ts-ignore: decorator
@inline
function folded(message: v128, v1: v128, v2: v128, v3: v128, p1: v128, p2: v128, s2: v128, s3: v128): v128 {
  const known = xor4(message, back2(s3, s2), back5(s3, s2), back6(s3, s2))
  const far = xor4(known, back6(v3, v2), back13(v3, v2), back15(v3, v2))
  return v128.xor(v128.xor(far, back12(v2, v1)), back11(p2, p1))
}
