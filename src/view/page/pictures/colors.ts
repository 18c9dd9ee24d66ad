/** Colours that the colour-blind can tell apart: viridis for sizes, purple to orange for signs (ColorBrewer), Okabe and Ito's for the rest. */

import { scale } from '@observablehq/plot'

const SHADES = 256

export type Scheme = 'viridis' | 'PuOr' | keyof typeof OWN_COLORS

/** The colours from A over equal to B, and those of shares that are NaN, up to the magenta that NaN has everywhere. */
const OWN_COLORS = { ratio: ['#00507d', '#f7f7f7', '#a84a00'], lost: ['#f0a3d0', '#d60093'] } as const

const tables = new Map<Scheme, Uint32Array>()

/** 256 colours as the pixels of an image. */
export function shades(scheme: Scheme): Uint32Array {
  let table = tables.get(scheme)
  if (table === undefined) {
    const color =
      scheme === 'viridis' || scheme === 'PuOr'
        ? scale({ color: { type: 'linear', scheme, domain: [0, SHADES - 1] } })
        : scale({ color: { type: 'linear', ...ownRange(OWN_COLORS[scheme]) } })
    table = Uint32Array.from({ length: SHADES }, (_, i) => pixelOf(String(color.apply(i))))
    tables.set(scheme, table)
  }
  return table
}

function ownRange(range: readonly string[]) {
  return { range, domain: range.map((_, i) => (i * (SHADES - 1)) / (range.length - 1)) }
}

function pixelOf(color: string): number {
  const hex = /^#(..)(..)(..)$/
    .exec(color)
    ?.slice(1)
    .map(digits => Number.parseInt(digits, 16))
  const [red = 0, green = 0, blue = 0] = hex ?? color.match(/\d+/g)!.map(Number)
  return pixel(red, green, blue)
}

/** A pixel as ImageData stores it on little-endian machines. */
export function pixel(red: number, green: number, blue: number, alpha = 255): number {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0
}

export function cssOf(pixel: number): string {
  return `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`
}

/** A CSS gradient of the scheme for a legend. */
export function gradientOf(scheme: Scheme): string {
  const stops = Array.from(shades(scheme).filter((_, i) => i % 15 === 0)).map(cssOf)
  return `linear-gradient(to right, ${stops.join(', ')})`
}

/** The colours of lines on a light ground; style.css has those on a dark one. See `runColor`, `modeColor` and `workerColor`. */
const LINE_COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f', '#b3a100'] as const

/** The colour of problems. */
const BAD = '#b3430a'

/** The colour of a line, as a CSS variable with a light and a dark value. */
export function lineColor(i: number): string {
  return `var(--line-${i % LINE_COLORS.length})`
}

/** The colour of one trial, or of A and B. */
export function runColor(place: number | null): string {
  return lineColor(place ?? 0)
}

/** The colour of a mode, the same in all pictures, and never that of trial B. */
export function modeColor(mode: string): string {
  return lineColor({ EVAL: 2, PREDICT: 3 }[mode] ?? 0)
}

/** The colour of a worker, which is never that of a run or of a mode. */
export function workerColor(i: number): string {
  return lineColor(4 + (i % (LINE_COLORS.length - 4)))
}

/** The colours of classes, each its own: a contrast of 3.4 or more both on a light ground and on a dark one. */
export const LABEL_COLORS = [
  ...['#3a78d6', '#c8591a', '#1f9060', '#c94fa0', '#8a7d12', '#7f62e6'],
  ...['#e2404f', '#2a8f9e', '#9a6a55', '#58981c', '#b44fdc', '#6f8096'],
]

/** The colours that the numbers of labels run through, from the smallest to the largest, as visible as those of classes. */
export const NUMBER_COLORS = ['#3a78d6', '#7f62e6', '#c94fa0', '#c8591a']

/** True for a dashed line: modes other than training, where the colour tells a run or a worker. */
export function isDashed(mode: string): boolean {
  return mode === 'EVAL' || mode === 'PREDICT'
}

/** A CSS colour variable as a colour, which a canvas needs. */
export function resolved(color: string, canvas: HTMLCanvasElement): string {
  const name = /^var\((--[\w-]+)\)$/.exec(color)?.[1]
  return name === undefined ? color : getComputedStyle(canvas).getPropertyValue(name)
}

/** A text with its CSS variables replaced by colours, for readers without the page's CSS. */
export function withColors(text: string): string {
  return text.replace(/var\(--line-(\d)\)/g, (_, i: string) => LINE_COLORS[Number(i)]!).replaceAll('var(--bad)', BAD)
}
