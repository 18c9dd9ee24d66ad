/** One tensor: its statistics and its distribution over the steps, of all workers and trials. */

import { MAX_RIDGES, type ShownStatistic } from '../../data.js'
import { button, choice, h } from '../dom.js'
import { badge, breakable, type OpenTensor } from '../names.js'
import { type Line, lineChart, numbersOf } from '../pictures/charts.js'
import { isDashed, modeColor, runColor, workerColor } from '../pictures/colors.js'
import { AXES, axesOf, hasFinite, histogramsOf } from '../pictures/histogram.js'
import { exact, KIND_NAMES, MEANINGS, sentence, short, shown, toldWithout } from '../text.js'
import { firstSteps, type ShownTrial } from '../trials.js'
import { type DistributionChoice, distribution, heightOf } from './distributions/distribution.js'
import { elementsViews } from './elements.js'
import type { View } from './view.js'

/** The largest number of workers whose elements are shown. */
const MAX_WORKERS = 4

/** The choice in the view, kept while other views are shown. */
export interface TensorChoice extends DistributionChoice {
  name: string
  statistic: ShownStatistic
  scale: 'linear' | 'log'
}

export async function tensorView(given: readonly ShownTrial[], chosen: TensorChoice, open: OpenTensor): Promise<View> {
  let trials = given
  const names = [...new Set(trials.flatMap(({ view, inOrder }) => inOrder.map(i => view.tensors[i]!.name)))]
  const { name } = chosen
  const at = names.indexOf(name)
  const chart = h('div', {})
  const about = h('div', {})
  const elements = h('div', {})
  const draw = async () => chart.replaceChildren(await statisticChart(trials, chosen))
  const update = async (newer: readonly ShownTrial[]) => {
    trials = newer
    about.replaceChildren(...trials.map((trial, i) => describe(trial, name, trials.length > 1 ? i : null)))
    await draw()
    // A running animation goes on.
    if (!isSingle(trials, name) && elements.querySelector('.player.on') === null) {
      elements.replaceChildren(...(await distributions(trials, name, chosen)), ...(await elementViews(trials, name)))
    }
  }
  await update(trials)
  const said = h('p', { class: 'muted', role: 'status' })
  /** Opens the tensor of that name, or the first whose name has all the parts. */
  const go = (text: string) => {
    const parts = text.toLowerCase().split(/\s+/)
    const matches = names.filter(candidate => parts.every(part => candidate.toLowerCase().includes(part)))
    const chosenName = names.includes(text) ? text : matches[0]
    if (chosenName === undefined) said.textContent = `No tensor has ${shown(text)} in its name.`
    else if (chosenName !== name) open(chosenName)
  }
  const hasChoice = !isSingle(trials, name)
  const meaning = h('p', { class: 'muted meaning' }, MEANINGS[chosen.statistic] ?? '')
  const options = h('datalist', { id: 'names' }, ...names.map(name => h('option', { value: name })))
  const element = h(
    'section',
    { class: 'tensor' },
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      h(
        'label',
        { class: 'choice wide' },
        h('span', {}, 'Tensor'),
        h('input', {
          type: 'search',
          list: 'names',
          value: name,
          onchange: event => go((event.target as HTMLInputElement).value),
        }),
        options,
      ),
      button('‹ Previous', () => open(names[at - 1]!), { disabled: at <= 0 }),
      button('Next ›', () => open(names[at + 1]!), { disabled: at >= names.length - 1 }),
      hasChoice
        ? choice(
            'Show',
            [...new Set(trials.flatMap(({ statistics }) => statistics))].map(name => [name, name] as const),
            chosen.statistic,
            statistic => {
              chosen.statistic = statistic
              meaning.textContent = MEANINGS[statistic] ?? ''
              void draw()
            },
          )
        : null,
      choice(
        'Scale',
        [
          ['linear', 'Linear'],
          ['log', 'Logarithmic'],
        ],
        chosen.scale,
        scale => {
          chosen.scale = scale
          void draw()
        },
      ),
    ),
    said,
    h('h2', { class: 'name' }, ...breakable(shown(name))),
    about,
    hasChoice ? meaning : null,
    chart,
    elements,
  )
  return { element, update }
}

/** True if the tensor has one element wherever it was saved. */
function isSingle(trials: readonly ShownTrial[], name: string): boolean {
  return trials.every(({ view, tensorOf }) => {
    const tensor = view.tensors[tensorOf.get(name) ?? -1]
    return tensor === undefined || tensor.shape?.every(length => length === 1) === true
  })
}

/** The reductions that are the value itself where there is one element. */
const VALUES: readonly ShownStatistic[] = ['mean', 'sum', 'min', 'max']

function describe(trial: ShownTrial, name: string, place: number | null): HTMLElement {
  const { view } = trial
  const index = trial.tensorOf.get(name)
  if (index === undefined)
    return h('p', { class: 'muted' }, place === null ? null : badge(place), 'not saved in this trial')
  const { kind, dtype, shape } = view.tensors[index]!
  const size = shape === null ? 'shape not known' : shape.length === 0 ? 'scalar' : shape.join(' × ')
  const findings = view.findings.filter(({ tensor }) => tensor === index)
  const rules = [...new Set(findings.map(({ rule }) => rule))]
  return h(
    'p',
    {},
    place === null ? null : badge(place),
    `${KIND_NAMES[kind]!}, ${dtype ?? 'only reductions were saved'}, ${size}. `,
    rules.length > 0
      ? h('span', { class: 'found' }, sentence(`${rules.join(', ')}: ${toldWithout(name, findings[0]!.message)}`))
      : null,
  )
}

async function statisticChart(
  trials: readonly ShownTrial[],
  { name, statistic: chosen, scale }: TensorChoice,
): Promise<HTMLElement> {
  const value = isSingle(trials, name)
    ? VALUES.find(candidate => trials.every(({ statistics }) => statistics.includes(candidate)))
    : undefined
  const [statistic, title] = value === undefined ? [chosen, chosen] : [value, 'value']
  let areExact = true
  const lines: Line[] = []
  for (const [place, trial] of trials.entries()) {
    const { view } = trial
    const column = await trial.column(statistic, { tensor: name })
    const tensor = trial.tensorOf.get(name)
    if (column === null || tensor === undefined) continue
    areExact &&= column.packed.isExact
    for (const series of trial.seriesOf[tensor]!) {
      const worker = view.series[series]!.worker
      // Steps of different modes are not joined by a line.
      for (const mode of new Set(view.mode)) {
        const points = view.steps.flatMap((x, step) =>
          view.mode[step] === mode && column.has(step) && column.isThere(series, step)
            ? [{ x, y: column.at(series, step) }]
            : [],
        )
        if (points.length === 0) continue
        const parts = [
          trials.length > 1 ? 'AB'[place]! : '',
          view.workers.length > 1 ? shown(view.workers[worker]!) : '',
          new Set(view.mode).size > 1 ? view.modes[mode]! : '',
        ].filter(part => part !== '')
        const name = view.modes[mode]!
        const hasWorkers = view.workers.length > 1
        const color = trials.length > 1 ? runColor(place) : hasWorkers ? workerColor(worker) : modeColor(name)
        lines.push({
          name: parts.join(' ') || title,
          color,
          isDashed: (trials.length > 1 || hasWorkers) && isDashed(name),
          points,
        })
      }
    }
  }
  if (lines.length === 0) return h('p', { class: 'muted' }, `There is no ${title} of this tensor.`)
  const ofTensor = `${title} of ${shown(name)}`
  if (lines.every(({ points }) => points.length === 1)) {
    return h(
      'div',
      {},
      h('p', { class: 'values' }, valuesText(title, lines, areExact)),
      numbersOf(ofTensor, lines, null),
    )
  }
  const label = `${ofTensor} over the steps, ${lines.length === 1 ? 'one line' : `${lines.length} lines`}.`
  return lineChart({ label, lines, isLog: scale === 'log', yLabel: title, width: 2200, height: 300 })
}

/** The values of lines of one point: `l2: A 2 at step 0 · B 2 at step 0 · equal l2`. @param areExact false if they were rounded */
function valuesText(title: string, lines: readonly Line[], areExact: boolean): string {
  const points = lines.map(({ points: [point] }) => point!)
  const values = points.map(({ x, y }, i) => {
    const { name } = lines[i]!
    return `${name === title ? '' : `${name} `}${areExact ? exact(y) : short(y)} at step ${x}`
  })
  const areEqual = points.every(({ x, y }) => x === points[0]!.x && Object.is(y, points[0]!.y))
  return `${title}: ${[...values, ...(lines.length > 1 && areEqual && areExact ? [`equal ${title}`] : [])].join(' · ')}`
}

/** The distributions of each trial and worker, and the choice of their axes. */
async function distributions(
  trials: readonly ShownTrial[],
  name: string,
  chosen: TensorChoice,
): Promise<HTMLElement[]> {
  const ridges = (
    await Promise.all(
      trials.map(async (trial, place) =>
        (await trial.ridges(name)).map(ridge => ({ trial, ridge, place: trials.length > 1 ? place : null })),
      ),
    )
  ).flat()
  if (ridges.length === 0) return [h('p', { class: 'muted' }, withoutDistribution(trials, name))]
  const drawn = h('div', { class: trials.length > 1 ? 'distributions pair' : 'distributions' })
  const all = ridges.map(({ ridge }) => histogramsOf(ridge))
  const first = firstSteps(
    ridges.map(({ trial, ridge: { view } }, i) => {
      const finite = view.steps.filter((_, at) => hasFinite(all[i]![at]!))
      return { trial, steps: finite.length > 0 ? finite : view.steps }
    }),
  )
  const most = Math.max(...ridges.map(({ ridge }) => ridge.view.steps.length))
  const draw = () => {
    // One axis and one height for all trials and workers, so that they can be compared.
    const axes = axesOf(all.flat(), chosen.axis)
    const figures = ridges.map(({ trial, ridge: { view }, place }, i) => {
      const { workers, series } = trial.view
      const worker = workers.length > 1 ? workers[series[view.series]!.worker]! : null
      return distribution({
        chosen,
        trial,
        steps: view.steps,
        histograms: all[i]!,
        first: first[i]!,
        height: heightOf(most),
        axes,
        place,
        tensor: name,
        worker,
      })
    })
    drawn.replaceChildren(...figures)
  }
  const set = <K extends keyof DistributionChoice>(key: K, value: DistributionChoice[K]) => {
    const axisChoice: DistributionChoice = chosen
    axisChoice[key] = value
    draw()
  }
  draw()
  return [
    h('h3', {}, 'How its elements are distributed'),
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      most > 1
        ? choice(
            'All steps as',
            [
              ['ridges', 'Ridges'],
              ['heat map', 'Heat map'],
            ],
            chosen.shape,
            shape => set('shape', shape),
          )
        : null,
      most > 1
        ? choice(
            'One step has the range of',
            [
              ['own', 'All steps'],
              ['step', 'That step'],
            ],
            chosen.range,
            range => set('range', range),
          )
        : null,
      choice('Axis', AXES, chosen.axis, axis => set('axis', axis)),
    ),
    drawn,
  ]
}

/** Why there is no distribution of a tensor. */
function withoutDistribution(trials: readonly ShownTrial[], name: string): string {
  const saved = trials.flatMap(({ view, tensorOf }) => view.tensors[tensorOf.get(name) ?? -1] ?? [])
  const dtypes = saved.flatMap(({ dtype }) => dtype ?? [])
  if (dtypes.length === 0)
    return 'Only its reductions were saved: there are no elements whose distribution could be shown.'
  if (dtypes.every(dtype => dtype === 'string')) return 'Its elements are texts, which have no distribution.'
  if (dtypes.every(dtype => dtype.startsWith('complex')))
    return 'Its elements are complex: their distribution is not shown.'
  if (saved.every(({ shape }) => shape?.includes(0))) return 'It has no elements.'
  const isLimited = trials.some(({ source, view }) => !source.embedsAny && view.series.length > MAX_RIDGES)
  return isLimited
    ? `Its distribution is not in this report, which has those of ${MAX_RIDGES} tensors at most: choose fewer when it is made.`
    : 'None of its elements is finite, or none could be read.'
}

/** The elements themselves, of each trial and worker. */
async function elementViews(trials: readonly ShownTrial[], name: string): Promise<HTMLElement[]> {
  const wanted = trials.flatMap((trial, place) => {
    const tensor = trial.tensorOf.get(name)
    return (tensor === undefined ? [] : trial.seriesOf[tensor]!.slice(0, MAX_WORKERS)).map(series => {
      const { workers, series: all } = trial.view
      const worker = workers.length > 1 ? shown(workers[all[series]!.worker]!) : null
      const owner = [trials.length > 1 ? 'AB'[place] : null, worker].filter(part => part != null).join(' ')
      const title = owner === '' ? shown(name) : `${shown(name)} of ${owner}`
      return { trial, series, title, caption: [trials.length > 1 ? badge(place) : null, worker] }
    })
  })
  const views = await elementsViews(wanted)
  return views.length === 0
    ? []
    : [h('h3', {}, 'Its elements'), h('div', { class: trials.length > 1 ? 'distributions pair' : '' }, ...views)]
}
