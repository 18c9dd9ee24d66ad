/** Safetensors files: the length of a header, the header in JSON, the elements of all tensors one after the other. */

import type { FormatError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'
import { DTYPE_NAMES, dtypeNamed, LENGTH_BYTES, MAX_HEADER_BYTES } from '../checkpoint/safetensors/dtypes.js'
import {
  expectInteger,
  expectList,
  expectObject,
  expectString,
  inside,
  type JsonPlace,
  jsonExcerpt,
  jsonFault,
  jsonTokens,
  parseJsonObject,
} from '../json.js'
import { type ArraySource, arrayFault, bytesShown, countOf, MAX_ARRAY_BYTES, type NamedArray } from './source.js'

const CODE = 'BadArrayFile'

interface Place {
  readonly name: string
  /** Or why it is none of ours. */
  readonly dtype: DType | FormatError
  readonly shape: readonly number[]
  readonly begin: number
  readonly end: number
}

/**
 * The tensors of a file in the order of their bytes, so that no two of them are in memory.
 * @throws FormatError `BadArrayFile` unless the header is one, and the tensors fill the file without a gap; StoreError
 */
export function* readSafetensors(source: ArraySource): Generator<NamedArray> {
  const { url, byteLength, maxArrayBytes = MAX_ARRAY_BYTES } = source
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
  const places = placesOf(url, headerText(url, source.read(LENGTH_BYTES, length)), byteLength - start)
  for (const { name, dtype, shape, begin, end } of places) {
    if (typeof dtype !== 'string') yield [name, dtype]
    else if (end - begin > maxArrayBytes) {
      const wanted = `at most ${maxArrayBytes} bytes of ${JSON.stringify(name)}`
      yield [name, arrayFault(url, start + begin, wanted, `${end - begin}`)]
    } else yield [name, { dtype, shape, data: source.read(start + begin, end - begin) }]
  }
}

function headerText(url: string, bytes: Uint8Array): string {
  if (bytes[0] !== 0x7b) throw arrayFault(url, LENGTH_BYTES, 'a header that begins with {', bytesShown(bytes))
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw arrayFault(url, LENGTH_BYTES, 'a header in UTF-8', 'other bytes')
  }
}

function placesOf(url: string, text: string, byteLength: number): readonly Place[] {
  const place = { url, code: CODE, at: '' }
  const places: Place[] = []
  const header = parseJsonObject(text, url, CODE)
  checkTokens(text, place)
  for (const [name, entry] of Object.entries(header)) {
    const at = inside(place, name)
    const given = expectObject(entry, at)
    if (name === '__metadata__') {
      for (const [key, value] of Object.entries(given)) expectString(value, inside(at, key))
      continue
    }
    const dtypeName = expectString(given.dtype, inside(at, 'dtype'))
    const [dtype, bits] = dtypeNamed(dtypeName) ?? [
      jsonFault(inside(at, 'dtype'), `one of ${DTYPE_NAMES}`, jsonExcerpt(dtypeName)),
      null,
    ]
    const shape = expectNumbers(given.shape, inside(at, 'shape'))
    const offsets = expectNumbers(given.data_offsets, inside(at, 'data_offsets'))
    const [begin = -1, end = -1] = offsets
    const count = countOf(shape)
    const size = bits === null ? end - begin : count === null ? Number.NaN : (count * bits) / 8
    if (offsets.length !== 2 || end < begin || end - begin !== size) {
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

/** Both lists are there in every file, unlike those of index files. */
function expectNumbers(value: unknown, place: JsonPlace): readonly number[] {
  if (!Array.isArray(value)) throw jsonFault(place, 'a list', jsonExcerpt(value))
  return expectList(value, place, expectInteger)
}

/**
 * Checks what parsed JSON no longer shows: a key twice in one object, of which other readers may take the other value, and lengths that are not
 * written as whole numbers.
 * @param text JSON
 */
function checkTokens(text: string, place: JsonPlace): void {
  /** The keys of each open object; null for a list. */
  const open: (Set<string> | null)[] = []
  let key = ''
  let isKey = false
  for (const { token } of jsonTokens(text)) {
    const keys = open.at(-1)
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : null)
      isKey = token === '{'
    } else if (token === '}' || token === ']') open.pop()
    else if (token === ',') isKey = keys instanceof Set
    else if (token === ':') isKey = false
    else if (isKey && keys) {
      key = JSON.parse(token) as string
      if (keys.has(key)) throw jsonFault(place, 'each key once', `${jsonExcerpt(key)} again`)
      keys.add(key)
    } else if (keys === null && (key === 'shape' || key === 'data_offsets') && !/^\d+$/.test(token)) {
      throw jsonFault(place, `whole numbers in ${key}`, token.slice(0, 40))
    }
  }
}
