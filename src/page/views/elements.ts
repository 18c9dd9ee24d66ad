/** The elements of a tensor at a step: as a matrix, as images, and as a table. */

import { choice, h } from '../dom.js'
import { actions } from '../pictures/charts.js'
import { HeatMap } from '../pictures/heat-map.js'
import { images } from '../pictures/images.js'
import { shadingOf } from '../pictures/shading.js'
import { short } from '../text.js'
import type { Elements, ShownTrial } from '../trials.js'

/** Cells of the table; all are in the CSV. */
const MAX_CELLS = 200
const MAX_IMAGES = 48

/** @returns null if there are none to show */
export async function elementsView(
  trial: ShownTrial,
  series: number,
  title: string,
  caption: readonly (HTMLElement | string | null)[],
): Promise<HTMLElement | null> {
  const { view } = trial
  const states = await trial.states()
  const there = trial.source.elementSteps(series).filter(step => states[series * view.steps.length + step] === 1)
  const last = there.at(-1)
  if (last === undefined) return null
  const picture = h('div', {})
  let asked = 0
  const show = async (step: number) => {
    const turn = ++asked
    const found = await trial.source.elements(series, step)
    if (turn !== asked) return
    const at = `${title} at step ${trial.stepText(step)}`
    picture.replaceChildren(
      ...(found === null ? [h('p', { class: 'muted' }, 'It can’t be read.')] : pictures(found, at)),
    )
  }
  await show(last)
  const steps = there.map(step => [String(step), trial.stepText(step)] as const)
  return h(
    'figure',
    { class: 'card elements' },
    caption.some(part => part !== null) ? h('figcaption', {}, ...caption) : null,
    h(
      'div',
      { class: 'controls' },
      choice('Elements at step', steps, String(last), step => void show(Number(step))),
    ),
    picture,
  )
}

function pictures({ shape, numbers }: Elements, label: string): HTMLElement[] {
  const size = numbers.length
  if (size === 0) return [h('p', { class: 'muted' }, 'It has no elements.')]
  const shading = shadingOf(Array.from(numbers), true, 'linear')
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
        pixel: i => shading.pixel(numbers[i]!),
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
    h(
      'p',
      { class: 'muted' },
      `from ${short(shading.isDiverging ? -shading.high : shading.low)} to ${short(shading.high)}${rest > 0 ? `, and ${rest} more` : ''}`,
    ),
    picture,
    actions(`the elements of ${label}`, rows, null),
    table(numbers, width, size),
  ]
}

function table(numbers: ArrayLike<number>, width: number, size: number): HTMLElement {
  const details = h('details', {}, h('summary', {}, 'As a table'))
  // Made when it is looked at.
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
        h('table', {}, h('tbody', {}, ...cells)),
        isCut ? h('p', { class: 'muted' }, 'The first of them; the CSV has all.') : '',
      )
    },
    { once: true },
  )
  return details
}
