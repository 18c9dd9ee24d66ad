// smdebug stores mode and mode step as decimal text in two plugins of these names. TensorFlow 2 names the plugin that shows a tensor.

import { RecordSlot } from '../../src/core/border/abi'

/** Takes what a plugin says, if it is one of them. */
export function setPlugin(slot: usize, name: usize, nameLength: u32, content: usize, contentLength: u32): void {
  // "mode" and "mode_step", read as little-endian words.
  if (nameLength == 4 && load<u32>(name) == 0x65646f6d) {
    const mode = readDecimal(content, contentLength)
    store<i32>(slot, mode >= 1 && mode <= 4 ? <i32>mode : 0, RecordSlot.mode)
  } else if (nameLength == 9 && load<u64>(name) == 0x6574735f65646f6d && load<u8>(name, 8) == 0x70) {
    store<f64>(slot, readDecimal(content, contentLength), RecordSlot.modeStep)
  }
}

/** True for the plugin `histograms`, whose name is compared as little-endian words. */
export function showsHistograms(name: usize, nameLength: u32): bool {
  return nameLength == 10 && load<u64>(name) == 0x6172676f74736968 && load<u16>(name, 8) == 0x736d
}

/** Decimal digits as a number; -1 for anything else, and for more digits than float64 holds. */
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
