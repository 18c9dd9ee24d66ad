/** The directory of a ZIP archive (PKWARE's APPNOTE 6.3.10): its members as places, without their content. */

import type { FormatError } from '../../base/errors.js'
import { arrayFault } from './source.js'

const END_BYTES = 22
const LOCATOR_BYTES = 20
const CENTRAL_BYTES = 46
export const LOCAL_BYTES = 30
const MAX_COMMENT_BYTES = 0xffff
/** A member takes about a hundred bytes of it. */
const MAX_DIRECTORY_BYTES = 64 << 20
const ENCRYPTED = 1
const MAX_32 = 0xffff_ffff

export const STORED = 0
export const DEFLATED = 8

/** An archive whose ranges can be read, at once or later. */
export interface ZipSource {
  /** The name in errors. */
  readonly url: string
  readonly byteLength: number
  /** Exactly these bytes. */
  read(startByte: number, byteLength: number): Uint8Array | Promise<Uint8Array>
}

export interface ZipMember {
  readonly name: string
  readonly method: number
  /** Bit 3: sizes follow the content. */
  readonly flags: number
  readonly crc: number
  readonly compressedLength: number
  readonly byteLength: number
  /** The start of the member's own header. */
  readonly offset: number
  /** The fault of the member's directory entry. */
  readonly fault: FormatError | null
}

/** True if a file begins with the magic of ZIP. */
export function isZip(head: Uint8Array): boolean {
  return head[0] === 0x50 && head[1] === 0x4b && (head[2] === 3 || head[2] === 5)
}

export interface ZipDirectory {
  readonly members: readonly ZipMember[]
  /** The start of the directory. */
  readonly offset: number
}

/**
 * The members, as the directory at the end of the archive lists them.
 * @throws FormatError `BadArrayFile` for a directory that is missing, lies outside of the file or does not fit together; StoreError
 */
export async function readZipDirectory(source: ZipSource): Promise<ZipDirectory> {
  const { url } = source
  const { count, byteLength, offset } = await endOf(source)
  if (offset + byteLength > source.byteLength) {
    const expected = `a directory within the ${source.byteLength} bytes of the file`
    throw arrayFault(url, offset, expected, `one of ${byteLength}`)
  }
  if (byteLength > MAX_DIRECTORY_BYTES) {
    throw arrayFault(url, offset, `a directory of at most ${MAX_DIRECTORY_BYTES} bytes`, `${byteLength}`)
  }
  const bytes = await source.read(offset, byteLength)
  const directory = viewOf(bytes)
  const members: ZipMember[] = []
  let at = 0
  while (members.length < count) {
    const lengthOf = (field: number): number =>
      at + CENTRAL_BYTES <= byteLength ? directory.getUint16(at + field, true) : 0
    const [nameLength, extraLength] = [lengthOf(28), lengthOf(30)]
    const end = at + CENTRAL_BYTES + nameLength + extraLength + lengthOf(32)
    if (end > byteLength || directory.getUint32(at, true) !== 0x02014b50) {
      throw arrayFault(url, offset + at, `${count} entries in the directory`, `${members.length} and other bytes`)
    }
    const extraAt = at + CENTRAL_BYTES + nameLength
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + at + CENTRAL_BYTES, nameLength).toString('utf8')
    const fault = (expected: string, got: string) => arrayFault(url, offset + at, expected, got)
    const places = placesOf(directory, at, viewOf(bytes.subarray(extraAt, extraAt + extraLength)))
    const [full, compressedLength, place] = places as [number, number, number]
    const isInside = places.every(Number.isSafeInteger) && place + LOCAL_BYTES <= source.byteLength
    const flags = directory.getUint16(at + 8, true)
    members.push({
      name,
      method: directory.getUint16(at + 10, true),
      flags,
      crc: directory.getUint32(at + 16, true),
      compressedLength,
      byteLength: full,
      offset: place,
      fault: !isInside
        ? fault(`a member within the ${source.byteLength} bytes of the file`, `one at ${place}`)
        : (flags & ENCRYPTED) !== 0
          ? fault('a member that is not encrypted', JSON.stringify(name))
          : null,
    })
    at = end
  }
  const total = members.reduce((sum, { compressedLength }) => sum + LOCAL_BYTES + compressedLength, 0)
  return { members: total > source.byteLength ? apart(members, url) : members, offset }
}

/** The members of more bytes than the file has: each that reaches into the next has a fault, so that no bytes are read many times. */
function apart(members: readonly ZipMember[], url: string): readonly ZipMember[] {
  const inOrder = members.filter(({ fault }) => fault === null).sort((a, b) => a.offset - b.offset)
  const faults = new Map<ZipMember, FormatError>()
  inOrder.forEach((member, i) => {
    const next = inOrder[i + 1]
    if (next === undefined || next.offset >= member.offset + LOCAL_BYTES + member.compressedLength) return
    const got = `${JSON.stringify(next.name)} at ${next.offset}`
    faults.set(member, arrayFault(url, member.offset, `${member.compressedLength} bytes of ${member.name} alone`, got))
  })
  return faults.size === 0 ? members : members.map(member => ({ ...member, fault: faults.get(member) ?? member.fault }))
}

/** The start of a member's content, by its own header. @throws FormatError `BadArrayFile`; StoreError */
export async function contentStart(source: ZipSource, { name, offset, compressedLength }: ZipMember): Promise<number> {
  const header = viewOf(await source.read(offset, LOCAL_BYTES))
  if (header.byteLength < LOCAL_BYTES || header.getUint32(0, true) !== 0x04034b50) {
    throw arrayFault(source.url, offset, `the header of a member for ${name}`, 'other bytes')
  }
  const start = offset + LOCAL_BYTES + header.getUint16(26, true) + header.getUint16(28, true)
  if (start + compressedLength > source.byteLength) {
    const got = `${Math.max(0, source.byteLength - start)} up to the end of the file`
    throw arrayFault(source.url, offset, `${compressedLength} bytes for ${name}`, got)
  }
  return start
}

/** The length of a member's content, that of its bytes in the archive, and where it begins; what 32 bits can't hold, in ZIP64's extra field. */
function placesOf(directory: DataView, at: number, extra: DataView): readonly number[] {
  const plain = [24, 20, 42].map(field => directory.getUint32(at + field, true))
  const large: number[] = []
  for (let field = 0; field + 4 <= extra.byteLength; field += 4 + extra.getUint16(field + 2, true)) {
    if (extra.getUint16(field, true) !== 1) continue
    const end = Math.min(extra.byteLength, field + 4 + extra.getUint16(field + 2, true))
    for (let i = field + 4; i + 8 <= end; i += 8) large.push(Number(extra.getBigUint64(i, true)))
  }
  return plain.map(number => (number === MAX_32 ? (large.shift() ?? Number.NaN) : number))
}

interface DirectoryPlace {
  readonly count: number
  readonly byteLength: number
  readonly offset: number
}

async function endOf(source: ZipSource): Promise<DirectoryPlace> {
  const { url } = source
  const length = Math.min(source.byteLength, END_BYTES + MAX_COMMENT_BYTES)
  const start = source.byteLength - length
  const tail = viewOf(await source.read(start, length))
  for (let at = tail.byteLength - END_BYTES; at >= 0; at--) {
    if (tail.getUint32(at, true) !== 0x06054b50) continue
    const behind = length - (at + END_BYTES + tail.getUint16(at + 20, true))
    if (behind > 0 && isEndRecord(tail, at)) {
      const end = source.byteLength - behind
      throw arrayFault(
        url,
        end,
        'the end of the file behind a ZIP archive',
        `${behind} bytes more: something was appended`,
      )
    }
    if (behind !== 0) continue
    const [count, byteLength, offset] = [
      tail.getUint16(at + 10, true),
      tail.getUint32(at + 12, true),
      tail.getUint32(at + 16, true),
    ]
    if (count !== 0xffff && byteLength !== MAX_32 && offset !== MAX_32) return { count, byteLength, offset }
    const locator = at - LOCATOR_BYTES
    const place =
      locator >= 0 && tail.getUint32(locator, true) === 0x07064b50 ? Number(tail.getBigUint64(locator + 8, true)) : -1
    if (place < 0) return { count, byteLength, offset }
    if (!Number.isSafeInteger(place) || place + 56 > source.byteLength) break
    const record = viewOf(await source.read(place, 56))
    if (record.getUint32(0, true) !== 0x06064b50) break
    const [large, size, from] = [32, 40, 48].map(field => Number(record.getBigUint64(field, true))) as [
      number,
      number,
      number,
    ]
    return { count: large, byteLength: size, offset: from }
  }
  const got = `${source.byteLength} bytes that end otherwise`
  throw arrayFault(url, start, 'the end of a ZIP archive', `${got}; it is cut off: its directory is missing`)
}

/** True for an end record, and not merely bytes that look like its beginning. */
function isEndRecord(tail: DataView, at: number): boolean {
  const [disk, here, all] = [4, 8, 10].map(field => tail.getUint16(at + field, true))
  return disk === 0 && here === all
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
