/** The predictions of labels: a confusion matrix by class, or the residuals of a regression. */

import * as Plot from '@observablehq/plot'
import type { ClassesStep, ClassesView } from '../../../data.js'
import { button, h, term } from '../../dom.js'
import { badge } from '../../names.js'
import { actions, describe, fitting, lineChart } from '../../pictures/charts.js'
import { isDashed, modeColor, runColor } from '../../pictures/colors.js'
import { greyImage } from '../../pictures/images.js'
import { stepper } from '../../stepper.js'
import { counted, short, shown, thinnedText } from '../../text.js'
import { type ShownTrial, unpack } from '../../trials.js'
import type { View } from '../view.js'

const STYLE = { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' }

export async function classesView(given: readonly ShownTrial[]): Promise<View> {
  const element = h('section', {})
  const update = async (trials: readonly ShownTrial[]) => {
    const views = await Promise.all(trials.map(({ source }) => source.classes()))
    const all = views.filter(classes => classes !== null)
    const parts = trials.flatMap((trial, i) => {
      const classes = views[i] ?? null
      const place = trials.length > 1 ? i : null
      const head = place === null ? null : h('h2', {}, badge(place), shown(trial.view.name))
      return classes === null
        ? []
        : [h('article', {}, head, ...partsOf({ trial, classes, place, scale: scaleOf(all) }))]
    })
    element.replaceChildren(...parts)
    if (element.childElementCount === 0)
      element.append(h('p', {}, 'There are no labels and predictions of the same step.'))
  }
  await update(given)
  return { element, update }
}

/** A drawn trial, with its place beside another one. */
interface Shown {
  readonly trial: ShownTrial
  readonly classes: ClassesView
  /** The trial's index of two; null for a single trial. */
  readonly place: number | null
  readonly scale: SampleScale
}

/** The scale of all trials and steps, so that they can be compared. */
interface SampleScale {
  /** The largest count of a table. */
  readonly count: number
  readonly residuals: readonly [number, number]
  readonly labels: readonly [number, number]
  readonly predictions: readonly [number, number]
}

function scaleOf(all: readonly ClassesView[]): SampleScale {
  const steps = all.flatMap(({ steps }) => steps)
  const ends = (numbersOf: (step: ClassesStep) => readonly number[]): readonly [number, number] => {
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const step of steps) {
      for (const x of numbersOf(step)) [low, high] = [Math.min(low, x), Math.max(high, x)]
    }
    return low < high ? [low, high] : [low - 1, low + 1]
  }
  return {
    count: Math.max(1, ...steps.map(({ counts }) => counts.reduce((most, count) => Math.max(most, count), 0))),
    residuals: ends(({ residuals }) => residuals),
    labels: ends(({ labels }) => labels),
    predictions: ends(({ labels, residuals }) => labels.map((label, i) => label + residuals[i]!)),
  }
}

function partsOf(all: Shown): (HTMLElement | null)[] {
  const { trial, classes } = all
  const { labels, predictions, steps } = classes
  const picture = h('div', { class: 'one' })
  let cell: Cell | null = null
  const show = (i: number) => {
    const classNumbers = classes.classes
    if (classNumbers === null) return picture.replaceChildren(...residuals(steps[i]!, all))
    const samples = h('div', { class: 'samples', 'aria-live': 'polite' })
    // The last chosen cell is shown at each step.
    const choose = async (chosen: Cell | null) => {
      cell = chosen
      samples.replaceChildren(...(await samplesOf(steps[i]!, classNumbers, chosen)))
    }
    const table = confusion(steps[i]!, classNumbers, all, chosen => void choose(chosen))
    picture.replaceChildren(
      h(
        'div',
        { class: 'confusions' },
        h('div', {}, ...table),
        h('div', {}, samples, roc(steps[i]!, classNumbers, all)),
      ),
    )
    return void choose(cell)
  }
  const text = (i: number) => `step ${trial.stepText(steps[i]!.step)}`
  const control = stepper({
    steps: steps.map(({ step }) => trial.view.steps[step]!),
    text,
    show,
    first: steps.length - 1,
  })
  return [
    h('p', { class: 'muted' }, `Labels: ${shown(labels)}. Predictions: ${shown(predictions)}.`),
    noteOf(thinnedText(classes.thinned)),
    overSteps(all),
    control,
    picture,
  ]
}

function noteOf(text: string | null): HTMLElement | null {
  return text === null ? null : h('p', { class: 'note' }, text)
}

/** The accuracy or error over the steps. */
function overSteps({ trial, classes: { classes, steps }, place }: Shown): HTMLElement {
  const lines = [...new Set(steps.map(({ step }) => trial.view.mode[step]!))].map(mode => ({
    name: trial.view.modes[mode]!,
    color: place === null ? modeColor(trial.view.modes[mode]!) : runColor(place),
    isDashed: place !== null && isDashed(trial.view.modes[mode]!),
    points: steps
      .filter(({ step }) => trial.view.mode[step] === mode)
      .map(step => ({
        x: trial.view.steps[step.step]!,
        y: classes === null ? (step.error ?? Number.NaN) : accuracyOf(step, classes.length),
      })),
  }))
  const name = classes === null ? 'RMSE' : 'accuracy'
  const meaning =
    classes === null
      ? 'Root of the mean squared residual: √(Σ(prediction − label)² / n).'
      : 'The share of samples whose class was predicted.'
  return h(
    'div',
    { class: 'card' },
    h('h4', {}, term(name === 'RMSE' ? 'RMSE' : 'Accuracy', meaning)),
    lineChart({ label: `${name} over the steps`, lines, width: 2200, height: 200, yLabel: name }),
  )
}

function accuracyOf({ counts, undecided }: ClassesStep, size: number): number {
  const total = counts.reduce((sum, count) => sum + count, undecided)
  return Array.from({ length: size }, (_, i) => counts[i * size + i]!).reduce((sum, count) => sum + count, 0) / total
}

/** The accuracy or error of each mode over its steps; none without labels and predictions. */
export async function accuracies(trial: ShownTrial) {
  const { view } = trial
  const predictions = view.hasClasses ? await trial.source.classes() : null
  if (predictions === null) return []
  const { classes, steps } = predictions
  return [...new Set(steps.map(({ step }) => view.mode[step]!))].map(mode => {
    const ofMode = steps.filter(({ step }) => view.mode[step] === mode)
    return {
      name: classes === null ? 'RMSE of predictions' : 'accuracy of predictions',
      mode: view.modes[mode]!,
      steps: ofMode.map(({ step }) => view.steps[step]!),
      values: ofMode.map(step => (classes === null ? (step.error ?? Number.NaN) : accuracyOf(step, classes.length))),
    }
  })
}

/** A phrase about samples that are not counted. */
function undecidedText({ undecided }: ClassesStep): string {
  return undecided === 0 ? '' : `; ${undecided} more without a finite prediction`
}

/** A label and its prediction, as indices into the classes. */
type Cell = readonly [label: number, predicted: number]

/** The confusion matrix of a step. @param choose gets the cell that is clicked */
function confusion(
  classesStep: ClassesStep,
  classes: readonly number[],
  { trial, scale }: Shown,
  choose: (cell: Cell) => void,
): HTMLElement[] {
  const { counts } = classesStep
  const size = classes.length
  const at = (label: number, predicted: number) => counts[label * size + predicted]!
  const rowSum = (label: number) => classes.reduce((sum, _, predicted) => sum + at(label, predicted), 0)
  const columnSum = (predicted: number) => classes.reduce((sum, _, label) => sum + at(label, predicted), 0)
  const share = (part: number, whole: number) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(0)} %`)
  const cell = (label: number, predicted: number) => {
    const count = at(label, predicted)
    // A stronger colour hides its number on a dark page.
    const strength = Math.round((50 * count) / scale.count)
    const color = label === predicted ? 'var(--good)' : 'var(--bad)'
    const style = count === 0 ? '' : `background: color-mix(in srgb, ${color} ${strength}%, transparent)`
    const title = `${count} of class ${classes[label]} predicted to be ${classes[predicted]}`
    const tell = button(String(count), () => choose([label, predicted]), { 'aria-label': `${title}: show them` })
    return h('td', { class: 'number', style, title }, count === 0 ? '' : tell)
  }
  const step = trial.stepText(classesStep.step)
  const rows = () => [
    ['label', 'predicted', 'count'],
    ...classes.flatMap((label, i) => classes.map((predicted, j) => [label, predicted, at(i, j)])),
  ]
  const table = h(
    'table',
    { class: 'confusion' },
    h('caption', {}, `Labels (rows) and what was predicted (columns) at step ${step}${undecidedText(classesStep)}`),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('th', { scope: 'col' }, 'Label'),
        ...classes.map(value => h('th', { scope: 'col' }, String(value))),
        h('th', { scope: 'col' }, 'Samples'),
        h(
          'th',
          { scope: 'col' },
          term('Recall', 'Of the samples of a class, the share that was predicted to be of it.'),
        ),
        h(
          'th',
          { scope: 'col' },
          term('Precision', 'Of the samples that were predicted to be of a class, the share that is.'),
        ),
        h(
          'th',
          { scope: 'col' },
          term('F1', 'The harmonic mean of recall and precision: 2 · hits / (samples + predictions).'),
        ),
      ),
    ),
    h(
      'tbody',
      {},
      ...classes.map((value, i) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, String(value)),
          ...classes.map((_, j) => cell(i, j)),
          h('td', { class: 'number' }, String(rowSum(i))),
          h('td', { class: 'number' }, share(at(i, i), rowSum(i))),
          h('td', { class: 'number' }, share(at(i, i), columnSum(i))),
          h('td', { class: 'number' }, share(2 * at(i, i), rowSum(i) + columnSum(i))),
        ),
      ),
    ),
  )
  return [h('div', { class: 'wide' }, table), actions(`the confusions at step ${step}`, rows, null)]
}

const MAX_SHOWN = 48

/** The samples of a cell, with their images where the page has them. */
async function samplesOf(
  { samples, images, counts }: ClassesStep,
  classes: readonly number[],
  cell: Cell | null,
): Promise<HTMLElement[]> {
  if (cell === null) return [h('p', { class: 'muted' }, 'Choose a number in the table to see its samples.')]
  const [label, predicted] = cell
  const indices = [...samples.keys()].filter(i => samples[i]![0] === label && samples[i]![1] === predicted)
  const count = counts[label * classes.length + predicted]!
  const pixels = images && { ...images, pixels: (await unpack(images.pixels)) as Uint8Array }
  const drawn = indices.slice(0, MAX_SHOWN)
  const rest = count - drawn.length
  const parts = [
    h('h4', {}, `${counted(count, 'sample')} of class ${classes[label]} predicted to be ${classes[predicted]}`),
    h(
      'div',
      { class: 'pairs' },
      ...drawn.map(sample => h('figure', {}, greyImage(pixels, sample), h('figcaption', {}, `sample ${sample}`))),
    ),
    rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more`) : null,
    pixels === null && count > 0
      ? h('p', { class: 'muted' }, 'Images are here at the last step of each mode, where the model’s input was saved.')
      : null,
  ]
  return parts.filter(part => part !== null)
}

/** The ROC curve of two classes: true positives over false positives. */
function roc(
  { samples, scores, step, counts, undecided }: ClassesStep,
  classes: readonly number[],
  { trial }: Shown,
): HTMLElement | null {
  const points = rocOf(
    samples.map(([label]) => label === 1),
    scores,
  )
  if (points === null) return null
  const area = areaBelow(points)
  const total = counts.reduce((sum, count) => sum + count, undecided)
  const some = samples.length < total ? `, of the first ${samples.length} of ${total} samples` : ''
  const label = `ROC of class ${classes[1]} at step ${trial.stepText(step)}${some}: the area below it (AUC) is ${short(Number(area.toPrecision(4)))}`
  const svg = Plot.plot({
    width: fitting(380),
    height: 300,
    marginLeft: 56,
    marginBottom: 40,
    style: STYLE,
    x: { label: 'false positives, of all negatives', labelOffset: 36, domain: [0, 1], ticks: 5 },
    y: { label: 'true positives, of all positives', domain: [0, 1], ticks: 5 },
    marks: [
      Plot.line(
        [
          { x: 0, y: 0 },
          { x: 1, y: 1 },
        ],
        { x: 'x', y: 'y', strokeOpacity: 0.3 },
      ),
      Plot.line(points, { x: 'x', y: 'y', stroke: 'var(--line-0)', strokeWidth: 1.75 }),
    ],
  })
  describe(svg, label)
  const rows = () => [['false positives', 'true positives'], ...points.map(({ x, y }) => [x, y])]
  return h('div', {}, h('h4', {}, `${label}.`), svg as unknown as HTMLElement, actions(label, rows, svg))
}

/** The points of a ROC curve. Null: there are no scores, or all samples are of one class. */
export function rocOf(
  isPositive: readonly boolean[],
  scores: readonly number[],
): { readonly x: number; readonly y: number }[] | null {
  const order = [...scores.keys()].sort((a, b) => scores[b]! - scores[a]!)
  const positives = order.filter(i => isPositive[i]).length
  const negatives = order.length - positives
  if (positives === 0 || negatives === 0 || scores.some(Number.isNaN)) return null
  let [hits, misses] = [0, 0]
  const points = [{ x: 0, y: 0 }]
  for (const [at, i] of order.entries()) {
    if (isPositive[i]) hits++
    else misses++
    // Samples with equal scores make one point.
    if (scores[order[at + 1] ?? -1] !== scores[i]) points.push({ x: misses / negatives, y: hits / positives })
  }
  return points
}

export function areaBelow(points: readonly { readonly x: number; readonly y: number }[]): number {
  return points.slice(1).reduce((sum, { x, y }, i) => sum + ((x - points[i]!.x) * (y + points[i]!.y)) / 2, 0)
}

function residuals(classesStep: ClassesStep, { trial, place, scale }: Shown): HTMLElement[] {
  const { residuals, labels, step } = classesStep
  const some =
    labels.length < classesStep.decided ? `, the first ${labels.length} of ${classesStep.decided} samples` : ''
  const at = `step ${trial.stepText(step)}${some}${undecidedText(classesStep)}`
  const points = residuals.map((residual, i) => ({ label: labels[i]!, residual, predicted: labels[i]! + residual }))
  const histogram = Plot.plot({
    width: fitting(500),
    height: 260,
    marginLeft: 56,
    style: STYLE,
    x: { label: 'prediction − label', tickFormat: short, domain: scale.residuals },
    y: { label: 'samples' },
    marks: [
      Plot.rectY(points, {
        ...Plot.binX({ y: 'count' }, { x: 'residual', domain: [...scale.residuals] }),
        fill: runColor(place),
        inset: 0.5,
      }),
      Plot.ruleY([0]),
    ],
  })
  const scatter = Plot.plot({
    width: fitting(500),
    height: 260,
    marginLeft: 56,
    style: STYLE,
    x: { label: 'label', tickFormat: short, domain: scale.labels },
    y: { label: 'prediction', tickFormat: short, domain: scale.predictions },
    marks: [
      Plot.link([0], {
        x1: Math.min(...labels),
        y1: Math.min(...labels),
        x2: Math.max(...labels),
        y2: Math.max(...labels),
        stroke: 'currentColor',
        strokeOpacity: 0.4,
      }),
      Plot.dot(points, { x: 'label', y: 'predicted', r: 2, fill: runColor(place), fillOpacity: 0.6 }),
    ],
  })
  describe(histogram, `How far predictions are from the labels at ${at}`)
  describe(scatter, `Predictions beside the labels at ${at}`)
  const rows = () => [['label', 'prediction'], ...points.map(({ label, predicted }) => [label, predicted])]
  return [
    h(
      'div',
      { class: 'cards' },
      h('div', { class: 'card' }, histogram as unknown as HTMLElement),
      h('div', { class: 'card' }, scatter as unknown as HTMLElement),
    ),
    actions(`labels and predictions at ${at}`, rows, histogram),
  ]
}
