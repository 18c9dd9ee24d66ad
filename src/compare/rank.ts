/** Tells changes of low rank, such as a merged LoRA adapter leaves, by a few rows of each tensor. */

import { TrialscanError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { elementByteLength, isFloat } from '../core/dtype.js'
import type { CutPart } from '../scan/catalog/checkpoint/cut-records.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { withParts } from './names/cut.js'
import type { DifferenceAt } from './records.js'

/** Tensors that are looked at. */
const MAX_TENSORS = 5
/** Rows and columns of a sample, and the elements of its rows: 32 MiB of float64. */
const MAX_ROWS = 128
const MAX_COLUMNS = 1024
const MAX_ELEMENTS = 1 << 22
/** The fewest changed rows and columns for which a rank is told: fewer always have a low rank. */
const MIN_LENGTH = 32
/** The share of squares that may lie along no direction, and that of rows and columns of which more may: 16-bit weights round what was added. */
const REST = 0.05
/** The golden ratio, whose multiples modulo 1 are spread evenly, and repeat in no period. */
const GOLDEN = (Math.sqrt(5) - 1) / 2

export interface LowRankChange {
  readonly tensor: string
  /** The number of directions that hold 95 % of ‖Δ‖² in 95 % of the rows and columns that were read. */
  readonly rank: number
  /** The rows and columns that were read. */
  readonly rows: number
  readonly columns: number
  /** True if the tensor has more of them. */
  readonly isSample: boolean
}

/**
 * Looks at the first of the differences that are of matrices. Of each, up to 128 rows are read, and up to 1,024 columns of these taken.
 * @param differences those of two checkpoints; what they were compared by has to be in the trials under their names
 */
export async function lowRankChanges(
  a: Trial,
  b: Trial,
  differences: readonly DifferenceAt[],
): Promise<readonly LowRankChange[]> {
  if (a.checkpoint === null || b.checkpoint === null) return []
  const [ofA, ofB] = [a, b].map(trial => new Set(stateOf(trial).catalog.names)) as [Set<string>, Set<string>]
  const matrices = differences
    .filter(({ difference, tensor, otherTensor }) => {
      const [rows = 0, columns = 0, ...others] = difference?.shape ?? []
      const isMatrix =
        Math.min(rows, columns) >= MIN_LENGTH &&
        others.length === 0 &&
        columns * Math.min(rows, MAX_ROWS) <= MAX_ELEMENTS
      const dtypes = difference === null ? [] : [difference.dtype, difference.otherDtype]
      const isReal =
        difference?.notFinite === 'neither' && dtypes.every(dtype => isFloat(dtype) && elementByteLength(dtype) >= 1)
      return isMatrix && isReal && ofA.has(tensor) && ofB.has(otherTensor)
    })
    .slice(0, MAX_TENSORS)
  if (matrices.length === 0) return []
  const found: LowRankChange[] = []
  try {
    const [rowsA, rowsB] = [
      await sampled(a, new Set(matrices.map(({ tensor }) => tensor))),
      await sampled(b, new Set(matrices.map(({ otherTensor }) => otherTensor))),
    ]
    for (const { tensor, otherTensor, step, otherStep, worker, otherWorker, difference } of matrices) {
      const { data: p } = await rowsA.tensor(tensor).value(step, { worker })
      const { data: q } = await rowsB.tensor(otherTensor).value(otherStep, { worker: otherWorker })
      const [height, width] = difference!.shape as [number, number]
      const sample = sampleOf(width, MAX_COLUMNS)
      const [rows, columns] = [Math.min(height, MAX_ROWS), sample.length]
      const changes = Array.from({ length: rows }, (_, row) =>
        Float64Array.from(sample, column => Number(p[row * width + column]) - Number(q[row * width + column])),
      )
      const rank = rankOf(changes)
      if (rank !== null) found.push({ tensor, rank, rows, columns, isSample: rows < height || columns < width })
    }
  } catch (error) {
    // A hint is left out where its rows can't be read.
    if (!(error instanceof TrialscanError)) throw error
  }
  return found
}

/** One index of each of equal intervals, at places that no layout of a period shares; all indices if they are few. */
function sampleOf(length: number, most: number): readonly number[] {
  const count = Math.min(length, most)
  return Array.from({ length: count }, (_, i) => {
    const [from, to] = [i, i + 1].map(at => Math.floor((at * length) / count)) as [number, number]
    return from + Math.floor(((i * GOLDEN) % 1) * (to - from))
  })
}

/** A trial that has of some tensors only a sample of their rows. */
function sampled(trial: Trial, tensors: ReadonlySet<string>): Promise<Trial> {
  const cut =
    (name: string) =>
    (_: DType, shape: readonly number[]): readonly CutPart[] => {
      const runs = sampleOf(shape[0]!, MAX_ROWS).map(row => [row, row + 1] as const)
      return [{ name, axis: 0, runs }]
    }
  return withParts(trial, new Map([...tensors].map(name => [name, cut(name)])), new Map())
}

/**
 * The number of directions along which the other rows lie, each that of the row of which most is left. A chosen row counts no more:
 * it lies along itself. 95 % of the others and 95 % of the columns have to lie along them, each by 95 % of its own squares,
 * so that neither a few large rows nor a few large columns stand for the rest.
 * @param rows are overwritten
 * @returns null if it is more than a quarter of the changed rows or columns, or fewer than 32 changed
 */
export function rankOf(rows: readonly Float64Array[]): number | null {
  const changed = rows.filter(row => row.some(x => x !== 0))
  // Squares of what is scaled to 1 are finite.
  const left = changed.map(row => {
    const largest = row.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
    for (let i = 0; i < row.length; i++) row[i]! /= largest
    return { row, was: row.slice(), square: dot(row, row), rest: 1 }
  })
  const columns = Array.from(changed[0] ?? [], (_, i) => i).filter(i => changed.some(row => row[i] !== 0))
  const least = Math.min(changed.length, columns.length)
  const most = least < MIN_LENGTH ? 0 : least / 4
  for (let rank = 1; rank <= most; rank++) {
    left.sort((x, y) => x.rest - y.rest)
    const direction = left.pop()!.row
    const length = dot(direction, direction)
    for (const entry of left) {
      const along = dot(entry.row, direction) / length
      for (let i = 0; i < direction.length; i++) entry.row[i]! -= along * direction[i]!
      entry.rest = dot(entry.row, entry.row) / entry.square
    }
    if (!isMost(left.map(({ rest }) => rest))) continue
    const restOf = (i: number) => sumOf(left, ({ row }) => row[i]! ** 2) / sumOf(left, ({ was }) => was[i]! ** 2)
    if (isMost(columns.map(restOf))) return rank
  }
  return null
}

function isMost(rests: readonly number[]): boolean {
  return rests.filter(rest => !(rest <= REST)).length <= REST * rests.length
}

function sumOf<T>(all: readonly T[], of: (entry: T) => number): number {
  return all.reduce((sum, entry) => sum + of(entry), 0)
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}
