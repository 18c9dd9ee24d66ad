/** Writes protobuf messages from their end to their beginning, so that the length of each is known when it is written. */

const SHORT_BYTES = 4096
/** The size beyond which a buffer is not used for another message. */
const KEPT_BYTES = 64 << 10
/** Wire types. */
const [VARINT, FIXED_64, BYTES, FIXED_32] = [0, 1, 2, 5]
const utf8 = new TextEncoder()

/** A message writer. As in proto3, a number that is 0 is left out. */
export class Backwards {
  #bytes = new Uint8Array(SHORT_BYTES)
  #view = new DataView(this.#bytes.buffer)
  #at = SHORT_BYTES
  /** The number of bytes that the message includes but the buffer doesn't. */
  #elsewhere = 0

  /** The number of bytes, written or left out. */
  get byteLength(): number {
    return this.#bytes.length - this.#at + this.#elsewhere
  }

  /** Starts a new message. The buffer is reused unless it is long. */
  reset(): void {
    if (this.#bytes.length > KEPT_BYTES) this.#use(new Uint8Array(SHORT_BYTES))
    this.#at = this.#bytes.length
    this.#elsewhere = 0
  }

  /** The written bytes, without the last `before`. */
  written(before = 0): Uint8Array {
    return this.#bytes.subarray(this.#at, this.#bytes.length - before)
  }

  /** The last bytes. */
  end(byteLength: number): Uint8Array {
    return this.#bytes.subarray(this.#bytes.length - byteLength)
  }

  /** Overwrites four bytes. @param at the offset from the beginning; below 0 from the end */
  setUint32(at: number, value: number): void {
    this.#view.setUint32((at < 0 ? this.#bytes.length : this.#at) + at, value, true)
  }

  varint(field: number, value: number): void {
    if (value === 0) return
    if (value < 0) this.#negative(value)
    else this.#number(value)
    this.#number(field * 8 + VARINT)
  }

  double(field: number, value: number): void {
    if (Object.is(value, 0)) return
    this.room(8)
    this.#view.setFloat64(this.#at, value, true)
    this.#number(field * 8 + FIXED_64)
  }

  /** Writes a float of a oneof, even if it is 0. */
  float(field: number, value: number): void {
    this.room(4)
    this.#view.setFloat32(this.#at, value, true)
    this.#number(field * 8 + FIXED_32)
  }

  /** Writes a packed list. */
  doubles(field: number, values: readonly number[]): void {
    const end = this.byteLength
    this.room(8 * values.length)
    for (let i = 0; i < values.length; i++) this.#view.setFloat64(this.#at + 8 * i, values[i]!, true)
    this.message(field, end)
  }

  /** Writes bytes unchanged. */
  bytes(field: number, value: Uint8Array): void {
    const end = this.byteLength
    this.room(value.length)
    this.#bytes.set(value, this.#at)
    this.message(field, end)
  }

  text(field: number, value: string): void {
    const end = this.byteLength
    const { length } = value
    this.room(length * 3)
    const start = this.#at + length * 2
    let i = 0
    for (; i < length; i++) {
      const code = value.charCodeAt(i)
      if (code >= 0x80) break
      this.#bytes[start + i] = code
    }
    if (i === length) this.#at = start
    else {
      const { written } = utf8.encodeInto(value, this.#bytes.subarray(this.#at))
      const from = this.#at
      this.#at += length * 3 - written
      this.#bytes.copyWithin(this.#at, from, from + written)
    }
    this.message(field, end)
  }

  /** Turns what is written so far into a field. @param end the number of written bytes behind that field */
  message(field: number, end: number): void {
    this.#number(this.byteLength - end)
    this.#number(field * 8 + BYTES)
  }

  /** Reserves room for bytes that are written elsewhere. */
  room(byteLength: number): void {
    if (byteLength > this.#at) {
      const held = this.#bytes.length - this.#at
      const longer = new Uint8Array(2 * (held + byteLength))
      longer.set(this.#bytes.subarray(this.#at), longer.length - held)
      this.#use(longer)
      this.#at = longer.length - held
    }
    this.#at -= byteLength
  }

  /** Counts bytes that belong here but are stored elsewhere. */
  leaveOut(byteLength: number): void {
    this.#elsewhere += byteLength
  }

  /** Writes a number up to 2^53 in base 128, the lowest digit first. */
  #number(value: number): void {
    let digits = 1
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) digits++
    this.room(digits)
    let rest = value
    for (let i = 0; i < digits - 1; i++) {
      this.#bytes[this.#at + i] = (rest % 128) + 128
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.#at + digits - 1] = rest
  }

  /** Writes a negative int64: ten bytes. */
  #negative(value: number): void {
    this.room(10)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (let i = 0; i < 10; i++, rest >>= 7n) this.#bytes[this.#at + i] = Number(rest & 127n) | (i < 9 ? 128 : 0)
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer)
  }
}
