/** The index of a checkpoint in shards: `model.safetensors.index.json` says which file has which tensor. */

import { FormatError, quote } from '../../../base/errors.js'
import { jsonExcerpt } from '../../json.js'

/** A longer one is not read: it holds some hundred bytes a tensor. */
export const MAX_INDEX_BYTES = 256 << 20

export interface ShardIndex {
  /** Names of files beside the index, in their order. */
  readonly shards: readonly string[]
  /** The name of the file that has each tensor. */
  readonly shardOf: ReadonlyMap<string, string>
  /** Bytes of all tensors, as whoever wrote it counted. */
  readonly totalSize: number | null
  readonly problems: readonly FormatError[]
}

const MAX_FAULTS = 100

export function isShardIndex(path: string): boolean {
  return /\.(?:safetensors|bin|pt|pth)\.index\.json$/.test(path)
}

/** `model-00001-of-00004`: which of how many. */
const SHARD = /^(.*)-(\d{5,6})-of-(\d{5,6})$/

/** The name of a file without its extension, and without the number of a shard. */
export function stemOf(name: string): string {
  const plain = name.replace(/\.index\.json$/, '').replace(/\.[^.]+$/, '')
  return (SHARD.exec(plain)?.[1] ?? plain).replace(/^shard-\d+-/, '')
}

/** @throws FormatError `BadShardIndex`, if it is not an index */
export function parseShardIndex(text: string, url: string): ShardIndex {
  const wrong = (expected: string, got: string): FormatError =>
    new FormatError('BadShardIndex', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
  let index: unknown
  try {
    index = JSON.parse(text)
  } catch (error) {
    throw wrong('an index in JSON', error instanceof Error ? error.message.slice(0, 100) : 'something else')
  }
  const { weight_map: map, metadata } = (index ?? {}) as { readonly weight_map?: unknown; readonly metadata?: unknown }
  if (typeof map !== 'object' || map === null || Array.isArray(map)) {
    throw wrong('weight_map: an object', jsonExcerpt(map))
  }
  const shardOf = new Map<string, string>()
  const problems: FormatError[] = []
  let more = 0
  for (const [name, shard] of Object.entries(map)) {
    if (typeof shard === 'string' && isPlainName(shard)) shardOf.set(name, shard)
    else if (problems.length < MAX_FAULTS) {
      const got = jsonExcerpt(shard)
      problems.push(wrong(`the name of a file beside the index for ${quote(name)}`, got))
    } else more++
  }
  if (more > 0) problems.push(wrong('names of files', `${more} entries more that are none`))
  const total = (metadata as { readonly total_size?: unknown } | null | undefined)?.total_size
  const shards = [...new Set(shardOf.values())].sort()
  return { shards, shardOf, totalSize: Number.isSafeInteger(total) ? (total as number) : null, problems }
}

/** True if a name is that of a file in the same directory. */
function isPlainName(name: string): boolean {
  return (
    name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name) && name.length < 1024 && !isShardIndex(name)
  )
}
