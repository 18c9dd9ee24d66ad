// The last 14 units. With so little left, a fold with more, but nearer, taps still pays. It is written out
// unit by unit, without the terms that are zero, so it needs no history but these few units.

import { back1, back2, back3, back6, back9, xor3, xor4, xor6 } from './shuffles'

/** The rest of the message after a fold: 46 units at most. */
export const TAIL: usize = memory.data(46 * 16, 128)

/**
 * Folds TAIL from 14 units to 9 with taps 66, 67, 70, 97, 98, 105 and 130 bytes back. The taps 66, 98 and 130 share a
 * shuffle: v are the folded units, p is the sum of those that share.
 */
export function shrink130(): void {
  const zero = i64x2.splat(0)
  const v0 = v128.load(TAIL)
  const v1 = v128.load(TAIL, 16)
  const v2 = v128.load(TAIL, 32)
  const v3 = v128.load(TAIL, 48)
  const v4 = xor4(v128.load(TAIL, 64), back6(zero, v0), back3(zero, v0), back2(zero, v0))
  v128.store(TAIL, xor4(v128.load(TAIL, 80), back6(v0, v1), back3(v0, v1), back2(v0, v1)))
  const p6 = v128.xor(v2, v0)
  const u1 = xor6(v128.load(TAIL, 96), back9(zero, v0), back1(zero, v0), back6(v1, v2), back3(v1, v2), back2(v1, p6))
  v128.store(TAIL, u1, 16)
  const p7 = v128.xor(v3, v1)
  const u2 = xor6(v128.load(TAIL, 112), back9(v0, v1), back1(v0, v1), back6(v2, v3), back3(v2, v3), back2(p6, p7))
  v128.store(TAIL, u2, 32)
  const p8 = xor3(v4, v2, v0)
  const u3 = xor6(v128.load(TAIL, 128), back9(v1, v2), back1(v1, v2), back6(v3, v4), back3(v3, v4), back2(p7, p8))
  v128.store(TAIL, u3, 48)
  const p9 = v128.xor(v3, v1)
  const u4 = xor6(v128.load(TAIL, 144), back9(v2, v3), back1(v2, v3), back6(v4, zero), back3(v4, zero), back2(p8, p9))
  v128.store(TAIL, u4, 64)
  const p10 = v128.xor(v4, v2)
  v128.store(TAIL, xor4(v128.load(TAIL, 160), back9(v3, v4), back1(v3, v4), back2(p9, p10)), 80)
  v128.store(TAIL, xor4(v128.load(TAIL, 176), back9(v4, zero), back1(v4, zero), back2(p10, v3)), 96)
  v128.store(TAIL, v128.xor(v128.load(TAIL, 192), back2(v3, v4)), 112)
  v128.store(TAIL, v128.xor(v128.load(TAIL, 208), back2(v4, zero)), 128)
}
