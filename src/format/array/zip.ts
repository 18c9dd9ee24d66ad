/** numpy's .npz files: ZIP archives (PKWARE's APPNOTE 6.3.10) of .npy files, stored or deflated. */

import { promisify } from 'node:util'
import { crc32, inflateRaw } from 'node:zlib'
import { FormatError } from '../../errors.js'
import { readNpy } from './npy.js'
import {
  type ArraySource,
  arrayFault,
  bytesShown,
  type FileArray,
  MAX_ARRAY_BYTES,
  type NamedArray,
  sourceOf,
} from './source.js'

const END_BYTES = 22
const LOCATOR_BYTES = 20
const CENTRAL_BYTES = 46
const LOCAL_BYTES = 30
const MAX_COMMENT_BYTES = 0xffff
/** A member takes about a hundred bytes of it. */
const MAX_DIRECTORY_BYTES = 64 << 20
/** Deflate makes no more of a byte; what claims more lies. */
const MAX_RATIO = 1032
const [STORED, DEFLATED] = [0, 8]
const ENCRYPTED = 1
const MAX_32 = 0xffff_ffff

interface Member {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly compressedLength: number
  readonly byteLength: number
  /** Of its own header. */
  readonly offset: number
  /** What the directory says of it that can't be. */
  readonly fault: FormatError | null
}

const inflate = promisify(inflateRaw)

export function isZip(head: Uint8Array): boolean {
  return head[0] === 0x50 && head[1] === 0x4b && (head[2] === 3 || head[2] === 5)
}

/**
 * The arrays of an archive, one after the other, so that no two of them are in memory.
 * @throws FormatError `BadArrayFile` for an archive whose directory can't be read; StoreError
 */
export async function* readNpz(source: ArraySource): AsyncGenerator<NamedArray> {
  const names = new Set<string>()
  for (const member of directoryOf(source)) {
    if (member.name.endsWith('/')) continue
    const name = member.name.replace(/\.npy$/, '')
    yield [name, await arrayOf(source, member, names).catch(errorOfFormat)]
  }
}

async function arrayOf(source: ArraySource, member: Member, names: Set<string>): Promise<FileArray> {
  const { name, offset, fault } = member
  if (fault !== null) throw fault
  if (!name.endsWith('.npy')) throw arrayFault(source.url, offset, 'a member named ….npy', JSON.stringify(name))
  if (names.has(name)) throw arrayFault(source.url, offset, 'each name once', `${JSON.stringify(name)} again`)
  names.add(name)
  return readNpy(sourceOf(`${source.url}: ${name}`, await contentOf(source, member)))
}

function errorOfFormat(error: unknown): FormatError {
  if (error instanceof FormatError) return error
  throw error
}

async function contentOf(source: ArraySource, member: Member): Promise<Uint8Array> {
  const { url } = source
  const { name, method, crc, compressedLength, byteLength, offset } = member
  const fault = (expected: string, got: string) => arrayFault(url, offset, `${expected} for ${name}`, got)
  if (method !== STORED && method !== DEFLATED) throw fault('method 0 (stored) or 8 (deflated)', `${method}`)
  const limit = MAX_ARRAY_BYTES + (1 << 17)
  if (byteLength > limit || compressedLength > limit) throw fault(`at most ${limit} bytes`, `${byteLength}`)
  const isPlausible = method === STORED ? byteLength === compressedLength : byteLength <= compressedLength * MAX_RATIO
  if (!isPlausible) throw fault(`a length that ${compressedLength} bytes can have`, `${byteLength}`)
  const header = view(source.read(offset, LOCAL_BYTES))
  if (header.getUint32(0, true) !== 0x04034b50) throw fault('the header of a member', 'other bytes')
  const start = offset + LOCAL_BYTES + header.getUint16(26, true) + header.getUint16(28, true)
  if (start + compressedLength > source.byteLength) {
    throw fault(`${compressedLength} bytes`, `${Math.max(0, source.byteLength - start)} up to the end of the file`)
  }
  const packed = source.read(start, compressedLength)
  const content = method === STORED ? packed : await inflated(packed, byteLength, fault)
  if (content.length !== byteLength) throw fault(`${byteLength} bytes`, `${content.length}`)
  if (crc32(content) !== crc) throw fault(`the checksum ${hex(crc)}`, hex(crc32(content)))
  return content
}

/** No more than was promised is made of it. */
async function inflated(
  packed: Uint8Array,
  byteLength: number,
  fault: (expected: string, got: string) => Error,
): Promise<Uint8Array> {
  try {
    return await inflate(packed, { maxOutputLength: Math.max(1, byteLength) })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw fault(`${byteLength} bytes`, 'more')
    throw fault('deflated bytes', message)
  }
}

/** The members, as the directory at the end of the archive lists them. */
function directoryOf(source: ArraySource): readonly Member[] {
  const { url } = source
  const { count, byteLength, offset } = endOf(source)
  if (offset + byteLength > source.byteLength) {
    throw arrayFault(
      url,
      offset,
      `a directory within the ${source.byteLength} bytes of the file`,
      `one of ${byteLength}`,
    )
  }
  if (byteLength > MAX_DIRECTORY_BYTES) {
    throw arrayFault(url, offset, `a directory of at most ${MAX_DIRECTORY_BYTES} bytes`, `${byteLength}`)
  }
  const bytes = source.read(offset, byteLength)
  const directory = view(bytes)
  const members: Member[] = []
  let at = 0
  while (members.length < count) {
    const lengths =
      at + CENTRAL_BYTES <= byteLength ? [28, 30, 32].map(field => directory.getUint16(at + field, true)) : []
    const [nameLength = 0, extraLength = 0, commentLength = 0] = lengths
    const end = at + CENTRAL_BYTES + nameLength + extraLength + commentLength
    if (end > byteLength || directory.getUint32(at, true) !== 0x02014b50) {
      throw arrayFault(url, offset + at, `${count} entries in the directory`, `${members.length} and other bytes`)
    }
    const name = Buffer.from(bytes.subarray(at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameLength)).toString('utf8')
    const fault = (expected: string, got: string) => arrayFault(url, offset + at, expected, got)
    const extraAt = at + CENTRAL_BYTES + nameLength
    const places = placesOf(directory, at, view(bytes.subarray(extraAt, extraAt + extraLength)))
    const [full, compressedLength, place] = places as [number, number, number]
    const isInside = places.every(Number.isSafeInteger) && place + LOCAL_BYTES <= source.byteLength
    const isEncrypted = (directory.getUint16(at + 8, true) & ENCRYPTED) !== 0
    const [method, crc] = [directory.getUint16(at + 10, true), directory.getUint32(at + 16, true)]
    members.push({
      name,
      method,
      crc,
      compressedLength,
      byteLength: full,
      offset: place,
      fault: !isInside
        ? fault(`a member within the ${source.byteLength} bytes of the file`, `one at ${place}`)
        : isEncrypted
          ? fault('a member that is not encrypted', JSON.stringify(name))
          : null,
    })
    at = end
  }
  return members
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

function endOf(source: ArraySource): { readonly count: number; readonly byteLength: number; readonly offset: number } {
  const { url } = source
  const length = Math.min(source.byteLength, END_BYTES + MAX_COMMENT_BYTES)
  const start = source.byteLength - length
  const bytes = source.read(start, length)
  const tail = view(bytes)
  for (let at = length - END_BYTES; at >= 0; at--) {
    if (tail.getUint32(at, true) !== 0x06054b50 || at + END_BYTES + tail.getUint16(at + 20, true) !== length) continue
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
    const record = view(source.read(place, 56))
    if (record.getUint32(0, true) !== 0x06064b50) break
    const [large, size, from] = [32, 40, 48].map(field => Number(record.getBigUint64(field, true))) as [
      number,
      number,
      number,
    ]
    return { count: large, byteLength: size, offset: from }
  }
  throw arrayFault(
    url,
    start,
    'the end of a ZIP archive',
    `${bytesShown(bytes.subarray(-END_BYTES))} at the end of the file`,
  )
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}
