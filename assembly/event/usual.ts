// The usual Event, as hooks write it: one Value, each part once, the elements in one piece, all of it in memory. Its walk keeps
// the cursor in a local variable, where that of event.ts lies in memory, since it may lead over a hole: so it takes a third of the
// time. Whatever else an Event may be is left to event.ts, which alone refuses.

import { DTypeNumber, MAX_DIMENSIONS, Placement, RecordSlot, ValueKind } from '../../src/core/border/abi'
import { arenaMark, arenaPush, arenaRelease } from '../arena'
import { HEADER_LENGTH } from '../tfrecord'
import * as key from './keys'
import { setPlugin, showsHistograms } from './plugin'
import { MAX_ELEMENTS } from './resolve'

/**
 * Walks the payload of a record that is completely in memory.
 * @returns whether it is usual; if not, the slot says nothing
 */
export function walkUsual(slot: usize, payloadLength: u32): bool {
  const mark = arenaMark()
  for (let at = RecordSlot.status; at < RecordSlot.size; at += 16) v128.store(slot + at, i64x2.splat(0))
  store<f64>(slot, -1, RecordSlot.modeStep)
  const start = <usize>load<u32>(slot, RecordSlot.frame) + HEADER_LENGTH
  if (walkEvent(slot, start, start + payloadLength)) return true
  arenaRelease(mark)
  return false
}

// Lengths are compared with what is left before the cursor moves. Nothing is read beyond the footer of four bytes behind the payload:
// a varint that begins with its last byte ends there.

/** A varint of at most four bytes, above three bits that say how many there are; 0: it is longer. */
// @ts-ignore: decorator
@inline
function varint(p: usize): u32 {
  const byte = <u32>load<u8>(p)
  return byte < 0x80 ? (byte << 3) | 1 : longVarint(p)
}

function longVarint(p: usize): u32 {
  const bytes = load<u32>(p)
  const low = (bytes & 0x7f) | ((bytes >> 1) & 0x3f80)
  if (!(bytes & 0x8000)) return (low << 3) | 2
  const more = low | ((bytes >> 2) & 0x1fc000)
  if (!(bytes & 0x800000)) return (more << 3) | 3
  return bytes & 0x80000000 ? 0 : ((more | ((bytes >> 3) & 0xfe00000)) << 3) | 4
}

/** True if a field of the length that `varint` read ends where its message does, or before. */
// @ts-ignore: decorator
@inline
function fits(length: u32, p: usize, end: usize): bool {
  return length != 0 && p <= end && <usize>(length >> 3) <= end - p
}

function walkEvent(slot: usize, start: usize, end: usize): bool {
  let p = start
  let value: usize = 0
  let valueEnd: usize = 0
  while (p < end) {
    const field = <u32>load<u8>(p)
    if (field == key.EVENT_WALL_TIME) {
      if (end - p < 9) return false
      store<u64>(slot, load<u64>(p, 1), RecordSlot.wallTime)
      p += 9
      continue
    }
    const number = varint(p + 1)
    p += 1 + (number & 7)
    if (field == key.EVENT_STEP) {
      if (number == 0) return false
      store<f64>(slot, <f64>(number >> 3), RecordSlot.eventStep)
      continue
    }
    if (field != key.EVENT_SUMMARY || value != 0 || !fits(number, p, end) || number >> 3 < 2) return false
    const summaryEnd = p + <usize>(number >> 3)
    const valueLength = varint(p + 1)
    if (load<u8>(p) != key.SUMMARY_VALUE) return false
    value = p + 1 + (valueLength & 7)
    if (!fits(valueLength, value, summaryEnd)) return false
    valueEnd = value + <usize>(valueLength >> 3)
    if (valueEnd != summaryEnd) return false
    p = summaryEnd
  }
  return p == end && value != 0 && walkValue(slot, start, value, valueEnd)
}

function walkValue(slot: usize, start: usize, value: usize, end: usize): bool {
  let tag: usize = 0
  let tagLength: u32 = 0
  let tensor: usize = 0
  let tensorEnd: usize = 0
  let p = value
  while (p < end) {
    const field = <u32>load<u8>(p)
    const number = varint(p + 1)
    p += 1 + (number & 7)
    if (!fits(number, p, end)) return false
    const length = number >> 3
    if (field == key.VALUE_TAG && tag == 0) {
      tag = p
      tagLength = length
    } else if (field == key.VALUE_TENSOR && tensor == 0) {
      tensor = p
      tensorEnd = p + length
    } else if (field != key.VALUE_METADATA || !walkMetadata(slot, p, p + length)) return false
    p += length
  }
  if (tensor == 0) return false
  const wanted = <usize>load<u32>(slot, RecordSlot.askedTag)
  if (wanted != 0 && (tagLength != load<u32>(slot, RecordSlot.askedTagLength) || !isSame(tag, wanted, tagLength))) return false
  store<u32>(slot, <u32>tag, RecordSlot.tag)
  store<u32>(slot, tagLength, RecordSlot.tagLength)
  store<u32>(slot, <u32>value, RecordSlot.value)
  store<u32>(slot, <u32>(end - value), RecordSlot.valueLength)
  store<i32>(slot, ValueKind.tensor, RecordSlot.valueKind)
  return walkTensor(slot, start, tensor, tensorEnd)
}

function isSame(a: usize, b: usize, byteLength: u32): bool {
  let i: u32 = 0
  for (; i + 8 <= byteLength; i += 8) if (load<u64>(a + i) != load<u64>(b + i)) return false
  for (; i < byteLength; i++) if (load<u8>(a + i) != load<u8>(b + i)) return false
  return true
}

/** Mode and mode step. */
function walkMetadata(slot: usize, p: usize, end: usize): bool {
  while (p < end) {
    const length = varint(p + 1)
    if (load<u8>(p) != key.METADATA_PLUGIN) return false
    p += 1 + (length & 7)
    if (!fits(length, p, end) || length >> 3 < 4) return false
    const pluginEnd = p + <usize>(length >> 3)
    const nameLength = varint(p + 1)
    const name = p + 1 + (nameLength & 7)
    if (load<u8>(p) != key.PLUGIN_NAME || !fits(nameLength, name, pluginEnd)) return false
    p = name + <usize>(nameLength >> 3)
    if (p == pluginEnd) return false
    const contentLength = varint(p + 1)
    const content = p + 1 + (contentLength & 7)
    if (load<u8>(p) != key.PLUGIN_CONTENT || !fits(contentLength, content, pluginEnd)) return false
    p = content + <usize>(contentLength >> 3)
    if (p != pluginEnd || showsHistograms(name, nameLength >> 3)) return false
    setPlugin(slot, name, nameLength >> 3, content, contentLength >> 3)
  }
  return true
}

function walkTensor(slot: usize, start: usize, tensor: usize, end: usize): bool {
  let dtype: u32 = 0
  let data: usize = 0
  let hasShape = false
  let count: f64 = 1
  let p = tensor
  while (p < end) {
    const field = <u32>load<u8>(p)
    const number = varint(p + 1)
    p += 1 + (number & 7)
    if (field == key.TENSOR_DTYPE && dtype == 0) {
      if (number == 0) return false
      dtype = number >> 3
      continue
    }
    if (!fits(number, p, end)) return false
    const length = number >> 3
    if (field == key.TENSOR_SHAPE && !hasShape) {
      hasShape = true
      count = walkShape(slot, p, p + length)
      if (count < 0) return false
    } else if (field == key.TENSOR_CONTENT && data == 0 && length > 0) {
      data = p
      store<u32>(slot, length, RecordSlot.dataLength)
    } else return false
    p += length
  }
  // Text, by its dtype or for lack of one, is left to event.ts.
  if (p != end || data == 0 || dtype == 0 || dtype == DTypeNumber.string) return false
  store<i32>(slot, <i32>dtype, RecordSlot.dtype)
  store<f64>(slot, count, RecordSlot.elementCount)
  store<i32>(slot, Placement.content, RecordSlot.placement)
  store<u32>(slot, <u32>data, RecordSlot.data)
  store<u32>(slot, <u32>(data - start) + HEADER_LENGTH, RecordSlot.dataOffset)
  return true
}

/** Walks a shape. @returns the number of elements; less than 0 for an unusual one */
function walkShape(slot: usize, p: usize, end: usize): f64 {
  if (p == end) return 1
  // A dimension takes four bytes or more.
  const most = min(<u32>(end - p) >> 2, <u32>MAX_DIMENSIONS)
  const dims = arenaPush(most << 3)
  if (dims == 0) return -1
  const full = dims + (<usize>most << 3)
  let at = dims
  let count: f64 = 1
  while (p < end) {
    if (at == full || end - p < 4 || load<u8>(p) != key.SHAPE_DIM) return -1
    const length = varint(p + 1)
    const sizeAt = p + 1 + (length & 7)
    if (!fits(length, sizeAt, end) || length >> 3 < 2 || load<u8>(sizeAt) != key.DIM_SIZE) return -1
    const size = varint(sizeAt + 1)
    const name = sizeAt + 1 + (size & 7)
    p = sizeAt + <usize>(length >> 3)
    if (size == 0 || name > p) return -1
    // The hook gives dimensions names.
    if (name != p) {
      const nameLength = varint(name + 1)
      const nameEnd = name + 1 + (nameLength & 7) + <usize>(nameLength >> 3)
      if (load<u8>(name) != key.DIM_NAME || nameLength == 0 || nameEnd != p) return -1
    }
    store<f64>(at, <f64>(size >> 3))
    at += 8
    count *= <f64>(size >> 3)
  }
  if (!(count <= MAX_ELEMENTS)) return -1
  arenaRelease(at)
  store<u32>(slot, <u32>dims, RecordSlot.dims)
  store<u32>(slot, <u32>(at - dims) >> 3, RecordSlot.rank)
  return count
}
