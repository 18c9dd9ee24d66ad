/** Writes protobuf messages from their end to their beginning, so that the length of each is known when it is written. */

const FIRST_BYTES = 1024
/** Wire types. */
const [VARINT, FIXED_64, BYTES, FIXED_32] = [0, 1, 2, 5]

/** A message writer. As in proto3, a number that is 0 is left out. */
export class Backwards {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #at = FIRST_BYTES
  /** The number of bytes that the message includes but the buffer doesn't. */
  #elsewhere = 0

  /** The number of bytes, written or left out. */
  get byteLength(): number {
    return this.#bytes.length - this.#at + this.#elsewhere
  }

  /** The written bytes without the last few, and these. */
  written(tailLength: number): readonly [head: Buffer, tail: Buffer] {
    const end = this.#bytes.length - tailLength
    return [this.#bytes.subarray(this.#at, end), this.#bytes.subarray(end)]
  }

  varint(field: number, value: number): void {
    if (value === 0) return
    if (value < 0) this.#negative(value)
    else this.#number(value)
    this.#number(field * 8 + VARINT)
  }

  double(field: number, value: number): void {
    if (Object.is(value, 0)) return
    this.#room(8)
    this.#bytes.writeDoubleLE(value, this.#at)
    this.#number(field * 8 + FIXED_64)
  }

  /** Writes a float of a oneof, even if it is 0. */
  float(field: number, value: number): void {
    this.#room(4)
    this.#bytes.writeFloatLE(value, this.#at)
    this.#number(field * 8 + FIXED_32)
  }

  /** Writes bytes, such as a packed list. */
  bytes(field: number, value: Uint8Array): void {
    const end = this.byteLength
    this.#room(value.length)
    this.#bytes.set(value, this.#at)
    this.message(field, end)
  }

  text(field: number, value: string): void {
    const end = this.byteLength
    this.#room(Buffer.byteLength(value))
    this.#bytes.write(value, this.#at)
    this.message(field, end)
  }

  /** Turns what is written so far into a field. @param end the number of written bytes behind that field */
  message(field: number, end: number): void {
    this.#number(this.byteLength - end)
    this.#number(field * 8 + BYTES)
  }

  /** Writes a number that is no field. */
  uint32(value: number): void {
    this.#room(4)
    this.#bytes.writeUInt32LE(value, this.#at)
  }

  /** Counts bytes that belong here but are stored elsewhere. */
  leaveOut(byteLength: number): void {
    this.#elsewhere += byteLength
  }

  #room(byteLength: number): void {
    if (byteLength > this.#at) {
      const written = this.#bytes.subarray(this.#at)
      this.#bytes = Buffer.allocUnsafe(2 * (written.length + byteLength))
      this.#at = this.#bytes.length - written.length
      this.#bytes.set(written, this.#at)
    }
    this.#at -= byteLength
  }

  /** Writes a number up to 2^53 in base 128, the lowest digit first. */
  #number(value: number): void {
    const low = value % 128
    const isLast = value < 128
    if (!isLast) this.#number(Math.floor(value / 128))
    this.#room(1)
    this.#bytes[this.#at] = isLast ? low : low + 128
  }

  /** Writes a negative int64: ten bytes. */
  #negative(value: number): void {
    this.#room(10)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (let i = 0; i < 10; i++, rest >>= 7n) this.#bytes[this.#at + i] = Number(rest & 127n) | (i < 9 ? 128 : 0)
  }
}
