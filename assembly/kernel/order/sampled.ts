// Order statistics of many float32. A sample tells between which two numbers each wanted one lies, in nearly all cases. One pass counts what
// is below these windows and puts aside what is within, few numbers, among which the wanted ones are found by digits. Where a sample
// misleads, all are counted by digits: that is slower, and never wrong.

import { countedScratchLength, selectCounted } from './counted'

/** Count from which a sample pays (measured). */
const SAMPLED_FROM: u32 = 1 << 13
const MAX_SAMPLES: u32 = 1 << 14
/** The reach of a window to either side, in standard deviations of the rank in the sample: 3 misses 3 of 1,000. */
const DEVIATIONS: f64 = 3
/** The largest number of windows; with more, counting by digits is as fast. */
const MAX_WINDOWS: u32 = 8
/** Numbers that go through all windows before the next ones do, so that they stay in the L1 cache. */
const BLOCK: u32 = 2048

// A window.
/** The ends of the windows, as keys: 4 × i32 each. */
const LOW: usize = 0
const HIGH: usize = 16
/** The rank it was made for. */
const RANK: usize = 32
/** The number of values below the lower end, not above it, and not above the upper end. */
const BELOW: usize = 36
const UP_TO_LOW: usize = 40
const UP_TO_HIGH: usize = 44
/**
 * The number of values between the ends, and their place. Values that equal an end, which can be very many, are only counted.
 */
const BETWEEN: usize = 48
const ROOM: usize = 52
const WINDOW: usize = 64

const windows: usize = memory.data(8 * 64, 16)
/** The shuffle for each set of lanes that moves them to the front. */
const toFront: usize = memory.data(16 * 16, 16)

/** Scratch bytes that `selectFloat32` needs for this many numbers and ranks. */
export function selectScratchLength(count: u32, ranks: u32): usize {
  if (count < SAMPLED_FROM) return countedScratchLength(ranks)
  return sampleStart(ranks) + (MAX_SAMPLES << 2) + <usize>mostWindows(ranks) * roomLength(count)
}

/** Ranks come in pairs of neighbours, which share a window. */
// @ts-ignore: decorator
@inline
function mostWindows(ranks: u32): u32 {
  return min((ranks + 1) >> 1, MAX_WINDOWS)
}

// Scratch: that of selectCounted, which is called with all ranks or with the two ends of each window; two lists of ranks; the sample; the rooms.
// @ts-ignore: decorator
@inline
function listStart(ranks: u32): usize {
  return countedScratchLength(max(ranks, 2 * MAX_WINDOWS))
}

// @ts-ignore: decorator
@inline
function sampleStart(ranks: u32): usize {
  return listStart(ranks) + 2 * (<usize>max(ranks, 2 * MAX_WINDOWS) << 3)
}

/** The bytes for the numbers of a window: more than are expected, and a block. */
function roomLength(count: u32): usize {
  return <usize>((count >> 5) + 2 * BLOCK) << 2
}

/**
 * The k-th smallest of float32 numbers for several k, counted from 0 and less than `count`. −0 is less than 0.
 * @param numbers float64: each k, replaced by the number it selects
 * @param scratch `selectScratchLength(count, ranks)` bytes
 * @returns 0 if there is a NaN, which has no order
 */
export function selectFloat32(data: usize, count: u32, numbers: usize, ranks: u32, scratch: usize): i32 {
  const result = count < SAMPLED_FROM ? -1 : selectSampled(data, count, numbers, ranks, scratch)
  return result < 0 ? selectCounted(data, count, numbers, ranks, scratch) : result
}

/** Finds ranks with a sample. @returns -1 if the sample does not help; `numbers` are still ranks then */
function selectSampled(data: usize, count: u32, numbers: usize, ranks: u32, scratch: usize): i32 {
  const sample = scratch + sampleStart(ranks)
  const last = placeWindows(count, numbers, ranks, sample + (MAX_SAMPLES << 2))
  if (last == 0) return -1
  if (!setEnds(data, count, last, scratch, scratch + listStart(ranks), sample)) return 0

  fillToFront()
  const most = <u32>(roomLength(count) >> 2) - BLOCK
  for (let left = count; left > 0; ) {
    const n = min(left, BLOCK)
    if (holdsNaN(data, n)) return 0
    for (let window = windows; window != last; window += WINDOW) {
      look(data, n, window)
      if (load<u32>(window, BETWEEN) > most) return -1
    }
    data += <usize>n << 2
    left -= n
  }
  for (let number = numbers, end = numbers + (<usize>ranks << 3); number != end; number += 8) {
    const k = <u32>load<f64>(number)
    const window = windowOf(k, count, last)
    if (k < load<u32>(window, BELOW) || k >= load<u32>(window, UP_TO_HIGH)) return -1
  }
  takeNumbers(count, numbers, ranks, last, scratch)
  return 1
}

// @ts-ignore: decorator
@inline
function sampleSize(count: u32): u32 {
  return min(count >> 3, MAX_SAMPLES)
}

/** The window of a rank; `last` if there is none yet. */
function windowOf(k: u32, count: u32, last: usize): usize {
  const near = count / sampleSize(count)
  let window = windows
  for (; window != last; window += WINDOW) {
    const rank = load<u32>(window, RANK)
    if ((k > rank ? k - rank : rank - k) <= near) break
  }
  return window
}

/** Places windows around the wanted ranks. @returns the end of the windows; 0 if there would be too many */
function placeWindows(count: u32, numbers: usize, ranks: u32, rooms: usize): usize {
  let last = windows
  for (let number = numbers, end = numbers + (<usize>ranks << 3); number != end; number += 8) {
    const k = <u32>load<f64>(number)
    if (windowOf(k, count, last) != last) continue
    if (last == windows + <usize>mostWindows(ranks) * WINDOW) return 0
    store<u32>(last, k, RANK)
    memory.fill(last + BELOW, 0, ROOM - BELOW)
    store<u32>(last, <u32>rooms, ROOM)
    rooms += roomLength(count)
    last += WINDOW
  }
  return last
}

/** Sets the ends of the windows. @returns whether the sample has no NaN */
function setEnds(data: usize, count: u32, last: usize, scratch: usize, ends: usize, sample: usize): bool {
  const size = sampleSize(count)
  const stride = count / size
  for (let i: u32 = 0; i < size; i++) {
    // The distances vary, because data may have a period.
    const at = i * stride + ((i * 0x9e3779b1) >> 16) % stride
    store<u32>(sample + (<usize>i << 2), load<u32>(data + (<usize>at << 2)))
  }
  let end = ends
  for (let window = windows; window != last; window += WINDOW) {
    const rank = (<f64>load<u32>(window, RANK) * <f64>size) / <f64>count
    const reach = 2 + DEVIATIONS * sqrt((rank * (<f64>size - rank)) / <f64>size)
    store<f64>(end, max(rank - reach, 0))
    store<f64>(end, min(rank + reach, <f64>(size - 1)), 8)
    // Beyond the sample lie all numbers.
    store<i32>(window, i32(rank < reach), LOW)
    store<i32>(window, i32(rank + reach > <f64>(size - 1)), HIGH)
    end += 16
  }
  if (!selectCounted(sample, size, ends, <u32>((end - ends) >> 3), scratch)) return false
  end = ends
  for (let window = windows; window != last; window += WINDOW) {
    const low = load<i32>(window, LOW) ? i32.MIN_VALUE : keyOf(<f32>load<f64>(end))
    const high = load<i32>(window, HIGH) ? i32.MAX_VALUE : keyOf(<f32>load<f64>(end, 8))
    v128.store(window, i32x4.splat(low), LOW)
    v128.store(window, i32x4.splat(high), HIGH)
    end += 16
  }
  return true
}

/** The signed integer that orders float32. */
// @ts-ignore: decorator
@inline
function keyOf(number: f32): i32 {
  const bits = reinterpret<i32>(number)
  return bits ^ ((bits >> 31) & i32.MAX_VALUE)
}

// @ts-ignore: decorator
@inline
function keysOf(bits: v128): v128 {
  return v128.xor(bits, i32x4.shr_u(i32x4.shr_s(bits, 31), 1))
}

/** Counts numbers by where they lie beside a window's ends, and puts aside those between. */
function look(data: usize, count: u32, window: usize): void {
  const low = v128.load(window, LOW)
  const high = v128.load(window, HIGH)
  const room = <usize>load<u32>(window, ROOM) + (<usize>load<u32>(window, BETWEEN) << 2)
  let to = room
  let below = i32x4.splat(0)
  let upToLow = below
  let upToHigh = below
  const end = data + (<usize>(count & ~3) << 2)
  for (; data != end; data += 16) {
    const bits = v128.load(data)
    const keys = keysOf(bits)
    const isUpToLow = i32x4.le_s(keys, low)
    below = i32x4.sub(below, i32x4.lt_s(keys, low))
    upToLow = i32x4.sub(upToLow, isUpToLow)
    upToHigh = i32x4.sub(upToHigh, i32x4.le_s(keys, high))
    const lanes = <usize>i32x4.bitmask(v128.andnot(i32x4.lt_s(keys, high), isUpToLow))
    v128.store(to, i8x16.swizzle(bits, v128.load(toFront + (lanes << 4))))
    to += <usize>popcnt<u32>(<u32>lanes) << 2
  }
  add(window + BELOW, sumOf(below))
  add(window + UP_TO_LOW, sumOf(upToLow))
  add(window + UP_TO_HIGH, sumOf(upToHigh))
  for (const last = data + (<usize>(count & 3) << 2); data != last; data += 4) {
    const key = keyOf(load<f32>(data))
    const isUpToLow = u32(key <= load<i32>(window, LOW))
    add(window + BELOW, u32(key < load<i32>(window, LOW)))
    add(window + UP_TO_LOW, isUpToLow)
    add(window + UP_TO_HIGH, u32(key <= load<i32>(window, HIGH)))
    store<u32>(to, load<u32>(data))
    to += <usize>(u32(key < load<i32>(window, HIGH)) & ~isUpToLow) << 2
  }
  add(window + BETWEEN, <u32>((to - room) >> 2))
}

// @ts-ignore: decorator
@inline
function add(at: usize, more: u32): void {
  store<u32>(at, load<u32>(at) + more)
}

function sumOf(lanes: v128): u32 {
  const pairs = i32x4.add(lanes, i8x16.shuffle(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7))
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1)
}

function fillToFront(): void {
  for (let lanes: usize = 0; lanes < 16; lanes++) {
    let at = toFront + (lanes << 4)
    for (let lane: u32 = 0; lane < 4; lane++) {
      store<u32>(at, 0x03020100 + 0x04040404 * lane)
      at += ((lanes >> lane) & 1) << 2
    }
  }
}

function holdsNaN(data: usize, count: u32): bool {
  let nans = i32x4.splat(0)
  const end = data + (<usize>(count & ~3) << 2)
  for (; data != end; data += 16) {
    const numbers = v128.load(data)
    nans = v128.or(nans, f32x4.ne(numbers, numbers))
  }
  let hasNan = v128.any_true(nans)
  for (const last = data + (<usize>(count & 3) << 2); data != last; data += 4) {
    hasNan = hasNan || load<f32>(data) != load<f32>(data)
  }
  return hasNan
}

/** Replaces ranks by numbers, window by window. */
function takeNumbers(count: u32, numbers: usize, ranks: u32, last: usize, scratch: usize): void {
  const wanted = scratch + listStart(ranks)
  const list = wanted + (<usize>ranks << 3)
  memory.copy(wanted, numbers, <usize>ranks << 3)
  for (let window = windows; window != last; window += WINDOW) {
    const upToLow = load<u32>(window, UP_TO_LOW)
    const between = load<u32>(window, BETWEEN)
    let next = list
    for (let at: usize = 0; at < <usize>ranks << 3; at += 8) {
      const k = <u32>load<f64>(wanted + at)
      if (windowOf(k, count, last) != window) continue
      if (k < upToLow) store<f64>(numbers + at, numberOf(load<i32>(window, LOW)))
      else if (k - upToLow >= between) store<f64>(numbers + at, numberOf(load<i32>(window, HIGH)))
      else {
        store<f64>(next, <f64>(k - upToLow))
        next += 8
      }
    }
    if (next == list) continue
    selectCounted(load<u32>(window, ROOM), between, list, <u32>((next - list) >> 3), scratch)
    next = list
    for (let at: usize = 0; at < <usize>ranks << 3; at += 8) {
      const k = <u32>load<f64>(wanted + at)
      if (windowOf(k, count, last) != window || k < upToLow || k - upToLow >= between) continue
      store<f64>(numbers + at, load<f64>(next))
      next += 8
    }
  }
}

// @ts-ignore: decorator
@inline
function numberOf(key: i32): f64 {
  return <f64>reinterpret<f32>(key ^ ((key >> 31) & i32.MAX_VALUE))
}
