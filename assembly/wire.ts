// Protobuf's wire format: a cursor over one payload. Forward only.
//
// Positions are offsets in the payload, addresses are `origin + position`. That lets a payload have a hole: when the
// walk of a huge record skips its tensor_content, `skipHole` moves the origin to a buffer that holds the tail.
//
// A fault is sticky: the first one is kept, the cursor then reads zeros, and every loop over fields ends.

import { Status } from '../src/core/border/abi'


export const VARINT: u32 = 0
export const FIXED64: u32 = 1
export const LENGTH_DELIMITED: u32 = 2
const START_GROUP: u32 = 3
const END_GROUP: u32 = 4
export const FIXED32: u32 = 5

let origin: usize = 0
/** The payload's bytes before this position are in memory. */
let available: u32 = 0
/** Status.ok, or why the walk failed. */
let fault: i32 = Status.ok
let faultPosition: u32 = 0

/** The cursor's position. */
export let position: u32 = 0

/** Starts a walk over a payload of which `byteLength` bytes lie at `address`. */
export function open(address: usize, byteLength: u32): void {
  origin = address
  available = byteLength
  position = 0
  fault = Status.ok
  faultPosition = 0
}

/** Moves the cursor. */
export function seek(to: u32): void {
  position = to
}

/** Moves the cursor to the end of a field whose bytes have to be in memory. */
export function skipTo(end: u32): void {
  if (end > available) fail(Status.needMore, position)
  else position = end
}

// The bytes after a hole, and where in the payload they begin; tail is 0 if there is no hole.
let tail: usize = 0
let tailLength: u32 = 0
let tailStart: u32 = 0

/** Sets the bytes after a hole; address 0: there is no hole. */
export function setTail(address: usize, byteLength: u32, start: u32): void {
  tail = address
  tailLength = byteLength
  tailStart = start
}

/** Moves the cursor to the end of a field whose bytes may be the hole. */
export function skipHole(end: u32): void {
  if (end <= available) {
    position = end
  } else if (tail == 0) {
    fail(Status.needTail, end)
  } else if (end == tailStart) {
    position = end
    origin = tail - end
    available = end + tailLength
  } else {
    fail(Status.malformedEvent, position)
  }
}

/** True if an address lies in the tail. */
export function isInTail(at: usize): bool {
  return tail != 0 && at >= tail && at < tail + tailLength
}

/** The position of an address in the tail. */
export function tailPosition(at: usize): u32 {
  return tailStart + <u32>(at - tail)
}

/** The address of a position. */
export function address(at: u32): usize {
  return origin + at
}

export function status(): i32 {
  return fault
}

export function faultOffset(): u32 {
  return faultPosition
}

/** Ends the walk with a fault at a position. */
export function fail(code: i32, at: u32): void {
  if (fault == Status.ok) {
    fault = code
    faultPosition = at
  }
}

/** True while there are fields left in the message that ends at `end`. */
export function more(end: u32): bool {
  return fault == Status.ok && position < end
}

/** True if `byteLength` bytes before `end` can be read at the cursor; sets a fault if not. */
function ready(byteLength: u32, end: u32): bool {
  if (fault != Status.ok) return false
  if (byteLength > end - position) {
    fail(Status.malformedEvent, position)
    return false
  }
  if (byteLength > available - position) {
    fail(Status.needMore, position)
    return false
  }
  return true
}

/** True if a byte before `end` can be read at the cursor. */
// @ts-ignore: decorator
@inline
function hasByte(end: u32): bool {
  return fault == Status.ok && position < min(end, available)
}

/** A base-128 varint of at most ten bytes. */
export function readVarint(end: u32): u64 {
  // Most are of one byte.
  if (hasByte(end)) {
    const byte = load<u8>(origin + position)
    if (byte < 0x80) {
      position++
      return byte
    }
  }
  return readLongVarint(end)
}

function readLongVarint(end: u32): u64 {
  let value: u64 = 0
  for (let shift: u64 = 0; shift < 70; shift += 7) {
    if (!ready(1, end)) return 0
    const byte = load<u8>(origin + position)
    position++
    value |= <u64>(byte & 0x7f) << shift
    if (byte < 0x80) return value
  }
  fail(Status.malformedEvent, position)
  return 0
}

/** A field's key: number << 3 | wire type. Field number 0 is refused. */
export function readKey(end: u32): u32 {
  const start = position
  if (hasByte(end)) {
    const byte = <u32>load<u8>(origin + start)
    if (byte - 8 < 0x78) {
      position = start + 1
      return byte
    }
  }
  const key = readVarint(end)
  if (key < 8 || key > 0xffffffff) fail(Status.malformedEvent, start)
  return fault == Status.ok ? <u32>key : 0
}

/** Reads the length of a length-delimited field and returns where it ends; the cursor is then at its first byte. */
export function readEnd(end: u32): u32 {
  const start = position
  if (hasByte(end)) {
    const byte = <u32>load<u8>(origin + start)
    if (byte < 0x80 && byte < end - start) {
      position = start + 1
      return start + 1 + byte
    }
  }
  const byteLength = readVarint(end)
  if (byteLength > <u64>(end - position)) {
    fail(Status.malformedEvent, start)
    return position
  }
  return position + <u32>byteLength
}

export function readFixed32(end: u32): u32 {
  if (!ready(4, end)) return 0
  const value = load<u32>(origin + position)
  position += 4
  return value
}

export function readFixed64(end: u32): u64 {
  if (!ready(8, end)) return 0
  const value = load<u64>(origin + position)
  position += 8
  return value
}

/** Skips the value of a field whose key was just read. */
export function skip(key: u32, end: u32): void {
  let depth = 0
  for (;;) {
    const wireType = key & 7
    if (wireType == VARINT) {
      readVarint(end)
    } else if (wireType == FIXED64) {
      if (ready(8, end)) position += 8
    } else if (wireType == LENGTH_DELIMITED) {
      skipTo(readEnd(end))
    } else if (wireType == FIXED32) {
      if (ready(4, end)) position += 4
    } else if (wireType == START_GROUP) {
      depth++
    } else if (wireType == END_GROUP && depth > 0) {
      depth--
    } else {
      fail(Status.malformedEvent, position)
    }
    if (depth == 0 || fault != Status.ok) return
    key = readKey(end)
  }
}
