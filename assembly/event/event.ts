// Event ▸ Summary ▸ Value ▸ TensorProto: tag, mode, mode step, dtype, shape and where the
// elements are. Copies nothing that it can point to. Fields may come in any order; unknown fields, and fields of another wire
// type than the schema's, are skipped; a message that comes in pieces is merged, as protobuf requires.

import { DTypeNumber, MAX_DIMENSIONS, Placement, RecordSlot, Status, ValueKind } from '../../src/core/border/abi'
import { arenaMark, arenaPush, arenaRelease } from '../arena'
import { HEADER_LENGTH } from '../tfrecord'
import * as wire from '../wire'
import {
  DIM_SIZE,
  EVENT_STEP,
  EVENT_SUMMARY,
  EVENT_WALL_TIME,
  METADATA_PLUGIN,
  PLUGIN_CONTENT,
  PLUGIN_NAME,
  SHAPE_DIM,
  SUMMARY_VALUE,
  TENSOR_CONTENT,
  TENSOR_DTYPE,
  TENSOR_SHAPE,
  TENSOR_STRING,
  VALUE_HISTOGRAM,
  VALUE_METADATA,
  VALUE_SIMPLE,
  VALUE_TAG,
  VALUE_TENSOR,
} from './keys'
import { setPlugin, showsHistograms } from './plugin'
import { MAX_ELEMENTS, refusePayload, resolve } from './resolve'
import { walkUsual } from './usual'

/** The data type that the hook writes for strings. */
const NO_DTYPE: i32 = 0
const TOO_MANY: f64 = 2 * MAX_ELEMENTS

/** Walks the payload of a record that is completely in memory. The slot gets its content, or the reason why it can't be read. */
export function walk(slot: usize, payloadLength: u32): bool {
  wire.setTail(0, 0, 0)
  if (walkUsual(slot, payloadLength)) return resolve(slot)
  wire.open(<usize>load<u32>(slot, RecordSlot.frame) + HEADER_LENGTH, payloadLength)
  return walkEvent(slot, payloadLength)
}

/**
 * Walks a record of which only the head (`frame`, `frameLength`) and the tail are in memory, with tensor_content in between.
 * Without a tail the walk ends with Status.needTail; `dataOffset` and `dataLength` then say where the tail begins.
 */
export function walkSparse(slot: usize, payloadLength: u32, tailAt: usize, tailBytes: u32): bool {
  wire.setTail(tailAt, tailBytes, payloadLength - tailBytes)
  const available = load<u32>(slot, RecordSlot.frameLength) - HEADER_LENGTH
  wire.open(<usize>load<u32>(slot, RecordSlot.frame) + HEADER_LENGTH, min(available, payloadLength))
  return walkEvent(slot, payloadLength)
}

function walkEvent(slot: usize, end: u32): bool {
  memory.fill(slot + RecordSlot.status, 0, RecordSlot.size - RecordSlot.status)
  store<f64>(slot, -1, RecordSlot.modeStep)
  let hasValue = false
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == EVENT_SUMMARY) {
      const summaryEnd = wire.readEnd(end)
      while (wire.more(summaryEnd)) {
        const summaryKey = wire.readKey(summaryEnd)
        if (summaryKey == SUMMARY_VALUE && !hasValue) hasValue = walkValue(slot, wire.readEnd(summaryEnd))
        else wire.skip(summaryKey, summaryEnd)
      }
    } else if (key == EVENT_STEP) {
      store<f64>(slot, <f64>(<i64>wire.readVarint(end)), RecordSlot.eventStep)
    } else if (key == EVENT_WALL_TIME) {
      store<u64>(slot, wire.readFixed64(end), RecordSlot.wallTime)
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.ok) return refusePayload(slot, wire.status(), wire.faultOffset(), 0, 0)
  if (!hasValue) {
    const other = load<u32>(slot, RecordSlot.askedTag) != 0 && load<u32>(slot, RecordSlot.tag) != 0
    return refusePayload(slot, other ? Status.tagMismatch : Status.noTensor, 0, 0, 0)
  }
  return resolve(slot)
}

/** Walks a Value. @returns true if it is the requested one */
export function walkValue(slot: usize, end: u32): bool {
  const start = wire.position
  const mark = arenaMark()
  let tag: usize = 0
  let tagLength: u32 = 0
  let simple: usize = 0
  let simplePosition: u32 = 0
  let hasTensor = false
  let hasHistogram = false
  // True under the plugin for histograms: the tensor may then be the buckets of one.
  let isShown = false
  store<i32>(slot, 0, RecordSlot.mode)
  store<f64>(slot, -1, RecordSlot.modeStep)
  memory.fill(slot + RecordSlot.dims, 0, RecordSlot.wallTime - RecordSlot.dims)
  store<i32>(slot, NO_DTYPE, RecordSlot.dtype)
  store<f64>(slot, 1, RecordSlot.elementCount)
  store<u32>(slot, <u32>wire.address(start), RecordSlot.value)
  store<u32>(slot, end - start, RecordSlot.valueLength)
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == VALUE_TENSOR) {
      hasTensor = true
      walkTensor(slot, wire.readEnd(end))
    } else if (key == VALUE_TAG) {
      const tagEnd = wire.readEnd(end)
      tag = wire.address(wire.position)
      tagLength = tagEnd - wire.position
      wire.skipTo(tagEnd)
    } else if (key == VALUE_SIMPLE) {
      simplePosition = wire.position
      simple = wire.address(simplePosition)
      wire.readFixed32(end)
    } else if (key == VALUE_HISTOGRAM) {
      hasHistogram = true
      wire.skip(key, end)
    } else if (key == VALUE_METADATA) {
      const metadataEnd = wire.readEnd(end)
      while (wire.more(metadataEnd)) {
        const metadataKey = wire.readKey(metadataEnd)
        if (metadataKey == METADATA_PLUGIN) isShown = walkPlugin(slot, wire.readEnd(metadataEnd)) || isShown
        else wire.skip(metadataKey, metadataEnd)
      }
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.ok) return false
  const wanted = <usize>load<u32>(slot, RecordSlot.askedTag)
  const askedLength = load<u32>(slot, RecordSlot.askedTagLength)
  if (wanted != 0 && (tagLength != askedLength || memory.compare(tag, wanted, tagLength) != 0)) {
    // The name is kept for the message. Its address is never 0, not even for an empty tag.
    if (load<u32>(slot, RecordSlot.tag) == 0) {
      store<u32>(slot, tag != 0 ? <u32>tag : <u32>wire.address(start), RecordSlot.tag)
      store<u32>(slot, tagLength, RecordSlot.tagLength)
    }
    // There can be millions of other Values in an Event.
    arenaRelease(mark)
    return false
  }
  if (isShown && hasTensor && isBuckets(slot)) {
    hasTensor = false
    hasHistogram = true
  }
  const isTensor = hasTensor || simple != 0
  store<i32>(slot, isTensor ? ValueKind.tensor : hasHistogram ? ValueKind.histogram : ValueKind.other, RecordSlot.valueKind)
  // A tag that was asked for is kept only if the Value holds a tensor.
  if (!isTensor && wanted != 0) return false
  store<u32>(slot, <u32>tag, RecordSlot.tag)
  store<u32>(slot, tagLength, RecordSlot.tagLength)
  if (!isTensor) return false
  if (hasTensor) {
    finishTensor(slot)
    // Values stored one by one are read from the Value again, so it must not have a hole.
    const hasHole = wire.address(start) != <usize>load<u32>(slot, RecordSlot.value)
    if (hasHole && load<i32>(slot, RecordSlot.placement) != Placement.content) wire.fail(Status.needMore, start)
    return true
  }
  // A TensorBoard scalar: one float32, read in place.
  store<i32>(slot, DTypeNumber.float32, RecordSlot.dtype)
  store<f64>(slot, 1, RecordSlot.elementCount)
  store<i32>(slot, Placement.content, RecordSlot.placement)
  store<u32>(slot, <u32>simple, RecordSlot.data)
  store<u32>(slot, 4, RecordSlot.dataLength)
  store<u32>(slot, HEADER_LENGTH + simplePosition, RecordSlot.dataOffset)
  return true
}

/** True if a tensor has rows of left edge, right edge and count, one per bucket. */
function isBuckets(slot: usize): bool {
  const dtype = load<i32>(slot, RecordSlot.dtype)
  if (dtype != DTypeNumber.float64 && dtype != DTypeNumber.float32) return false
  return load<u32>(slot, RecordSlot.rank) == 2 && load<f64>(load<u32>(slot, RecordSlot.dims) + 8) == 3
}

/** Walks a plugin's metadata. @returns true for the plugin that shows histograms */
function walkPlugin(slot: usize, end: u32): bool {
  let name: u32 = 0
  let nameLength: u32 = 0
  let content: u32 = 0
  let contentLength: u32 = 0
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == PLUGIN_NAME) {
      const fieldEnd = wire.readEnd(end)
      name = wire.position
      nameLength = fieldEnd - name
      wire.skipTo(fieldEnd)
    } else if (key == PLUGIN_CONTENT) {
      const fieldEnd = wire.readEnd(end)
      content = wire.position
      contentLength = fieldEnd - content
      wire.skipTo(fieldEnd)
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.ok) return false
  setPlugin(slot, wire.address(name), nameLength, wire.address(content), contentLength)
  return showsHistograms(wire.address(name), nameLength)
}

function walkTensor(slot: usize, end: u32): void {
  let strings: u32 = 0
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == TENSOR_DTYPE) {
      store<i32>(slot, <i32>wire.readVarint(end), RecordSlot.dtype)
    } else if (key == TENSOR_SHAPE) {
      walkShape(slot, wire.readEnd(end))
    } else if (key == TENSOR_CONTENT) {
      walkContent(slot, wire.readEnd(end))
    } else {
      if (key == TENSOR_STRING) strings++
      wire.skip(key, end)
    }
  }
  // Counts strings until finishTensor knows whether they are the values.
  store<u32>(slot, load<u32>(slot, RecordSlot.valueCount) + strings, RecordSlot.valueCount)
}

/** Tells strings from numbers. The hook leaves the dtype of strings 0, so an empty tensor of dtype 0 holds strings. */
function finishTensor(slot: usize): void {
  const dtype = load<i32>(slot, RecordSlot.dtype)
  const strings = load<u32>(slot, RecordSlot.valueCount)
  const empty = load<i32>(slot, RecordSlot.placement) == Placement.none && load<f64>(slot, RecordSlot.elementCount) == 0
  if (dtype == DTypeNumber.string || (dtype == NO_DTYPE && (strings > 0 || empty))) {
    store<i32>(slot, DTypeNumber.string, RecordSlot.dtype)
    store<i32>(slot, Placement.strings, RecordSlot.placement)
  }
}

function walkContent(slot: usize, end: u32): void {
  const start = wire.position
  store<i32>(slot, end > start ? Placement.content : Placement.none, RecordSlot.placement)
  store<u32>(slot, <u32>wire.address(start), RecordSlot.data)
  store<u32>(slot, end - start, RecordSlot.dataLength)
  store<u32>(slot, HEADER_LENGTH + start, RecordSlot.dataOffset)
  wire.skipHole(end)
}

function walkShape(slot: usize, end: u32): void {
  const start = wire.position
  const before = load<u32>(slot, RecordSlot.rank)
  let rank = before
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == SHAPE_DIM) rank++
    wire.skip(key, end)
  }
  if (wire.status() != Status.ok) return
  if (rank == before) return
  if (rank > <u32>MAX_DIMENSIONS) return refuseShape(slot, start, rank)
  // Earlier dimensions of this shape were pushed last, so they grow in place.
  if (before > 0) arenaRelease(load<u32>(slot, RecordSlot.dims))
  const dims = arenaPush(rank << 3)
  if (dims == 0) return wire.fail(Status.outOfMemory, start)
  store<u32>(slot, <u32>dims, RecordSlot.dims)
  store<u32>(slot, rank, RecordSlot.rank)
  let count = load<f64>(slot, RecordSlot.elementCount)
  let i: usize = before
  wire.seek(start)
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key != SHAPE_DIM) {
      wire.skip(key, end)
      continue
    }
    const dimStart = wire.position
    const dimEnd = wire.readEnd(end)
    let size: i64 = 0
    while (wire.more(dimEnd)) {
      const dimKey = wire.readKey(dimEnd)
      if (dimKey == DIM_SIZE) size = <i64>wire.readVarint(dimEnd)
      else wire.skip(dimKey, dimEnd)
    }
    store<f64>(dims + (i << 3), <f64>size)
    // 0 stays 0, whatever it is multiplied by; a count that is too large stays finite.
    if (!isNaN(count)) count = size == 0 ? 0 : min(count, TOO_MANY) * <f64>size
    i++
    // A size of 2^53 or more is refused even next to a 0: float64 can't hold it.
    if (size < 0 || size >= <i64>MAX_ELEMENTS) {
      refuseShape(slot, dimStart, <f64>size)
      count = NaN
    }
  }
  store<f64>(slot, count, RecordSlot.elementCount)
}

/**
 * Marks a shape as bad: `resolve` refuses it if its tensor is the one asked for; the shapes of other tensors don't matter.
 * The mark is a count of NaN, which stays NaN whatever it is multiplied by.
 */
function refuseShape(slot: usize, at: u32, got: f64): void {
  if (isNaN(load<f64>(slot, RecordSlot.elementCount))) return
  store<f64>(slot, NaN, RecordSlot.elementCount)
  store<u32>(slot, at, RecordSlot.faultOffset)
  store<f64>(slot, got, RecordSlot.got)
}
