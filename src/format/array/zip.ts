/** Reads numpy's .npz files: ZIP archives (PKWARE's APPNOTE 6.3.10) of .npy files, stored or deflated. */

import { promisify } from 'node:util'
import { crc32, inflateRaw } from 'node:zlib'
import { FormatError } from '../../base/errors.js'
import { readNpy } from './npy.js'
import { type ArraySource, arrayFault, type FileArray, MAX_ARRAY_BYTES, type NamedArray, sourceOf } from './source.js'
import { contentStart, DEFLATED, readZipDirectory, STORED, type ZipMember } from './zip-directory.js'

/** The largest compression ratio of deflate; a larger claimed size is false. */
const MAX_RATIO = 1032
const inflate = promisify(inflateRaw)

/**
 * Yields the arrays of an archive, one at a time in memory.
 * @throws FormatError `BadArrayFile` for an archive whose directory can't be read; StoreError
 */
export async function* readNpz(source: ArraySource): AsyncGenerator<NamedArray> {
  const names = new Set<string>()
  for (const member of (await readZipDirectory(source)).members) {
    if (member.name.endsWith('/')) continue
    const name = member.name.replace(/\.npy$/, '')
    yield [name, await arrayOf(source, member, names).catch(errorOfFormat)]
  }
}

async function arrayOf(source: ArraySource, member: ZipMember, names: Set<string>): Promise<FileArray> {
  const { name, offset, fault } = member
  if (fault !== null) throw fault
  if (!name.endsWith('.npy')) throw arrayFault(source.url, offset, 'a member named ….npy', JSON.stringify(name))
  if (names.has(name)) throw arrayFault(source.url, offset, 'each name once', `${JSON.stringify(name)} again`)
  names.add(name)
  return readNpy(sourceOf(`${source.url}: ${name}`, await contentOf(source, member), source.maxArrayBytes))
}

function errorOfFormat(error: unknown): FormatError {
  if (error instanceof FormatError) return error
  throw error
}

async function contentOf(source: ArraySource, member: ZipMember): Promise<Uint8Array> {
  const { url, maxArrayBytes = MAX_ARRAY_BYTES } = source
  const { name, method, crc, compressedLength, byteLength, offset } = member
  const fault = (expected: string, got: string) => arrayFault(url, offset, `${expected} for ${name}`, got)
  if (method !== STORED && method !== DEFLATED) throw fault('method 0 (stored) or 8 (deflated)', `${method}`)
  const limit = maxArrayBytes + (1 << 17)
  if (byteLength > limit || compressedLength > limit) throw fault(`at most ${limit} bytes`, `${byteLength}`)
  const isPlausible = method === STORED ? byteLength === compressedLength : byteLength <= compressedLength * MAX_RATIO
  if (!isPlausible) throw fault(`a length that ${compressedLength} bytes can have`, `${byteLength}`)
  const start = await contentStart(source, member)
  const packed = source.read(start, compressedLength)
  const content = method === STORED ? packed : await inflated(packed, byteLength, fault)
  if (content.length !== byteLength) throw fault(`${byteLength} bytes`, `${content.length}`)
  if (crc32(content) !== crc) throw fault(`the checksum ${hex(crc)}`, hex(crc32(content)))
  return content
}

/** Inflates up to the stated size. */
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

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}
