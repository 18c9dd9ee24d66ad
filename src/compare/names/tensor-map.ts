/** The map between tensors of two trials, with other names, or with one tensor in place of several. */

import { quote, UsageError } from '../../base/errors.js'
import { fits, isPlainObject, kinds, optionsOf } from '../../base/options.js'

/**
 * Names of the first trial, or patterns for whole names, each with the name in the second, in which `$1` is the first group: `{
 * "module\\.(.*)": "$1" }`.
 */
export type TensorNames = Readonly<Record<string, string>>

/**
 * A tensor of one trial that is several in the other, concatenated along an axis: `{ "from": "(.*)\\.qkv_proj\\.weight", "axis": 0,
 * "parts": ["$1.q_proj.weight", "$1.k_proj.weight", "$1.v_proj.weight"] }`.
 */
export interface TensorSplit {
  /** The name, or a pattern for whole names, in either trial. */
  readonly from: string
  readonly axis: number
  /**
   * The names in the other trial, in which `$1` is the first group. A part's length along the axis is that in the other trial, unless it
   * is given.
   */
  readonly parts: readonly (string | { readonly name: string; readonly length: number })[]
  /** The number of groups along the axis, each with a share of every part in order. Default: 1. */
  readonly groups?: number
}

/** Names, tensors that are split, or a list of both. */
export type TensorMap = TensorNames | TensorSplit | readonly (TensorNames | TensorSplit)[]

/** The kinds of maps, in messages. */
export const TENSOR_MAP = 'an object of names, { from, axis, parts }, or a list of both'

/** A name, or a pattern for whole names, with its value. */
export interface NamePattern<T> {
  readonly pattern: string
  readonly regex: RegExp
  readonly value: T
}

/** @throws UsageError for a pattern that is none */
export function namePatterns<T>(map: Readonly<Record<string, T>>): readonly NamePattern<T>[] {
  return Object.entries(map).map(([pattern, value]) => ({ pattern, value, regex: patternOf(pattern) }))
}

/** @throws UsageError for a pattern that is none */
export function patternOf(pattern: string): RegExp {
  try {
    return new RegExp(`^(?:${pattern})$`, 'u')
  } catch (error) {
    throw new UsageError(
      `expected a name or a pattern in the map, got ${quote(pattern)}: ${(error as Error).message}`,
      { pattern },
    )
  }
}

/** @throws UsageError for a pattern that is none */
export function namesInFirst(map: TensorMap, first: readonly string[]): ReadonlyMap<string, string> {
  const patterns = namePatterns(namesOf(map))
  const pairs = new Map<string, string>()
  for (const name of first) {
    const match = patterns.find(({ pattern, regex }) => pattern === name || regex.test(name))
    if (match === undefined) continue
    pairs.set(match.pattern === name ? match.value : name.replace(match.regex, match.value), name)
  }
  return pairs
}

/** The names of a map; the first of two entries for one name counts. */
export function namesOf(map: TensorMap): TensorNames {
  const names = entriesOf(map).filter(entry => !isSplit(entry)) as TensorNames[]
  return Object.assign({}, ...names.reverse()) as TensorNames
}

export function splitsOf(map: TensorMap): readonly TensorSplit[] {
  return entriesOf(map).filter(isSplit)
}

export function isTensorMap(given: unknown): given is TensorMap {
  return (Array.isArray(given) ? given : [given]).every(entry => isSplit(entry) || isNames(entry))
}

function entriesOf(map: TensorMap): readonly (TensorNames | TensorSplit)[] {
  return Array.isArray(map) ? map : [map as TensorNames | TensorSplit]
}

const PART = optionsOf<Exclude<TensorSplit['parts'][number], string>>(
  { name: kinds.text, length: kinds.wholeNumber(0) },
  'name',
  'length',
)
const isPart = (part: unknown) => typeof part === 'string' || fits(PART, part)
const SPLIT = optionsOf<TensorSplit>(
  {
    from: kinds.text,
    axis: kinds.wholeNumber(0),
    parts: kinds.that('parts', parts => Array.isArray(parts) && parts.length > 0 && parts.every(isPart)),
    groups: kinds.wholeNumber(1),
  },
  'from',
  'axis',
  'parts',
)

function isSplit(entry: unknown): entry is TensorSplit {
  return isPlainObject(entry) && fits(SPLIT, entry)
}

function isNames(entry: unknown): entry is TensorNames {
  return isPlainObject(entry) && Object.values(entry).every(name => typeof name === 'string')
}
