// Folding: clears the front of a message without changing its CRC, by multiples of P with few terms (see crc32c.ts).
//
// Each byte v being cleared is the message's byte m plus what earlier ones put there. Seen from the receiving end, with
// the taps d of a fold, and v = 0 before the start and from where the fold ends:
//
//   v[i] = m[i] ⊕ v[i − d₁] ⊕ … ⊕ v[i − dₖ]        and, past the end, the message left is the same sum

import { advanceBytes } from './lookups'
import { foldWhole } from './short'
import { back1, back3, back10, back11, back15, xor3, xor4, xor5 } from './shuffles'
import { shrink130, TAIL } from './shrink'
import { SEED_MASK, START_MASK } from './tables'

/** Length from which F625 before F209 pays (measured). */
const FOLD_625_FROM: usize = 8192

const UNIT: usize = 16
/** The folding loops take 8 units at a time, which makes the loop's own overhead small. */
export const BLOCK: usize = 8 * UNIT

/** Units of history a fold looks back at. */
const REACH_209: usize = 14
const REACH_625: usize = 40

/** Blocks folded before the history is moved back to the start of its buffer; short enough to stay in the L1 cache. */
const CHUNK_BLOCKS: usize = 64

/** v: the reach, a chunk, and zeros for draining. */
const HISTORY: usize = memory.data((2 * 40 + 64 * 8) * 16, 128)

/** The first block of the input, padded and seeded. */
const HEAD: usize = memory.data(128, 128)

/** The register after at least 228 bytes, which pad to one block and 14 units. */
export function fold(data: usize, byteLength: usize, register: u32): u32 {
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
  return foldWhole(TAIL, 9)
}

/** Fills HEAD from the block at `start`. Its first `padding` bytes are not the message's and read as zeros. */
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
 * Folds the block at `first` and then those at `rest`, `blocks` in total. `history` holds the 40 units before them; v
 * goes to `output`, right after the history or, when draining, elsewhere: then zeros follow the history.
 */
function run625(first: usize, rest: usize, blocks: usize, history: usize, output: usize): void {
  const end = history + blocks * BLOCK
  let input = first
  let next = rest
  // The units 30, 29 and 28 back: each was the unit 27 back before, and stays in a register for three more units.
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

/** Ends F209: adds the last 14 units of v to the message's last 14, giving TAIL. After them, v is zero. */
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
