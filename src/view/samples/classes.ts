/** Labels and predictions of a classifier, or of a regression, step by step. */

import { compileOwnPattern } from '../../format/regex/pattern.js'
import { areIntegers, argmax, elements, predictedClasses } from '../../rules/base/labels.js'
import { LABELS, PREDICTIONS } from '../../rules/base/names.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import type { ScanSelection } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { readValues } from '../../trial/values.js'
import type { ClassesStep, ClassesView, ImagesView } from '../data.js'
import type { Skeleton } from '../skeleton.js'
import { thinned } from '../thinning.js'
import { grey, imagesOf } from './images.js'

/** The largest number of classes in a table. */
const MAX_CLASSES = 100
const MAX_STEPS = 60
/** The largest number of samples that are kept of a regression's step. */
const MAX_SAMPLES = 2000

/** The names of labels and predictions, from the surest source on: exact names, collections, the hooks' names. */
export function labelNames(trial: Trial): { readonly labels: string; readonly predictions: string } | null {
  const labels = placeOf(trial, 'labels', LABELS)
  const predictions = placeOf(trial, 'predictions', PREDICTIONS)
  return labels === undefined || predictions === undefined ? null : { labels, predictions }
}

export function placeOf(trial: Trial, name: 'labels' | 'predictions', hookNames: string): string | undefined {
  if (trial.hasTensor(name)) return name
  const members = trial.collections().get(name)?.members ?? []
  if (members.length === 1 && trial.hasTensor(members[0]!)) return members[0]
  const { matches } = compileOwnPattern(hookNames)
  return stateOf(trial).catalog.names.find(matches)
}

/** The predictions at some of the steps. Null if there are no labels or no predictions. */
export async function classesOf(
  trial: Trial,
  selection: ScanSelection,
  skeleton: Skeleton,
): Promise<ClassesView | null> {
  const names = labelNames(trial)
  if (names === null) return null
  const { labels, predictions } = names
  const both = trial
    .tensor(labels)
    .steps({ showIncompleteSteps: true })
    .filter(step => skeleton.stepAt(step) !== undefined)
  const { steps: only, thinned: thinnedSteps } = thinned(both, step => skeleton.modeAt(step), MAX_STEPS)
  if (only.length === 0) return null
  const { threads, memory, signal, checkLevel } = selection
  const pairs = new Map<string, { step: number; labels?: TensorValue; predictions?: TensorValue }>()
  const values = readValues(trial, {
    tensors: [labels, predictions],
    steps: only,
    threads,
    memory,
    checkLevel,
    signal,
  })
  for await (const { tensor, step, worker, value } of values) {
    if (value === null || value.dtype === 'string') continue
    const key = `${step} ${worker}`
    const pair = pairs.get(key) ?? { step }
    pairs.set(key, { ...pair, [tensor === labels ? 'labels' : 'predictions']: value })
  }
  const read = [...pairs.values()].flatMap(({ step, labels, predictions }) =>
    labels && predictions ? [samplesOf(step, labels, predictions)] : [],
  )
  if (read.length === 0) return null
  const isClasses = read.every(({ labels }) => areIntegers(labels))
  const classes = isClasses
    ? [...new Set(read.flatMap(({ labels, classes }) => [...labels, ...classes]))]
        .filter(Number.isFinite)
        .sort((a, b) => a - b)
    : null
  if (classes !== null && classes.length > MAX_CLASSES) return null
  const images =
    classes === null ? new Map<number, ImagesView>() : await imagesAt(trial, lastOfModes(read, skeleton), selection)
  const steps = new Map<number, CollectedStep>()
  for (const { step, labels, classes: predicted, numbers, scores } of read) {
    const index = skeleton.stepAt(step)!
    const collected: CollectedStep = steps.get(index) ?? {
      counts: classes === null ? [] : new Array<number>(classes.length ** 2).fill(0),
      samples: [],
      scores: [],
      images: images.get(step) ?? null,
      squares: 0,
      decided: 0,
      residuals: [],
      labels: [],
      undecided: 0,
    }
    steps.set(index, collected)
    if (classes !== null) {
      const some = labels.slice(0, Math.max(0, MAX_SAMPLES - collected.samples.length))
      collected.samples.push(
        ...some.map((label, i) => [classes.indexOf(label), classes.indexOf(predicted[i]!)] as const),
      )
      if (classes.length === 2 && scores !== null) collected.scores.push(...scores.slice(0, some.length))
    }
    for (const [i, label] of labels.entries()) {
      if (i >= (classes === null ? numbers : predicted).length) continue
      if (!Number.isFinite(classes === null ? numbers[i]! : predicted[i]!)) collected.undecided++
      else if (classes !== null)
        collected.counts[classes.indexOf(label) * classes.length + classes.indexOf(predicted[i]!)]!++
      else {
        const residual = numbers[i]! - label
        collected.decided++
        collected.squares += residual ** 2
        if (collected.labels.length === MAX_SAMPLES) continue
        collected.labels.push(label)
        collected.residuals.push(residual)
      }
    }
  }
  return {
    labels,
    predictions,
    classes,
    steps: [...steps].map(
      ([step, { squares, scores, ...fields }]): ClassesStep => ({
        step,
        ...fields,
        // Scores are dropped if some workers have none.
        scores: scores.length === fields.samples.length ? scores : [],
        error: fields.decided === 0 ? null : Math.sqrt(squares / fields.decided),
      }),
    ),
    thinned: thinnedSteps,
  }
}

/** A step while it is being collected. */
interface CollectedStep extends Mutable<Omit<ClassesStep, 'step' | 'error'>> {
  /** The sum of squared residuals. */
  squares: number
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] }

/** The last step of each mode. */
function lastOfModes(read: readonly { readonly step: number }[], skeleton: Skeleton): readonly number[] {
  return [...new Map(read.map(({ step }) => [skeleton.modeAt(step), step])).values()]
}

/** The images that a model was given at some steps; none if there are several workers, whose images can't be told apart. */
async function imagesAt(
  trial: Trial,
  steps: readonly number[],
  { threads, memory, signal, checkLevel }: ScanSelection,
): Promise<ReadonlyMap<number, ImagesView>> {
  const { images } = imagesOf(trial)
  const byStep = new Map<number, ImagesView>()
  if (images === undefined || trial.workers().length > 1) return byStep
  const values = readValues(trial, {
    tensors: [images],
    steps,
    threads,
    memory,
    checkLevel,
    signal,
  })
  for await (const { step, value } of values) {
    const view = value === null ? null : grey(value, value.shape[0] ?? 0)
    if (view !== null) byStep.set(step, view)
  }
  return byStep
}

function samplesOf(step: number, labels: TensorValue, predictions: TensorValue) {
  const isOneHot = labels.shape.length === 2 && labels.shape[1]! > 1
  const labelNumbers = isOneHot ? argmax(labels) : Array.from(elements(labels))
  const numbers = Array.from(elements(predictions))
  const predicted = Array.from(predictedClasses(predictions, labelNumbers.length))
  const width = numbers.length / Math.max(1, predicted.length)
  // A row with a NaN has no largest element.
  const classes = predicted.map((predictedClass, i) =>
    numbers.slice(i * width, (i + 1) * width).some(Number.isNaN) ? Number.NaN : predictedClass,
  )
  return { step, labels: labelNumbers, classes, numbers, scores: scoresOf(numbers, labelNumbers.length) }
}

/** The scores of the second of two classes, to four digits, from one column or two; null if they are no scores. */
function scoresOf(numbers: readonly number[], count: number): readonly number[] | null {
  const width = numbers.length / Math.max(1, count)
  if (width !== 1 && width !== 2) return null
  const scores = Array.from({ length: count }, (_, i) =>
    width === 1 ? numbers[i]! : numbers[2 * i + 1]! - numbers[2 * i]!,
  )
  return scores.map(score => Number(score.toPrecision(4)))
}
