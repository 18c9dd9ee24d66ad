/** Maps between the tensors of two trials, from files. */

import { UsageError } from '../../base/errors.js'
import { isTensorMap, type TensorMap } from '../../compare/names/tensor-map.js'
import type { Partition } from '../../compare/pairing.js'
import { readInputFile } from '../input-file.js'

/** @throws StoreError, UsageError for anything else */
export async function tensorMapIn(file: string): Promise<TensorMap> {
  const found = await jsonIn(file)
  if (isTensorMap(found)) return found
  const split =
    '{ "from": "name or pattern", "axis": 0, "parts": ["name", { "name": "name", "length": 8 }], "groups": 1 }'
  throw new UsageError(
    `expected ${file} to hold a JSON object of names, { "name or pattern": "name" }, or ${split}, or a list of both`,
  )
}

/** @throws StoreError, UsageError for anything but an object */
export async function partitionIn(file: string): Promise<Partition> {
  const found = await jsonIn(file)
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Partition
  throw new UsageError(`expected ${file} to hold a JSON object of axes, { "name or pattern": 0 }`)
}

/** Undefined: it is no JSON. */
async function jsonIn(file: string): Promise<unknown> {
  try {
    return JSON.parse(new TextDecoder().decode(await readInputFile(file)))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
