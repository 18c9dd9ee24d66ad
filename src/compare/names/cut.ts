/** Cuts tensors that are one in one trial and several in the other, such as fused q, k and v, so that each part has a counterpart. */

import { quote, UsageError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'
import { elementByteLength } from '../../core/dtype.js'
import { collectionsOf } from '../../format/checkpoint/names.js'
import { Catalog } from '../../scan/catalog/catalog.js'
import { type CutPart, cutRecords } from '../../scan/catalog/checkpoint/cut-records.js'
import { TrialState } from '../../scan/catalog/state.js'
import { stateOf, Trial } from '../../trial/trial.js'
import { coreOf, namesByCore } from './aliases.js'
import { patternOf, splitsOf, type TensorMap, type TensorSplit } from './tensor-map.js'

/** A tensor that was cut for the comparison. */
export interface SplitTensor {
  readonly tensor: string
  /** The run with this tensor. */
  readonly of: 'first' | 'second'
  /** The names of its parts, in the other run and in reports. */
  readonly parts: readonly string[]
}

export interface CutTrials {
  readonly trials: readonly [Trial, Trial]
  readonly split: readonly SplitTensor[]
}

/**
 * Cuts what the map splits, in either trial.
 * @param isShared true if tensors may be shards of workers: lengths are proportions then
 * @throws UsageError for an entry of the map that fits no tensors
 */
export async function cutTrials(a: Trial, b: Trial, map: TensorMap, isShared: boolean): Promise<CutTrials> {
  const splits = splitsOf(map)
  if (splits.length === 0) return { trials: [a, b], split: [] }
  const [first, second] = [await cutTrial(a, b, splits, isShared), await cutTrial(b, a, splits, isShared)]
  for (const split of splits) {
    if (first.used.has(split) || second.used.has(split)) continue
    throw wrong(split, `a tensor of one run, and its parts in the other`, 'none: their names match in neither')
  }
  const splitTensors = (run: 'first' | 'second', { parts }: CutTrial) =>
    [...parts].map(([tensor, names]): SplitTensor => ({ tensor, of: run, parts: names }))
  return {
    trials: [first.trial, second.trial],
    split: [...splitTensors('first', first), ...splitTensors('second', second)],
  }
}

interface CutTrial {
  readonly trial: Trial
  readonly used: ReadonlySet<TensorSplit>
  /** The names of a tensor's parts. */
  readonly parts: ReadonlyMap<string, readonly string[]>
}

/** A trial with parts in place of tensors that are several in the other; the same trial if there are none. */
export async function cutTrial(
  trial: Trial,
  other: Trial,
  splits: readonly TensorSplit[],
  isShared: boolean,
): Promise<CutTrial> {
  const { catalog, contents } = stateOf(trial)
  const [ownNames, others] = [new Set(catalog.names), new Set(stateOf(other).catalog.names)]
  const byCore = namesByCore([...others])
  // Prefixes of wrappers that one of them lacks are no part of a part's name.
  const nameOf = (part: string) => (others.has(part) ? part : (byCore.get(coreOf(part)) ?? part))
  const used = new Set<TensorSplit>()
  const parts = new Map<string, readonly string[]>()
  const cuttings = new Map<string, Cut>()
  for (const split of splits) {
    const regex = patternOf(split.from)
    for (const tensor of ownNames) {
      if ((split.from !== tensor && !regex.test(tensor)) || others.has(tensor) || cuttings.has(tensor)) continue
      const wanted = split.parts.map(part => {
        const { name, length = null } = typeof part === 'string' ? { name: part } : part
        return { name: nameOf(split.from === tensor ? name : tensor.replace(regex, name)), length }
      })
      if (!wanted.some(({ name }) => others.has(name)) || wanted.some(({ name }) => ownNames.has(name))) continue
      used.add(split)
      // If a part is missing and has no length, the positions of the others are unknown: all are reported as missing.
      if (!wanted.every(({ name, length }) => length !== null || others.has(name))) continue
      if (contents.checkpoint === null)
        throw wrong(split, 'tensors of checkpoints', `${quote(tensor)} of another trial`)
      const lengths: number[] = []
      for (const { name, length } of wanted) lengths.push(length ?? (await lengthOf(other, name, split)))
      const names = wanted.map(({ name }) => name)
      parts.set(tensor, names)
      cuttings.set(tensor, (dtype, shape) => cutAt(split, { tensor, dtype, shape }, names, lengths, isShared))
    }
  }
  if (cuttings.size === 0) return { trial, used, parts }
  return { trial: await withParts(trial, cuttings, parts), used, parts }
}

type Cut = (dtype: DType, shape: readonly number[]) => readonly CutPart[]

/** A trial of checkpoints with parts in place of tensors. @param parts the names of parts that are none of the trial yet, for its collections */
export async function withParts(
  trial: Trial,
  cuttings: ReadonlyMap<string, Cut>,
  parts: CutTrial['parts'],
): Promise<Trial> {
  const { access, catalog, contents, rangeSteps } = stateOf(trial)
  const index = await cutRecords(access, catalog, name => cuttings.get(name) ?? null)
  const cut = {
    ...contents,
    index,
    catalog: await Catalog.of(index, {
      numWorkers: 1,
      isTornasole: false,
      ended: true,
      incompleteStepWindow: Number.POSITIVE_INFINITY,
    }),
    collections: { ...contents.collections, collections: collectionsWith(contents.collections.collections, parts) },
    ended: true,
  }
  return new Trial(trial.path, trial.name, new TrialState(access, rangeSteps, { load: async () => cut }, cut))
}

/** The length of a tensor along the axis, at the first step that has it. */
async function lengthOf(trial: Trial, name: string, split: TensorSplit): Promise<number> {
  const tensor = trial.tensor(name)
  const [step] = tensor.steps({ showIncompleteSteps: true })
  const shape = await tensor.shape(step!)
  if (split.axis < shape.length) return shape[split.axis]!
  throw wrong(split, `an axis of ${quote(name)}, whose shape is [${shape}]`, `axis ${split.axis}`)
}

function cutAt(
  split: TensorSplit,
  { tensor, dtype, shape }: { readonly tensor: string; readonly dtype: DType; readonly shape: readonly number[] },
  names: readonly string[],
  lengths: readonly number[],
  isShared: boolean,
): readonly CutPart[] {
  const { axis, groups = 1 } = split
  const subject = `${quote(tensor)}, whose shape is [${shape}]`
  const whole = shape[axis]
  if (whole === undefined) throw wrong(split, `an axis of ${subject}`, `axis ${axis}`)
  const sum = lengths.reduce((total, length) => total + length, 0)
  const sumText = `${lengths.join(' + ')} = ${sum}`
  if (sum !== whole && !(isShared && whole > 0 && sum % whole === 0)) {
    throw wrong(split, `parts that make up axis ${axis} of ${subject}`, sumText)
  }
  const sizes = lengths.map(length => (length * whole) / Math.max(1, sum) / groups)
  if (!sizes.every(Number.isInteger))
    throw wrong(split, `parts of ${subject} in ${groups} equal groups along axis ${axis}`, sumText)
  const inner = shape.slice(axis + 1).reduce((product, length) => product * length, 1)
  const outer = shape.slice(0, axis).reduce((product, length) => product * length, 1)
  // Two 4-bit elements share a byte.
  const isWhole = elementByteLength(dtype) >= 1 || (outer === 1 && sizes.every(length => (length * inner) % 2 === 0))
  if (!isWhole) throw wrong(split, `parts of ${subject} that begin at whole bytes`, `${dtype}, ${sumText}`)
  return names.map((name, i) => {
    const before = sizes.slice(0, i).reduce((total, length) => total + length, 0)
    const runs = Array.from({ length: groups }, (_, group) => {
      const from = (group * whole) / groups + before
      return [from, from + sizes[i]!] as const
    })
    return { name, axis, runs }
  })
}

type Collections = ReturnType<typeof stateOf>['contents']['collections']['collections']

/** Collections with parts in place of their tensors. */
function collectionsWith(known: Collections, parts: CutTrial['parts']): Collections {
  const cuts = new Map(known)
  for (const name of [...parts.values()].flat()) {
    for (const collection of collectionsOf(name)) {
      const { tensorNames = [] } = cuts.get(collection) ?? {}
      const config = { includeRegex: [], reductionConfig: null, saveConfig: null, saveHistogram: false }
      cuts.set(collection, { ...config, name: collection, tensorNames: [...tensorNames, name] })
    }
  }
  return cuts
}

function wrong({ from }: TensorSplit, expected: string, got: string): UsageError {
  return new UsageError(`map entry ${quote(from)}: expected ${expected}, got ${got}`, { entry: from })
}
