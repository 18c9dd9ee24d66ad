/** The arrays of numpy's files. No more than their headers are read: members of an archive are read where they lie. */

import { FormatError, quote } from '../../base/errors.js'
import { fortranStride, KINDS, type NpyHeader, npyHeader } from '../array/npy.js'
import { type ArraySource, countOf } from '../array/source.js'
import { contentStart, readZipDirectory, STORED, type ZipMember } from '../array/zip-directory.js'
import { withRanges } from './ranges.js'
import type { RangedFile, StoredTensor, TensorFileContents, UnreadTensor } from './stored-tensor.js'
import { UNREADABLE } from './torch/fault.js'

/** The largest length of a member's header and its array's, as numpy writes them. */
const MEMBER_HEAD_BYTES = 512
/** Members that are looked at together. */
const MEMBERS_AT_ONCE = 16
const MAX_TOLD = 100

export async function readNpyFile(file: RangedFile): Promise<TensorFileContents> {
  const name = file.path.slice(file.path.lastIndexOf('/') + 1, -'.npy'.length)
  const array = await withRanges(file, source => arrayIn(source, file, name, 0))
  const [tensors, unread] = 'error' in array ? [[], [array]] : [[array], []]
  return { tensors, unread, problems: [], hasFullNames: true }
}

export async function readNpzFile(file: RangedFile): Promise<TensorFileContents> {
  const { members } = await readZipDirectory(file)
  const tensors: StoredTensor[] = []
  const unread: UnreadTensor[] = []
  const problems: FormatError[] = []
  const names = new Set<string>()
  let more = 0
  const arrays = await inTurns(members, MEMBERS_AT_ONCE, member => memberArray(file, member))
  for (const [i, array] of arrays.entries()) {
    const { offset } = members[i]!
    const isAgain = names.has(array.name)
    names.add(array.name)
    const error = isAgain ? fault(file, offset, 'each name once', `${quote(array.name)} again`) : null
    if (error === null && !('error' in array)) tensors.push(array)
    else if (unread.length < MAX_TOLD)
      unread.push(error ? { name: array.name, dtype: '?', error } : (array as UnreadTensor))
    else more++
  }
  if (more > 0) problems.push(fault(file, 0, 'arrays that can be read', `${more} more that can't`))
  return { tensors, unread, problems }
}

async function memberArray(file: RangedFile, member: ZipMember): Promise<StoredTensor | UnreadTensor> {
  const { name: path, method, offset, byteLength, fault: broken } = member
  const name = path.replace(/\.npy$/, '')
  const wrong = (expected: string, got: string): UnreadTensor => {
    return { name, dtype: '?', byteLength, error: fault(file, offset, `${expected} for ${quote(path)}`, got) }
  }
  if (broken !== null) return { name, dtype: '?', byteLength, error: broken }
  if (!path.endsWith('.npy')) return wrong('a member named ….npy', quote(path))
  if (method !== STORED) {
    return wrong(
      'an array that is stored',
      `a compressed one: write the file again by numpy.savez, not savez_compressed`,
    )
  }
  try {
    const head = await file.read(offset, Math.min(MEMBER_HEAD_BYTES, file.byteLength - offset))
    const read = (from: number, length: number): Promise<Uint8Array> => {
      const at = from - offset
      return at >= 0 && at + length <= head.length
        ? Promise.resolve(head.subarray(at, at + length))
        : file.read(from, length)
    }
    const start = await contentStart({ ...file, read }, member)
    const inner: RangedFile = { ...file, byteLength, read: (at, length) => read(start + at, length) }
    return await withRanges(inner, source => arrayIn(source, file, name, start))
  } catch (error) {
    if (error instanceof FormatError) return { name, dtype: '?', byteLength, error }
    throw error
  }
}

/** The array of a .npy file. @param begin the start of the array's file in the file that contains it */
function arrayIn(source: ArraySource, file: RangedFile, name: string, begin: number): StoredTensor | UnreadTensor {
  let header: NpyHeader
  try {
    header = npyHeader(source)
  } catch (error) {
    if (!(error instanceof FormatError) || begin === 0) throw error
    // Its place is that in the member.
    const { offset, expected, got } = error.fields as { offset: number; expected: string; got: string }
    return { name, dtype: '?', error: fault(file, begin + offset, `${expected} for ${quote(name)}`, got) }
  }
  const { kind, isBigEndian, isFortran, shape, start } = header
  const availableLength = source.byteLength - start
  const dtype = KINDS[kind]
  const wrong = (expected: string, got: string, code?: string): UnreadTensor => {
    const error = fault(file, begin, `${expected} for ${quote(name)}`, got, code)
    return { name, dtype: kind, shape, byteLength: availableLength, error }
  }
  if (dtype === undefined) return wrong(`elements of ${Object.keys(KINDS).join(', ')}`, kind, UNREADABLE)
  const size = Number(kind.slice(1))
  if (isBigEndian && size > 1)
    return wrong('little-endian elements', 'big-endian ones: write it again in the order of this machine')
  const count = countOf(shape)
  if (count === null || count * size !== availableLength) {
    const wanted = count === null ? 'fewer than 2^53 elements' : `${count * size} bytes`
    return wrong(`${wanted}, as shape [${shape}] and ${kind} say`, `${availableLength}`)
  }
  const strides = isFortran && shape.length > 1 ? { strides: fortranStride(shape) } : {}
  return { name, dtype, shape, blocks: [{ file: file.path, start: begin + start, ...strides }] }
}

function fault({ url }: RangedFile, offset: number, expected: string, got: string, code = 'BadArrayFile'): FormatError {
  const message = `${url}, byte ${offset}: expected ${expected}, got ${got}`
  return new FormatError(code, message, { url, offset, expected, got })
}

/** Maps items, a limited number at a time. */
async function inTurns<T, R>(all: readonly T[], atOnce: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let i = 0; i < all.length; i += atOnce) {
    results.push(...(await Promise.all(all.slice(i, i + atOnce).map(work))))
  }
  return results
}
