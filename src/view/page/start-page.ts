/** The list of a server's trials: it can be searched and sorted, and two trials can be compared. */

import { button, h, svgElement } from './dom.js'
import { breakable } from './names.js'
import { lineChart, NOT_FINITE } from './pictures/charts.js'
import { isDashed, lineColor } from './pictures/colors.js'
import { counted, even, shown } from './text.js'
import type { LiveData } from './trials.js'

/** A trial in the server's list. */
interface Listed {
  readonly id: string
  readonly path: string
  readonly state: 'opening' | 'failed' | 'running' | 'ended'
  readonly error: string | null
  readonly steps?: number
  readonly lastStep?: number | null
  readonly tensors?: number
  readonly workers?: readonly string[]
  readonly findings?: number | null
  readonly judged?: { readonly state: string; readonly steps: number } | null
  /** The first loss, by mode. */
  readonly loss?: {
    readonly tensor: string
    readonly lines: readonly {
      readonly mode: string
      readonly steps: readonly number[]
      /** Values; NaN and infinities are texts. */
      readonly values: readonly (number | string)[]
    }[]
  } | null
  /** The time of the last change. */
  readonly changed?: string | null
  readonly cause?: { readonly rule: string; readonly step: number; readonly message: string } | null
}

const POLL_MS = 1000
const STATES = { opening: 'opening …', failed: 'can’t be read', running: 'running', ended: 'ended' } as const

/** The columns, each with its key for sorting. */
const COLUMNS = [
  ['Trial', ({ id }: Listed) => id],
  ['State', ({ state }: Listed) => state],
  ['Loss', (trial: Listed) => lossOf(trial)?.values.at(-1) ?? Number.POSITIVE_INFINITY],
  ['Last change', ({ changed }: Listed) => (changed ? -Date.parse(changed) : 0)],
  ['Steps', ({ steps }: Listed) => steps ?? -1],
  ['Last step', ({ lastStep }: Listed) => lastStep ?? -1],
  ['Tensors', ({ tensors }: Listed) => tensors ?? -1],
  ['Findings', ({ findings }: Listed) => findings ?? -1],
  ['What the rules say first', ({ cause }: Listed) => cause?.rule ?? ''],
] as const

/** The columns that are aligned at their last digits. */
const NUMBERS: ReadonlySet<string> = new Set(['Steps', 'Last step', 'Tensors', 'Findings'])

/** The loss of training; of a trial without modes its only one. */
function lossOf({ loss }: Listed) {
  const line = loss?.lines.find(({ mode }) => mode === 'TRAIN') ?? loss?.lines[0]
  if (line === undefined) return null
  const name = line.mode === 'GLOBAL' ? loss!.tensor : `${loss!.tensor} ${line.mode}`
  return { name: shown(name), steps: line.steps, values: line.values.map(Number) }
}

/** The part of a path before the trial's name, with its slash. */
function rootOf({ path }: Listed): string {
  return path.replace(/[^/\\]+[/\\]*$/, '')
}

const [SPARK_WIDTH, SPARK_HEIGHT] = [120, 28]

/** The course of a loss, small, its last value and its name. */
function sparkline(trial: Listed): (HTMLElement | string)[] {
  const line = lossOf(trial)
  if (line === null) return [trial.state === 'failed' || trial.changed ? '' : '…']
  const finite = line.values.filter(Number.isFinite)
  const [least, most] = [Math.min(...finite), Math.max(...finite)]
  const [from, to] = [line.steps[0]!, line.steps.at(-1)!]
  const x = (step: number) => (2 + ((step - from) / Math.max(1, to - from)) * (SPARK_WIDTH - 4)).toFixed(1)
  const y = (value: number) =>
    (SPARK_HEIGHT - 2 - ((value - least) / (most - least || 1)) * (SPARK_HEIGHT - 4)).toFixed(1)
  let isDown = false
  const path = line.values
    .map((value, i) => {
      if (!Number.isFinite(value)) {
        isDown = false
        return ''
      }
      const move = `${isDown ? 'L' : 'M'}${x(line.steps[i]!)},${y(value)}${isDown ? '' : 'h0'}`
      isDown = true
      return move
    })
    .join('')
  const svg = svgElement('svg', {
    viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`,
    width: SPARK_WIDTH,
    height: SPARK_HEIGHT,
    role: 'img',
    'aria-label': `${line.name} from ${even(line.values[0]!)} to ${even(line.values.at(-1)!)}`,
  })
  const lost = line.steps.filter((_, i) => !Number.isFinite(line.values[i]!))
  const ticks = lost.map(step => `M${x(step)},${SPARK_HEIGHT - 1}v-6`).join('')
  // A round end makes a single point visible.
  svg.append(
    svgElement('path', { d: ticks, stroke: NOT_FINITE, 'stroke-width': 2 }),
    svgElement('path', {
      d: path,
      fill: 'none',
      stroke: lineColor(0),
      'stroke-width': finite.length > 1 ? 1.5 : 4,
      'stroke-linecap': 'round',
    }),
  )
  return [
    h('span', { class: 'spark' }, svg as unknown as HTMLElement, h('span', {}, even(line.values.at(-1)!))),
    h('div', { class: 'muted', title: line.name }, line.name),
  ]
}

/** The time since, as `3 min ago`. */
function agoText(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000)
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ] as const
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit} ago`
}

/** The first cause, or the progress of the rules. */
function verdictOf({ error, cause, judged, state }: Listed): HTMLElement | string {
  if (error !== null) return h('span', { class: 'found' }, shown(error))
  if (cause) {
    return h(
      'span',
      {},
      h('span', { class: 'cause' }, `${shown(cause.rule)} at step ${cause.step}`),
      h('div', { class: 'muted' }, shown(cause.message)),
    )
  }
  if (state === 'opening' || !judged) return h('span', { class: 'muted' }, state === 'failed' ? '' : '…')
  if (judged.state !== 'done') return h('span', { class: 'muted' }, 'not judged yet')
  return h('span', { class: 'fine' }, `nothing found${state === 'ended' ? '' : ' so far'}`)
}

/** The losses of the chosen trials in one chart. @param label what it shows */
function lossChart(chosen: readonly Listed[], label: string): HTMLElement {
  const lines = chosen.flatMap((trial, i) =>
    (trial.loss?.lines ?? []).map(({ mode, steps, values }) => ({
      name: trial.loss!.lines.length > 1 ? `${shown(trial.id)} ${mode}` : shown(trial.id),
      color: lineColor(i),
      isDashed: isDashed(mode),
      points: steps.map((x, at) => ({ x, y: Number(values[at]) })),
    })),
  )
  return lines.length === 0
    ? h('p', { class: 'muted' }, 'No loss of these has been read yet.')
    : lineChart({ label, lines, width: 2200, height: 220 })
}

export async function startPage({ version }: LiveData): Promise<void> {
  const report = document.getElementById('report')!
  let trials: readonly Listed[] = []
  let isDrawn = false
  let sorted = { column: 0, isDown: false }
  const chosen = new Set<string>()
  const search = h('input', { type: 'search', placeholder: 'any text', oninput: () => draw() })
  const compare = button('Compare', () => {
    const [a, b] = chosen
    location.href = `/compare/${encodeURIComponent(a!)}/${encodeURIComponent(b!)}`
  })
  const clear = button('Clear', () => {
    chosen.clear()
    draw()
  })
  const body = h('tbody', {})
  const said = h('p', { class: 'muted', role: 'status' })
  /** Lies over the end of the window, so that the list stays where it is. */
  const losses = h('div', { class: 'losses' })
  const heading = h('h4', {})
  const chart = h('div', {})
  // What has been made once keeps the focus while the chart is drawn again.
  const card = h('div', { class: 'card' }, h('div', { class: 'controls' }, heading, compare, clear), chart)
  const heads = COLUMNS.map(([text], i) => {
    const sort = button(text, () => {
      sorted = { column: i, isDown: sorted.column === i && !sorted.isDown }
      draw()
    })
    return h('th', { scope: 'col', class: NUMBERS.has(text) ? 'number' : '' }, sort)
  })
  const table = h(
    'div',
    { class: 'wide' },
    h('table', { class: 'trials stacked' }, h('thead', {}, h('tr', {}, ...heads)), body),
  )
  /** True if the trials lie in several places, which are told. */
  let hasRoots = false
  const draw = () => {
    const wanted = search.value.toLowerCase()
    const matches = trials.filter(trial =>
      `${trial.id} ${trial.path} ${trial.cause?.rule ?? ''}`.toLowerCase().includes(wanted),
    )
    const [, key] = COLUMNS[sorted.column]!
    const sign = sorted.isDown ? -1 : 1
    const inOrder = [...matches].sort((a, b) => {
      const [x, y] = [key(a), key(b)]
      return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)))
    })
    for (const [i, head] of heads.entries()) {
      if (i === sorted.column) head.setAttribute('aria-sort', sorted.isDown ? 'descending' : 'ascending')
      else head.removeAttribute('aria-sort')
    }
    const shownRows = inOrder.map(rowOf)
    // Unchanged rows stay in place and keep the focus.
    if (shownRows.some((element, i) => body.children[i] !== element) || body.childElementCount !== shownRows.length)
      body.replaceChildren(...shownRows)
    said.textContent =
      trials.length === 0
        ? 'There are no trials yet. They appear here once a training has begun.'
        : matches.length === 0
          ? `None of ${counted(trials.length, 'trial')} has this text in its name, its path or its first cause.`
          : `${counted(matches.length, 'trial')}${matches.length < trials.length ? ` of ${trials.length}` : ''}. Choose some to see their losses together, two to compare them.`
    table.hidden = matches.length === 0
    const together = trials.filter(({ id }) => chosen.has(id))
    if (together.length === 0) card.remove()
    else {
      heading.textContent = `The losses of ${counted(together.length, 'trial')} over the steps.`
      chart.replaceChildren(lossChart(together, heading.textContent))
      if (!losses.contains(card)) losses.append(card)
    }
    compare.disabled = chosen.size !== 2
  }
  const choose = (id: string, isChosen: boolean) => {
    if (isChosen) chosen.add(id)
    else chosen.delete(id)
    draw()
  }
  const row = (trial: Listed): HTMLElement => {
    const { id, path, state, changed, steps, lastStep, tensors, findings } = trial
    const unknown = state === 'failed' ? '' : '…'
    const number = (name: string, value: number | null | undefined) =>
      h('td', { class: 'number', 'data-name': name }, value == null ? unknown : String(value))
    return h(
      'tr',
      {},
      h(
        'td',
        {},
        h('input', {
          type: 'checkbox',
          checked: chosen.has(id),
          'aria-label': `Compare ${shown(id)}`,
          onchange: event => choose(id, (event.target as HTMLInputElement).checked),
        }),
        h('a', { href: `/trials/${encodeURIComponent(id)}`, title: shown(path) }, shown(id)),
        hasRoots ? h('div', { class: 'muted' }, ...breakable(shown(rootOf(trial)))) : null,
      ),
      h('td', { class: state === 'failed' ? 'found' : '' }, STATES[state]),
      h('td', { class: 'loss' }, ...sparkline(trial)),
      h(
        'td',
        {},
        changed ? h('time', { datetime: changed, title: changed }, agoText(changed)) : trial.loss ? '' : unknown,
      ),
      number('steps', steps),
      number('last step', lastStep),
      number('tensors', tensors),
      number('findings', trial.judged?.state === 'done' || findings ? findings : null),
      h('td', {}, verdictOf(trial)),
    )
  }
  /** The last drawn rows by trial: few of many trials change between two looks. */
  const rows = new Map<string, { readonly text: string; readonly element: HTMLElement }>()
  const rowOf = (trial: Listed): HTMLElement => {
    const age = trial.changed ? agoText(trial.changed) : ''
    const text = JSON.stringify([trial, age, chosen.has(trial.id), hasRoots])
    const known = rows.get(trial.id)
    if (known?.text === text) return known.element
    const element = row(trial)
    rows.set(trial.id, { text, element })
    return element
  }
  const load = async () => {
    try {
      const response = await fetch('/api/trials')
      const text = await response.text()
      if (!response.ok) throw new Error(text)
      const now = JSON.parse(text) as readonly Listed[]
      // An unchanged list is not drawn again, because the reader may be using it.
      if (!isDrawn || JSON.stringify(now) !== JSON.stringify(trials)) {
        trials = now
        hasRoots = new Set(trials.map(rootOf)).size > 1
        isDrawn = true
        draw()
      }
    } catch (error) {
      said.textContent = `The server does not answer: ${shown(String(error))}`
    }
    setTimeout(() => void load(), POLL_MS)
  }
  await load()
  report.append(
    h('header', {}, h('h1', {}, 'Trials')),
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      h('label', { class: 'choice wide' }, h('span', {}, 'Search'), search),
    ),
    said,
    table,
    losses,
    h(
      'footer',
      {},
      `trialscan ${version} `,
      h('a', { href: '/api/openapi.json' }, 'API'),
      ' ',
      h('a', { href: '/assets/licenses.txt' }, 'Licences'),
    ),
  )
  report.removeAttribute('aria-busy')
}
