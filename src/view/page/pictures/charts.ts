/** Lines, points and areas, by Observable Plot: its SVG prints, scales and can be saved. */

import * as Plot from '@observablehq/plot'
import { button, h, save } from '../dom.js'
import { moment } from '../moment.js'
import { csv, short } from '../text.js'
import { fileName, type LegendLine, savePng, svgText } from './raster.js'

/** A line of a chart. */
export interface Line {
  readonly name: string
  readonly color: string
  readonly isDashed?: boolean
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

export interface LineChartOptions {
  /** A description of the picture for screen readers. */
  readonly label: string
  readonly lines: readonly Line[]
  readonly isLog?: boolean
  readonly yLabel?: string
  /** True if the y axis begins at 0. */
  readonly fromZero?: boolean
  readonly height?: number
  readonly width?: number
  /** Steps that are marked, each with a text above. */
  readonly marks?: readonly { readonly x: number; readonly text: string }[]
  /** Points that stand out. */
  readonly rings?: readonly { readonly x: number; readonly y: number }[]
}

interface Point {
  readonly line: string
  readonly x: number
  readonly y: number
}

export function lineChart({
  label,
  lines,
  isLog = false,
  yLabel,
  fromZero = false,
  height = 240,
  width: most = 640,
  marks = [],
  rings = [],
}: LineChartOptions): HTMLElement {
  const width = fitting(most)
  const points: Point[] = lines.flatMap(({ name, points }) => points.map(({ x, y }) => ({ line: name, x, y })))
  const isDrawn = ({ y }: Point) => Number.isFinite(y) && (!isLog || y > 0)
  const drawn = points.filter(isDrawn)
  const lost = points.filter(point => !Number.isFinite(point.y))
  const [from, to] = extentOf(points.map(({ x }) => x))
  const texts = placedTexts(marks, x => ((x - from) / Math.max(1, to - from)) * (width - 96), width - 96)
  // Whole numbers have no marks between them.
  const isWhole = points.every(({ y }) => Number.isInteger(y))
  const ticks =
    isWhole && !isLog ? ticksFor(fromZero ? [0, ...points.map(({ y }) => y)] : points.map(({ y }) => y), 5) : 5
  const zeros = isLog ? points.filter(({ y }) => y === 0).length : 0
  const svg = Plot.plot({
    width,
    height,
    marginLeft: 76,
    marginTop: 26 + (texts.length > 0 ? ROW * (1 + Math.max(...texts.map(({ row }) => row))) : 0),
    marginBottom: 40,
    style: STYLE,
    x: {
      label: 'step',
      labelOffset: 36,
      tickFormat: 'd',
      domain: [from, to],
      ticks: ticksFor(
        points.map(({ x }) => x),
        width / 90,
      ),
    },
    y: {
      label: yLabel ?? null,
      type: isLog ? 'log' : 'linear',
      grid: true,
      tickFormat: short,
      ticks,
      nice: true,
      zero: fromZero,
    },
    color: { domain: lines.map(({ name }) => name), range: lines.map(({ color }) => color) },
    marks: [
      ...(lost.length > 0
        ? [
            Plot.rect(bandsOf(lines), { x1: 'x1', x2: 'x2', fill: NOT_FINITE, fillOpacity: 0.14 }),
            Plot.tickX(lost, { x: 'x', stroke: NOT_FINITE, strokeOpacity: 0.5 }),
          ]
        : []),
      Plot.ruleX(marks, { x: 'x', stroke: 'var(--bad)', strokeDasharray: '2 3' }),
      ...texts.map(({ x, text, row, isLeft }) =>
        Plot.text([text], {
          x: [x],
          frameAnchor: 'top',
          dy: -13 - ROW * row,
          dx: isLeft ? 4 : -4,
          textAnchor: isLeft ? 'end' : 'start',
          fill: 'var(--bad)',
        }),
      ),
      ...lines.map(({ name, isDashed }) =>
        Plot.line(
          drawn.filter(({ line }) => line === name),
          { x: 'x', y: 'y', stroke: 'line', strokeWidth: 1.75, ...(isDashed && { strokeDasharray: '5 3' }) },
        ),
      ),
      ...(drawn.length <= 120 ? [Plot.dot(drawn, { x: 'x', y: 'y', fill: 'line', r: 2.2 })] : []),
      Plot.dot(rings, { x: 'x', y: 'y', r: 5, stroke: 'currentColor', strokeWidth: 1.5 }),
      Plot.tip(
        drawn,
        Plot.pointer({
          x: 'x',
          y: 'y',
          stroke: 'line',
          title: ({ line, x, y }: Point) => `${line}\nstep ${x}: ${short(y)}`,
        }),
      ),
    ],
  })
  describe(svg, label)
  followMoment(svg, [...new Set(points.map(({ x }) => x))])
  const notes = [
    lost.length > 0 ? `${lost.length} of ${points.length} values are NaN or infinite, where it is coloured.` : '',
    zeros > 0 ? `${zeros} values are exactly 0, which a logarithmic axis has no place for.` : '',
  ].filter(note => note !== '')
  return h(
    'figure',
    {},
    svg as unknown as HTMLElement,
    lines.length > 1 ? legend(lines) : null,
    notes.length > 0 ? h('p', { class: 'note' }, notes.join(' ')) : null,
    numbersOf(label, lines, svg),
  )
}

/** The width of the widest page, and the least width of a column, as in style.css. */
const PAGE_WIDTH = 2200
const COLUMN_WIDTH = 440
const GAP = 24
/** The width around a picture in a card. */
const CARD = 36

function pageWidth(): number {
  return Math.min(PAGE_WIDTH, document.documentElement.clientWidth) - 2 * GAP
}

/** The width, at most that of the page, so that texts stay readable on a narrow one. */
export function fitting(width: number): number {
  return Math.max(280, Math.min(width, pageWidth() - CARD))
}

/** The grid in which pictures lie side by side, as many as there is room for. @returns the width of a picture */
export function columnsFor(count: number): { readonly column: number; readonly picture: number } {
  const columns = Math.max(1, Math.min(count, Math.floor((pageWidth() + GAP) / (COLUMN_WIDTH + GAP))))
  const column = Math.floor((pageWidth() - GAP * (columns - 1)) / columns)
  return { column, picture: fitting(column - CARD) }
}

/** The width of one of two columns or, on a narrow page, of the page. */
export function halfWidth(): number {
  return columnsFor(2).picture
}

/** The height of a line of text. */
const ROW = 14
const MAX_ROWS = 4
/** The approximate width of a letter. */
const LETTER = 6.4
export const NOT_FINITE = '#d60093'
export const STYLE = { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' }

function extentOf(steps: readonly number[]): readonly [from: number, to: number] {
  const from = steps.reduce((a, b) => Math.min(a, b), steps[0] ?? 0)
  return [from, steps.reduce((a, b) => Math.max(a, b), from)]
}

/** Texts above a picture, in rows where none overlap; those without room are left out. */
function placedTexts(
  marks: readonly { readonly x: number; readonly text: string }[],
  pixel: (x: number) => number,
  width: number,
): { readonly x: number; readonly text: string; readonly row: number; readonly isLeft: boolean }[] {
  const taken: (readonly [from: number, to: number])[][] = []
  return marks.flatMap(({ x, text: whole }) => {
    const room = Math.max(width + 20 - pixel(x), pixel(x))
    const [first, ...more] = whole.split(', ')
    const isLong = more.length > 0 && LETTER * whole.length + 8 > room
    const text = isLong ? `${first} and ${more.length} more` : whole
    const size = LETTER * text.length + 8
    const isLeft = pixel(x) + size > width + 20 && pixel(x) > size
    const [from, to] = isLeft ? [pixel(x) - size, pixel(x)] : [pixel(x), pixel(x) + size]
    for (let row = 0; row < MAX_ROWS; row++) {
      taken[row] ??= []
      if (taken[row]!.some(([a, b]) => from < b && a < to)) continue
      taken[row]!.push([from, to])
      return [{ x, text, row, isLeft }]
    }
    return []
  })
}

/** The stretches in which a line is not finite, each from its first such step to its last. */
function bandsOf(lines: readonly Line[]): { readonly x1: number; readonly x2: number }[] {
  return lines.flatMap(({ points }) => {
    const bands: { x1: number; x2: number }[] = []
    for (const [i, { x, y }] of points.entries()) {
      if (Number.isFinite(y)) continue
      if (i > 0 && !Number.isFinite(points[i - 1]!.y)) bands.at(-1)!.x2 = x
      else bands.push({ x1: x, x2: x })
    }
    return bands
  })
}

/** Makes a picture over steps choose the step that is pointed at, and mark the chosen one. */
export function followMoment(svg: Element, steps: readonly number[]): void {
  const { scale } = svg as Element & { scale(name: 'x'): { apply(x: number): number; invert(x: number): number } }
  const x = scale('x')
  const { height, width } = (svg as SVGSVGElement).viewBox.baseVal
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'line')
  for (const [name, value] of Object.entries({ class: 'moment', y1: 20, y2: height - 40 })) {
    line.setAttribute(name, String(value))
  }
  const mark = () => {
    const { step } = moment
    line.setAttribute('visibility', step === null || !steps.includes(step) ? 'hidden' : 'visible')
    for (const name of ['x1', 'x2']) line.setAttribute(name, String(step === null ? 0 : x.apply(step)))
  }
  svg.append(line)
  moment.follow(svg, mark)
  mark()
  svg.addEventListener('pointermove', event => {
    const { left, width: shown } = svg.getBoundingClientRect()
    const at = x.invert((((event as PointerEvent).clientX - left) * width) / shown)
    const nearest = steps.reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a), steps[0]!)
    moment.point(nearest)
  })
}

/** The number of ticks: steps are whole numbers, so there are no ticks between them. */
function ticksFor(steps: readonly number[], most: number): number {
  const [first, last] = extentOf(steps)
  return Math.max(1, Math.min(Math.round(most), last - first))
}

/** The legend of lines by their colours. */
export function legend(lines: readonly LegendLine[]): HTMLElement {
  return h(
    'ul',
    { class: 'legend' },
    ...lines.map(({ name, color, isDashed }) =>
      h('li', {}, h('i', { style: `border-top: 3px ${isDashed ? 'dashed' : 'solid'} ${color}` }), name),
    ),
  )
}

/** Buttons that copy the numbers of lines and save their chart. @param svg null: they are not drawn */
export function numbersOf(label: string, lines: readonly Line[], svg: Element | null): HTMLElement {
  const rows = () => [
    ['line', 'step', 'value'],
    ...lines.flatMap(({ name, points }) => points.map(({ x, y }) => [name, x, y] as const)),
  ]
  return actions(label, rows, svg, [], lines.length > 1 ? lines : [])
}

/**
 * Buttons that save a picture: its numbers as CSV, and itself as a file.
 * @param label begins with the picture's title, which names the file
 */
export function actions(
  label: string,
  rows: () => readonly (readonly (string | number)[])[],
  svg: Element | null,
  more: readonly HTMLElement[] = [],
  legend: readonly LegendLine[] = [],
): HTMLElement {
  const said = h('span', { role: 'status' })
  const title = label.replace(/(:|, from|\.) .*$|\.$/, '')
  const name = fileName(title)
  const caption = { title: `${document.title.replace(/ – trialscan$/, '')}: ${title}`, legend }
  const copy = async () => {
    await navigator.clipboard.writeText(csv(rows())).then(
      () => (said.textContent = 'copied'),
      () => save(`${name}.csv`, 'text/csv', csv(rows())),
    )
  }
  return h(
    'p',
    { class: 'actions' },
    button('Copy CSV', () => void copy(), { 'aria-label': `Copy the numbers of: ${label}` }),
    svg &&
      button('SVG', () => save(`${name}.svg`, 'image/svg+xml', svgText(svg, caption)), {
        'aria-label': `Save as SVG: ${label}`,
      }),
    svg && button('PNG', () => void savePng(svg, name, caption), { 'aria-label': `Save as PNG: ${label}` }),
    ...more,
    said,
  )
}

/** Gives a picture a description for screen readers, and keeps its tooltip in the window. */
export function describe(svg: Element, label: string): void {
  svg.setAttribute('role', 'img')
  svg.setAttribute('aria-label', label)
  svg.addEventListener('pointermove', () => requestAnimationFrame(() => moveTip(svg)))
}

function moveTip(svg: Element): void {
  const tip = svg.querySelector<SVGElement>('[aria-label=tip]')
  if (tip === null) return
  tip.style.translate = ''
  const { left, top, right, bottom } = tip.getBoundingClientRect()
  const { clientWidth, clientHeight } = document.documentElement
  const x = Math.max(-left, Math.min(0, clientWidth - right))
  const y = Math.max(-top, Math.min(0, clientHeight - bottom))
  tip.style.translate = `${x}px ${y}px`
}

/** A finding on a timeline. */
export interface TimelinePoint {
  readonly step: number
  readonly row: string
  readonly isCause: boolean
  readonly text: string
}

export function timeline(
  points: readonly TimelinePoint[],
  steps: readonly number[],
  label: string,
  width = fitting(2200),
): HTMLElement {
  const rows = [...new Set(points.map(({ row }) => row))]
  const svg = Plot.plot({
    width,
    height: 62 + rows.length * 24,
    marginLeft: Math.min(210, 20 + 7 * Math.max(...rows.map(row => row.length))),
    marginBottom: 40,
    style: STYLE,
    x: {
      label: 'step',
      labelOffset: 36,
      domain: [steps[0] ?? 0, Math.max(steps.at(-1) ?? 0, (steps[0] ?? 0) + 1)],
      tickFormat: 'd',
      ticks: ticksFor(steps, width / 110),
    },
    y: { label: null, domain: rows },
    marks: [
      Plot.ruleY(rows, { stroke: 'currentColor', strokeOpacity: 0.12 }),
      Plot.dot(
        points.filter(({ isCause }) => !isCause),
        { x: 'step', y: 'row', r: 3.5, stroke: 'var(--bad)', fill: 'none' },
      ),
      Plot.dot(
        points.filter(({ isCause }) => isCause),
        { x: 'step', y: 'row', r: 4.5, fill: 'var(--bad)' },
      ),
      Plot.tip(points, Plot.pointer({ x: 'step', y: 'row', title: ({ text }: TimelinePoint) => wrapped(text) })),
    ],
  })
  describe(svg, label)
  followMoment(svg, steps)
  return h('figure', {}, svg as unknown as HTMLElement)
}

function wrapped(text: string): string {
  return text.replace(/(.{40,60}?) /g, '$1\n')
}
