/** The distributions of all tensors of a kind as small pictures, which go through the steps together. */

import { KINDS, type Kind } from '../../../trial/kinds/kinds.js'
import { button, choice, h, nameFilter, svgElement } from '../dom.js'
import { link, type OpenTensor } from '../names.js'
import { runColor, workerColor } from '../pictures/colors.js'
import { saveGif } from '../pictures/raster.js'
import { stepper } from '../stepper.js'
import { counted, KIND_NAMES, short, shortened, shown } from '../text.js'
import type { Column, Ridge, ShownTrial } from '../trials.js'
import type { View } from './view.js'

/** The choice in the view, which outlives it. */
export interface DistributionsChoice {
  kind: Kind
  axes: 'own' | 'shared'
  filter: string
}

const MAX_PANELS = 80
const PLAY_MS = 200
const [WIDTH, HEIGHT] = [220, 84]

/** A tensor of a worker. */
interface Outline {
  readonly trial: ShownTrial
  readonly place: number
  readonly ridge: Ridge
  readonly variance: Column | null
  readonly color: string
  /** `A`, a worker or both; empty if there is no other. */
  readonly who: string
}

interface Panel {
  readonly name: string
  readonly outlines: readonly Outline[]
  readonly element: HTMLElement
  readonly svg: SVGSVGElement
  readonly paths: readonly SVGPathElement[]
  readonly title: HTMLElement
}

export function distributionKinds(trials: readonly ShownTrial[]): readonly Kind[] {
  const has = (kind: Kind) =>
    trials.some(({ view }) =>
      view.tensors.some(tensor => tensor.kind === kind && (tensor.shape === null || tensor.shape.length > 0)),
    )
  return KINDS.filter(kind => kind !== 'losses' && kind !== 'metrics' && has(kind))
}

export async function distributionsView(
  given: readonly ShownTrial[],
  chosen: DistributionsChoice,
  open: OpenTensor,
): Promise<View> {
  let trials = given
  const kinds = distributionKinds(trials)
  if (!kinds.includes(chosen.kind)) chosen.kind = kinds[0]!
  const parts = h('div', {})
  let asked = 0
  const draw = async () => {
    const turn = ++asked
    const elements = await grid(trials, chosen, open)
    // Something else may have been chosen meanwhile.
    if (turn === asked) parts.replaceChildren(...elements)
  }
  const set = <K extends keyof DistributionsChoice>(name: K, value: DistributionsChoice[K]) => {
    chosen[name] = value
    void draw()
  }
  await draw()
  const element = h(
    'section',
    { class: 'small-multiples' },
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      choice(
        'Tensors',
        kinds.map(kind => [kind, KIND_NAMES[kind]!] as const),
        chosen.kind,
        kind => set('kind', kind),
      ),
      choice(
        'Values from, to',
        [
          ['own', 'Of each tensor'],
          ['shared', 'The same for all'],
        ],
        chosen.axes,
        axes => set('axes', axes),
      ),
      nameFilter(chosen.filter, text => set('filter', text)),
    ),
    parts,
  )
  const update = async (newer: readonly ShownTrial[]) => {
    trials = newer
    // Nobody's animation is stopped.
    if (element.querySelector('.player.on') === null) await draw()
  }
  return { element, update }
}

async function grid(
  trials: readonly ShownTrial[],
  { kind, axes, filter }: DistributionsChoice,
  open: OpenTensor,
): Promise<readonly HTMLElement[]> {
  const wanted = filter.toLowerCase()
  const names = [
    ...new Set(
      trials.flatMap(({ view }) => view.tensors.filter(tensor => tensor.kind === kind).map(({ name }) => name)),
    ),
  ].filter(name => name.toLowerCase().includes(wanted))
  const variances = await Promise.all(
    trials.map(trial => (trial.statistics.includes('variance') ? trial.column('variance', { kind }) : null)),
  )
  const found = await Promise.all(
    names.slice(0, MAX_PANELS).map(async name => {
      const outlines = await Promise.all(
        trials.map(async (trial, place) =>
          (await trial.ridges(name)).map(ridge => outlineOf(trial, place, ridge, variances[place]!, trials.length > 1)),
        ),
      )
      return { name, outlines: outlines.flat() }
    }),
  )
  const drawn = found.filter(({ outlines }) => outlines.length > 0)
  if (drawn.length === 0) return [h('p', {}, 'There is no distribution of such tensors: choose others.')]
  const everywhere = rangeOf(drawn.flatMap(({ outlines }) => outlines))
  const panels = drawn.map(({ name, outlines }) =>
    panelOf(name, outlines, axes === 'shared' ? everywhere : rangeOf(outlines), open),
  )
  const steps = [
    ...new Set(
      drawn.flatMap(({ outlines }) =>
        outlines.flatMap(({ trial, ridge }) => ridge.view.steps.map(step => trial.view.steps[step]!)),
      ),
    ),
  ].sort((a, b) => a - b)
  const show = (i: number) => {
    for (const panel of panels) showAt(panel, steps[i]!)
  }
  const text = (i: number) => {
    const { view } = trials[0]!
    const at = view.steps.indexOf(steps[i]!)
    return `step ${at < 0 ? steps[i] : trials[0]!.stepText(at)}`
  }
  const frames = function* () {
    for (const [i, step] of steps.entries()) {
      for (const panel of panels) showAt(panel, step)
      yield together(panels, text(i))
    }
  }
  const player = stepper({ steps, text, show, first: steps.length - 1, ms: PLAY_MS })
  player.append(
    button(
      'GIF',
      () => void saveGif(frames(), `${trials.map(({ view }) => view.name).join('-')}-${kind}.gif`, PLAY_MS),
      {
        'aria-label': `Save the distributions of all ${KIND_NAMES[kind]!.toLowerCase()} over the steps as GIF`,
      },
    ),
  )
  const { length } = names
  const left = length - drawn.length
  const legend = [...new Map(drawn.flatMap(({ outlines }) => outlines.map(({ who, color }) => [who, color])))]
  return [
    player,
    ...(legend.length > 1
      ? [
          h(
            'ul',
            { class: 'legend' },
            ...legend.map(([who, color]) => h('li', {}, h('i', { style: `border-top: 3px solid ${color}` }), who)),
          ),
        ]
      : []),
    h('div', { class: 'panels' }, ...panels.map(({ element }) => element)),
    ...(left > 0
      ? [
          h(
            'p',
            { class: 'note' },
            `${drawn.length} of ${counted(length, 'tensor')} are shown: the others have no distribution here, or are more than fit. Search for them by name.`,
          ),
        ]
      : []),
  ]
}

function outlineOf(trial: ShownTrial, place: number, ridge: Ridge, variance: Column | null, isPair: boolean): Outline {
  const { workers, series } = trial.view
  const { worker } = series[ridge.view.series]!
  const who = [isPair ? 'AB'[place]! : '', workers.length > 1 ? shown(workers[worker]!) : ''].filter(Boolean).join(' ')
  return {
    trial,
    place,
    ridge,
    variance,
    who,
    color: !isPair && workers.length > 1 ? workerColor(worker) : runColor(place),
  }
}

function rangeOf(outlines: readonly Outline[]): readonly [from: number, to: number] {
  return [
    Math.min(...outlines.map(({ ridge }) => ridge.view.low)),
    Math.max(...outlines.map(({ ridge }) => ridge.view.high)),
  ]
}

function panelOf(
  name: string,
  outlines: readonly Outline[],
  [from, to]: readonly [number, number],
  open: OpenTensor,
): Panel {
  // One height for all steps, workers and trials.
  const densest = Math.max(...outlines.map(({ ridge: { view } }) => (view.most * view.bins) / (view.high - view.low)))
  const paths = outlines.map(({ color, ridge: { view } }) => {
    const scale = (view.most * view.bins) / (view.high - view.low) / densest
    return svgElement('path', {
      stroke: color,
      fill: color,
      'fill-opacity': outlines.length > 1 ? 0.12 : 0.55,
      'data-height': scale,
    })
  })
  const svg = svgElement('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT + 16}`, role: 'img' })
  svg.append(
    ...paths,
    svgElement('line', { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT, stroke: 'currentColor', 'stroke-opacity': 0.35 }),
    svgElement('text', { x: 0, y: HEIGHT + 13 }, short(from)),
    svgElement('text', { x: WIDTH, y: HEIGHT + 13, 'text-anchor': 'end' }, short(to)),
  )
  if (from < 0 && to > 0) {
    const x = (-from / (to - from)) * WIDTH
    svg.append(svgElement('line', { x1: x, x2: x, y1: 0, y2: HEIGHT, stroke: 'currentColor', 'stroke-opacity': 0.2 }))
  }
  const title = h('p', { class: 'muted' })
  for (const path of paths) path.dataset.range = `${from} ${to}`
  return { name, outlines, paths, svg, title, element: h('div', { class: 'panel' }, link(name, open), title, svg) }
}

/** Draws what there is at a step or, where nothing was saved at it, at the last one before. */
function showAt({ name, outlines, paths, svg, title }: Panel, step: number): void {
  const said: string[] = []
  for (const [i, { trial, ridge, variance, who }] of outlines.entries()) {
    const { view, shares } = ridge
    const at = view.steps.findLastIndex(one => trial.view.steps[one]! <= step)
    const path = paths[i]!
    if (at < 0) {
      path.setAttribute('d', '')
      continue
    }
    const [from, to] = path.dataset.range!.split(' ').map(Number) as [number, number]
    const x = (value: number) => (((value - from) / (to - from)) * WIDTH).toFixed(2)
    const width = (view.high - view.low) / view.bins
    let outline = `M${x(view.low)},${HEIGHT}`
    for (let bin = 0; bin < view.bins; bin++) {
      const y = (HEIGHT * (1 - (shares[at * view.bins + bin]! / 255) * Number(path.dataset.height))).toFixed(2)
      outline += `L${x(view.low + bin * width)},${y}L${x(view.low + (bin + 1) * width)},${y}`
    }
    path.setAttribute('d', `${outline}L${x(view.high)},${HEIGHT}`)
    const own = view.steps[at]!
    const numbers = [
      `${Number((100 * view.atMostZero[at]!).toPrecision(4))} % ≤ 0`,
      ...(variance?.has(own) && variance.isThere(view.series, own)
        ? [`variance ${short(variance.at(view.series, own))}`]
        : []),
      ...(view.lost[at]! > 0 ? [`${view.lost[at]} NaN or ∞`] : []),
      ...(trial.view.steps[own] === step ? [] : [`at step ${trial.view.steps[own]}`]),
    ]
    said.push(`${who === '' ? '' : `${who}: `}${numbers.join(', ')}`)
  }
  title.textContent = said.slice(0, MAX_SAID).join('; ') + (said.length > MAX_SAID ? '; …' : '')
  svg.setAttribute('aria-label', `The distribution of ${shown(name)}: ${said.join('; ')}`)
}

const MAX_SAID = 4
const COLUMNS = 4

/** All panels in one picture, with their names. */
function together(panels: readonly Panel[], text: string): SVGSVGElement {
  const columns = Math.min(COLUMNS, panels.length)
  const [width, height] = [WIDTH + 24, HEIGHT + 66]
  const rows = Math.ceil(panels.length / columns)
  const whole = svgElement('svg', {
    viewBox: `0 0 ${columns * width} ${rows * height + 28}`,
    'font-family': 'sans-serif',
    'font-size': 11,
  })
  whole.append(svgElement('text', { x: 12, y: 18, 'font-size': 14 }, text))
  for (const [i, { name, svg, title }] of panels.entries()) {
    const group = svgElement('g', {
      transform: `translate(${(i % columns) * width + 12} ${Math.floor(i / columns) * height + 62})`,
    })
    group.append(
      svgElement('text', { y: -20, 'font-weight': 'bold' }, shortened(name, 34)),
      svgElement('text', { y: -7 }, shortened(title.textContent ?? '', 44)),
      ...[...svg.childNodes].map(node => node.cloneNode(true)),
    )
    whole.append(group)
  }
  return whole
}
