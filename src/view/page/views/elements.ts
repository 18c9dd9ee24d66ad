/** The elements of a tensor at a step: as a matrix, as images, and as a table. */

import { choice, h } from '../dom.js'
import { moment } from '../moment.js'
import { actions } from '../pictures/charts.js'
import { HeatMap } from '../pictures/heat-map.js'
import { images } from '../pictures/images.js'
import { legendOf } from '../pictures/legend.js'
import { type Shading, shadingOf } from '../pictures/shading.js'
import { short } from '../text.js'
import { type Elements, firstSteps, type ShownTrial } from '../trials.js'

/** The largest number of cells in the table; the CSV has all. */
const MAX_CELLS = 200
const MAX_IMAGES = 48

/** A tensor whose elements are shown. */
export interface ElementsOf {
  readonly trial: ShownTrial
  readonly series: number
  readonly title: string
  readonly caption: readonly (HTMLElement | string | null)[]
}

/** A tensor whose elements can be read at some steps. */
interface ReadableElements extends ElementsOf {
  readonly steps: readonly number[]
}

/** The elements on one scale, which changes with the chosen steps. */
export async function elementsViews(wanted: readonly ElementsOf[]): Promise<readonly HTMLElement[]> {
  const drawn = new Map<
    ElementsOf,
    { readonly elements: Elements | null; readonly at: string; readonly into: HTMLElement }
  >()
  const draw = () => {
    const shading = shadingOf(numbersOf([...drawn.values()].map(({ elements }) => elements)), true, 'linear')
    for (const { elements, at, into } of drawn.values()) {
      into.replaceChildren(
        ...(elements === null ? [h('p', { class: 'muted' }, 'It can’t be read.')] : pictures(elements, at, shading)),
      )
    }
  }
  const readable = (await Promise.all(wanted.map(readableOf))).filter(({ steps }) => steps.length > 0)
  const first = firstSteps(readable)
  const figures = await Promise.all(
    readable.map((item, i) => figureOf(item, first[i]!, into => drawn.set(item, into), draw)),
  )
  draw()
  return figures
}

function* numbersOf(all: readonly (Elements | null)[]): Generator<number> {
  for (const elements of all) if (elements !== null) yield* Array.from(elements.numbers)
}

async function readableOf(item: ElementsOf): Promise<ReadableElements> {
  const { trial, series } = item
  const states = await trial.states()
  const { length } = trial.view.steps
  return { ...item, steps: trial.source.elementSteps(series).filter(step => states[series * length + step] === 1) }
}

/** The figure of a tensor's elements. @param first its first step, if no step has been chosen @param put gets the elements to draw and the element to draw into */
async function figureOf(
  { trial, series, title, caption, steps: savedSteps }: ReadableElements,
  first: number,
  put: (drawn: { readonly elements: Elements | null; readonly at: string; readonly into: HTMLElement }) => void,
  draw: () => void,
): Promise<HTMLElement> {
  const { view } = trial
  const numbers = savedSteps.map(step => view.steps[step]!)
  const chosen = () => savedSteps[moment.indexIn(numbers, savedSteps.indexOf(first))]!
  const into = h('div', {})
  let turns = 0
  const show = async (step: number) => {
    const turn = ++turns
    const elements = await trial.source.elements(series, step)
    if (turn === turns) put({ elements, at: `${title} at step ${trial.stepText(step)}`, into })
  }
  await show(chosen())
  const steps = savedSteps.map(step => [String(step), trial.stepText(step)] as const)
  const control = choice('Elements at step', steps, String(chosen()), step => {
    moment.point(view.steps[Number(step)]!)
    follow()
  })
  const select = control.querySelector('select')!
  const follow = () => {
    const step = chosen()
    select.value = String(step)
    if (step === at) return
    at = step
    void show(step).then(draw)
  }
  let at = chosen()
  moment.follow(control, follow)
  return h(
    'figure',
    { class: 'card elements' },
    caption.some(part => part !== null) ? h('figcaption', {}, ...caption) : null,
    h('div', { class: 'controls' }, control),
    into,
  )
}

function pictures({ shape, numbers }: Elements, label: string, shading: Shading): HTMLElement[] {
  const size = numbers.length
  if (size === 0) return [h('p', { class: 'muted' }, 'It has no elements.')]
  const [height = 1, width = 1] = shape.length === 1 ? [1, shape[0]!] : shape.slice(-2)
  const lead = shape.slice(0, -2)
  const isStack = lead.length > 0 && lead.some(length => length > 1)
  const indexOf = (i: number): number[] => {
    const index: number[] = []
    let rest = i
    for (const length of [...shape].reverse()) {
      index.unshift(rest % length)
      rest = Math.floor(rest / length)
    }
    return index
  }
  const textOf = (i: number) => `[${indexOf(i).join(', ')}]: ${numbers[i]}`
  const picture = isStack
    ? images({
        count: Math.min(MAX_IMAGES, size / (height * width)),
        height,
        width,
        colorOf: i => shading.pixel(numbers[i]!),
        text: image =>
          `[${indexOf(image * height * width)
            .slice(0, -2)
            .join(', ')}]`,
        label,
      })
    : new HeatMap({
        rows: height,
        steps: width,
        value: (row, column) => numbers[row * width + column]!,
        isThere: () => true,
        shading,
        rowText: row => (shape.length < 2 ? '' : String(row)),
        stepText: String,
        cellText: (row, column) => textOf(row * width + column),
        onOpen: () => {},
        label: `The elements of ${label}`,
        opens: null,
      }).element
  const rest = isStack ? size / (height * width) - MAX_IMAGES : 0
  const head = [...shape.map((_, axis) => `index_${axis}`), 'value']
  const rows = () => [head, ...Array.from(numbers, (value, i) => [...indexOf(i), value])]
  return [
    legendOf(shading, 'value', true),
    rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more`) : null,
    picture,
    actions(`the elements of ${label}`, rows, null),
    table(numbers, width, size),
  ].filter(part => part !== null)
}

function table(numbers: ArrayLike<number>, width: number, size: number): HTMLElement {
  const details = h('details', {}, h('summary', {}, 'As a table'))
  // The table is made when it is first opened.
  details.addEventListener(
    'toggle',
    () => {
      const columns = Math.min(width, 12)
      const rows = Math.min(Math.ceil(size / width), Math.max(1, Math.floor(MAX_CELLS / columns)))
      const cells = Array.from({ length: rows }, (_, row) =>
        h(
          'tr',
          {},
          ...Array.from({ length: columns }, (_, column) =>
            h('td', { class: 'number' }, short(numbers[row * width + column] ?? Number.NaN)),
          ),
        ),
      )
      const isCut = rows * columns < size
      details.append(
        h('div', { class: 'wide' }, h('table', {}, h('tbody', {}, ...cells))),
        isCut ? h('p', { class: 'muted' }, `The first ${rows} × ${columns}; the CSV has all.`) : '',
      )
    },
    { once: true },
  )
  return details
}
