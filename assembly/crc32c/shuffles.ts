// Shuffles and sums of 16-byte units.
//
// A tap 16·a + r bytes back starts in the unit a + 1 back and ends in the unit a back. One shuffle extracts it, which
// V8 compiles to a single instruction. A misaligned load from the history would have to wait for the stores to reach
// the cache.

// @ts-ignore: decorator
@inline
export function back1(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
}

// @ts-ignore: decorator
@inline
export function back2(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
}

// @ts-ignore: decorator
@inline
export function back3(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
}

// @ts-ignore: decorator
@inline
export function back5(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26)
}

// @ts-ignore: decorator
@inline
export function back6(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25)
}

// @ts-ignore: decorator
@inline
export function back8(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
}

// @ts-ignore: decorator
@inline
export function back9(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
}

// @ts-ignore: decorator
@inline
export function back10(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
}

// @ts-ignore: decorator
@inline
export function back11(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
}

// @ts-ignore: decorator
@inline
export function back12(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
}

// @ts-ignore: decorator
@inline
export function back13(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
}

// @ts-ignore: decorator
@inline
export function back15(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
}

// @ts-ignore: decorator
@inline
export function xor3(a: v128, b: v128, c: v128): v128 {
  return v128.xor(v128.xor(a, b), c)
}

// @ts-ignore: decorator
@inline
export function xor4(a: v128, b: v128, c: v128, d: v128): v128 {
  return v128.xor(v128.xor(a, b), v128.xor(c, d))
}

// @ts-ignore: decorator
@inline
export function xor5(a: v128, b: v128, c: v128, d: v128, e: v128): v128 {
  return v128.xor(xor3(a, b, c), v128.xor(d, e))
}

// @ts-ignore: decorator
@inline
export function xor6(a: v128, b: v128, c: v128, d: v128, e: v128, f: v128): v128 {
  return v128.xor(xor3(a, b, c), xor3(d, e, f))
}
