// Compression by snappy, whose format is https://github.com/google/snappy/blob/main/format_description.txt.

import { SNAPPY_TABLE_BYTES } from '../src/core/border/abi'
import { copy } from './decimal'

/** Offsets take 16 bits, so what is compressed is cut into blocks of so many bytes. */
const BLOCK_BYTES: u32 = 1 << 16
const HASH_BITS: u32 = 31 - clz<u32>(SNAPPY_TABLE_BYTES) - 1

/** The bytes at the end of a block in which no match begins, so that eight can be loaded everywhere. */
const MARGIN: u32 = 15

/**
 * @param seen SNAPPY_TABLE_BYTES: for hashes of four bytes, where in the block such were seen last
 * @param out has space for byteLength + byteLength / 6 + 32 bytes
 * @returns bytes written
 */
export function compress(from: usize, byteLength: u32, seen: usize, out: usize): u32 {
  let at = out
  let length = byteLength
  while (length >= 0x80) {
    store<u8>(at++, length | 0x80)
    length >>= 7
  }
  store<u8>(at++, length)
  for (let start: u32 = 0; start < byteLength; start += BLOCK_BYTES) {
    at = compressBlock(from + start, min(BLOCK_BYTES, byteLength - start), seen, at)
  }
  return <u32>(at - out)
}

/** Compresses a block. @returns the next output position */
function compressBlock(block: usize, byteLength: u32, seen: usize, out: usize): usize {
  const end = block + byteLength
  /** The first byte that is not written yet. */
  let rest = block
  if (byteLength > MARGIN) {
    const last = end - MARGIN
    memory.fill(seen, 0, SNAPPY_TABLE_BYTES)
    let at = block + 1
    // The longer nothing was found, the fewer places are looked at.
    let missed: u32 = 32
    while (at < last) {
      const word = load<u32>(at)
      const before = meet(word, at, block, seen)
      if (load<u32>(before) != word) {
        at += missed++ >> 5
        continue
      }
      out = writeLiteral(rest, at, out)
      const match = matchEnd(before + 4, at + 4, end)
      out = writeCopy(<u32>(at - before), <u32>(match - at), out)
      if (match < last) meet(load<u32>(match - 1), match - 1, block, seen)
      at = rest = match
      missed = 32
    }
  }
  return writeLiteral(rest, end, out)
}

/** Notes where four bytes are. @returns where others of the same hash were noted, at first the block's start */
// @ts-ignore: decorator
@inline
function meet(word: u32, at: usize, block: usize, seen: usize): usize {
  const slot = seen + (<usize>((word * 0x1e35a7bd) >> (32 - HASH_BITS)) << 1)
  const before = block + <usize>load<u16>(slot)
  store<u16>(slot, <u32>(at - block))
  return before
}

/** The length of two equal runs. @param at the later one @returns the end in it */
function matchEnd(before: usize, at: usize, end: usize): usize {
  while (at + 8 <= end) {
    const difference = load<u64>(before) ^ load<u64>(at)
    if (difference != 0) return at + (<usize>ctz(difference) >> 3)
    before += 8
    at += 8
  }
  while (at < end && load<u8>(before) == load<u8>(at)) {
    before++
    at++
  }
  return at
}

function writeLiteral(from: usize, to: usize, out: usize): usize {
  const byteLength = <u32>(to - from)
  if (byteLength == 0) return out
  const less = byteLength - 1
  if (less < 60) {
    store<u8>(out++, less << 2)
  } else if (less < 1 << 8) {
    store<u8>(out, 60 << 2)
    store<u8>(out + 1, less)
    out += 2
  } else {
    store<u8>(out, 61 << 2)
    store<u16>(out + 1, less)
    out += 3
  }
  copy(out, from, byteLength)
  return out + byteLength
}

function writeCopy(offset: u32, byteLength: u32, out: usize): usize {
  // A copy has at most 64 bytes, and none of the short form less than 4.
  while (byteLength >= 68) {
    out = writeLongCopy(offset, 64, out)
    byteLength -= 64
  }
  if (byteLength > 64) {
    out = writeLongCopy(offset, 60, out)
    byteLength -= 60
  }
  if (byteLength >= 12 || offset >= 2048) return writeLongCopy(offset, byteLength, out)
  store<u8>(out, 1 | ((byteLength - 4) << 2) | ((offset >> 8) << 5))
  store<u8>(out + 1, offset)
  return out + 2
}

function writeLongCopy(offset: u32, byteLength: u32, out: usize): usize {
  store<u8>(out, 2 | ((byteLength - 1) << 2))
  store<u16>(out + 1, offset)
  return out + 3
}
