// Event ▸ Summary ▸ Value ▸ TensorProto (spec/format.md, "Event"): tag, mode, mode step, dtype, shape and where the
// elements lie. Copies nothing it can point to. Fields come in any order; what is unknown, or of another wire type than
// the schema says, is skipped, and a message that comes in pieces is merged, as protobuf asks.

import { arenaMark, arenaPush, arenaRelease } from './arena'
import { DType, elementSize, valuesField } from './dtype'
import { Holds, Kind, Slot } from './layout'
import { Status } from './status'
import { HEADER_LENGTH } from './tfrecord'
import * as wire from './wire'

/** TensorFlow allows no more dimensions. */
const MAX_RANK: u32 = 254
const MAX_ELEMENTS: f64 = 9007199254740992
const TOO_MANY: f64 = 2 * MAX_ELEMENTS

/** Keys of the fields we read: number << 3 | wire type. */
const EVENT_WALL_TIME: u32 = (1 << 3) | wire.FIXED64
const EVENT_STEP: u32 = (2 << 3) | wire.VARINT
const EVENT_SUMMARY: u32 = (5 << 3) | wire.LENGTH_DELIMITED
const SUMMARY_VALUE: u32 = (1 << 3) | wire.LENGTH_DELIMITED
const VALUE_TAG: u32 = (1 << 3) | wire.LENGTH_DELIMITED
const VALUE_SIMPLE: u32 = (2 << 3) | wire.FIXED32
const VALUE_HISTOGRAM: u32 = (5 << 3) | wire.LENGTH_DELIMITED
const VALUE_TENSOR: u32 = (8 << 3) | wire.LENGTH_DELIMITED
const VALUE_METADATA: u32 = (9 << 3) | wire.LENGTH_DELIMITED
const METADATA_PLUGIN: u32 = (1 << 3) | wire.LENGTH_DELIMITED
const PLUGIN_NAME: u32 = (1 << 3) | wire.LENGTH_DELIMITED
const PLUGIN_CONTENT: u32 = (2 << 3) | wire.LENGTH_DELIMITED
const TENSOR_DTYPE: u32 = (1 << 3) | wire.VARINT
const TENSOR_SHAPE: u32 = (2 << 3) | wire.LENGTH_DELIMITED
const TENSOR_CONTENT: u32 = (4 << 3) | wire.LENGTH_DELIMITED
const TENSOR_STRING: u32 = (8 << 3) | wire.LENGTH_DELIMITED
const SHAPE_DIM: u32 = (2 << 3) | wire.LENGTH_DELIMITED
const DIM_SIZE: u32 = (1 << 3) | wire.VARINT

// The bytes behind the tensor_content of a sparse record, and where in the payload they begin; 0 if there are none.
let tail: usize = 0
let tailLength: u32 = 0
let tailPosition: u32 = 0

/** Walks the payload of a record that is in memory as a whole. The slot tells what it holds, or why it can't be read. */
export function walk(slot: usize, payloadLength: u32): bool {
  tail = 0
  wire.open(<usize>load<u32>(slot, Slot.FRAME) + HEADER_LENGTH, payloadLength)
  return walkEvent(slot, payloadLength)
}

/**
 * Walks a record of which only the head (FRAME, FRAME_LENGTH) and, once it is known where that begins, the tail are in
 * memory. Between them lies tensor_content. Without a tail the walk ends with NEED_TAIL: DATA_OFFSET and DATA_LENGTH
 * then tell where the tail begins.
 */
export function walkSparse(slot: usize, payloadLength: u32, tailAt: usize, tailBytes: u32): bool {
  tail = tailAt
  tailLength = tailBytes
  tailPosition = payloadLength - tailBytes
  const there = load<u32>(slot, Slot.FRAME_LENGTH) - HEADER_LENGTH
  wire.open(<usize>load<u32>(slot, Slot.FRAME) + HEADER_LENGTH, min(there, payloadLength))
  return walkEvent(slot, payloadLength)
}

// Where a survey that ran out of slots goes on: in the payload, and in the Summary that ends there; and the step, if it
// has come by then.
let surveyPosition: u32 = 0
let surveySummaryEnd: u32 = 0
let surveyStep: f64 = 0

/**
 * Walks all of an Event: a slot for each Value, or one that says NO_VALUE. Of each, FRAME and FRAME_LENGTH are those of
 * the first slot. A Value that can't be read has its STATUS; RECORD_STATUS tells whether the Event is one at all, in the
 * first slot, which then is the only one. NEED_MORE and NEED_TAIL: see walkSparse; a hole must lie in the first Value.
 * @param capacity of slots, at least one
 * @param tailBytes of the payload that lie at `tailAt`, behind a hole; 0 where there is none
 * @returns how many slots there are. More than the capacity: there are more Values; surveyRest has them
 */
export function survey(slot: usize, capacity: u32, payloadLength: u32, tailAt: usize, tailBytes: u32): u32 {
  tail = tailAt
  tailLength = tailBytes
  tailPosition = payloadLength - tailBytes
  surveyPosition = 0
  surveySummaryEnd = 0
  surveyStep = 0
  return surveyRest(slot, capacity, payloadLength)
}

/** Goes on with the Event whose Values did not fit. The slots are filled anew; FRAME and FRAME_LENGTH stay. */
export function surveyRest(slot: usize, capacity: u32, payloadLength: u32): u32 {
  const frame = load<u32>(slot, Slot.FRAME)
  const frameLength = load<u32>(slot, Slot.FRAME_LENGTH)
  const tornasole = load<u32>(slot, Slot.ASKED_TORNASOLE)
  const there = frameLength - HEADER_LENGTH
  const end = payloadLength
  wire.open(<usize>frame + HEADER_LENGTH, min(there, payloadLength))
  wire.seek(surveyPosition)
  openSlot(slot, frame, frameLength, tornasole)
  let count: u32 = 0
  let isFull = false
  let step = surveyStep
  let summaryEnd = surveySummaryEnd
  while (!isFull && wire.more(end)) {
    if (wire.position < summaryEnd) {
      const key = wire.readKey(summaryEnd)
      if (key != SUMMARY_VALUE) {
        wire.skip(key, summaryEnd)
        continue
      }
      const valueEnd = wire.readEnd(summaryEnd)
      const at = slot + <usize>count * Slot.SIZE
      if (count > 0) openSlot(at, frame, frameLength, tornasole)
      walkValue(at, valueEnd)
      count++
      // A malformed Value leaves the cursor where it is, and ends all loops.
      if (count == capacity && wire.more(end)) {
        surveyPosition = wire.position
        surveySummaryEnd = summaryEnd
        surveyStep = step
        isFull = true
      }
      continue
    }
    const key = wire.readKey(end)
    if (key == EVENT_SUMMARY) summaryEnd = wire.readEnd(end)
    else if (key == EVENT_STEP) step = <f64>(<i64>wire.readVarint(end))
    else wire.skip(key, end)
  }
  if (wire.status() != Status.OK) {
    const fault = wire.status()
    const offset = wire.faultOffset()
    const last = slot + <usize>(count == 0 ? 0 : count - 1) * Slot.SIZE
    const got = load<f64>(last, Slot.GOT)
    const dataOffset = load<u32>(last, Slot.DATA_OFFSET)
    const dataLength = load<u32>(last, Slot.DATA_LENGTH)
    openSlot(slot, frame, frameLength, tornasole)
    refuse(slot, fault, offset, 0, got)
    // Of NEED_TAIL: where the tail begins.
    store<u32>(slot, dataOffset, Slot.DATA_OFFSET)
    store<u32>(slot, dataLength, Slot.DATA_LENGTH)
    store<i32>(slot, fault, Slot.RECORD_STATUS)
    return 1
  }
  const slots = max(count, 1)
  for (let i: u32 = 0; i < slots; i++) {
    const at = slot + <usize>i * Slot.SIZE
    store<f64>(at, step, Slot.EVENT_STEP)
    // Reads values one by one, which moves the cursor: only now that the walk is over.
    if (load<i32>(at, Slot.HOLDS) == Holds.TENSOR) resolve(at)
  }
  return isFull ? capacity + 1 : slots
}

function openSlot(slot: usize, frame: u32, frameLength: u32, tornasole: u32): void {
  memory.fill(slot, 0, Slot.SIZE)
  store<u32>(slot, frame, Slot.FRAME)
  store<u32>(slot, frameLength, Slot.FRAME_LENGTH)
  store<u32>(slot, tornasole, Slot.ASKED_TORNASOLE)
  store<f64>(slot, -1, Slot.ASKED_STEP)
  store<f64>(slot, -1, Slot.MODE_STEP)
}

function walkEvent(slot: usize, end: u32): bool {
  memory.fill(slot + Slot.STATUS, 0, Slot.SIZE - Slot.STATUS)
  store<f64>(slot, -1, Slot.MODE_STEP)
  let found = false
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == EVENT_SUMMARY) {
      const summaryEnd = wire.readEnd(end)
      while (wire.more(summaryEnd)) {
        const summaryKey = wire.readKey(summaryEnd)
        if (summaryKey == SUMMARY_VALUE && !found) found = walkValue(slot, wire.readEnd(summaryEnd))
        else wire.skip(summaryKey, summaryEnd)
      }
    } else if (key == EVENT_STEP) {
      store<f64>(slot, <f64>(<i64>wire.readVarint(end)), Slot.EVENT_STEP)
    } else if (key == EVENT_WALL_TIME) {
      store<u64>(slot, wire.readFixed64(end), Slot.WALL_TIME)
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.OK) return refuse(slot, wire.status(), wire.faultOffset(), 0, 0)
  if (!found) {
    const other = load<u32>(slot, Slot.ASKED_TAG) != 0 && load<u32>(slot, Slot.TAG) != 0
    return refuse(slot, other ? Status.TAG_MISMATCH : Status.NO_TENSOR, 0, 0, 0)
  }
  return resolve(slot)
}

/** @returns whether this is the Value asked for */
function walkValue(slot: usize, end: u32): bool {
  const start = wire.position
  const mark = arenaMark()
  let tag: usize = 0
  let tagLength: u32 = 0
  let simple: usize = 0
  let simplePosition: u32 = 0
  let hasTensor = false
  let hasHistogram = false
  store<i32>(slot, 0, Slot.MODE)
  store<f64>(slot, -1, Slot.MODE_STEP)
  memory.fill(slot + Slot.DIMS, 0, Slot.SIZE - Slot.DIMS)
  store<i32>(slot, DType.INVALID, Slot.DTYPE)
  store<f64>(slot, 1, Slot.ELEMENT_COUNT)
  store<u32>(slot, <u32>wire.address(start), Slot.VALUE)
  store<u32>(slot, end - start, Slot.VALUE_LENGTH)
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
        if (metadataKey == METADATA_PLUGIN) walkPlugin(slot, wire.readEnd(metadataEnd))
        else wire.skip(metadataKey, metadataEnd)
      }
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.OK) return false
  const asked = <usize>load<u32>(slot, Slot.ASKED_TAG)
  const askedLength = load<u32>(slot, Slot.ASKED_TAG_LENGTH)
  if (asked != 0 && (tagLength != askedLength || memory.compare(tag, asked, tagLength) != 0)) {
    // Kept for the message; the address is never 0, not even that of an empty tag.
    if (load<u32>(slot, Slot.TAG) == 0) {
      store<u32>(slot, tag != 0 ? <u32>tag : <u32>wire.address(start), Slot.TAG)
      store<u32>(slot, tagLength, Slot.TAG_LENGTH)
    }
    // There can be millions of other Values in an Event.
    arenaRelease(mark)
    return false
  }
  const isTensor = hasTensor || simple != 0
  store<i32>(slot, isTensor ? Holds.TENSOR : hasHistogram ? Holds.HISTOGRAM : Holds.OTHER, Slot.HOLDS)
  // A tag that is asked for is kept only where it is found.
  if (!isTensor && asked != 0) return false
  store<u32>(slot, <u32>tag, Slot.TAG)
  store<u32>(slot, tagLength, Slot.TAG_LENGTH)
  if (!isTensor) return false
  if (hasTensor) {
    finishTensor(slot)
    // Values one by one are read from the Value once more, so that no hole may be in it.
    const hasHole = wire.address(start) != <usize>load<u32>(slot, Slot.VALUE)
    if (hasHole && load<i32>(slot, Slot.KIND) != Kind.CONTENT) wire.fail(Status.NEED_MORE, start)
    return true
  }
  // A TensorBoard scalar: one float32 that lies where it is.
  store<i32>(slot, DType.FLOAT32, Slot.DTYPE)
  store<f64>(slot, 1, Slot.ELEMENT_COUNT)
  store<i32>(slot, Kind.CONTENT, Slot.KIND)
  store<u32>(slot, <u32>simple, Slot.DATA)
  store<u32>(slot, 4, Slot.DATA_LENGTH)
  store<u32>(slot, HEADER_LENGTH + simplePosition, Slot.DATA_OFFSET)
  return true
}

/** smdebug keeps mode and mode step as decimal text of two plugins of these names. */
function walkPlugin(slot: usize, end: u32): void {
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
  if (wire.status() != Status.OK) return
  const at = wire.address(name)
  // "mode" and "mode_step", read as little-endian words.
  if (nameLength == 4 && load<u32>(at) == 0x65646f6d) {
    const mode = readDecimal(wire.address(content), contentLength)
    store<i32>(slot, mode >= 1 && mode <= 4 ? <i32>mode : 0, Slot.MODE)
  } else if (nameLength == 9 && load<u64>(at) == 0x6574735f65646f6d && load<u8>(at, 8) == 0x70) {
    store<f64>(slot, readDecimal(wire.address(content), contentLength), Slot.MODE_STEP)
  }
}

/** Decimal digits as a number; -1 if it is anything else, or of more digits than float64 holds. */
function readDecimal(at: usize, byteLength: u32): f64 {
  if (byteLength == 0 || byteLength > 15) return -1
  let value: u64 = 0
  for (let i: u32 = 0; i < byteLength; i++) {
    const digit = <u32>load<u8>(at + i) - 48
    if (digit > 9) return -1
    value = value * 10 + digit
  }
  return <f64>value
}

function walkTensor(slot: usize, end: u32): void {
  let strings: u32 = 0
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == TENSOR_DTYPE) {
      store<i32>(slot, <i32>wire.readVarint(end), Slot.DTYPE)
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
  store<u32>(slot, load<u32>(slot, Slot.VALUE_COUNT) + strings, Slot.VALUE_COUNT)
}

/** Tells strings from numbers. The hook leaves the dtype of strings 0; then an empty tensor can only be one of them. */
function finishTensor(slot: usize): void {
  const dtype = load<i32>(slot, Slot.DTYPE)
  const strings = load<u32>(slot, Slot.VALUE_COUNT)
  const empty = load<i32>(slot, Slot.KIND) == Kind.NONE && load<f64>(slot, Slot.ELEMENT_COUNT) == 0
  if (dtype == DType.STRING || (dtype == DType.INVALID && (strings > 0 || empty))) {
    store<i32>(slot, DType.STRING, Slot.DTYPE)
    store<i32>(slot, Kind.STRINGS, Slot.KIND)
  }
}

function walkContent(slot: usize, end: u32): void {
  const start = wire.position
  store<i32>(slot, end > start ? Kind.CONTENT : Kind.NONE, Slot.KIND)
  store<u32>(slot, <u32>wire.address(start), Slot.DATA)
  store<u32>(slot, end - start, Slot.DATA_LENGTH)
  store<u32>(slot, HEADER_LENGTH + start, Slot.DATA_OFFSET)
  if (wire.holds(end)) {
    wire.seek(end)
  } else if (tail == 0) {
    wire.fail(Status.NEED_TAIL, end)
  } else if (end == tailPosition) {
    wire.jump(end, tail, tailLength)
  } else {
    wire.fail(Status.MALFORMED_EVENT, start)
  }
}

function walkShape(slot: usize, end: u32): void {
  const start = wire.position
  const before = load<u32>(slot, Slot.RANK)
  let rank = before
  while (wire.more(end)) {
    const key = wire.readKey(end)
    if (key == SHAPE_DIM) rank++
    wire.skip(key, end)
  }
  if (wire.status() != Status.OK) return
  if (rank == before) return
  if (rank > MAX_RANK) return refuseShape(slot, start, rank)
  // Dimensions that came before are the last that was pushed, so that they grow where they are.
  if (before > 0) arenaRelease(load<u32>(slot, Slot.DIMS))
  const dims = arenaPush(rank << 3)
  if (dims == 0) return wire.fail(Status.OUT_OF_MEMORY, start)
  store<u32>(slot, <u32>dims, Slot.DIMS)
  store<u32>(slot, rank, Slot.RANK)
  let count = load<f64>(slot, Slot.ELEMENT_COUNT)
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
    // Nothing times however much is nothing, and what is too much stays finite.
    if (!isNaN(count)) count = size == 0 ? 0 : min(count, TOO_MANY) * <f64>size
    i++
    // A size of 2^53 or more is none even beside one of 0: float64 does not hold it.
    if (size < 0 || size >= <i64>MAX_ELEMENTS) {
      refuseShape(slot, dimStart, <f64>size)
      count = NaN
    }
  }
  store<f64>(slot, count, Slot.ELEMENT_COUNT)
}

/**
 * Notes that a shape is none: `resolve` refuses it if its tensor is the one asked for. That of another is nobody's
 * concern. A count that is no number says so, whatever it is multiplied with.
 */
function refuseShape(slot: usize, at: u32, got: f64): void {
  if (isNaN(load<f64>(slot, Slot.ELEMENT_COUNT))) return
  store<f64>(slot, NaN, Slot.ELEMENT_COUNT)
  store<u32>(slot, at, Slot.FAULT_OFFSET)
  store<f64>(slot, got, Slot.GOT)
}

/** Holds what was found against what was asked for, and the bytes against the shape. */
function resolve(slot: usize): bool {
  // Mode and mode step are not held against the index file: the hook can write a record under the mode that comes next
  // (seen in real trials), but its step is always that of its file.
  const step = load<f64>(slot, Slot.EVENT_STEP)
  const askedStep = load<f64>(slot, Slot.ASKED_STEP)
  if (askedStep >= 0 && askedStep != step) return refuse(slot, Status.STEP_MISMATCH, 0, askedStep, step)
  const count = load<f64>(slot, Slot.ELEMENT_COUNT)
  if (isMislabelledHalf(slot, count)) store<i32>(slot, DType.FLOAT16, Slot.DTYPE)
  const dtype = load<i32>(slot, Slot.DTYPE)
  if (isNaN(count)) {
    return refuse(slot, Status.BAD_SHAPE, load<u32>(slot, Slot.FAULT_OFFSET), MAX_RANK, load<f64>(slot, Slot.GOT))
  }
  if (count > MAX_ELEMENTS) return refuse(slot, Status.BAD_SHAPE, 0, MAX_ELEMENTS, count)
  if (load<i32>(slot, Slot.KIND) == Kind.STRINGS) return checkCount(slot, count)
  const size = elementSize(dtype)
  if (size == 0) return refuse(slot, Status.UNKNOWN_DTYPE, 0, 0, dtype)
  if (load<i32>(slot, Slot.KIND) == Kind.CONTENT) {
    const bytes = <f64>load<u32>(slot, Slot.DATA_LENGTH)
    if (bytes == count * size) return true
    return refuse(slot, Status.SHAPE_MISMATCH, load<u32>(slot, Slot.DATA_OFFSET), count * size, bytes)
  }
  store<i32>(slot, Kind.VALUES, Slot.KIND)
  const values = readValues(slot, 0, 0xffffffff)
  if (wire.status() != Status.OK) return refuse(slot, wire.status(), valuePosition(slot) + wire.faultOffset(), 0, 0)
  if (isHalfRead) return refuse(slot, Status.SHAPE_MISMATCH, valuePosition(slot), count, <f64>values + 0.5)
  store<u32>(slot, 0, Slot.CURSOR)
  store<u32>(slot, 0, Slot.TENSOR_END)
  store<u32>(slot, 0, Slot.PACKED_END)
  store<u32>(slot, values, Slot.VALUE_COUNT)
  return checkCount(slot, count)
}

/** Where in the payload the slot's Value begins. */
function valuePosition(slot: usize): u32 {
  const value = <usize>load<u32>(slot, Slot.VALUE)
  if (tail != 0 && value >= tail && value < tail + tailLength) return tailPosition + <u32>(value - tail)
  return <u32>value - load<u32>(slot, Slot.FRAME) - HEADER_LENGTH
}

/** Tornasole called float16 int32. In any other trial, int32 of two bytes an element is corrupt. */
function isMislabelledHalf(slot: usize, count: f64): bool {
  return (
    load<u32>(slot, Slot.ASKED_TORNASOLE) != 0 &&
    load<i32>(slot, Slot.DTYPE) == DType.INT32 &&
    load<i32>(slot, Slot.KIND) == Kind.CONTENT &&
    <f64>load<u32>(slot, Slot.DATA_LENGTH) == count * 2
  )
}

/** Values one by one: as many as the shape asks for, or fewer but at least one, the last of which is repeated. */
function checkCount(slot: usize, count: f64): bool {
  const values = load<u32>(slot, Slot.VALUE_COUNT)
  if (<f64>values > count || (values == 0 && count > 0)) {
    return refuse(slot, Status.SHAPE_MISMATCH, 0, count, values)
  }
  return true
}

function refuse(slot: usize, status: i32, payloadOffset: u32, expected: f64, got: f64): bool {
  store<i32>(slot, status, Slot.STATUS)
  store<u32>(slot, HEADER_LENGTH + payloadOffset, Slot.FAULT_OFFSET)
  store<f64>(slot, expected, Slot.EXPECTED)
  store<f64>(slot, got, Slot.GOT)
  return false
}

/**
 * Moves the cursor to the next field of the Value's TensorProto, which may come in pieces.
 * @param end where the Value ends
 * @returns the field's key; 0 when there is none left
 */
function nextTensorField(slot: usize, end: u32): u32 {
  let tensorEnd = load<u32>(slot, Slot.TENSOR_END)
  while (wire.more(end)) {
    if (wire.position < tensorEnd) return wire.readKey(tensorEnd)
    const key = wire.readKey(end)
    if (key == VALUE_TENSOR) {
      tensorEnd = wire.readEnd(end)
      store<u32>(slot, tensorEnd, Slot.TENSOR_END)
    } else {
      wire.skip(key, end)
    }
  }
  return 0
}

/** Whether the values that were read last end with half of a complex number. */
let isHalfRead = false

/**
 * Reads the next values of a tensor of KIND VALUES as dense little-endian elements, `capacity` of them at the most.
 * @param out where to; 0 only counts them
 * @returns how many were there
 */
export function readValues(slot: usize, out: usize, capacity: u32): u32 {
  const dtype = load<i32>(slot, Slot.DTYPE)
  const field = valuesField(dtype)
  const end = load<u32>(slot, Slot.VALUE_LENGTH)
  let packedEnd = load<u32>(slot, Slot.PACKED_END)
  wire.open(<usize>load<u32>(slot, Slot.VALUE), end)
  wire.seek(load<u32>(slot, Slot.CURSOR))
  // A complex element is two values on the wire.
  const parts: u32 = dtype == DType.COMPLEX64 || dtype == DType.COMPLEX128 ? 2 : 1
  const size = elementSize(dtype) / parts
  const fixed: u32 = field == 5 || field == 9 ? wire.FIXED32 : field == 6 || field == 12 ? wire.FIXED64 : wire.VARINT
  const limit: u64 = <u64>capacity * parts
  let count: u64 = 0
  while (count < limit && wire.more(end)) {
    let runEnd = packedEnd
    if (wire.position >= packedEnd) {
      const key = nextTensorField(slot, end)
      if (key == 0) break
      runEnd = load<u32>(slot, Slot.TENSOR_END)
      if (key == ((field << 3) | wire.LENGTH_DELIMITED)) {
        packedEnd = wire.readEnd(runEnd)
        continue
      }
      if (key != ((field << 3) | fixed)) {
        wire.skip(key, runEnd)
        continue
      }
    }
    let value: u64
    if (fixed == wire.FIXED32) value = wire.readFixed32(runEnd)
    else if (fixed == wire.FIXED64) value = wire.readFixed64(runEnd)
    else value = wire.readVarint(runEnd)
    if (wire.status() != Status.OK) break
    if (dtype == DType.BOOL) value = value != 0 ? 1 : 0
    if (out != 0) {
      if (size == 1) store<u8>(out, <u8>value)
      else if (size == 2) store<u16>(out, <u16>value)
      else if (size == 4) store<u32>(out, <u32>value)
      else store<u64>(out, value)
      out += size
    }
    count++
  }
  store<u32>(slot, wire.position, Slot.CURSOR)
  store<u32>(slot, packedEnd, Slot.PACKED_END)
  isHalfRead = count % parts != 0
  return <u32>(count / parts)
}

/**
 * Moves to the next string of a tensor of KIND STRINGS: DATA and DATA_LENGTH then span its UTF-8 bytes.
 * @returns false when there is none left
 */
export function readString(slot: usize): bool {
  const end = load<u32>(slot, Slot.VALUE_LENGTH)
  wire.open(<usize>load<u32>(slot, Slot.VALUE), end)
  wire.seek(load<u32>(slot, Slot.CURSOR))
  for (;;) {
    const key = nextTensorField(slot, end)
    if (key == 0) return false
    const tensorEnd = load<u32>(slot, Slot.TENSOR_END)
    if (key != TENSOR_STRING) {
      wire.skip(key, tensorEnd)
      continue
    }
    const stringEnd = wire.readEnd(tensorEnd)
    if (wire.status() != Status.OK) return false
    store<u32>(slot, <u32>wire.address(wire.position), Slot.DATA)
    store<u32>(slot, stringEnd - wire.position, Slot.DATA_LENGTH)
    store<u32>(slot, stringEnd, Slot.CURSOR)
    return true
  }
}
