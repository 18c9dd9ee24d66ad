/** Suggests matches between tensors with different names in two runs. They are shown to people, and never used unasked. */

import { recordsInOrder } from '../../scan/catalog/record-order.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { RunPairing } from '../pairing.js'

/** Two tensors that may be the same. */
export interface NameSuggestion {
  readonly tensor: string
  readonly otherTensor: string
  readonly shape: readonly number[]
}

type TrialAtStep = readonly [trial: Trial, step: number]

/** The limit of unmatched names in either run; with more, nothing is suggested. */
const MAX_NAMES = 256

/** Pairs unmatched tensors of a step that lie between the same neighbours in the order of execution and have the same shape. */
export async function suggestNames(pairing: RunPairing, step: number): Promise<readonly NameSuggestion[]> {
  const first = [pairing.a, step] as const
  const second = [pairing.b, pairing.stepInB(step)] as const
  const inB = (name: string) => pairing.nameInB(name)
  const [ofA, ofB] = [namesInOrder(first), namesInOrder(second)]
  const [known, namesInB] = [new Set(ofA.map(inB)), new Set(ofB)]
  const isAlone = (name: string) => !namesInB.has(inB(name))
  if (ofA.filter(isAlone).length > MAX_NAMES || ofB.filter(name => !known.has(name)).length > MAX_NAMES) return []
  const suggested: NameSuggestion[] = []
  let from = 0
  let gap: string[] = []
  const close = async (to: number) => {
    const others = ofB.slice(from, to).filter(name => !known.has(name))
    suggested.push(...(await alike(first, second, gap, others)))
    gap = []
  }
  const placeInB = new Map(ofB.map((name, i) => [name, i]))
  for (const name of ofA) {
    if (isAlone(name)) gap.push(name)
    else {
      const at = placeInB.get(inB(name)) ?? -1
      if (at < from) continue
      await close(at)
      from = at + 1
    }
  }
  await close(ofB.length)
  return suggested
}

/** The names of the first worker's tensors, in order. */
function namesInOrder([trial, step]: TrialAtStep): readonly string[] {
  const [workerStep] = stateOf(trial).catalog.atStep(step)
  return workerStep ? [...recordsInOrder(workerStep).keys()] : []
}

/** The longest common sequence of equal shapes. */
async function alike(
  first: TrialAtStep,
  second: TrialAtStep,
  ofA: readonly string[],
  ofB: readonly string[],
): Promise<readonly NameSuggestion[]> {
  if (ofA.length === 0 || ofB.length === 0) return []
  const [shapesA, shapesB] = await Promise.all([shapesOf(first, ofA), shapesOf(second, ofB)])
  const isSame = (i: number, j: number): boolean => {
    const shape = shapesA[i]
    if (shape === null || shape === undefined || shape.join() !== shapesB[j]?.join()) return false
    // All numbers have the same shape: something in their names has to be the same.
    return shape.some(length => length !== 1) || haveCommonWord(ofA[i]!, ofB[j]!)
  }
  const lengths = Array.from({ length: ofA.length + 1 }, () => new Array<number>(ofB.length + 1).fill(0))
  for (let i = ofA.length - 1; i >= 0; i--) {
    for (let j = ofB.length - 1; j >= 0; j--) {
      const [here, down, right] = [lengths[i]!, lengths[i + 1]!, lengths[i]![j + 1]!]
      here[j] = isSame(i, j) ? down[j + 1]! + 1 : Math.max(down[j]!, right)
    }
  }
  const suggestions: NameSuggestion[] = []
  for (let i = 0, j = 0; i < ofA.length && j < ofB.length; ) {
    if (isSame(i, j)) suggestions.push({ tensor: ofA[i++]!, otherTensor: ofB[j++]!, shape: shapesA[i - 1]! })
    else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i++
    else j++
  }
  return suggestions
}

function haveCommonWord(a: string, b: string): boolean {
  const [words, others] = [a, b].map(name =>
    name.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map(word => word.toLowerCase()),
  )
  const isBegin = (a: string, b: string) => a !== '' && b !== '' && (a.startsWith(b) || b.startsWith(a))
  return words!.some(word => others!.some(other => isBegin(word, other)))
}

function shapesOf([trial, step]: TrialAtStep, names: readonly string[]): Promise<(readonly number[] | null)[]> {
  return Promise.all(
    names.map(name =>
      trial
        .tensor(name)
        .shape(step)
        .catch(() => null),
    ),
  )
}
