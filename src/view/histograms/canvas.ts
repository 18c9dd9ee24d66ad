/** Pixels, each the number of a colour, and animations of them as GIF. */

import gifenc from 'gifenc'
import { ADVANCE, eachDot, ROWS } from './font.js'

/** The colours of the page of reports: blue for the first trial, orange for the second, and brown where both overlap. */
const PALETTE = [
  [255, 255, 255],
  [40, 40, 40],
  [205, 205, 205],
  [86, 145, 210],
  [240, 150, 60],
  [150, 110, 90],
] as const
export const COLOR = { paper: 0, ink: 1, line: 2, first: 3, second: 4, both: 5 } as const

/** Letters are twice as large as their pixels. */
const SCALE = 2
export const LETTER_WIDTH = ADVANCE * SCALE
export const LETTER_HEIGHT = ROWS * SCALE

export class Canvas {
  readonly width: number
  readonly height: number
  readonly pixels: Uint8Array

  constructor(width: number, height: number) {
    this.width = width
    this.height = height
    this.pixels = new Uint8Array(width * height)
  }

  rect(x: number, y: number, width: number, height: number, color: number): void {
    for (let row = y; row < y + height; row++) {
      this.pixels.fill(color, row * this.width + x, row * this.width + x + width)
    }
  }

  text(x: number, y: number, text: string, color: number = COLOR.ink): void {
    eachDot(text, (column, row) => this.rect(x + column * SCALE, y + row * SCALE, SCALE, SCALE, color))
  }
}

/** @param frames canvases of one size @param delay milliseconds that each is shown */
export function gifOf(frames: Iterable<Canvas>, delay: number): Uint8Array {
  const gif = gifenc.GIFEncoder()
  const palette = PALETTE.map(color => [...color])
  let isFirst = true
  for (const { pixels, width, height } of frames) {
    gif.writeFrame(pixels, width, height, { delay, ...(isFirst && { palette }) })
    isFirst = false
  }
  gif.finish()
  return gif.bytes()
}
