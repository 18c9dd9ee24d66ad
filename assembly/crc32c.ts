// CRC-32C at nearly the speed of memory, in WebAssembly, which has no instruction for it (numbers: performance.md §2).
//
// Table lookups (slicing-by-16) take 5 GB/s and serve short inputs. Long ones are *folded* first. P has multiples of few
// terms, x^(8·209) + x^(8·144) + x^(8·54) + x^(8·39) + x^(8·14) + 1 for one; adding such a multiple, times anything, to
// a message leaves its CRC as it is. That clears the message's first byte by XORing it into the bytes 65, 155, 170, 195
// and 209 further on, and so on byte by byte, until only as much is left as the multiple is long. It takes nothing but
// shuffles and XORs of 16-byte units: 27 GB/s for F209, as this multiple is called after its length, and 32 for F625.
//
//   input ──F625──▶ 46 units ──F209──▶ 14 units ──F130──▶ 9 units ──F62──▶ 4 units ──lookups──▶ register
//
// Each byte v being cleared is the message's byte m and what earlier ones put there. Seen from the receiving end, with
// the taps d of a fold, and v = 0 before the start and from where the fold ends:
//
//   v[i] = m[i] ⊕ v[i − d₁] ⊕ … ⊕ v[i − dₖ]        and, past the end, the message left is the same sum

import { multiply, SEED_MASK, START_MASK, STEP } from './crc32c-tables'

/** Bytes from which on a way pays: two streams of lookups, F209, and F625 before it (measured). */
const TWO_STREAMS_FROM: u32 = 96
const FOLD_209_FROM: u32 = 256
const FOLD_625_FROM: usize = 8192

const UNIT: usize = 16
/** The folding loops take 8 units at a time, which makes the loop's own overhead small. */
const BLOCK: usize = 8 * UNIT

/** Units of history a fold looks back at. */
const REACH_209: usize = 14
const REACH_625: usize = 40

/** Blocks folded before the history is moved back to the start of its buffer; short enough to stay in the L1 cache. */
const CHUNK_BLOCKS: usize = 64

/** v: the reach, a chunk, and zeros for draining. */
const HISTORY: usize = memory.data((2 * 40 + 64 * 8) * 16, 128)

/** The first block of the input, brought into shape. */
const HEAD: usize = memory.data(128, 128)

/** What a fold leaves of the message: 46 units at most. */
const TAIL: usize = memory.data(46 * 16, 128)

/** Written and never read, see advance16. */
const ANCHOR: usize = memory.data(4, 16)

// ----------------------------------------------------------------------------------------------------------- Interface

/**
 * Continues a CRC over more bytes. At least 128 bytes below them are readable, as the arena guarantees.
 * @param crc - of the bytes before; 0 at the start
 */
export function crc32c(data: usize, byteLength: u32, crc: u32): u32 {
  const short = byteLength < FOLD_209_FROM || data < BLOCK
  return ~(short ? advance(data, byteLength, ~crc) : fold(data, byteLength, ~crc))
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

// ---------------------------------------------------------------------------------------------- Lookups: slicing-by-16

/** The register after any number of bytes. */
function advance(data: usize, byteLength: u32, register: u32): u32 {
  if (byteLength >= TWO_STREAMS_FROM) {
    register = advancePairs(data, byteLength / 32, register)
    data += byteLength & ~31
    byteLength &= 31
  }
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
    load<u32>((<usize>load<u8>(data, 4)) << 2, STEP + 11 * 1024) ^
    load<u32>((<usize>load<u8>(data, 5)) << 2, STEP + 10 * 1024) ^
    load<u32>((<usize>load<u8>(data, 6)) << 2, STEP + 9 * 1024) ^
    load<u32>((<usize>load<u8>(data, 7)) << 2, STEP + 8 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 8)) << 2, STEP + 7 * 1024) ^
    load<u32>((<usize>load<u8>(data, 9)) << 2, STEP + 6 * 1024) ^
    load<u32>((<usize>load<u8>(data, 10)) << 2, STEP + 5 * 1024) ^
    load<u32>((<usize>load<u8>(data, 11)) << 2, STEP + 4 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 12)) << 2, STEP + 3 * 1024) ^
    load<u32>((<usize>load<u8>(data, 13)) << 2, STEP + 2 * 1024) ^
    load<u32>((<usize>load<u8>(data, 14)) << 2, STEP + 1 * 1024) ^
    load<u32>((<usize>load<u8>(data, 15)) << 2, STEP)
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
    load<u32>((<usize>load<u8>(data, 4)) << 2, STEP + 27 * 1024) ^
    load<u32>((<usize>load<u8>(data, 5)) << 2, STEP + 26 * 1024) ^
    load<u32>((<usize>load<u8>(data, 6)) << 2, STEP + 25 * 1024) ^
    load<u32>((<usize>load<u8>(data, 7)) << 2, STEP + 24 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 8)) << 2, STEP + 23 * 1024) ^
    load<u32>((<usize>load<u8>(data, 9)) << 2, STEP + 22 * 1024) ^
    load<u32>((<usize>load<u8>(data, 10)) << 2, STEP + 21 * 1024) ^
    load<u32>((<usize>load<u8>(data, 11)) << 2, STEP + 20 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 12)) << 2, STEP + 19 * 1024) ^
    load<u32>((<usize>load<u8>(data, 13)) << 2, STEP + 18 * 1024) ^
    load<u32>((<usize>load<u8>(data, 14)) << 2, STEP + 17 * 1024) ^
    load<u32>((<usize>load<u8>(data, 15)) << 2, STEP + 16 * 1024)
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

/** The register after an even number of units: two streams, as one alone waits for its own lookups. */
function advancePairs(data: usize, pairs: u32, register: u32): u32 {
  let even = register
  let odd: u32 = 0
  for (; pairs > 1; pairs--) {
    even = advance16And16(data, even)
    odd = advance16And16(data + UNIT, odd)
    data += 2 * UNIT
  }
  return advance16And16(data, even) ^ advance16(data + UNIT, odd)
}

// ------------------------------------------------------------------------------------------------------------- Folding

/** The register after at least 228 bytes, which pad to one block and 14 units. */
function fold(data: usize, byteLength: usize, register: u32): u32 {
  // Zeros in front of a message don't change a CRC that starts from 0, so with the right number of them every loop below
  // sees whole blocks, up to the last 14 units.
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
  if (byteLength < FOLD_625_FROM) {
    drain209(fold209(HEAD, start + BLOCK, blocks), start + BLOCK * blocks)
  } else {
    blocks -= 4
    drain625(fold625(HEAD, start + BLOCK, blocks), start + BLOCK * blocks)
    drain209(fold209(TAIL, TAIL + BLOCK, 4), TAIL + 4 * BLOCK)
  }
  shrink130()
  shrink62()
  return advancePairs(TAIL, 2, 0)
}

/** Makes HEAD of the block at `start`, whose first `padding` bytes aren't the message's; they read as zeros. */
// @ts-ignore: decorator
@inline
function shapeHead(start: usize, padding: usize, register: u32): void {
  const seed = i32x4.splat(rotl(register, (<u32>padding) << 3))
  for (let at: usize = 0; at < BLOCK; at += UNIT) {
    const message = v128.and(v128.load(start + at), v128.load(START_MASK + BLOCK - padding + at))
    v128.store(HEAD + at, v128.xor(message, v128.and(seed, v128.load(SEED_MASK + BLOCK - padding + at))))
  }
}

/** Writes zeros. */
// @ts-ignore: decorator
@inline
function clear(units: usize, count: usize): void {
  for (const end = units + count * UNIT; units < end; units += UNIT) v128.store(units, i64x2.splat(0))
}

// ---------------------------------------------------------------------------------------------------------------- F625

/**
 * One unit of F625: taps 432, 447, 481, 544 and 625 bytes back. `near` is the unit 27 back; `pair` the sum of the units
 * 30 and 39 back, as 481 = 30·16 + 1 and 625 = 39·16 + 1.
 */
// @ts-ignore: decorator
@inline
function unit625(message: v128, tap544: v128, nearBefore: v128, near: v128, pairBefore: v128, pair: v128): v128 {
  return xor5(message, tap544, near, back15(nearBefore, near), back1(pairBefore, pair))
}

/**
 * Folds the block at `first` and then those at `rest`, `blocks` in total. At `history` are the 40 units before them, and
 * behind these, zeros if draining; then v goes elsewhere.
 */
function run625(first: usize, rest: usize, blocks: usize, history: usize, output: usize): void {
  const end = history + blocks * BLOCK
  let input = first
  let next = rest
  // The units 30, 29 and 28 back: each was the unit 27 back before, and stays in a register for three units more.
  let a = v128.load(history, 160)
  let b = v128.load(history, 176)
  let c = v128.load(history, 192)
  let d: v128
  let x = v128.xor(v128.load(history, 144), v128.load(history))
  let y: v128
  do {
    d = v128.load(history, 208)
    y = v128.xor(a, v128.load(history, 16))
    v128.store(output, unit625(v128.load(input), v128.load(history, 96), c, d, x, y))
    a = v128.load(history, 224)
    x = v128.xor(b, v128.load(history, 32))
    v128.store(output, unit625(v128.load(input, 16), v128.load(history, 112), d, a, y, x), 16)
    b = v128.load(history, 240)
    y = v128.xor(c, v128.load(history, 48))
    v128.store(output, unit625(v128.load(input, 32), v128.load(history, 128), a, b, x, y), 32)
    c = v128.load(history, 256)
    x = v128.xor(d, v128.load(history, 64))
    v128.store(output, unit625(v128.load(input, 48), v128.load(history, 144), b, c, y, x), 48)
    d = v128.load(history, 272)
    y = v128.xor(a, v128.load(history, 80))
    v128.store(output, unit625(v128.load(input, 64), v128.load(history, 160), c, d, x, y), 64)
    a = v128.load(history, 288)
    x = v128.xor(b, v128.load(history, 96))
    v128.store(output, unit625(v128.load(input, 80), v128.load(history, 176), d, a, y, x), 80)
    b = v128.load(history, 304)
    y = v128.xor(c, v128.load(history, 112))
    v128.store(output, unit625(v128.load(input, 96), v128.load(history, 192), a, b, x, y), 96)
    c = v128.load(history, 320)
    x = v128.xor(d, v128.load(history, 128))
    v128.store(output, unit625(v128.load(input, 112), v128.load(history, 208), b, c, y, x), 112)
    history += BLOCK
    output += BLOCK
    input = next
    next += BLOCK
  } while (history < end)
}

/**
 * Folds the block at `first` and then those at `rest`, `blocks` in total.
 * @returns the last 40 units of history
 */
function fold625(first: usize, rest: usize, blocks: usize): usize {
  clear(HISTORY, REACH_625)
  while (true) {
    const count = min(blocks, CHUNK_BLOCKS)
    run625(first, rest, count, HISTORY, HISTORY + REACH_625 * UNIT)
    blocks -= count
    if (blocks == 0) return HISTORY + count * BLOCK
    for (let at: usize = 0; at < REACH_625 * UNIT; at += UNIT) {
      v128.store(HISTORY + at, v128.load(HISTORY + count * BLOCK + at))
    }
    first = rest + (count - 1) * BLOCK
    rest = first + BLOCK
  }
}

/** Adds the history's last 40 units to the message's last 46, giving TAIL. */
function drain625(history: usize, message: usize): void {
  clear(history + REACH_625 * UNIT, REACH_625)
  run625(message, message + BLOCK, REACH_625 / 8, history, TAIL)
  for (let at = REACH_625 * UNIT; at < 46 * UNIT; at += UNIT) v128.store(TAIL + at, v128.load(message + at))
}

// ---------------------------------------------------------------------------------------------------------------- F209

/**
 * One unit of F209: taps 65, 155, 170, 195 and 209 bytes back. `e0` … `e4` are the units 13 … 9 back; `pair` is the sum
 * of the units 4 and 13 back, as 65 = 4·16 + 1 and 209 = 13·16 + 1 can share a shuffle. The latest unit comes last.
 */
// @ts-ignore: decorator
@inline
function unit209(message: v128, pairBefore: v128, pair: v128, e0: v128, e1: v128, e2: v128, e3: v128, e4: v128): v128 {
  return xor5(message, back3(e0, e1), back10(e2, e3), back11(e3, e4), back1(pairBefore, pair))
}

/**
 * Folds the block at `first` and then those at `rest`, `blocks` in total: a chunk at most, by FOLD_625_FROM.
 * @returns the last 14 units of history
 */
function fold209(first: usize, rest: usize, blocks: usize): usize {
  let history = HISTORY
  const end = history + blocks * BLOCK
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
  return history
}

/** Ends F209: adds the last 14 units of v to the message's last 14, giving TAIL. What lies behind them in v is zero. */
function drain209(history: usize, message: usize): void {
  const zero = i64x2.splat(0)
  const v0 = v128.load(history)
  const v1 = v128.load(history, 16)
  const v2 = v128.load(history, 32)
  const v3 = v128.load(history, 48)
  const v4 = v128.load(history, 64)
  const v5 = v128.load(history, 80)
  const v6 = v128.load(history, 96)
  const v7 = v128.load(history, 112)
  const v8 = v128.load(history, 128)
  const v9 = v128.load(history, 144)
  const v10 = v128.load(history, 160)
  const v11 = v128.load(history, 176)
  const v12 = v128.load(history, 192)
  const v13 = v128.load(history, 208)
  const p0 = v128.xor(v9, v0)
  const p1 = v128.xor(v10, v1)
  const p2 = v128.xor(v11, v2)
  const p3 = v128.xor(v12, v3)
  const p4 = v128.xor(v13, v4)
  v128.store(TAIL, unit209(v128.load(message), p0, p1, v1, v2, v3, v4, v5))
  v128.store(TAIL, unit209(v128.load(message, 16), p1, p2, v2, v3, v4, v5, v6), 16)
  v128.store(TAIL, unit209(v128.load(message, 32), p2, p3, v3, v4, v5, v6, v7), 32)
  v128.store(TAIL, unit209(v128.load(message, 48), p3, p4, v4, v5, v6, v7, v8), 48)
  v128.store(TAIL, unit209(v128.load(message, 64), p4, v5, v5, v6, v7, v8, v9), 64)
  v128.store(TAIL, unit209(v128.load(message, 80), v5, v6, v6, v7, v8, v9, v10), 80)
  v128.store(TAIL, unit209(v128.load(message, 96), v6, v7, v7, v8, v9, v10, v11), 96)
  v128.store(TAIL, unit209(v128.load(message, 112), v7, v8, v8, v9, v10, v11, v12), 112)
  v128.store(TAIL, unit209(v128.load(message, 128), v8, v9, v9, v10, v11, v12, v13), 128)
  v128.store(TAIL, unit209(v128.load(message, 144), v9, v10, v10, v11, v12, v13, zero), 144)
  v128.store(TAIL, xor4(v128.load(message, 160), back3(v11, v12), back10(v13, zero), back1(v10, v11)), 160)
  v128.store(TAIL, xor3(v128.load(message, 176), back3(v12, v13), back1(v11, v12)), 176)
  v128.store(TAIL, xor3(v128.load(message, 192), back3(v13, zero), back1(v12, v13)), 192)
  v128.store(TAIL, v128.xor(v128.load(message, 208), back1(v13, zero)), 208)
}

// --------------------------------------------------------------------------------------------------- The last 14 units
//
// With so little left, folds with more taps but nearer ones still beat lookups. They are written out unit by unit, less
// the terms that are zero: no history but these few units.

/**
 * Folds TAIL from 14 units to 9 with taps 66, 67, 70, 97, 98, 105 and 130 bytes back, of which 66, 98 and 130 share a
 * shuffle. v are the units folded; the sum of those sharing is p.
 */
function shrink130(): void {
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

/**
 * Folds TAIL from 9 units to 4 with taps 19, 40, 43, 45, 46, 48, 52, 54 and 62 bytes back, of which 46 and 62 share a
 * shuffle.
 */
function shrink62(): void {
  const zero = i64x2.splat(0)
  const v0 = v128.load(TAIL)
  const v1 = v128.xor(v128.load(TAIL, 16), back3(zero, v0))
  const v2 = xor6(
    v128.load(TAIL, 32),
    back14(zero, v0),
    back13(zero, v0),
    back11(zero, v0),
    back8(zero, v0),
    back3(v0, v1),
  )
  const p3 = v128.xor(v1, v0)
  const v3 = xor9(
    v128.load(TAIL, 48),
    back6(zero, v0),
    back4(zero, v0),
    v0,
    back14(v0, p3),
    back13(v0, v1),
    back11(v0, v1),
    back8(v0, v1),
    back3(v1, v2),
  )
  const p4 = v128.xor(v2, v1)
  const v4 = xor9(
    v128.load(TAIL, 64),
    back6(v0, v1),
    back4(v0, v1),
    v1,
    back14(p3, p4),
    back13(v1, v2),
    back11(v1, v2),
    back8(v1, v2),
    back3(v2, v3),
  )
  const p5 = v128.xor(v3, v2)
  const u0 = xor9(
    v128.load(TAIL, 80),
    back6(v1, v2),
    back4(v1, v2),
    v2,
    back14(p4, p5),
    back13(v2, v3),
    back11(v2, v3),
    back8(v2, v3),
    back3(v3, v4),
  )
  v128.store(TAIL, u0)
  const p6 = v128.xor(v4, v3)
  const u1 = xor9(
    v128.load(TAIL, 96),
    back6(v2, v3),
    back4(v2, v3),
    v3,
    back14(p5, p6),
    back13(v3, v4),
    back11(v3, v4),
    back8(v3, v4),
    back3(v4, zero),
  )
  v128.store(TAIL, u1, 16)
  const u2 = xor8(
    v128.load(TAIL, 112),
    back6(v3, v4),
    back4(v3, v4),
    v4,
    back14(p6, v4),
    back13(v4, zero),
    back11(v4, zero),
    back8(v4, zero),
  )
  v128.store(TAIL, u2, 32)
  v128.store(TAIL, xor4(v128.load(TAIL, 128), back6(v4, zero), back4(v4, zero), back14(v4, zero)), 48)
}

// ------------------------------------------------------------------------------------------------------------ Shuffles

// A tap 16·a + r bytes back begins in the unit a + 1 before and ends in the one a before: one shuffle, which V8 makes a
// single instruction. Loading it misaligned from the history would wait for the stores to reach the cache.

// @ts-ignore: decorator
@inline
function back1(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
}

// @ts-ignore: decorator
@inline
function back2(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
}

// @ts-ignore: decorator
@inline
function back3(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
}

// @ts-ignore: decorator
@inline
function back4(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)
}

// @ts-ignore: decorator
@inline
function back6(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25)
}

// @ts-ignore: decorator
@inline
function back8(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
}

// @ts-ignore: decorator
@inline
function back9(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
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
function back13(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
}

// @ts-ignore: decorator
@inline
function back14(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
}

// @ts-ignore: decorator
@inline
function back15(before: v128, unit: v128): v128 {
  return i8x16.shuffle(before, unit, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
}

// @ts-ignore: decorator
@inline
function xor3(a: v128, b: v128, c: v128): v128 {
  return v128.xor(v128.xor(a, b), c)
}

// @ts-ignore: decorator
@inline
function xor4(a: v128, b: v128, c: v128, d: v128): v128 {
  return v128.xor(v128.xor(a, b), v128.xor(c, d))
}

// @ts-ignore: decorator
@inline
function xor5(a: v128, b: v128, c: v128, d: v128, e: v128): v128 {
  return v128.xor(xor3(a, b, c), v128.xor(d, e))
}

// @ts-ignore: decorator
@inline
function xor6(a: v128, b: v128, c: v128, d: v128, e: v128, f: v128): v128 {
  return v128.xor(xor3(a, b, c), xor3(d, e, f))
}

// @ts-ignore: decorator
@inline
function xor8(a: v128, b: v128, c: v128, d: v128, e: v128, f: v128, g: v128, h: v128): v128 {
  return v128.xor(xor4(a, b, c, d), xor4(e, f, g, h))
}

// @ts-ignore: decorator
@inline
function xor9(a: v128, b: v128, c: v128, d: v128, e: v128, f: v128, g: v128, h: v128, i: v128): v128 {
  return v128.xor(xor5(a, b, c, d, e), xor4(f, g, h, i))
}
