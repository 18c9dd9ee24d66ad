// Values that a TensorProto stores one by one, and strings: read in portions, from a cursor in the slot.

import { DTypeNumber, RecordSlot, Status } from '../../src/core/border/abi'
import { elementBits, isComplex, valuesField } from '../dtype'
import * as wire from '../wire'
import { TENSOR_STRING, VALUE_TENSOR } from './keys'

/**
 * Moves the cursor to the next field of the Value's TensorProto, which may come in pieces.
 * @param end where the Value ends
 * @returns the field's key; 0 after the last field
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

/** True if the values read last end in the middle of a complex number. */
export let isHalfRead = false

/**
 * Reads the next values of a tensor of Placement.values as dense little-endian elements, at most `capacity` of them.
 * @param out where to; 0: only counts them
 * @returns how many values were read
 */
export function readValues(slot: usize, out: usize, capacity: u32): u32 {
  const dtype = load<i32>(slot, RecordSlot.dtype)
  const field = valuesField(dtype)
  const end = load<u32>(slot, RecordSlot.valueLength)
  let packedEnd = load<u32>(slot, RecordSlot.packedEnd)
  wire.open(<usize>load<u32>(slot, RecordSlot.value), end)
  wire.seek(load<u32>(slot, RecordSlot.cursor))
  // A complex element is two values on the wire.
  const parts: u32 = isComplex(dtype) ? 2 : 1
  const size = elementBits(dtype) / 8 / parts
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
 * Moves to the next string of a tensor of Placement.strings: `data` and `dataLength` then span its UTF-8 bytes.
 * @returns false after the last string
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
