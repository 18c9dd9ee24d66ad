/** Answers questions of rules about the elements of one or two records in the core's memory. */

import { EngineError, QueryError } from '../../../base/errors.js'
import type { DigestName } from '../../../base/types.js'
import { BLOCK_ELEMENTS } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import { byteLengthOf, elementByteLength } from '../../../core/dtype.js'
import type { Engine } from '../../../core/engine.js'
import { isDefined } from '../../../core/moments.js'
import { type ElementStatistic, isDigestName } from '../../../core/statistics/statistic.js'
import { isSameShape } from '../../../format/index-file.js'
import { ChannelLayout, type Task } from '../../job/measure-job.js'
import { differenceOf } from './difference.js'
import type { Elements } from './element-reader.js'

/** A task without its records. */
export type Asking = Pick<Task, 'kind' | 'numbers'>

/** The two numbers that answer a task: how many out of how many. */
export type Pair = readonly [number, number]

/** A list of any number of answers. */
export interface List {
  readonly list: ArrayLike<number>
}

/** The answer to a task about one record. */
export function answerAlone(engine: Engine, { kind, numbers }: Asking, elements: Elements): Pair | List {
  const { dtype, address, count } = elements
  switch (kind) {
    case 'count':
      return [engine.elements.countEqual(dtype, address, count, numbers[0]!), count]
    case 'activity':
      return activity(engine, elements, numbers)
    case 'percentiles':
      return { list: engine.elements.percentiles(dtype, address, count, numbers) }
    case 'percentile':
    case 'histogram':
      // Complex numbers have no order, and no answer.
      return { list: isDefined(kind, dtype) ? answersTo(engine, [{ kind, numbers }], elements, noDigest) : [] }
    case 'channels':
      return { list: channelSums(engine, elements, numbers) }
    case 'rows':
      return { list: rowDigests(engine, elements) }
    default:
      throw new EngineError(`expected a task about one record, got ${kind}`)
  }
}

/** The answers to all statistics of one tensor, in order. @param digest the answer to a digest */
export function answersTo(
  engine: Engine,
  statistics: readonly ElementStatistic[],
  { dtype, address, count }: Elements,
  digest: (kind: DigestName) => readonly number[],
): Float64Array<ArrayBuffer> {
  // Together, since each would read the elements again.
  const percents = statistics.filter(({ kind }) => kind === 'percentile').flatMap(({ numbers }) => numbers)
  const percentiles = percents.length > 0 ? engine.elements.percentiles(dtype, address, count, percents) : []
  const answers = statistics.flatMap(({ kind, numbers }) => {
    if (isDigestName(kind)) return digest(kind)
    return kind === 'percentile' ? percentiles.splice(0, 1) : engine.elements.histogram(dtype, address, count, numbers)
  })
  return Float64Array.from(answers)
}

/**
 * Compares two tensors.
 * @returns a distance and the number of elements (-1 if the shapes differ), or the numbers of a difference
 */
export function compare(engine: Engine, { kind, numbers }: Asking, a: Elements, b: Elements): Pair | List {
  if (!isSameShape(a.shape, b.shape)) return kind === 'difference' ? { list: [] } : [0, -1]
  if (a.count !== b.count) {
    const message = 'expected two records that hold their elements in one way, got one in pieces and one not'
    throw new QueryError('NotComparable', message)
  }
  if (kind === 'difference') return { list: differenceOf(engine, a, b, numbers) }
  const sides = [a.dtype, a.address, b.dtype, b.address, a.count] as const
  if (kind === 'change') return [engine.elements.sumAbsDifference(...sides), a.count]
  if (kind === 'squares') return [engine.elements.sumSquaredDifference(...sides), a.count]
  return [Number(!isClose(engine, a, b, numbers)), a.count]
}

/** Channels of images: grey, with alpha, in colours, with both. */
const isChannelCount = (length: number): boolean => length >= 1 && length <= 4

/** The axis of channels. @param axis an axis, or a `ChannelLayout`, used where the shape leaves it open */
function channelAxis(shape: readonly number[], axis: number): number {
  if (axis >= 0) return axis
  const last = shape.length - 1
  if (last < 2) return 1
  const [isFirst, isLast] = [isChannelCount(shape[1]!), isChannelCount(shape[last]!)]
  if (isFirst !== isLast) return isFirst ? 1 : last
  // Grey images without an axis of channels have one channel.
  if (last === 2 && shape[1] === shape[2]) return shape.length
  return axis === ChannelLayout.last ? last : 1
}

/** The number of elements in each sum, the length of the first axis, and the sums along an axis. */
function channelSums(
  engine: Engine,
  { dtype, shape, address, count }: Elements,
  [givenAxis = 0]: readonly number[],
): ArrayLike<number> {
  const axis = channelAxis(shape, givenAxis)
  const hasAxis = axis < shape.length
  const channels = hasAxis ? shape[axis]! : 1
  const outer = hasAxis ? product(shape.slice(0, axis)) : 1
  const inner = hasAxis ? product(shape.slice(axis + 1)) : count
  // A tensor without elements can have 2^53 channels.
  if (count === 0) return [0, shape[0] ?? 1]
  return engine.scoped(() => {
    const sums = engine.reserveBytes(channels * 8)
    engine.view(sums, channels * 8).fill(0)
    engine.elements.sumChannels(dtype, address, outer, channels, inner, sums)
    const list = new Float64Array(2 + channels)
    list[0] = outer * inner
    list[1] = shape[0] ?? 1
    new Uint8Array(list.buffer).set(engine.view(sums, channels * 8), 16)
    return list
  })
}

/** The number of elements to test first: most rows that are not zero show it there. */
const FIRST_ELEMENTS = 16

/**
 * The first row, the number of digests, and the CRC-32C of the bytes of each row in memory. A row is all elements with one index of the
 * first axis; if a part ends within a row, both parts have a digest of it. The digest of zeros is 0.
 */
function rowDigests(engine: Engine, { dtype, shape, address, count, first = 0 }: Elements): ArrayLike<number> {
  const perRow = product(shape.slice(1))
  // Rows of 4-bit elements may begin within a byte.
  if (count === 0 || shape.length < 2 || elementByteLength(dtype) < 1) return []
  const digests: number[] = []
  for (let at = first; at < first + count; ) {
    const next = Math.min(first + count, (Math.floor(at / perRow) + 1) * perRow)
    const row = (address + byteLengthOf(dtype, at - first)) as Address
    const isZero = (elements: number) => engine.elements.countEqual(dtype, row, elements, 0) === elements
    const length = next - at
    digests.push(
      isZero(Math.min(length, FIRST_ELEMENTS)) && isZero(length)
        ? 0
        : engine.crc32c(row, byteLengthOf(dtype, length)) || 1,
    )
    at = next
  }
  return [Math.floor(first / perRow), digests.length].concat(digests)
}

/**
 * The number of nodes (positions over all axes but the first; a tensor of one axis is one sample), and of those that are within bounds in
 * less than a given share of the samples.
 */
function activity(
  engine: Engine,
  { dtype, shape, address, count }: Elements,
  [lo, hi, percent]: readonly number[],
): Pair {
  const samples = shape.length > 1 ? shape[0]! : 1
  const nodes = samples === 0 ? 0 : count / samples
  if (nodes === 0) return [0, 0]
  return engine.scoped(() => {
    const counts = engine.reserveBytes(nodes * 4)
    engine.view(counts, nodes * 4).fill(0)
    engine.elements.countInside(dtype, address, samples, nodes, lo!, hi!, counts)
    // The smallest count that reaches the share, by exactly the rule's formula.
    let least = Math.max(0, Math.floor((percent! * samples) / 100) - 1)
    while ((100 * least) / samples < percent! && least <= samples) least++
    return [nodes, engine.elements.countBelow(counts, nodes, least)]
  })
}

/** True if all elements are close. The first ones are compared first, since most tensors that differ do so there. */
function isClose(engine: Engine, a: Elements, b: Elements, [rtol, atol, equalNan]: readonly number[]): boolean {
  const tolerance = { rtol: rtol!, atol: atol!, equalNan: equalNan === 1 }
  const [sizeA, sizeB] = [elementByteLength(a.dtype), elementByteLength(b.dtype)]
  for (let at = 0; at < a.count; at += BLOCK_ELEMENTS) {
    const count = Math.min(BLOCK_ELEMENTS, a.count - at)
    const [x, y] = [(a.address + at * sizeA) as Address, (b.address + at * sizeB) as Address]
    if (engine.elements.countNotCloseAt(a.dtype, x, b.dtype, y, count, tolerance) > 0) return false
  }
  return true
}

function noDigest(kind: DigestName): never {
  throw new EngineError(`expected no digest in a task, got ${kind}`)
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total * size, 1)
}
