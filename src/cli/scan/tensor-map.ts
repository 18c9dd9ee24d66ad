/** Maps between the tensors of two trials, read from files. */

import { UsageError } from '../../base/errors.js'
import { isTensorMap, type TensorMap } from '../../compare/names/tensor-map.js'
import type { Partition } from '../../compare/pairing.js'
import { readInputFile } from '../input-file.js'

/**
 * Reads a map of names.
 * @throws StoreError, UsageError for anything else
 */
export async function tensorMapIn(file: string): Promise<TensorMap> {
  const json = await jsonIn(file)
  if (isTensorMap(json)) return json
  const split =
    '{ "from": "name or pattern", "axis": 0, "parts": ["name", { "name": "name", "length": 8 }], "groups": 1 }'
  throw new UsageError(
    `expected ${file} to hold a JSON object of names, { "name or pattern": "name" }, or ${split}, or a list of both`,
  )
}

/**
 * Reads a partition.
 * @throws StoreError, UsageError for anything but an object
 */
export async function partitionIn(file: string): Promise<Partition> {
  const json = await jsonIn(file)
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Partition
  throw new UsageError(`expected ${file} to hold a JSON object of axes, { "name or pattern": 0 }`)
}

/** The JSON in a file; undefined if it has none. */
async function jsonIn(file: string): Promise<unknown> {
  try {
    return JSON.parse(new TextDecoder().decode(await readInputFile(file)))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
