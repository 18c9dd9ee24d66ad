/**
 * Makes the bytes that turn a checkpoint's elements into a record: the frame and the messages before the elements of an smdebug record,
 * and the end of the frame. So checkpoints are read like trials.
 */

import type { DType } from '../../../base/types.js'
import { UNCHECKED_CRC } from '../../../core/border/framing.js'
import { dtypeNumber } from '../../../core/dtype.js'

const utf8 = new TextEncoder()

/** The length of the step, always the same, so that records of equal tensors have equal lengths. */
const STEP_BYTES = 8
/** The length of the payload and its checksum. */
const FRAME_BYTES = 12

/** The masked checksum of a payload that was never computed. */
export const RECORD_END = new Uint8Array(Uint32Array.of(UNCHECKED_CRC).buffer)

/** Makes the heads one after the other: there may be a million. */
export class RecordHeads {
  #bytes = new Uint8Array(1 << 10)
  /** The position of the first written byte. The head is written backwards, since lengths precede what they measure. */
  #at = 0

  /**
   * Makes the head of a record.
   * @param dataByteLength the length of the following elements
   * @returns a view that is valid until the next call
   */
  of(step: number, name: string, dtype: DType, shape: readonly number[], dataByteLength: number): Uint8Array {
    const wanted = 3 * name.length + 24 * shape.length + 128
    if (wanted > this.#bytes.length) this.#bytes = new Uint8Array(2 * wanted)
    const { length } = this.#bytes
    this.#at = length
    // An empty field is left out.
    if (dataByteLength > 0) this.#field(0x22, dataByteLength)
    const shapeEnd = this.#at
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const end = this.#at
      this.#field(0x08, shape[axis]!)
      this.#field(0x12, end - this.#at)
    }
    this.#field(0x12, shapeEnd - this.#at)
    this.#field(0x08, dtypeNumber(dtype))
    this.#field(0x42, length - this.#at + dataByteLength)
    const tagEnd = this.#at
    const { written } = utf8.encodeInto(name, this.#bytes)
    this.#at -= written
    this.#bytes.copyWithin(this.#at, 0, written)
    this.#field(0x0a, tagEnd - this.#at)
    this.#field(0x0a, length - this.#at + dataByteLength)
    this.#field(0x2a, length - this.#at + dataByteLength)
    this.#at -= STEP_BYTES
    this.#varint(this.#at, step, STEP_BYTES)
    this.#bytes[--this.#at] = 0x10
    const payloadLength = length - this.#at + dataByteLength
    this.#at -= FRAME_BYTES
    const view = new DataView(this.#bytes.buffer, this.#at, FRAME_BYTES)
    view.setUint32(0, payloadLength % 2 ** 32, true)
    view.setUint32(4, Math.floor(payloadLength / 2 ** 32), true)
    view.setUint32(8, masked(crc32c(this.#bytes.subarray(this.#at, this.#at + 8))), true)
    return this.#bytes.subarray(this.#at)
  }

  /** Writes a field's key and a number: its value, or the length of what follows. */
  #field(key: number, number: number): void {
    let size = 1
    for (let rest = number; rest >= 128; rest = Math.floor(rest / 128)) size++
    this.#at -= size
    this.#varint(this.#at, number, size)
    this.#bytes[--this.#at] = key
  }

  /** Writes a number in base 128, the lowest digit first, in a fixed number of bytes. */
  #varint(at: number, number: number, size: number): void {
    let rest = number
    for (let i = 0; i < size; i++) {
      this.#bytes[at + i] = (rest % 128) + (i < size - 1 ? 128 : 0)
      rest = Math.floor(rest / 128)
    }
  }
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  return crc
})

/** The CRC-32C of eight bytes. The core's would need memory for them. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** TFRecord's mask. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
