/** The tensors of a safetensors file. No more than its header is read. */

import { FormatError } from '../../../base/errors.js'
import { inTurns } from '../../../base/turns.js'
import { isStateFile } from '../file-roles.js'
import type { RangedFile, StoredTensor, TensorFileContents } from '../stored-tensor.js'
import { capturedTensors } from './captured.js'
import { LENGTH_BYTES } from './dtypes.js'
import { type Header, type HeaderTensor, headerLength, parseHeader } from './safetensors-header.js'

/** PyTorch's writer says in this key of the metadata which part of a larger tensor each entry is. */
const SHARDING_KEY = 'DCP_SHARDING_INFO'

/** Reads a file's header. @returns the tensors, and the bytes of those that can be read */
export async function readSafetensors(file: RangedFile): Promise<TensorFileContents & { readonly byteLength: number }> {
  const header = await readHeader(file)
  const { metadata, unread, problems } = header
  const captured = capturedTensors(file.path, header)
  const hasFullNames = !isStateFile(file.path)
  const offsets = chunkOffsets(header)
  const tensors: StoredTensor[] = []
  let byteLength = 0
  await inTurns(header.tensors, tensor => {
    if (captured === null) tensors.push(storedOf(file, tensor, offsets))
    byteLength += tensor.end - tensor.begin
  })
  return captured === null
    ? { tensors, unread, problems, metadata, hasFullNames, byteLength }
    : { ...captured, unread, problems, hasFullNames, byteLength }
}

/** Reads the header. @throws FormatError, StoreError */
async function readHeader({ url, byteLength, read }: RangedFile): Promise<Header> {
  const prefix = await read(0, Math.min(byteLength, 64))
  const length = headerLength(prefix, url, byteLength)
  const json = await read(LENGTH_BYTES, length)
  if (json.length < length) {
    const message = `${url}: expected a header of ${length} bytes, got ${json.length}: the file is being written`
    throw new FormatError('TruncatedFile', message, { url, offset: LENGTH_BYTES + json.length })
  }
  return parseHeader(json, url, byteLength)
}

function storedOf(
  { path }: RangedFile,
  { name, dtype, shape, begin }: HeaderTensor,
  offsets: ReadonlyMap<string, readonly number[]>,
): StoredTensor {
  const placed = offsets.get(name)
  if (placed === undefined || placed.length !== shape.length) {
    return { name, dtype, shape, blocks: [{ file: path, start: begin }] }
  }
  return { name, dtype, shape, blocks: [{ file: path, start: begin, offsets: placed, shape }], isPart: true }
}

/** The offsets of a file's entries in the tensors that they are parts of; none for most files. */
function chunkOffsets({ metadata }: Header): ReadonlyMap<string, readonly number[]> {
  const offsets = new Map<string, readonly number[]>()
  const text = metadata.get(SHARDING_KEY)
  if (text === undefined) return offsets
  try {
    for (const [name, info] of Object.entries(JSON.parse(text) as Record<string, { saved_offsets?: unknown }>)) {
      const given = info?.saved_offsets
      if (Array.isArray(given) && given.every(at => Number.isSafeInteger(at) && at >= 0)) offsets.set(name, given)
    }
  } catch {
    // Then each entry is a tensor of its own.
  }
  return offsets
}
