/** The trees of XGBoost, as its hook saves them: a table of nodes, a tensor a column. */

import { entryOf } from '../../base/maps.js'
import type { ScanSelection } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { readValues } from '../../trial/values.js'
import type { TreeNode, TreeView } from '../data.js'
import type { Skeleton } from '../skeleton.js'
import { thinnedIndices } from '../thinning.js'

const COLUMNS = ['ID', 'Feature', 'Split', 'Yes', 'No', 'Gain', 'Cover'] as const
const MAX_STEPS = 48
/** A step with more nodes has no tree. */
const MAX_NODES = 1000

/** Null: a column is too long. */
type Table = Partial<Record<(typeof COLUMNS)[number], readonly unknown[] | null>>

export async function treesOf(
  trial: Trial,
  { threads, memory, signal, checkLevel }: ScanSelection,
  skeleton: Skeleton,
): Promise<readonly TreeView[]> {
  const names = COLUMNS.map(column => `trees/${column}`)
  if (!names.every(name => skeleton.tensors.includes(name))) return []
  const saved = new Set(trial.tensor('trees/ID').steps({ showIncompleteSteps: true }))
  const { steps } = thinnedIndices(skeleton, MAX_STEPS)
  const only = steps.map(index => skeleton.steps[index]!).filter(step => saved.has(step))
  if (only.length === 0) return []
  const tables = new Map<number, Table>()
  const values = readValues(trial, {
    tensors: names,
    steps: only,
    threads,
    memory,
    checkLevel,
    signal,
  })
  for await (const { tensor, step, value } of values) {
    const column = COLUMNS.find(name => tensor === `trees/${name}`)
    const index = skeleton.stepAt(step)
    if (column === undefined || index === undefined || value === null) continue
    const table = entryOf(tables, index, (): Table => ({}))
    // Of several workers the first.
    if (column in table) continue
    const { data } = value
    table[column] = data.length > MAX_NODES ? null : Array.from<unknown>(data as ArrayLike<unknown>)
  }
  return [...tables]
    .sort(([a], [b]) => a - b)
    .flatMap(([step, table]) => {
      const nodes = nodesOf(table)
      return nodes === null ? [] : [{ step, nodes }]
    })
}

/** Null: a column is missing or too long. */
function nodesOf({ ID, Feature, Split, Yes, No, Gain, Cover }: Table): readonly TreeNode[] | null {
  if (!ID || !Feature || !Split || !Yes || !No || !Gain || !Cover) return null
  const places = new Map(ID.map((id, i) => [String(id), i]))
  const below = (id: unknown) => places.get(String(id)) ?? -1
  return ID.map((_, i) => ({
    feature: Feature[i] === 'Leaf' ? null : String(Feature[i]),
    split: Feature[i] === 'Leaf' ? null : Number(Split[i]),
    yes: below(Yes[i]),
    no: below(No[i]),
    gain: Number(Gain[i]),
    cover: Number(Cover[i]),
  }))
}
