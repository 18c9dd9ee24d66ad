/** Lines, points and areas, by Observable Plot: its SVG prints, scales and can be saved. */

import * as Plot from '@observablehq/plot'
import { button, h, save } from '../dom.js'
import { csv, short } from '../text.js'
import { savePng, svgText } from './raster.js'

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
  readonly height?: number
  readonly width?: number
  /** A step that is marked. */
  readonly mark?: number
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
  height = 240,
  width: most = 640,
  mark,
}: LineChartOptions): HTMLElement {
  const width = fitting(most)
  const points: Point[] = lines.flatMap(({ name, points }) => points.map(({ x, y }) => ({ line: name, x, y })))
  const isDrawn = ({ y }: Point) => Number.isFinite(y) && (!isLog || y > 0)
  const drawn = points.filter(isDrawn)
  const lost = points.filter(point => !Number.isFinite(point.y))
  const zeros = isLog ? points.filter(({ y }) => y === 0).length : 0
  const svg = Plot.plot({
    width,
    height,
    marginLeft: 76,
    marginTop: 26,
    marginBottom: 40,
    style: { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' },
    x: {
      label: 'step',
      labelOffset: 36,
      tickFormat: 'd',
      ticks: ticksFor(
        points.map(({ x }) => x),
        width / 90,
      ),
    },
    y: { label: yLabel ?? null, type: isLog ? 'log' : 'linear', grid: true, tickFormat: short, ticks: 5, nice: true },
    color: { domain: lines.map(({ name }) => name), range: lines.map(({ color }) => color) },
    marks: [
      ...(mark === undefined ? [] : [Plot.ruleX([mark], { stroke: 'currentColor', strokeOpacity: 0.4 })]),
      ...lines.map(({ name, isDashed }) =>
        Plot.line(
          drawn.filter(({ line }) => line === name),
          { x: 'x', y: 'y', stroke: 'line', strokeWidth: 1.75, ...(isDashed && { strokeDasharray: '5 3' }) },
        ),
      ),
      ...(drawn.length <= 120 ? [Plot.dot(drawn, { x: 'x', y: 'y', fill: 'line', r: 2.2 })] : []),
      // Where a number is none.
      Plot.tickX(lost, { x: 'x', stroke: '#d60093', strokeWidth: 2, strokeOpacity: 0.5 }),
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
  const notes = [
    lost.length > 0 ? `${lost.length} of ${points.length} values are NaN or infinite: the marked steps.` : '',
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

/** The width, at most that of the page, so that texts stay readable on a narrow one. */
export function fitting(width: number): number {
  return Math.max(280, Math.min(width, document.documentElement.clientWidth - 58))
}

/** Steps are whole: no more marks than there are numbers between them. */
function ticksFor(steps: readonly number[], most: number): number {
  const [first, last] = [steps, steps].map((all, i) =>
    all.reduce((a, b) => (i === 0 ? Math.min(a, b) : Math.max(a, b)), all[0] ?? 0),
  )
  return Math.max(1, Math.min(Math.round(most), last! - first!))
}

function legend(lines: readonly Line[]): HTMLElement {
  return h(
    'ul',
    { class: 'legend' },
    ...lines.map(({ name, color, isDashed }) =>
      h('li', {}, h('i', { style: `border-top: 3px ${isDashed ? 'dashed' : 'solid'} ${color}` }), name),
    ),
  )
}

/** The numbers of a chart, to be read, copied and saved. */
function numbersOf(label: string, lines: readonly Line[], svg: Element): HTMLElement {
  const rows = () => [
    ['line', 'step', 'value'],
    ...lines.flatMap(({ name, points }) => points.map(({ x, y }) => [name, x, y] as const)),
  ]
  return actions(label, rows, svg)
}

/** Buttons for what is beside a picture: its numbers as CSV, the picture as a file. */
export function actions(
  label: string,
  rows: () => readonly (readonly (string | number)[])[],
  svg: Element | null,
  more: readonly HTMLElement[] = [],
): HTMLElement {
  const said = h('span', { role: 'status' })
  const copy = async () => {
    await navigator.clipboard.writeText(csv(rows())).then(
      () => (said.textContent = 'copied'),
      () => save('numbers.csv', 'text/csv', csv(rows())),
    )
  }
  return h(
    'p',
    { class: 'actions' },
    button('Copy CSV', () => void copy(), { 'aria-label': `Copy the numbers of: ${label}` }),
    svg &&
      button('SVG', () => save('picture.svg', 'image/svg+xml', svgText(svg)), {
        'aria-label': `Save as SVG: ${label}`,
      }),
    svg && button('PNG', () => void savePng(svg, 'picture.png'), { 'aria-label': `Save as PNG: ${label}` }),
    ...more,
    said,
  )
}

/** Tells those who don't see a picture what it shows. */
export function describe(svg: Element, label: string): void {
  svg.setAttribute('role', 'img')
  svg.setAttribute('aria-label', label)
}

/** A finding on a timeline. */
export interface TimelinePoint {
  readonly step: number
  readonly row: string
  readonly isCause: boolean
  readonly text: string
}

export function timeline(points: readonly TimelinePoint[], steps: readonly number[], label: string): HTMLElement {
  const width = fitting(960)
  const rows = [...new Set(points.map(({ row }) => row))]
  const svg = Plot.plot({
    width,
    height: 62 + rows.length * 24,
    marginLeft: Math.min(210, 20 + 7 * Math.max(...rows.map(row => row.length))),
    marginBottom: 40,
    style: { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' },
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
  return h('figure', {}, svg as unknown as HTMLElement)
}

function wrapped(text: string): string {
  return text.replace(/(.{40,60}?) /g, '$1\n')
}
