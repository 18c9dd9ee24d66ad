// CRC-32C at the speed of memory, in WebAssembly that has no instruction for it (the numbers: performance.md §2).
//
// Table lookups (slicing-by-16) reach 5 GB/s and serve short inputs. Long ones are first *folded*: P has multiples with
// few terms, such as x^(8·209) + x^(8·144) + x^(8·54) + x^(8·39) + x^(8·14) + 1. Taking such a multiple away from the
// front of a message leaves its CRC as it is, and amounts to XORing every byte into five later ones. So a message of
// any length shrinks to its last 209 bytes by shuffles and XORs of 16-byte units alone, 27 GB/s.
//
//   input ──▶ F625 ──▶ 46 units ──▶ F209 ──▶ 14 units ──▶ lookups ──▶ register
//
// In the pull form used here, with taps d of a fold and v = 0 before the start:
//
//   v[i] = m[i] ⊕ v[i − d₁] ⊕ … ⊕ v[i − dₖ]
//
// up to some position s; the bytes from s on, each with those v[i − d] added that lie before s, are the message left.

import { multiply, SEED_MASK, START_MASK, STEP } from './crc32c-tables'

/** From here on folding with F209 pays, and with F625 before it. */
const FOLD_209_FROM: u32 = 352
const FOLD_625_FROM: usize = 4096

const UNIT: usize = 16
/** The folding loops take 8 units at a time, which makes the loop's own overhead small. */
const BLOCK: usize = 8 * UNIT

/** Units of history a fold looks back at. */
const REACH_209: usize = 14
const REACH_625: usize = 40

/** Blocks folded before the history is moved back to the start of its buffer; short enough to stay in the L1 cache. */
const CHUNK_BLOCKS: usize = 64

/** v, with room for one more REACH_625 of zeros when the end of the message is drained. */
// @ts-ignore: decorator
@inline
const HISTORY: usize = memory.data(2 * 40 * 16 + 64 * 128, 128)

/** The first block of the input, brought into shape. */
// @ts-ignore: decorator
@inline
const HEAD: usize = memory.data(128, 128)

/** What a fold leaves of the message: at most 46 units. */
// @ts-ignore: decorator
@inline
const TAIL: usize = memory.data(46 * 16, 128)

/** Written and never read, see `advance16`. */
// @ts-ignore: decorator
@inline
const ANCHOR: usize = memory.data(16, 16)

// ---------------------------------------------------------------------------------------------------- Interface

/**
 * Continues a CRC over more bytes. At least 128 bytes below them are readable, as the arena guarantees.
 * @param crc - of the bytes before; 0 at the start
 */
export function crc32c(data: usize, byteLength: u32, crc: u32): u32 {
  return ~(byteLength < FOLD_209_FROM ? advance(data, byteLength, ~crc) : fold(data, byteLength, ~crc))
}

/** The CRC of the eight bytes of a little-endian u64. */
export function crc32cOfLength(low: u32, high: u32): u32 {
  return ~advance8(low, high, ~0)
}

/** How TFRecord stores a CRC, so that a CRC over data with CRCs in it stays meaningful. */
export function mask(crc: u32): u32 {
  return rotr(crc, 15) + 0xa282ead8
}

export function unmask(masked: u32): u32 {
  return rotl(masked - 0xa282ead8, 15)
}

/** The CRC of A‖B, from those of A and of B: A's moves up by B's length, that is by x^(8·|B|) modulo P. */
export function crc32cCombine(a: u32, b: u32, byteLengthB: f64): u32 {
  let square: u32 = 0x00800000 // x⁸
  for (let length = <u64>byteLengthB; length != 0; length >>= 1) {
    if (length & 1) a = multiply(a, square)
    square = multiply(square, square)
  }
  return a ^ b
}

// ---------------------------------------------------------------------------------------------- Lookups: slicing

/** The register after any number of bytes. */
function advance(data: usize, byteLength: u32, register: u32): u32 {
  for (; byteLength >= 16; byteLength -= 16) {
    register = advance16(data, register)
    data += 16
  }
  if (byteLength & 8) {
    register = advance8(load<u32>(data), load<u32>(data, 4), register)
    data += 8
  }
  if (byteLength & 4) {
    register = advance4(load<u32>(data) ^ register)
    data += 4
  }
  return advanceBytes(data, byteLength & 3, register)
}

function advanceBytes(data: usize, byteLength: u32, register: u32): u32 {
  for (; byteLength != 0; byteLength--) {
    register = (register >>> 8) ^ load<u32>(((register ^ load<u8>(data)) & 0xff) << 2, STEP)
    data++
  }
  return register
}

/** The register after a word that has the register before already in it. */
// @ts-ignore: decorator
@inline
function advance4(word: u32): u32 {
  return (
    load<u32>((word << 2) & 0x3fc, STEP + 3 * 1024) ^
    load<u32>((word >>> 6) & 0x3fc, STEP + 2 * 1024) ^
    load<u32>((word >>> 14) & 0x3fc, STEP + 1 * 1024) ^
    load<u32>((word >>> 22) & 0x3fc, STEP)
  )
}

/** The register after eight bytes. */
function advance8(low: u32, high: u32, register: u32): u32 {
  low ^= register
  return (
    load<u32>((low << 2) & 0x3fc, STEP + 7 * 1024) ^
    load<u32>((low >>> 6) & 0x3fc, STEP + 6 * 1024) ^
    load<u32>((low >>> 14) & 0x3fc, STEP + 5 * 1024) ^
    load<u32>((low >>> 22) & 0x3fc, STEP + 4 * 1024) ^
    advance4(high)
  )
}

/**
 * The register after sixteen bytes. Only the four bytes that meet the register wait for it; the others are looked up
 * straight from memory. V8 would compute every sum after the last lookup and run out of registers, hence the stores,
 * which it leaves in their places.
 */
// @ts-ignore: decorator
@inline
function advance16(data: usize, register: u32): u32 {
  let sum =
    load<u32>(<usize>load<u8>(data, 4) << 2, STEP + 11 * 1024) ^
    load<u32>(<usize>load<u8>(data, 5) << 2, STEP + 10 * 1024) ^
    load<u32>(<usize>load<u8>(data, 6) << 2, STEP + 9 * 1024) ^
    load<u32>(<usize>load<u8>(data, 7) << 2, STEP + 8 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>(<usize>load<u8>(data, 8) << 2, STEP + 7 * 1024) ^
    load<u32>(<usize>load<u8>(data, 9) << 2, STEP + 6 * 1024) ^
    load<u32>(<usize>load<u8>(data, 10) << 2, STEP + 5 * 1024) ^
    load<u32>(<usize>load<u8>(data, 11) << 2, STEP + 4 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>(<usize>load<u8>(data, 12) << 2, STEP + 3 * 1024) ^
    load<u32>(<usize>load<u8>(data, 13) << 2, STEP + 2 * 1024) ^
    load<u32>(<usize>load<u8>(data, 14) << 2, STEP + 1 * 1024) ^
    load<u32>(<usize>load<u8>(data, 15) << 2, STEP)
  store<u32>(ANCHOR, sum)
  const word = load<u32>(data) ^ register
  sum ^=
    load<u32>((word << 2) & 0x3fc, STEP + 15 * 1024) ^
    load<u32>((word >>> 6) & 0x3fc, STEP + 14 * 1024) ^
    load<u32>((word >>> 14) & 0x3fc, STEP + 13 * 1024) ^
    load<u32>((word >>> 22) & 0x3fc, STEP + 12 * 1024)
  store<u32>(ANCHOR, sum)
  return sum
}

/** The register after sixteen bytes and sixteen zero bytes: what a unit means to the unit after next. */
// @ts-ignore: decorator
@inline
function advance16And16(data: usize, register: u32): u32 {
  let sum =
    load<u32>(<usize>load<u8>(data, 4) << 2, STEP + 27 * 1024) ^
    load<u32>(<usize>load<u8>(data, 5) << 2, STEP + 26 * 1024) ^
    load<u32>(<usize>load<u8>(data, 6) << 2, STEP + 25 * 1024) ^
    load<u32>(<usize>load<u8>(data, 7) << 2, STEP + 24 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>(<usize>load<u8>(data, 8) << 2, STEP + 23 * 1024) ^
    load<u32>(<usize>load<u8>(data, 9) << 2, STEP + 22 * 1024) ^
    load<u32>(<usize>load<u8>(data, 10) << 2, STEP + 21 * 1024) ^
    load<u32>(<usize>load<u8>(data, 11) << 2, STEP + 20 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>(<usize>load<u8>(data, 12) << 2, STEP + 19 * 1024) ^
    load<u32>(<usize>load<u8>(data, 13) << 2, STEP + 18 * 1024) ^
    load<u32>(<usize>load<u8>(data, 14) << 2, STEP + 17 * 1024) ^
    load<u32>(<usize>load<u8>(data, 15) << 2, STEP + 16 * 1024)
  store<u32>(ANCHOR, sum)
  const word = load<u32>(data) ^ register
  sum ^=
    load<u32>((word << 2) & 0x3fc, STEP + 31 * 1024) ^
    load<u32>((word >>> 6) & 0x3fc, STEP + 30 * 1024) ^
    load<u32>((word >>> 14) & 0x3fc, STEP + 29 * 1024) ^
    load<u32>((word >>> 22) & 0x3fc, STEP + 28 * 1024)
  store<u32>(ANCHOR, sum)
  return sum
}

/** The register, from 0, after an even number of units: two streams, as one alone waits for its own lookups. */
function advancePairs(data: usize, pairs: u32): u32 {
  let even: u32 = 0
  let odd: u32 = 0
  for (; pairs > 1; pairs--) {
    even = advance16And16(data, even)
    odd = advance16And16(data + UNIT, odd)
    data += 2 * UNIT
  }
  return advance16And16(data, even) ^ advance16(data + UNIT, odd)
}

// ------------------------------------------------------------------------------------------------------- Folding

/** The register after at least 224 bytes. */
function fold(data: usize, byteLength: usize, register: u32): u32 {
  // Zeros in front of a message don't change a CRC that starts from 0, so with the right number of them every loop below
  // sees whole blocks. Only the last 14 units aren't folded by a loop.
  let padding = (REACH_209 * UNIT - byteLength) % BLOCK
  if (padding > BLOCK - 4) {
    // The register, which goes into the first four bytes, wouldn't fit into the first block.
    register = advanceBytes(data, 3, register)
    data += 3
    byteLength -= 3
    padding = (padding + 3) % BLOCK
  }
  let blocks = (byteLength + padding - REACH_209 * UNIT) / BLOCK
  const start = data - padding
  shapeHead(start, padding, register)
  let last: usize
  if (byteLength < FOLD_625_FROM) {
    const history = fold209(HEAD, start + BLOCK, blocks)
    last = start + BLOCK * blocks
    drain209(history, last)
  } else {
    blocks -= 4
    const history = fold625(HEAD, start + BLOCK, blocks)
    drain625(history, start + BLOCK * blocks)
    drain209(fold209(TAIL, TAIL + BLOCK, 4), TAIL + 4 * BLOCK)
  }
  return advancePairs(TAIL, 7)
}

/** Makes HEAD of the block at `start`, whose first `padding` bytes aren't the message's; they read as zeros. */
// @ts-ignore: decorator
@inline
function shapeHead(start: usize, padding: usize, register: u32): void {
  const seed = i32x4.splat(rotl(register, <u32>padding << 3))
  for (let at: usize = 0; at < BLOCK; at += UNIT) {
    const message = v128.and(v128.load(start + at), v128.load(START_MASK + BLOCK - padding + at))
    v128.store(HEAD + at, v128.xor(message, v128.and(seed, v128.load(SEED_MASK + BLOCK - padding + at))))
  }
}

// A tap 16·a + r bytes back begins in the unit a + 1 before and ends in the one a before: one shuffle, which V8 makes a
// single instruction. Loading it misaligned from the history would wait for the stores to reach the cache.

// @ts-ignore: decorator
@inline
function back1(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
}

// @ts-ignore: decorator
@inline
function back3(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
}

// @ts-ignore: decorator
@inline
function back10(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
}

// @ts-ignore: decorator
@inline
function back11(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
}

// @ts-ignore: decorator
@inline
function back15(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
}

/** Zeros units. */
// @ts-ignore: decorator
@inline
function clear(units: usize, count: usize): void {
  for (const end = units + count * UNIT; units < end; units += UNIT) v128.store(units, i64x2.splat(0))
}

/**
 * Moves the last units of the history to its start.
 */
// @ts-ignore: decorator
@inline
function rewind(history: usize, count: usize): void {
  for (let at: usize = 0; at < count * UNIT; at += UNIT) v128.store(HISTORY + at, v128.load(history + at))
}

/**
 * One unit of F209: taps 65, 155, 170, 195 and 209 bytes back. `e0` … `e4` are the units 13 … 9 back; `pair` is the sum
 * of the units 4 and 13 back, as 65 = 4·16 + 1 and 209 = 13·16 + 1 can share a shuffle. The latest unit comes last.
 */
// @ts-ignore: decorator
@inline
function unit209(message: v128, pairBefore: v128, pair: v128, e0: v128, e1: v128, e2: v128, e3: v128, e4: v128): v128 {
  return v128.xor(
    v128.xor(v128.xor(message, back3(e0, e1)), v128.xor(back10(e2, e3), back11(e3, e4))),
    back1(pairBefore, pair),
  )
}

/**
 * Folds the block at `first` and then those at `rest`, which are `blocks` in total.
 * @returns the last 14 units of history
 */
function fold209(first: usize, rest: usize, blocks: usize): usize {
  let history = HISTORY
  clear(history, REACH_209)
  let input = first
  let next = rest
  // The four latest units stay in registers, as does the sum of the units 5 and 14 back.
  let a = i64x2.splat(0)
  let b = a
  let c = a
  let d = a
  let x = a
  let y = a
  while (true) {
    const end = history + min(blocks, CHUNK_BLOCKS) * BLOCK
    blocks -= min(blocks, CHUNK_BLOCKS)
    do {
      const e0 = v128.load(history, 16)
      const e1 = v128.load(history, 32)
      const e2 = v128.load(history, 48)
      const e3 = v128.load(history, 64)
      const e4 = v128.load(history, 80)
      y = v128.xor(a, e0)
      a = unit209(v128.load(input), x, y, e0, e1, e2, e3, e4)
      v128.store(history, a, 224)
      const e5 = v128.load(history, 96)
      x = v128.xor(b, e1)
      b = unit209(v128.load(input, 16), y, x, e1, e2, e3, e4, e5)
      v128.store(history, b, 240)
      const e6 = v128.load(history, 112)
      y = v128.xor(c, e2)
      c = unit209(v128.load(input, 32), x, y, e2, e3, e4, e5, e6)
      v128.store(history, c, 256)
      const e7 = v128.load(history, 128)
      x = v128.xor(d, e3)
      d = unit209(v128.load(input, 48), y, x, e3, e4, e5, e6, e7)
      v128.store(history, d, 272)
      const e8 = v128.load(history, 144)
      y = v128.xor(a, e4)
      a = unit209(v128.load(input, 64), x, y, e4, e5, e6, e7, e8)
      v128.store(history, a, 288)
      const e9 = v128.load(history, 160)
      x = v128.xor(b, e5)
      b = unit209(v128.load(input, 80), y, x, e5, e6, e7, e8, e9)
      v128.store(history, b, 304)
      const e10 = v128.load(history, 176)
      y = v128.xor(c, e6)
      c = unit209(v128.load(input, 96), x, y, e6, e7, e8, e9, e10)
      v128.store(history, c, 320)
      const e11 = v128.load(history, 192)
      x = v128.xor(d, e7)
      d = unit209(v128.load(input, 112), y, x, e7, e8, e9, e10, e11)
      v128.store(history, d, 336)
      history += BLOCK
      input = next
      next += BLOCK
    } while (history < end)
    if (blocks == 0) return history
    rewind(history, REACH_209)
    history = HISTORY
  }
}

/** Adds the history's last 14 units to the last 14 of the message, giving TAIL: the fold's end, v being 0 from here. */
function drain209(history: usize, message: usize): void {
  clear(history + REACH_209 * UNIT, REACH_209)
  let x = v128.xor(v128.load(history, 160 - 16), v128.load(history))
  for (let at: usize = 0; at < REACH_209 * UNIT; at += UNIT) {
    const e0 = v128.load(history, 16)
    const e1 = v128.load(history, 32)
    const e2 = v128.load(history, 48)
    const e3 = v128.load(history, 64)
    const e4 = v128.load(history, 80)
    const y = v128.xor(v128.load(history, 160), e0)
    v128.store(TAIL + at, unit209(v128.load(message + at), x, y, e0, e1, e2, e3, e4))
    x = y
    history += UNIT
  }
}

/**
 * One unit of F625: taps 432, 447, 481, 544 and 625 bytes back. `near` is the unit 27 back; `pair` the sum of the units
 * 30 and 39 back, as 481 = 30·16 + 1 and 625 = 39·16 + 1.
 */
// @ts-ignore: decorator
@inline
function unit625(message: v128, tap544: v128, nearBefore: v128, near: v128, pairBefore: v128, pair: v128): v128 {
  return v128.xor(
    v128.xor(v128.xor(message, tap544), v128.xor(near, back15(nearBefore, near))),
    back1(pairBefore, pair),
  )
}

/** Folds or drains one block of the message, with the 40 units before it at `history`. */
// @ts-ignore: decorator
@inline
function block625(message: usize, history: usize, output: usize): void {
  let near0 = v128.load(history, 192)
  let pair0 = v128.xor(v128.load(history, 144), v128.load(history))
  let near1 = v128.load(history, 208)
  let pair1 = v128.xor(v128.load(history, 160), v128.load(history, 16))
  v128.store(output, unit625(v128.load(message), v128.load(history, 96), near0, near1, pair0, pair1))
  near0 = v128.load(history, 224)
  pair0 = v128.xor(v128.load(history, 176), v128.load(history, 32))
  v128.store(output, unit625(v128.load(message, 16), v128.load(history, 112), near1, near0, pair1, pair0), 16)
  near1 = v128.load(history, 240)
  pair1 = v128.xor(v128.load(history, 192), v128.load(history, 48))
  v128.store(output, unit625(v128.load(message, 32), v128.load(history, 128), near0, near1, pair0, pair1), 32)
  near0 = v128.load(history, 256)
  pair0 = v128.xor(v128.load(history, 208), v128.load(history, 64))
  v128.store(output, unit625(v128.load(message, 48), v128.load(history, 144), near1, near0, pair1, pair0), 48)
  near1 = v128.load(history, 272)
  pair1 = v128.xor(v128.load(history, 224), v128.load(history, 80))
  v128.store(output, unit625(v128.load(message, 64), v128.load(history, 160), near0, near1, pair0, pair1), 64)
  near0 = v128.load(history, 288)
  pair0 = v128.xor(v128.load(history, 240), v128.load(history, 96))
  v128.store(output, unit625(v128.load(message, 80), v128.load(history, 176), near1, near0, pair1, pair0), 80)
  near1 = v128.load(history, 304)
  pair1 = v128.xor(v128.load(history, 256), v128.load(history, 112))
  v128.store(output, unit625(v128.load(message, 96), v128.load(history, 192), near0, near1, pair0, pair1), 96)
  near0 = v128.load(history, 320)
  pair0 = v128.xor(v128.load(history, 272), v128.load(history, 128))
  v128.store(output, unit625(v128.load(message, 112), v128.load(history, 208), near1, near0, pair1, pair0), 112)
}

/**
 * Folds the block at `first` and then those at `rest`, which are `blocks` in total.
 * @returns the last 40 units of history
 */
function fold625(first: usize, rest: usize, blocks: usize): usize {
  let history = HISTORY
  clear(history, REACH_625)
  let input = first
  let next = rest
  while (true) {
    const end = history + min(blocks, CHUNK_BLOCKS) * BLOCK
    blocks -= min(blocks, CHUNK_BLOCKS)
    do {
      block625(input, history, history + REACH_625 * UNIT)
      history += BLOCK
      input = next
      next += BLOCK
    } while (history < end)
    if (blocks == 0) return history
    rewind(history, REACH_625)
    history = HISTORY
  }
}

/** Adds the history's last 40 units to the message's last 46, giving TAIL. */
function drain625(history: usize, message: usize): void {
  clear(history + REACH_625 * UNIT, REACH_625)
  let at: usize = 0
  for (; at < REACH_625 * UNIT; at += BLOCK) {
    block625(message + at, history, TAIL + at)
    history += BLOCK
  }
  for (; at < 46 * UNIT; at += UNIT) v128.store(TAIL + at, v128.load(message + at))
}
