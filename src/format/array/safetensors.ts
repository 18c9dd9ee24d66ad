/** Safetensors files: the length of a header, the header in JSON, the elements of all tensors one after the other. */

import type { DType } from '../../types.js'
import { expectInteger, expectList, expectObject, expectString, inside, jsonFault, parseJsonObject } from '../json.js'
import { type ArraySource, arrayFault, bytesShown, countOf, type FileArray, MAX_ARRAY_BYTES } from './source.js'

const LENGTH_BYTES = 8
/** As much as the reference implementation reads. */
const MAX_HEADER_BYTES = 100_000_000
const CODE = 'BadArrayFile'

const DTYPES: Readonly<Record<string, readonly [dtype: DType, byteLength: number]>> = {
  BOOL: ['bool', 1],
  I8: ['int8', 1],
  U8: ['uint8', 1],
  I16: ['int16', 2],
  U16: ['uint16', 2],
  I32: ['int32', 4],
  U32: ['uint32', 4],
  I64: ['int64', 8],
  U64: ['uint64', 8],
  F16: ['float16', 2],
  BF16: ['bfloat16', 2],
  F32: ['float32', 4],
  F64: ['float64', 8],
  C64: ['complex64', 8],
}

interface Place {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly begin: number
  readonly end: number
}

/**
 * The tensors of a file in the order of their bytes, so that no two of them are in memory.
 * @throws FormatError `BadArrayFile` unless the tensors fill the file without a gap; StoreError
 */
export function* readSafetensors(source: ArraySource): Generator<readonly [name: string, array: FileArray]> {
  const { url, byteLength } = source
  const prefix = source.read(0, Math.min(LENGTH_BYTES, byteLength))
  if (prefix.length < LENGTH_BYTES) {
    throw arrayFault(url, 0, 'an array file: .npy, .npz or .safetensors', bytesShown(prefix))
  }
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true))
  if (!(length <= Math.min(MAX_HEADER_BYTES, byteLength - LENGTH_BYTES))) {
    const wanted = 'an array file (.npy, .npz, or .safetensors with a header that lies within the file)'
    throw arrayFault(url, 0, wanted, bytesShown(prefix))
  }
  const start = LENGTH_BYTES + length
  const text = Buffer.from(source.read(LENGTH_BYTES, length)).toString('utf8')
  const places = placesOf(url, text, byteLength - start)
  for (const { name, dtype, shape, begin, end } of places) {
    if (end - begin > MAX_ARRAY_BYTES) {
      throw arrayFault(
        url,
        start + begin,
        `at most ${MAX_ARRAY_BYTES} bytes of ${JSON.stringify(name)}`,
        `${end - begin}`,
      )
    }
    yield [name, { dtype, shape, data: source.read(start + begin, end - begin) }]
  }
}

function placesOf(url: string, text: string, byteLength: number): readonly Place[] {
  const place = { url, code: CODE, at: '' }
  const places: Place[] = []
  for (const [name, entry] of Object.entries(parseJsonObject(text, url, CODE))) {
    if (name === '__metadata__') continue
    const at = inside(place, name)
    const given = expectObject(entry, at)
    const dtypeName = expectString(given.dtype, inside(at, 'dtype'))
    const known = Object.hasOwn(DTYPES, dtypeName) ? DTYPES[dtypeName] : undefined
    if (known === undefined) {
      throw jsonFault(
        inside(at, 'dtype'),
        `one of ${Object.keys(DTYPES).join(', ')}`,
        JSON.stringify(dtypeName.slice(0, 40)),
      )
    }
    const [dtype, elementLength] = known
    const shape = expectList(given.shape, inside(at, 'shape'), expectInteger)
    const offsets = expectList(given.data_offsets, inside(at, 'data_offsets'), expectInteger)
    const [begin = -1, end = -1] = offsets
    const count = countOf(shape)
    const size = count === null ? Number.NaN : count * elementLength
    if (offsets.length !== 2 || end - begin !== size) {
      throw jsonFault(
        inside(at, 'data_offsets'),
        `${size} bytes, as shape [${shape}] and ${dtypeName} say`,
        `[${offsets.slice(0, 3)}]`,
      )
    }
    places.push({ name, dtype, shape, begin, end })
  }
  places.sort((a, b) => a.begin - b.begin || a.end - b.end)
  let filled = 0
  for (const { name, begin, end } of places) {
    if (begin !== filled) throw jsonFault(inside(place, name), `bytes from ${filled} on`, `bytes from ${begin} on`)
    filled = end
  }
  if (filled !== byteLength) throw jsonFault(place, `tensors that fill ${byteLength} bytes`, `${filled}`)
  return places
}
