/** The index of a checkpoint in shards: `model.safetensors.index.json` says which file has which tensor. */

import { type FormatError, quote } from '../../../base/errors.js'
import { expectObject, inside, jsonExcerpt, jsonFault, parseJsonObject } from '../../json.js'

/** A longer one is not read: it holds some hundred bytes a tensor. */
export const MAX_INDEX_BYTES = 256 << 20

export interface ShardIndex {
  /** Names of files beside the index, in their order. */
  readonly shards: readonly string[]
  /** The name of the file that has each tensor. */
  readonly shardOf: ReadonlyMap<string, string>
  /** The bytes of all tensors, as the index states them. */
  readonly totalSize: number | null
  readonly problems: readonly FormatError[]
}

const MAX_FAULTS = 100
/** Shards of a series with higher numbers are not missed. */
const MAX_SHARDS = 9999

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

/** Shards that are missing, without an index, as the names of the others say. */
export function missingShards(paths: readonly string[]): { readonly path: string; readonly total: number }[] {
  const series = new Map<string, { readonly total: number; readonly width: number; readonly found: Set<number> }>()
  for (const path of paths) {
    // Files of ranks, `shard-00002-model-…`, need not be a series each.
    const match = /^(.*-)(\d{5,6})-of-(\d{5,6})(\..*)$/.exec(path.replace(/(^|\/)shard-\d+-(?=[^/]*$)/, '$1'))
    if (match === null) continue
    const [before, number, total, extension] = match.slice(1) as [string, string, string, string]
    const key = `${before}\0-of-${total}${extension}`
    const known = series.get(key) ?? { total: Number(total), width: number.length, found: new Set() }
    series.set(key, known)
    known.found.add(Number(number))
  }
  return [...series].flatMap(([key, { total, width, found }]) =>
    Array.from({ length: Math.min(total, MAX_SHARDS) }, (_, i) => i + 1)
      .filter(number => !found.has(number))
      .map(number => ({ path: key.replace('\0', `${number}`.padStart(width, '0')), total })),
  )
}

/** Parses the index of shards. @throws FormatError `BadShardIndex`, if it is not an index */
export function parseShardIndex(text: string, url: string): ShardIndex {
  const place = { url, code: 'BadShardIndex', at: '' }
  const { weight_map: given, metadata } = parseJsonObject(text, url, place.code)
  const map = expectObject(given, inside(place, 'weight_map'))
  const wrong = (expected: string, got: string): FormatError => jsonFault(inside(place, 'weight_map'), expected, got)
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

/** True if a name has no directory. */
function isPlainName(name: string): boolean {
  return (
    name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name) && name.length < 1024 && !isShardIndex(name)
  )
}
