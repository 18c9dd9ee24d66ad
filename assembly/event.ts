// Event ▸ Summary ▸ Value ▸ TensorProto (spec/format.md, "Event"): tag, mode, mode step, dtype, shape and where the
// elements lie. Copies nothing it can point to. Fields come in any order; what is unknown, or of another wire type than
// the schema says, is skipped, and a message that comes in pieces is merged, as protobuf asks.

import { DTypeNumber, MAX_RANK, Placement, RecordSlot, Status, ValueKind } from '../src/engine/abi'
import { arenaMark, arenaPush, arenaRelease } from './arena'
import { elementSize, valuesField } from './dtype'
import { HEADER_LENGTH } from './tfrecord'
import * as wire from './wire'

/** What the hook writes as the data type of strings. */
const NO_DTYPE: i32 = 0
const MAX_ELEMENTS: f64 = 9007199254740992
const TOO_MANY: f64 = 2 * MAX_ELEMENTS

/** Keys of the fields we read: number << 3 | wire type. */
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
  wire.open(<usize>load<u32>(slot, RecordSlot.frame) + HEADER_LENGTH, payloadLength)
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
  const there = load<u32>(slot, RecordSlot.frameLength) - HEADER_LENGTH
  wire.open(<usize>load<u32>(slot, RecordSlot.frame) + HEADER_LENGTH, min(there, payloadLength))
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
  const frame = load<u32>(slot, RecordSlot.frame)
  const frameLength = load<u32>(slot, RecordSlot.frameLength)
  const tornasole = load<u32>(slot, RecordSlot.askedTornasole)
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
      const at = slot + <usize>count * RecordSlot.size
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
  if (wire.status() != Status.ok) {
    const fault = wire.status()
    const offset = wire.faultOffset()
    const last = slot + <usize>(count == 0 ? 0 : count - 1) * RecordSlot.size
    const got = load<f64>(last, RecordSlot.got)
    const dataOffset = load<u32>(last, RecordSlot.dataOffset)
    const dataLength = load<u32>(last, RecordSlot.dataLength)
    openSlot(slot, frame, frameLength, tornasole)
    refuse(slot, fault, offset, 0, got)
    // Of NEED_TAIL: where the tail begins.
    store<u32>(slot, dataOffset, RecordSlot.dataOffset)
    store<u32>(slot, dataLength, RecordSlot.dataLength)
    store<i32>(slot, fault, RecordSlot.recordStatus)
    return 1
  }
  const slots = max(count, 1)
  for (let i: u32 = 0; i < slots; i++) {
    const at = slot + <usize>i * RecordSlot.size
    store<f64>(at, step, RecordSlot.eventStep)
    // Reads values one by one, which moves the cursor: only now that the walk is over.
    if (load<i32>(at, RecordSlot.valueKind) == ValueKind.tensor) resolve(at)
  }
  return isFull ? capacity + 1 : slots
}

function openSlot(slot: usize, frame: u32, frameLength: u32, tornasole: u32): void {
  memory.fill(slot, 0, RecordSlot.size)
  store<u32>(slot, frame, RecordSlot.frame)
  store<u32>(slot, frameLength, RecordSlot.frameLength)
  store<u32>(slot, tornasole, RecordSlot.askedTornasole)
  store<f64>(slot, -1, RecordSlot.askedStep)
  store<f64>(slot, -1, RecordSlot.modeStep)
}

function walkEvent(slot: usize, end: u32): bool {
  memory.fill(slot + RecordSlot.status, 0, RecordSlot.size - RecordSlot.status)
  store<f64>(slot, -1, RecordSlot.modeStep)
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
      store<f64>(slot, <f64>(<i64>wire.readVarint(end)), RecordSlot.eventStep)
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.ok) return refuse(slot, wire.status(), wire.faultOffset(), 0, 0)
  if (!found) {
    const other = load<u32>(slot, RecordSlot.askedTag) != 0 && load<u32>(slot, RecordSlot.tag) != 0
    return refuse(slot, other ? Status.tagMismatch : Status.noTensor, 0, 0, 0)
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
  store<i32>(slot, 0, RecordSlot.mode)
  store<f64>(slot, -1, RecordSlot.modeStep)
  memory.fill(slot + RecordSlot.dims, 0, RecordSlot.size - RecordSlot.dims)
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
        if (metadataKey == METADATA_PLUGIN) walkPlugin(slot, wire.readEnd(metadataEnd))
        else wire.skip(metadataKey, metadataEnd)
      }
    } else {
      wire.skip(key, end)
    }
  }
  if (wire.status() != Status.ok) return false
  const asked = <usize>load<u32>(slot, RecordSlot.askedTag)
  const askedLength = load<u32>(slot, RecordSlot.askedTagLength)
  if (asked != 0 && (tagLength != askedLength || memory.compare(tag, asked, tagLength) != 0)) {
    // Kept for the message; the address is never 0, not even that of an empty tag.
    if (load<u32>(slot, RecordSlot.tag) == 0) {
      store<u32>(slot, tag != 0 ? <u32>tag : <u32>wire.address(start), RecordSlot.tag)
      store<u32>(slot, tagLength, RecordSlot.tagLength)
    }
    // There can be millions of other Values in an Event.
    arenaRelease(mark)
    return false
  }
  const isTensor = hasTensor || simple != 0
  store<i32>(slot, isTensor ? ValueKind.tensor : hasHistogram ? ValueKind.histogram : ValueKind.other, RecordSlot.valueKind)
  // A tag that is asked for is kept only where it is found.
  if (!isTensor && asked != 0) return false
  store<u32>(slot, <u32>tag, RecordSlot.tag)
  store<u32>(slot, tagLength, RecordSlot.tagLength)
  if (!isTensor) return false
  if (hasTensor) {
    finishTensor(slot)
    // Values one by one are read from the Value once more, so that no hole may be in it.
    const hasHole = wire.address(start) != <usize>load<u32>(slot, RecordSlot.value)
    if (hasHole && load<i32>(slot, RecordSlot.placement) != Placement.content) wire.fail(Status.needMore, start)
    return true
  }
  // A TensorBoard scalar: one float32 that lies where it is.
  store<i32>(slot, DTypeNumber.float32, RecordSlot.dtype)
  store<f64>(slot, 1, RecordSlot.elementCount)
  store<i32>(slot, Placement.content, RecordSlot.placement)
  store<u32>(slot, <u32>simple, RecordSlot.data)
  store<u32>(slot, 4, RecordSlot.dataLength)
  store<u32>(slot, HEADER_LENGTH + simplePosition, RecordSlot.dataOffset)
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
  if (wire.status() != Status.ok) return
  const at = wire.address(name)
  // "mode" and "mode_step", read as little-endian words.
  if (nameLength == 4 && load<u32>(at) == 0x65646f6d) {
    const mode = readDecimal(wire.address(content), contentLength)
    store<i32>(slot, mode >= 1 && mode <= 4 ? <i32>mode : 0, RecordSlot.mode)
  } else if (nameLength == 9 && load<u64>(at) == 0x6574735f65646f6d && load<u8>(at, 8) == 0x70) {
    store<f64>(slot, readDecimal(wire.address(content), contentLength), RecordSlot.modeStep)
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

/** Tells strings from numbers. The hook leaves the dtype of strings 0; then an empty tensor can only be one of them. */
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
  if (wire.holds(end)) {
    wire.seek(end)
  } else if (tail == 0) {
    wire.fail(Status.needTail, end)
  } else if (end == tailPosition) {
    wire.jump(end, tail, tailLength)
  } else {
    wire.fail(Status.malformedEvent, start)
  }
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
  if (rank > <u32>MAX_RANK) return refuseShape(slot, start, rank)
  // Dimensions that came before are the last that was pushed, so that they grow where they are.
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
    // Nothing times however much is nothing, and what is too much stays finite.
    if (!isNaN(count)) count = size == 0 ? 0 : min(count, TOO_MANY) * <f64>size
    i++
    // A size of 2^53 or more is none even beside one of 0: float64 does not hold it.
    if (size < 0 || size >= <i64>MAX_ELEMENTS) {
      refuseShape(slot, dimStart, <f64>size)
      count = NaN
    }
  }
  store<f64>(slot, count, RecordSlot.elementCount)
}

/**
 * Notes that a shape is none: `resolve` refuses it if its tensor is the one asked for. That of another is nobody's
 * concern. A count that is no number says so, whatever it is multiplied with.
 */
function refuseShape(slot: usize, at: u32, got: f64): void {
  if (isNaN(load<f64>(slot, RecordSlot.elementCount))) return
  store<f64>(slot, NaN, RecordSlot.elementCount)
  store<u32>(slot, at, RecordSlot.faultOffset)
  store<f64>(slot, got, RecordSlot.got)
}

/** Holds what was found against what was asked for, and the bytes against the shape. */
function resolve(slot: usize): bool {
  // Mode and mode step are not held against the index file: the hook can write a record under the mode that comes next
  // (seen in real trials), but its step is always that of its file.
  const step = load<f64>(slot, RecordSlot.eventStep)
  const askedStep = load<f64>(slot, RecordSlot.askedStep)
  if (askedStep >= 0 && askedStep != step) return refuse(slot, Status.stepMismatch, 0, askedStep, step)
  const count = load<f64>(slot, RecordSlot.elementCount)
  if (isMislabelledHalf(slot, count)) store<i32>(slot, DTypeNumber.float16, RecordSlot.dtype)
  const dtype = load<i32>(slot, RecordSlot.dtype)
  if (isNaN(count)) {
    return refuse(slot, Status.badShape, load<u32>(slot, RecordSlot.faultOffset), MAX_RANK, load<f64>(slot, RecordSlot.got))
  }
  if (count > MAX_ELEMENTS) return refuse(slot, Status.badShape, 0, MAX_ELEMENTS, count)
  if (load<i32>(slot, RecordSlot.placement) == Placement.strings) return checkCount(slot, count)
  const size = elementSize(dtype)
  if (size == 0) return refuse(slot, Status.unknownDType, 0, 0, dtype)
  if (load<i32>(slot, RecordSlot.placement) == Placement.content) {
    const bytes = <f64>load<u32>(slot, RecordSlot.dataLength)
    if (bytes == count * size) return true
    return refuse(slot, Status.shapeMismatch, load<u32>(slot, RecordSlot.dataOffset), count * size, bytes)
  }
  store<i32>(slot, Placement.values, RecordSlot.placement)
  const values = readValues(slot, 0, 0xffffffff)
  if (wire.status() != Status.ok) return refuse(slot, wire.status(), valuePosition(slot) + wire.faultOffset(), 0, 0)
  if (isHalfRead) return refuse(slot, Status.shapeMismatch, valuePosition(slot), count, <f64>values + 0.5)
  store<u32>(slot, 0, RecordSlot.cursor)
  store<u32>(slot, 0, RecordSlot.tensorEnd)
  store<u32>(slot, 0, RecordSlot.packedEnd)
  store<u32>(slot, values, RecordSlot.valueCount)
  return checkCount(slot, count)
}

/** Where in the payload the slot's Value begins. */
function valuePosition(slot: usize): u32 {
  const value = <usize>load<u32>(slot, RecordSlot.value)
  if (tail != 0 && value >= tail && value < tail + tailLength) return tailPosition + <u32>(value - tail)
  return <u32>value - load<u32>(slot, RecordSlot.frame) - HEADER_LENGTH
}

/** Tornasole called float16 int32. In any other trial, int32 of two bytes an element is corrupt. */
function isMislabelledHalf(slot: usize, count: f64): bool {
  return (
    load<u32>(slot, RecordSlot.askedTornasole) != 0 &&
    load<i32>(slot, RecordSlot.dtype) == DTypeNumber.int32 &&
    load<i32>(slot, RecordSlot.placement) == Placement.content &&
    <f64>load<u32>(slot, RecordSlot.dataLength) == count * 2
  )
}

/** Values one by one: as many as the shape asks for, or fewer but at least one, the last of which is repeated. */
function checkCount(slot: usize, count: f64): bool {
  const values = load<u32>(slot, RecordSlot.valueCount)
  if (<f64>values > count || (values == 0 && count > 0)) {
    return refuse(slot, Status.shapeMismatch, 0, count, values)
  }
  return true
}

function refuse(slot: usize, status: i32, payloadOffset: u32, expected: f64, got: f64): bool {
  store<i32>(slot, status, RecordSlot.status)
  store<u32>(slot, HEADER_LENGTH + payloadOffset, RecordSlot.faultOffset)
  store<f64>(slot, expected, RecordSlot.expected)
  store<f64>(slot, got, RecordSlot.got)
  return false
}

/**
 * Moves the cursor to the next field of the Value's TensorProto, which may come in pieces.
 * @param end where the Value ends
 * @returns the field's key; 0 when there is none left
 */
function nextTensorField(slot: usize, end: u32): u32 {
  let tensorEnd = load<u32>(slot, RecordSlot.tensorEnd)
  while (wire.more(end)) {
    if (wire.position < tensorEnd) return wire.readKey(tensorEnd)
    const key = wire.readKey(end)
    if (key == VALUE_TENSOR) {
      tensorEnd = wire.readEnd(end)
      store<u32>(slot, tensorEnd, RecordSlot.tensorEnd)
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
  const dtype = load<i32>(slot, RecordSlot.dtype)
  const field = valuesField(dtype)
  const end = load<u32>(slot, RecordSlot.valueLength)
  let packedEnd = load<u32>(slot, RecordSlot.packedEnd)
  wire.open(<usize>load<u32>(slot, RecordSlot.value), end)
  wire.seek(load<u32>(slot, RecordSlot.cursor))
  // A complex element is two values on the wire.
  const parts: u32 = dtype == DTypeNumber.complex64 || dtype == DTypeNumber.complex128 ? 2 : 1
  const size = elementSize(dtype) / parts
  const fixed: u32 = field == 5 || field == 9 ? wire.FIXED32 : field == 6 || field == 12 ? wire.FIXED64 : wire.VARINT
  const limit: u64 = <u64>capacity * parts
  let count: u64 = 0
  while (count < limit && wire.more(end)) {
    let runEnd = packedEnd
    if (wire.position >= packedEnd) {
      const key = nextTensorField(slot, end)
      if (key == 0) break
      runEnd = load<u32>(slot, RecordSlot.tensorEnd)
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
    if (wire.status() != Status.ok) break
    if (dtype == DTypeNumber.bool) value = value != 0 ? 1 : 0
    if (out != 0) {
      if (size == 1) store<u8>(out, <u8>value)
      else if (size == 2) store<u16>(out, <u16>value)
      else if (size == 4) store<u32>(out, <u32>value)
      else store<u64>(out, value)
      out += size
    }
    count++
  }
  store<u32>(slot, wire.position, RecordSlot.cursor)
  store<u32>(slot, packedEnd, RecordSlot.packedEnd)
  isHalfRead = count % parts != 0
  return <u32>(count / parts)
}

/**
 * Moves to the next string of a tensor of KIND STRINGS: DATA and DATA_LENGTH then span its UTF-8 bytes.
 * @returns false when there is none left
 */
export function readString(slot: usize): bool {
  const end = load<u32>(slot, RecordSlot.valueLength)
  wire.open(<usize>load<u32>(slot, RecordSlot.value), end)
  wire.seek(load<u32>(slot, RecordSlot.cursor))
  for (;;) {
    const key = nextTensorField(slot, end)
    if (key == 0) return false
    const tensorEnd = load<u32>(slot, RecordSlot.tensorEnd)
    if (key != TENSOR_STRING) {
      wire.skip(key, tensorEnd)
      continue
    }
    const stringEnd = wire.readEnd(tensorEnd)
    if (wire.status() != Status.ok) return false
    store<u32>(slot, <u32>wire.address(wire.position), RecordSlot.data)
    store<u32>(slot, stringEnd - wire.position, RecordSlot.dataLength)
    store<u32>(slot, stringEnd, RecordSlot.cursor)
    return true
  }
}
