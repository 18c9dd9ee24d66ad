/** The metadata that trialscan.py gives its files: mode, collections, and tensors of which only statistics were saved. */

import { MODES, type Mode, REDUCTIONS, type ReductionName } from '../../../base/types.js'
import { parseReductionName, reductionTensorName } from '../../reduction-name.js'
import type { StoredTensor } from '../stored-tensor.js'
import type { Header, HeaderTensor } from './safetensors-header.js'

/** The key of the metadata; its value is JSON. */
const KEY = 'trialscan'
/** The entry that has the statistics: a row for each tensor, a float64 for each reduction. */
const STATISTICS = 'trialscan.statistics'

export interface Captured {
  /** Workers that save this step. */
  readonly numWorkers: number | null
  /** Tensors in the order of execution, if the file has it, else in that of their bytes. Statistics are saved reductions. */
  readonly tensors: readonly StoredTensor[]
}

/** The tensors of a file that trialscan.py wrote; null: another program did. */
export function capturedTensors(path: string, { metadata, tensors }: Header): Captured | null {
  const given = objectOf(metadata.get(KEY))
  if (given === null) return null
  const members = membersOf(given.collections)
  const order = new Map(isTexts(given.order) ? given.order.map((name, i) => [name, i]) : [])
  const facts = { ...modeOf(given), ...countOf('modeStep', given.mode_step) }
  const entries = tensors.flatMap(tensor => (tensor.name === STATISTICS ? rowsOf(tensor, given) : null) ?? [tensor])
  const stored = entries.map(({ name, shape, dtype, begin }, i) => {
    const tensor = parseReductionName(name)?.tensor ?? name
    const blocks = [{ file: path, start: begin }]
    return {
      name,
      dtype,
      shape,
      blocks,
      order: order.get(tensor) ?? i,
      collections: members.get(tensor) ?? [],
      ...facts,
    }
  })
  return { numWorkers: countOf('count', given.num_workers).count ?? null, tensors: stored }
}

/** Each number of the statistics, under the name of a saved reduction; null: the metadata do not say what they are. */
function rowsOf(
  { dtype, shape, begin }: HeaderTensor,
  { reductions, reduced }: Readonly<Record<string, unknown>>,
): Pick<HeaderTensor, 'name' | 'dtype' | 'shape' | 'begin'>[] | null {
  const [rows, columns] = shape
  const isWhole = isTexts(reductions) && isTexts(reduced) && reduced.length === rows && reductions.length === columns
  if (!isWhole || dtype !== 'float64' || !reductions.every(isReduction)) return null
  return reduced.flatMap((tensor, row) =>
    reductions.map((reduction, column) => ({
      name: reductionTensorName(reduction as ReductionName, tensor),
      dtype,
      shape: [],
      begin: begin + 8 * (row * columns! + column),
    })),
  )
}

/** The collections of each tensor. */
function membersOf(collections: unknown): ReadonlyMap<string, readonly string[]> {
  const members = new Map<string, string[]>()
  for (const [collection, names] of Object.entries(typeof collections === 'object' ? (collections ?? {}) : {})) {
    if (!isTexts(names)) continue
    for (const name of names) members.set(name, [...(members.get(name) ?? []), collection])
  }
  return members
}

function modeOf({ mode }: Readonly<Record<string, unknown>>): { readonly mode?: Mode } {
  const known = MODES.find(name => name === mode)
  return known === undefined ? {} : { mode: known }
}

function countOf<K extends string>(key: K, given: unknown): { readonly [key in K]?: number } {
  return Number.isSafeInteger(given) && (given as number) >= 0 ? ({ [key]: given } as { [key in K]: number }) : {}
}

function isTexts(given: unknown): given is readonly string[] {
  return Array.isArray(given) && given.every(item => typeof item === 'string')
}

function isReduction(name: string): boolean {
  return REDUCTIONS.some(reduction => reduction === name)
}

function objectOf(text: string | undefined): Readonly<Record<string, unknown>> | null {
  try {
    const value = JSON.parse(text ?? 'null')
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
