/** The predictions of labels: a confusion matrix by class, or the residuals of a regression. */

import * as Plot from '@observablehq/plot'
import type { ClassesStep, ClassesView } from '../../../data.js'
import { button, h, term } from '../../dom.js'
import { badge } from '../../names.js'
import { actions, columnsFor, describe, fitting, halfWidth, lineChart, STYLE } from '../../pictures/charts.js'
import { isDashed, modeColor, runColor } from '../../pictures/colors.js'
import { greyImage } from '../../pictures/images.js'
import { stepper } from '../../stepper.js'
import { counted, short, shown, thinnedText } from '../../text.js'
import { type ShownTrial, unpack } from '../../trials.js'
import type { View } from '../view.js'
import { roc } from './roc.js'

export async function classesView(given: readonly ShownTrial[]): Promise<View> {
  const element = h('section', {})
  const update = async (trials: readonly ShownTrial[]) => {
    const views = await Promise.all(trials.map(({ source }) => source.classes()))
    const all = views.filter(classes => classes !== null)
    const drawn = trials.flatMap((trial, i): readonly Shown[] => {
      const classes = views[i] ?? null
      return classes === null ? [] : [{ trial, classes, place: trials.length > 1 ? i : null, scale: scaleOf(all) }]
    })
    element.replaceChildren(
      ...(trials.length > 1 ? [true, false] : []).flatMap(areNumbers => {
        const alike = drawn.filter(({ classes }) => (classes.classes === null) === areNumbers)
        return alike.length === 0 ? [] : [overSteps(alike, fitting(2200))]
      }),
      h('div', { class: 'confused' }, ...drawn.map(part => h('article', {}, ...partsOf(part)))),
    )
    if (drawn.length === 0) element.replaceChildren(h('p', {}, 'There are no labels and predictions of the same step.'))
  }
  await update(given)
  return { element, update }
}

/** The width of a table without its classes, that of a class, and the least of a chart beside it. */
const [TABLE_WIDTH, CELL_WIDTH, MIN_WIDTH] = [440, 36, 380]

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
  const { trial, classes, place } = all
  const { labels, predictions, steps } = classes
  const hasScores = steps.some(({ scores }) => scores.length > 0)
  const { columns, width } = layoutOf(classes.classes, hasScores)
  // A pair has one chart of both.
  const chart = place === null ? overSteps([all], width) : null
  const [first, second] = [h('div', { class: 'card' }), h('div', { class: 'card' })]
  const samples = h('div', { class: 'samples', 'aria-live': 'polite' })
  let cell: Cell | null = null
  const show = (i: number) => {
    const { classes: classNumbers } = classes
    const step = steps[i]!
    if (classNumbers === null) {
      const [histogram, scatter] = residuals(step, all)
      first.replaceChildren(...histogram)
      return second.replaceChildren(...scatter)
    }
    // The last chosen cell is shown at each step.
    const choose = async (chosen: Cell | null) => {
      cell = chosen
      samples.replaceChildren(...(await samplesOf(step, classNumbers, chosen)))
    }
    first.replaceChildren(...confusion(step, classNumbers, all, chosen => void choose(chosen)))
    if (classNumbers.length === 2)
      second.replaceChildren(
        ...roc(step, classNumbers, trial.stepText(step.step), pictureWidth(place), runColor(place)),
      )
    return void choose(cell)
  }
  const parts = { first, second, chart, samples }
  const picture = h(
    'div',
    { class: 'confusions' },
    ...columns
      .filter(column => column.some(part => parts[part] !== null))
      .map(column => h('div', {}, ...column.map(part => parts[part]))),
  )
  const text = (i: number) => `step ${trial.stepText(steps[i]!.step)}`
  const control = stepper({
    steps: steps.map(({ step }) => trial.view.steps[step]!),
    text,
    show,
    first: steps.length - 1,
  })
  return [
    place === null ? null : h('h2', {}, badge(place), shown(trial.view.name)),
    h('p', { class: 'muted' }, `Labels: ${shown(labels)}. Predictions: ${shown(predictions)}.`),
    noteOf(thinnedText(classes.thinned)),
    control,
    picture,
  ]
}

/** The width of a picture: a third of the page or, of one of two trials, a half. */
function pictureWidth(place: number | null): number {
  return place === null ? columnsFor(3).picture : halfWidth()
}

type Part = 'first' | 'second' | 'chart' | 'samples'

/** The columns that pictures lie in, so that they fill the screen, and the width of the chart. */
function layoutOf(
  classes: ClassesView['classes'],
  hasScores: boolean,
): { readonly columns: readonly (readonly Part[])[]; readonly width: number } {
  const page = columnsFor(1).column
  if (classes === null || hasScores) {
    const { column, picture } = columnsFor(3)
    const isWide = column < columnsFor(2).column
    return {
      columns: isWide ? [['first', 'samples'], ['second'], ['chart']] : [['first', 'samples', 'chart'], ['second']],
      width: picture,
    }
  }
  const beside = page - TABLE_WIDTH - CELL_WIDTH * classes.length
  return beside < MIN_WIDTH
    ? { columns: [['first', 'samples'], ['chart']], width: fitting(page) }
    : { columns: [['first'], ['chart', 'samples']], width: fitting(beside) }
}

function noteOf(text: string | null): HTMLElement | null {
  return text === null ? null : h('p', { class: 'note' }, text)
}

/** The accuracy or error over the steps, of a trial or of two. */
function overSteps(all: readonly Shown[], width: number): HTMLElement {
  const lines = all.flatMap(({ trial: { view }, classes: { classes, steps }, place }) =>
    [...new Set(steps.map(({ step }) => view.mode[step]!))].map(mode => {
      const name = view.modes[mode]!
      return {
        name: place === null ? name : name === 'GLOBAL' ? 'AB'[place]! : `${'AB'[place]} ${name}`,
        color: place === null ? modeColor(name) : runColor(place),
        isDashed: place !== null && isDashed(name),
        points: steps
          .filter(({ step }) => view.mode[step] === mode)
          .map(step => ({
            x: view.steps[step.step]!,
            y: classes === null ? (step.error ?? Number.NaN) : accuracyOf(step, classes.length),
          })),
      }
    }),
  )
  const isError = all.every(({ classes: { classes } }) => classes === null)
  const meaning = isError
    ? 'Root of the mean squared residual: √(Σ(prediction − label)² / n).'
    : 'The share of samples whose class was predicted.'
  const name = isError ? 'RMSE' : 'Accuracy'
  return h(
    'div',
    { class: 'card' },
    h('h4', {}, term(name, meaning)),
    lineChart({ label: `${name} over the steps`, lines, width, height: 220 }),
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
    const strength = Math.round((45 * count) / scale.count)
    const color = label === predicted ? 'var(--good)' : 'var(--bad)'
    const style = count === 0 ? '' : `background: color-mix(in srgb, ${color} ${strength}%, transparent)`
    const title = `${count} of class ${classes[label]} predicted to be ${classes[predicted]}`
    const tell = button(String(count), () => choose([label, predicted]), { 'aria-label': `${title}: show them` })
    return h('td', { class: 'cell', style, title }, count === 0 ? '' : tell)
  }
  const step = trial.stepText(classesStep.step)
  const rows = () => [
    ['label', 'predicted', 'count'],
    ...classes.flatMap((label, i) => classes.map((predicted, j) => [label, predicted, at(i, j)])),
  ]
  const said = `Labels (rows) and what was predicted (columns) at step ${step}${undecidedText(classesStep)}`
  const table = h(
    'table',
    { class: 'confusion', 'aria-label': said },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('th', { scope: 'col' }, 'Label'),
        ...classes.map(value => h('th', { scope: 'col', class: 'cell' }, String(value))),
      ),
    ),
    h(
      'tbody',
      {},
      ...classes.map((value, i) =>
        h('tr', {}, h('th', { scope: 'row' }, String(value)), ...classes.map((_, j) => cell(i, j))),
      ),
    ),
  )
  // On a narrow screen this table lies below the other one.
  const measures = h(
    'table',
    { class: 'confusion measures', 'aria-label': `Recall, precision and F1 of each class at step ${step}` },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('th', { scope: 'col' }, 'Label'),
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
          h('td', { class: 'number' }, String(rowSum(i))),
          h('td', { class: 'number' }, share(at(i, i), rowSum(i))),
          h('td', { class: 'number' }, share(at(i, i), columnSum(i))),
          h('td', { class: 'number' }, share(2 * at(i, i), rowSum(i) + columnSum(i))),
        ),
      ),
    ),
  )
  return [
    h('h4', {}, said),
    h('div', { class: 'tables' }, h('div', { class: 'wide' }, table), measures),
    actions(`the confusions at step ${step}`, rows, null),
  ]
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

/** The two pictures of a step's residuals. */
function residuals(
  classesStep: ClassesStep,
  { trial, place, scale }: Shown,
): readonly [histogram: HTMLElement[], scatter: HTMLElement[]] {
  const { residuals, labels, step } = classesStep
  const some =
    labels.length < classesStep.decided ? `, the first ${labels.length} of ${classesStep.decided} samples` : ''
  const at = `step ${trial.stepText(step)}${some}${undecidedText(classesStep)}`
  const points = residuals.map((residual, i) => ({ label: labels[i]!, residual, predicted: labels[i]! + residual }))
  const histogram = Plot.plot({
    width: pictureWidth(place),
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
    width: pictureWidth(place),
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
    [
      h('h4', {}, `Residuals at ${at}`),
      histogram as unknown as HTMLElement,
      actions(`residuals at ${at}`, rows, histogram),
    ],
    [
      h('h4', {}, `Predictions at ${at}`),
      scatter as unknown as HTMLElement,
      actions(`predictions at ${at}`, rows, scatter),
    ],
  ]
}
