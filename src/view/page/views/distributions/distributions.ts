/** The distributions of all tensors of a kind as small pictures, which go through the steps together. */

import { KINDS, type Kind } from '../../../../trial/kinds/kinds.js'
import { button, choice, h, nameFilter, svgElement } from '../../dom.js'
import { link, type OpenTensor } from '../../names.js'
import { runColor, workerColor } from '../../pictures/colors.js'
import {
  AXES,
  type Axes,
  axesOf,
  type Histogram,
  hasFinite,
  hasLost,
  histogramsOf,
  type RangeName,
} from '../../pictures/histogram.js'
import { fileName, saveGif, videoButton } from '../../pictures/raster.js'
import { firstShown, lostText, stepper } from '../../stepper.js'
import { counted, KIND_NAMES, shortened, shown } from '../../text.js'
import type { Column, Ridge, ShownTrial } from '../../trials.js'
import type { View } from '../view.js'
import { indexAt, type Outline, PANEL_WIDTH, Panel, type PanelChoice } from './panel.js'

/** The choice in the view, kept while other views are shown. */
export interface DistributionsChoice extends Omit<PanelChoice, 'axes'> {
  kind: Kind
  /** The steps that an axis covers; empty: those at which the first step can be seen. */
  axes: RangeName | ''
  /** The layout of two trials; empty: side by side if there is room. */
  pair: '' | 'beside' | 'over'
  filter: string
}

const MAX_PANELS = 80
const PLAY_MS = 200
/** The width of a page from which on two trials lie side by side. */
const WIDE = 1000

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
  let turns = 0
  const draw = async () => {
    const turn = ++turns
    const { elements, axes } = await grid(trials, chosen, open)
    // The reader may have chosen something else meanwhile.
    if (turn !== turns) return
    parts.replaceChildren(...elements)
    ranges.querySelector('select')!.value = axes
  }
  const set = <K extends keyof DistributionsChoice>(name: K, value: DistributionsChoice[K]) => {
    chosen[name] = value
    void draw()
  }
  const ranges = choice(
    'Values from, to',
    [
      ['own', 'Of all steps'],
      ['step', 'Of each step'],
      ['shared', 'The same for all tensors'],
    ],
    chosen.axes || 'own',
    axes => set('axes', axes),
  )
  await draw()
  const ofPairs =
    trials.length === 1
      ? []
      : [
          choice(
            'A and B',
            [
              ['beside', 'Side by side'],
              ['over', 'Over each other'],
            ],
            layoutOf(chosen),
            pair => set('pair', pair),
          ),
          choice(
            'Axes of A and B',
            [
              ['same', 'The same'],
              ['apart', 'Of each alone'],
            ],
            chosen.scales,
            scales => set('scales', scales),
          ),
        ]
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
        'Steps as',
        [
          ['outlines', 'One after the other'],
          ['ridges', 'Ridges'],
        ],
        chosen.shape,
        shape => set('shape', shape),
      ),
      ranges,
      choice('Axis', AXES, chosen.axis, axis => set('axis', axis)),
      ...ofPairs,
      nameFilter(chosen.filter, text => set('filter', text)),
    ),
    parts,
  )
  const update = async (newer: readonly ShownTrial[]) => {
    trials = newer
    // A running animation goes on: new steps are drawn when it ends.
    if (element.querySelector('.player.on') === null) await draw()
    else parts.addEventListener('stopped', () => void draw(), { once: true })
  }
  return { element, update }
}

/** The numbers of the steps at which a histogram is wanted, ascending. */
function stepsOf(outlines: readonly Outline[], isWanted: (histogram: Histogram) => boolean): readonly number[] {
  const numbers = outlines.flatMap(({ trial, ridge, histograms }) =>
    ridge.view.steps.filter((_, i) => isWanted(histograms[i]!)).map(step => trial.view.steps[step]!),
  )
  return [...new Set(numbers)].sort((a, b) => a - b)
}

/** Trials side by side or over each other. */
function layoutOf({ pair, scales }: DistributionsChoice): 'beside' | 'over' {
  // Two trials over each other share one axis.
  if (scales === 'apart') return 'beside'
  return pair === '' ? (document.documentElement.clientWidth >= WIDE ? 'beside' : 'over') : pair
}

async function grid(
  trials: readonly ShownTrial[],
  chosen: DistributionsChoice,
  open: OpenTensor,
): Promise<{ readonly elements: readonly HTMLElement[]; readonly axes: RangeName }> {
  const { kind, filter } = chosen
  const wanted = filter.toLowerCase()
  const names = [
    ...new Set(
      trials.flatMap(({ view, inOrder }) =>
        inOrder.flatMap(i => (view.tensors[i]!.kind === kind ? [view.tensors[i]!.name] : [])),
      ),
    ),
  ].filter(name => name.toLowerCase().includes(wanted))
  const variances = await Promise.all(
    trials.map(trial => (trial.statistics.includes('variance') ? trial.column('variance', { kind }) : null)),
  )
  const ridges = await Promise.all(
    names.slice(0, MAX_PANELS).map(async name => {
      const outlines = await Promise.all(
        trials.map(async (trial, place) =>
          (await trial.ridges(name)).map(ridge => outlineOf(trial, place, ridge, variances[place]!, trials.length > 1)),
        ),
      )
      return { name, outlines: outlines.flat() }
    }),
  )
  const drawn = ridges.filter(({ outlines }) => outlines.length > 0)
  if (drawn.length === 0) {
    const elements = [h('p', {}, 'There is no distribution of such tensors: choose others.')]
    return { elements, axes: chosen.axes || 'own' }
  }
  const everything = drawn.flatMap(({ outlines }) => outlines.flatMap(({ histograms }) => histograms))
  const isBeside = trials.length > 1 && layoutOf(chosen) === 'beside'
  const range = axesOf(everything, chosen.axis)
  const withLost = hasLost(everything)
  const all = drawn.flatMap(({ outlines }) => outlines)
  const steps = stepsOf(all, () => true)
  const finite = new Set(stepsOf(all, hasFinite))
  const first = firstShown(steps, i => finite.has(steps[i]!))
  const lost = trials.map((_, place) => {
    const outlines = all.filter(outline => outline.place === place)
    const numbers = stepsOf(outlines, () => true)
    const finiteNumbers = new Set(stepsOf(outlines, hasFinite))
    return lostText(numbers, i => finiteNumbers.has(numbers[i]!), 'NaN or infinite', trials.length > 1 ? place : null)
  })
  const isThin = ({ outlines }: (typeof drawn)[number]) => {
    const axes = axesOf(
      outlines.flatMap(({ histograms }) => histograms),
      chosen.axis,
    )
    return outlines.some(outline => isHairline(outline.histograms[indexAt(outline, steps[first]!)], axes))
  }
  const axes = chosen.axes || (2 * drawn.filter(isThin).length >= drawn.length ? 'step' : 'own')
  const panels = drawn.map(({ name, outlines }) => {
    const groups = isBeside ? trials.map((_, place) => outlines.filter(outline => outline.place === place)) : [outlines]
    return new Panel({ name, groups, chosen: { ...chosen, axes }, shared: range, withLost, title: link(name, open) })
  })
  const show = (i: number) => {
    for (const panel of panels) panel.show(steps[i]!)
  }
  const text = (i: number) => {
    const { view } = trials[0]!
    const at = view.steps.indexOf(steps[i]!)
    return `step ${at < 0 ? steps[i] : trials[0]!.stepText(at)}`
  }
  const legend = [...new Map(drawn.flatMap(({ outlines }) => outlines.map(({ who, color }) => [who, color])))]
  const frames = function* () {
    for (const [i, step] of steps.entries()) {
      for (const panel of panels) panel.show(step)
      yield together(panels, `${fileTitle(trials)}: ${KIND_NAMES[kind]!.toLowerCase()}, ${text(i)}`, legend)
    }
  }
  const player = stepper({ steps, text, show, first, ms: PLAY_MS })
  const name = fileName(`distributions of ${kind}`)
  if (steps.length > 1)
    player.append(
      button('GIF', () => void saveGif(frames(), name, PLAY_MS), {
        'aria-label': `Save the distributions of all ${KIND_NAMES[kind]!.toLowerCase()} over the steps as GIF`,
      }),
      videoButton(frames, name, PLAY_MS),
    )
  const { length } = names
  const undrawn = length - drawn.length
  const elements = [
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
    h('p', { class: 'note' }, [scaleText({ ...chosen, axes }, trials.length > 1), ...lost].filter(Boolean).join(' ')),
    h('div', { class: isBeside ? 'panels beside' : 'panels' }, ...panels.map(({ element }) => element)),
    ...(undrawn > 0
      ? [
          h(
            'p',
            { class: 'note' },
            `${drawn.length} of ${counted(length, 'tensor')} are shown: the others have no distribution here, or are more than fit. Search for them by name.`,
          ),
        ]
      : []),
  ]
  return { elements, axes }
}

/** The share of an axis' width below which a distribution is hardly more than a line. */
const HAIRLINE = 0.1

function isHairline(histogram: Histogram | undefined, axes: Axes): boolean {
  // One value is a line on any axis.
  if (histogram === undefined || histogram.shares.filter(share => share > 0).length < 2) return false
  return axes.place(histogram.high) - axes.place(histogram.low) < HAIRLINE
}

function fileTitle(trials: readonly ShownTrial[]): string {
  return trials.map(({ view }) => shown(view.name)).join(' and ')
}

/** A sentence about the axes: which pictures can be compared. */
function scaleText({ axes, scales }: PanelChoice, isPair: boolean): string {
  const range = {
    own: 'One axis and one height for all steps of a tensor',
    step: 'Each step has its own axis and height: shapes can be compared, sizes can’t',
    shared: 'One axis for all tensors, one height for all steps of each',
  }[axes]
  if (!isPair) return `${range}.`
  return `${range}. ${scales === 'same' ? 'A and B share them.' : 'A and B have their own, so that their heights can’t be compared.'}`
}

function outlineOf(trial: ShownTrial, place: number, ridge: Ridge, variance: Column | null, isPair: boolean): Outline {
  const { workers, series } = trial.view
  const { worker } = series[ridge.view.series]!
  const who = [isPair ? 'AB'[place]! : '', workers.length > 1 ? shown(workers[worker]!) : ''].filter(Boolean).join(' ')
  const histograms: readonly Histogram[] = histogramsOf(ridge)
  return {
    trial,
    place,
    ridge,
    histograms,
    variance,
    who,
    color: !isPair && workers.length > 1 ? workerColor(worker) : runColor(place),
  }
}

const COLUMNS = 4

/** All panels in one picture, with their names. */
function together(
  panels: readonly Panel[],
  text: string,
  legend: readonly (readonly [who: string, color: string])[],
): SVGSVGElement {
  const each = panels[0]!.pictures.length
  const columns = Math.min(Math.max(1, Math.floor(COLUMNS / each)), panels.length)
  const [width, height] = [each * (PANEL_WIDTH + 24), panels[0]!.height + 66]
  const rows = Math.ceil(panels.length / columns)
  const whole = svgElement('svg', {
    viewBox: `0 0 ${Math.max(460, columns * width)} ${rows * height + 28}`,
    'font-family': 'sans-serif',
    'font-size': 11,
  })
  whole.append(svgElement('text', { x: 12, y: 18, 'font-size': 14 }, text))
  if (legend.length > 1) {
    for (const [i, [who, color]] of legend.entries()) {
      whole.append(
        svgElement('text', { x: 12 + i * 90, y: 33, fill: color, 'font-weight': 'bold' }, shortened(who, 14)),
      )
    }
  }
  for (const [i, { name, pictures, said }] of panels.entries()) {
    const group = svgElement('g', {
      transform: `translate(${(i % columns) * width + 12} ${Math.floor(i / columns) * height + 66})`,
    })
    group.append(
      svgElement('text', { y: -20, 'font-weight': 'bold' }, shortened(name, 34 * each)),
      svgElement('text', { y: -7 }, shortened(said, 44 * each)),
    )
    for (const [at, svg] of pictures.entries()) {
      const part = svgElement('g', { transform: `translate(${at * (PANEL_WIDTH + 20)} 0)` })
      part.append(...[...svg.childNodes].map(node => node.cloneNode(true)))
      group.append(part)
    }
    whole.append(group)
  }
  return whole
}
