/** Histograms of tensors at their steps: a panel for each tensor, a frame for each step. */

import { UsageError } from '../../base/errors.js'
import type { Distribution } from '../../core/statistics/distribution.js'
import { edgesAround, finiteOf, rangeOf } from '../ridges.js'
import { evenly } from '../thinning.js'
import { Canvas, COLOR, gifOf, LETTER_HEIGHT, LETTER_WIDTH } from './canvas.js'

/** The distributions of one trial: by tensor, then by step. */
export type Distributions = ReadonlyMap<string, ReadonlyMap<number, Distribution>>

export interface PictureOptions {
  readonly title: string
  /** The names of two trials. */
  readonly labels: readonly [string, string]
  readonly bins: number
  /** Milliseconds per step. */
  readonly delay: number
}

export type PictureKind = 'gif' | 'html'

const [PANEL_WIDTH, PANEL_HEIGHT, GAP] = [420, 210, 16]
const BARS_HEIGHT = 120
/** The limits of a picture: more panels or frames are too many to look at. */
const [MAX_PANELS, MAX_FRAMES] = [30, 100]

/** The kind of picture by the ending of its file's name; null for any other ending. */
export function pictureKind(out: string): PictureKind | null {
  const ending = /\.(gif|html?)$/i.exec(out)?.[1]?.toLowerCase()
  return ending === undefined ? null : ending === 'gif' ? 'gif' : 'html'
}

/** Draws the histograms of one trial or two. @throws UsageError if nothing can be drawn */
export function histogramPicture(
  trials: readonly Distributions[],
  kind: PictureKind,
  options: PictureOptions,
): Uint8Array {
  const names = [...new Set(trials.flatMap(trial => [...trial.keys()]))]
  const steps = [...new Set(trials.flatMap(trial => [...trial.values()].flatMap(bySteps => [...bySteps.keys()])))]
  if (steps.length === 0) throw new UsageError('histograms: expected tensors with values, got none')
  steps.sort((a, b) => a - b)
  const shown = evenly(steps, MAX_FRAMES)
  const panels = names.slice(0, MAX_PANELS).map(name => panelOf(name, trials, options.bins))
  const overLimits = [
    names.length > panels.length ? `the first ${panels.length} of ${names.length} tensors` : '',
    steps.length > shown.length ? `${shown.length} of ${steps.length} steps` : '',
  ].filter(text => text !== '')
  const frames = shown.map(step => frameOf(step, panels, trials.length, overLimits.join(', '), options))
  return kind === 'gif' ? gifOf(frames, options.delay) : pageOf(frames, shown, options)
}

interface Bars {
  readonly counts: readonly number[]
  /** Elements that are NaN or infinite, or outside of the axis. */
  readonly lost: number
}

interface Panel {
  readonly name: string
  readonly low: number
  readonly high: number
  /** The highest bar of all steps. */
  readonly most: number
  /** Bars by trial, then by step. */
  readonly bars: readonly ReadonlyMap<number, Bars>[]
}

/** The panel of a tensor. One axis serves all steps and trials; one element in a thousand at each end may lie outside of it. */
function panelOf(name: string, trials: readonly Distributions[], bins: number): Panel {
  const distributions = trials.map(trial =>
    [...(trial.get(name) ?? [])].map(([step, all]) => ({ step, all, ...finiteOf(all) })),
  )
  const ranges = distributions.flatMap(steps =>
    steps.filter(({ distribution }) => distribution.count > 0).map(({ distribution }) => rangeOf(distribution)),
  )
  const edges = edgesAround(Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high)), bins)
  const bars = distributions.map(
    steps =>
      new Map(
        steps.map(({ step, all, distribution }) => {
          const counts = distribution.count > 0 ? distribution.histogram(edges).counts : []
          return [step, { counts, lost: all.count - counts.reduce((sum, count) => sum + count, 0) }]
        }),
      ),
  )
  const most = Math.max(1, ...bars.flatMap(steps => [...steps.values()].flatMap(({ counts }) => counts)))
  return { name, low: edges[0]!, high: edges.at(-1)!, most, bars }
}

function frameOf(
  step: number,
  panels: readonly Panel[],
  trials: number,
  left: string,
  options: PictureOptions,
): Canvas {
  const columns = Math.min(panels.length, Math.max(1, Math.ceil(Math.sqrt(panels.length / 2))))
  const line = LETTER_HEIGHT + 6
  const text = [options.title, `step ${step}`, left].filter(part => part !== '')
  const top = 2 * GAP + (text.length + (trials > 1 ? 1 : 0)) * line
  const width = GAP + columns * (PANEL_WIDTH + GAP)
  const canvas = new Canvas(width, top + Math.ceil(panels.length / columns) * (PANEL_HEIGHT + GAP))
  const room = Math.floor((width - 2 * GAP) / LETTER_WIDTH)
  for (const [i, part] of text.entries()) canvas.text(GAP, GAP + i * line, shortened(part, room))
  if (trials > 1) {
    const y = GAP + text.length * line
    const most = Math.floor(room / 2) - 3
    let x = GAP
    for (const [i, color] of [COLOR.first, COLOR.second].entries()) {
      const label = shortened(options.labels[i]!, Math.max(most, room - 6 - [...options.labels[1 - i]!].length))
      canvas.rect(x, y, LETTER_HEIGHT - 2, LETTER_HEIGHT - 2, color)
      canvas.text(x + 2 * LETTER_WIDTH, y, label)
      x += ([...label].length + 3) * LETTER_WIDTH
    }
  }
  for (const [i, panel] of panels.entries()) {
    const x = GAP + (i % columns) * (PANEL_WIDTH + GAP)
    drawPanel(canvas, x, top + Math.floor(i / columns) * (PANEL_HEIGHT + GAP), panel, step)
  }
  return canvas
}

function drawPanel(canvas: Canvas, x: number, y: number, { name, low, high, most, bars }: Panel, step: number): void {
  const letters = Math.floor(PANEL_WIDTH / LETTER_WIDTH)
  const bottom = y + LETTER_HEIGHT * 2 + 12 + BARS_HEIGHT
  const under = [bottom + 6, bottom + 10 + LETTER_HEIGHT] as const
  const barsAtStep = bars.map(steps => steps.get(step))
  canvas.text(x, y, shortened(name, letters))
  canvas.text(x, y + LETTER_HEIGHT + 4, `${most}`)
  canvas.rect(x, bottom - BARS_HEIGHT, PANEL_WIDTH, 1, COLOR.line)
  const bins = Math.max(...barsAtStep.map(bars => bars?.counts.length ?? 0))
  for (let bin = 0; bin < bins; bin++) {
    const [from, to] = [bin, bin + 1].map(edge => Math.floor((edge * PANEL_WIDTH) / bins)) as [number, number]
    const heights = barsAtStep.map(bars => barHeight(bars?.counts[bin] ?? 0, most))
    const [first = 0, second = 0] = heights
    for (const [i, height] of heights.entries()) {
      canvas.rect(x + from, bottom - height, to - from - 1, height, i === 0 ? COLOR.first : COLOR.second)
    }
    const both = Math.min(first, second)
    canvas.rect(x + from, bottom - both, to - from - 1, both, COLOR.both)
  }
  canvas.rect(x, bottom, PANEL_WIDTH, 2, COLOR.ink)
  const [least, greatest] = [shortText(low), shortText(high)]
  canvas.text(x, under[0], least)
  canvas.text(x + PANEL_WIDTH - greatest.length * LETTER_WIDTH, under[0], greatest)
  const lost = barsAtStep.reduce((sum, bars) => sum + (bars?.lost ?? 0), 0)
  const note = barsAtStep.every(bars => bars === undefined)
    ? 'no values at this step'
    : lost > 0
      ? `${lost} not shown: NaN, infinite, far`
      : ''
  canvas.text(x, under[1], shortened(note, letters))
}

/** The pixels of a bar: at least one for one element. */
function barHeight(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(1, Math.round((count / most) * BARS_HEIGHT))
}

function shortText(number: number): string {
  return String(Number(number.toPrecision(4)))
}

/** A text shortened in its middle to fit the room. */
function shortened(text: string, room: number): string {
  const letters = [...text]
  if (letters.length <= room) return text
  const head = Math.floor((room - 2) / 2)
  return `${letters.slice(0, head).join('')}..${letters.slice(letters.length - (room - 2 - head)).join('')}`
}

/** A page that shows a step at a time, and plays them. */
function pageOf(frames: readonly Canvas[], steps: readonly number[], { title, delay }: PictureOptions): Uint8Array {
  const pictures = frames.map(frame => Buffer.from(gifOf([frame], 0)).toString('base64'))
  const name = (title || 'Histograms').replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return Buffer.from(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name}</title>
<style>body { font: 16px sans-serif; margin: 16px; color: #282828; background: white } img { max-width: 100%; display: block } input { width: 20em }</style>
<p><button id="play">Play</button> <label>Step <input id="at" type="range" min="0" max="${frames.length - 1}" value="0"> <output id="step"></output></label></p>
<img id="picture" alt="Histograms of tensors at one step">
<script>
const pictures = ${JSON.stringify(pictures)}, steps = ${JSON.stringify(steps)}
const [play, at, step, picture] = ['play', 'at', 'step', 'picture'].map(id => document.getElementById(id))
let timer
const show = () => {
  step.value = steps[at.value]
  picture.src = 'data:image/gif;base64,' + pictures[at.value]
}
at.oninput = show
play.onclick = () => {
  play.textContent = timer ? 'Play' : 'Stop'
  timer = timer ? clearInterval(timer) : setInterval(() => { at.value = (+at.value + 1) % steps.length; show() }, ${delay})
}
show()
</script>
</html>
`)
}
