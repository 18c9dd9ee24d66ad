/** Maps between the tensors of two trials, from files. */

import { UsageError } from '../../base/errors.js'
import type { Partition } from '../../compare/pairing.js'
import type { TensorMap } from '../../compare/tensor-map.js'
import { readInputFile } from '../input-file.js'

/** @throws StoreError, UsageError for anything but an object */
export async function tensorMapIn(file: string): Promise<TensorMap> {
  return (await objectIn(file, 'names, { "name or pattern": "name" }')) as TensorMap
}

/** @throws StoreError, UsageError for anything but an object */
export async function partitionIn(file: string): Promise<Partition> {
  return (await objectIn(file, 'axes, { "name or pattern": 0 }')) as Partition
}

async function objectIn(file: string, expected: string): Promise<object> {
  const text = new TextDecoder().decode(await readInputFile(file))
  try {
    const found = JSON.parse(text) as unknown
    if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found
  } catch {
    // Told below.
  }
  throw new UsageError(`expected ${file} to hold a JSON object of ${expected}`)
}
