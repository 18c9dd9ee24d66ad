/**
 * A ZIP archive of uncompressed members, written from start to end (PKWARE's APPNOTE 6.3.10), each preceded by its
 * length and CRC-32. Sizes beyond 32 bits, or more than 65,535 members, are written as ZIP64.
 */

import { crc32 } from 'node:zlib'

interface Member {
  readonly name: Uint8Array
  readonly crc: number
  readonly byteLength: number
  /** The offset of the header. */
  readonly offset: number
}

/** The number of bytes that are collected for one write. */
const FLUSH_BYTES = 1 << 20
const MAX_32 = 0xffff_ffff
const MAX_16 = 0xffff
/** The version needed to read the archive: 4.5 for ZIP64, 2.0 otherwise. */
const VERSION = { plain: 20, zip64: 45 }
/** The flag for names in UTF-8. */
const UTF8 = 1 << 11
/** The date of every member, 1980-01-01, so that the same values give the same bytes. */
const DATE = 33

export class ZipWriter {
  readonly #write: (bytes: Uint8Array) => Promise<void>
  readonly #members: Member[] = []
  #offset = 0
  /** The chunks that wait to be written: members can be small. */
  #waiting: Uint8Array[] = []
  #waitingByteLength = 0

  /** @param write appends to the archive */
  constructor(write: (bytes: Uint8Array) => Promise<void>) {
    this.#write = write
  }

  /**
   * Adds a member.
   * @param chunks the content, which is read twice
   */
  async add(name: string, chunks: readonly Uint8Array[]): Promise<void> {
    let crc = 0
    let byteLength = 0
    for (const chunk of chunks) {
      // For no bytes Node.js returns 0 instead of the previous checksum.
      if (chunk.length > 0) crc = crc32(chunk, crc)
      byteLength += chunk.length
    }
    const member = { name: Buffer.from(name), crc, byteLength, offset: this.#offset }
    this.#members.push(member)
    await this.#append(localHeader(member))
    for (const chunk of chunks) await this.#append(chunk)
  }

  /** Writes the directory, which ends the archive. */
  async finish(): Promise<void> {
    const start = this.#offset
    for (const member of this.#members) await this.#append(centralHeader(member))
    await this.#append(endOf(this.#members.length, start, this.#offset))
    await this.#flush()
  }

  async #append(bytes: Uint8Array): Promise<void> {
    this.#offset += bytes.length
    if (bytes.length >= FLUSH_BYTES) {
      // Large chunks are written as they are, without a copy.
      await this.#flush()
      await this.#write(bytes)
      return
    }
    this.#waiting.push(bytes)
    this.#waitingByteLength += bytes.length
    if (this.#waitingByteLength >= FLUSH_BYTES) await this.#flush()
  }

  async #flush(): Promise<void> {
    const [only] = this.#waiting
    if (only !== undefined) await this.#write(this.#waiting.length === 1 ? only : Buffer.concat(this.#waiting))
    this.#waiting = []
    this.#waitingByteLength = 0
  }
}

function localHeader(member: Member): Uint8Array {
  const { name, byteLength } = member
  const extra = zip64Extra(byteLength >= MAX_32 ? [byteLength, byteLength] : [])
  return Buffer.concat([Buffer.from('PK\x03\x04'), fieldsOf(member, extra), name, extra])
}

function centralHeader(member: Member): Uint8Array {
  const { name, byteLength, offset } = member
  const large = [...(byteLength >= MAX_32 ? [byteLength, byteLength] : []), ...(offset >= MAX_32 ? [offset] : [])]
  const extra = zip64Extra(large)
  const fields = fieldsOf(member, extra)
  const place = Buffer.alloc(14)
  place.writeUInt32LE(Math.min(offset, MAX_32), 10)
  // The version that wrote it is the one that is needed.
  return Buffer.concat([Buffer.from('PK\x01\x02'), fields.subarray(0, 2), fields, place, name, extra])
}

/** The fields that both headers of a member have. */
function fieldsOf({ name, crc, byteLength }: Member, extra: Uint8Array): Buffer {
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(extra.length > 0 ? VERSION.zip64 : VERSION.plain, 0)
  fields.writeUInt16LE(UTF8, 2)
  fields.writeUInt16LE(DATE, 8)
  fields.writeUInt32LE(crc, 10)
  fields.writeUInt32LE(Math.min(byteLength, MAX_32), 14)
  fields.writeUInt32LE(Math.min(byteLength, MAX_32), 18)
  fields.writeUInt16LE(name.length, 22)
  fields.writeUInt16LE(extra.length, 24)
  return fields
}

/** The extra field of ZIP64; empty without numbers. */
function zip64Extra(numbers: readonly number[]): Buffer {
  if (numbers.length === 0) return Buffer.alloc(0)
  const extra = Buffer.alloc(4 + 8 * numbers.length)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(8 * numbers.length, 2)
  for (const [i, number] of numbers.entries()) extra.writeBigUInt64LE(BigInt(number), 4 + 8 * i)
  return extra
}

/** The end of the archive, whose directory begins at `start`. */
function endOf(count: number, start: number, end: number): Uint8Array {
  const byteLength = end - start
  const last = Buffer.alloc(22)
  last.writeUInt32LE(0x06054b50, 0)
  last.writeUInt16LE(Math.min(count, MAX_16), 8)
  last.writeUInt16LE(Math.min(count, MAX_16), 10)
  last.writeUInt32LE(Math.min(byteLength, MAX_32), 12)
  last.writeUInt32LE(Math.min(start, MAX_32), 16)
  if (count < MAX_16 && byteLength < MAX_32 && start < MAX_32) return last
  const record = Buffer.alloc(56)
  record.writeUInt32LE(0x06064b50, 0)
  record.writeBigUInt64LE(44n, 4)
  record.writeUInt16LE(VERSION.zip64, 12)
  record.writeUInt16LE(VERSION.zip64, 14)
  record.writeBigUInt64LE(BigInt(count), 24)
  record.writeBigUInt64LE(BigInt(count), 32)
  record.writeBigUInt64LE(BigInt(byteLength), 40)
  record.writeBigUInt64LE(BigInt(start), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(end), 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([record, locator, last])
}
