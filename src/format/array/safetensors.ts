/** Reads the arrays of a safetensors file for recording. Its header is parsed as that of a checkpoint. */

import { LENGTH_BYTES } from '../checkpoint/safetensors/dtypes.js'
import { jsonKeys } from '../checkpoint/safetensors/json-keys.js'
import { headerFault, headerLength, parseHeader } from '../checkpoint/safetensors/safetensors-header.js'
import { type ArraySource, arrayFault, MAX_ARRAY_BYTES, type NamedArray } from './source.js'

/** The number of first bytes that identify a Git LFS pointer. */
const PREFIX_BYTES = 64
/** A length or an offset that is not written as a whole number. Quotes within texts are escaped. */
const OTHER_NUMBER = /"(shape|data_offsets)"\s*:\s*\[[^\]]*?(-?\d*[-.eE][-+.\deE]*)[^\]]*\]/

/**
 * Yields the faults, then the tensors in the order of their bytes, one at a time in memory. A fault of one affects no other.
 * @throws FormatError if the header can't be read, or other readers may understand it differently; StoreError
 */
export async function* readSafetensors(source: ArraySource): AsyncGenerator<NamedArray> {
  const { url, byteLength, maxArrayBytes = MAX_ARRAY_BYTES } = source
  const length = headerLength(source.read(0, Math.min(PREFIX_BYTES, byteLength)), url, byteLength)
  const json = source.read(LENGTH_BYTES, length)
  const { tensors, unread, problems } = await parseHeader(json, url, byteLength)
  refuseOtherReadings(new TextDecoder().decode(json), url)
  const errors = new Set<Error>()
  for (const { name, error } of unread) {
    // Many tensors may share an error.
    if (!errors.has(error)) yield [name, error]
    errors.add(error)
  }
  for (const problem of problems) yield ['', problem]
  for (const { name, dtype, shape, begin, end } of tensors) {
    if (end - begin > maxArrayBytes) {
      const wanted = `at most ${maxArrayBytes} bytes of ${JSON.stringify(name)}`
      yield [name, arrayFault(url, begin, wanted, `${end - begin}`)]
    } else yield [name, { dtype, shape, data: source.read(begin, end - begin) }]
  }
}

/** @param text the JSON of a header */
function refuseOtherReadings(text: string, url: string): void {
  const fault = (at: number, expected: string, got: string) =>
    headerFault('BadSafetensors', url, LENGTH_BYTES + at, expected, got)
  for (const { key, at, isAgain } of jsonKeys(text)) {
    if (isAgain) throw fault(at, 'each key once', `${JSON.stringify(key.slice(0, 200))} again`)
  }
  const number = OTHER_NUMBER.exec(text)
  if (number) throw fault(number.index, `whole numbers in ${number[1]}`, number[2]!.slice(0, 40))
}
