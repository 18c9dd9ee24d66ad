/** A tensor as a picture in a terminal: pixels if the terminal draws them (kitty's protocol, sixel), else blocks. */

import type { TensorData } from '../../../scan/job/tensor/data.js'

export type PictureName = 'auto' | 'kitty' | 'sixel' | 'blocks' | 'none'

/** The numbers of a picture, row by row. */
export interface Grid {
  readonly width: number
  readonly height: number
  /** The values: NaN and infinities as they are, and `BETWEEN` for gaps between images. */
  readonly values: Float64Array
  /** The number of shown images of all; null if the tensor is one. */
  readonly images: { readonly shown: number; readonly all: number } | null
}

const MAX_IMAGES = 24
/** The approximate number of pixels of a picture's longer side. */
const SIDE = 480
/** The number of pixels that a terminal can take. */
const MAX_PIXELS = 1 << 22
/** The number of rows of blocks. */
const MAX_ROWS = 40

/** viridis (van der Walt and Smith 2015), at sixteen places. */
const VIRIDIS: readonly (readonly [number, number, number])[] = [
  [68, 1, 84],
  [72, 26, 108],
  [71, 47, 125],
  [65, 68, 135],
  [57, 86, 140],
  [49, 104, 142],
  [42, 120, 142],
  [35, 136, 142],
  [31, 152, 139],
  [34, 168, 132],
  [53, 183, 121],
  [84, 197, 104],
  [122, 209, 81],
  [165, 219, 54],
  [210, 226, 27],
  [253, 231, 37],
]
/** The colour of elements that are not finite, outside any scale. */
const NOT_FINITE = [214, 0, 147] as const

/** The last two axes of a tensor; with more axes, its first images side by side. Null if there is nothing to see. */
export function gridOf({ dtype, shape, data }: TensorData): Grid | null {
  if (dtype === 'string' || dtype.startsWith('complex') || shape.length < 2) return null
  const [height = 0, width = 0] = shape.slice(-2)
  const all = shape.slice(0, -2).reduce((product, size) => product * size, 1)
  if (width < 2 || height < 1 || all === 0 || width * height > MAX_PIXELS) return null
  const numbers = data as ArrayLike<number | bigint>
  if (all === 1) {
    return {
      width,
      height,
      values: Float64Array.from({ length: width * height }, (_, i) => Number(numbers[i])),
      images: null,
    }
  }
  const shown = Math.min(MAX_IMAGES, all)
  const columns = Math.min(shown, Math.max(1, Math.ceil(Math.sqrt((shown * height) / width) * 1.6)))
  const rows = Math.ceil(shown / columns)
  const [wide, high] = [columns * (width + 1) - 1, rows * (height + 1) - 1]
  const values = new Float64Array(wide * high).fill(BETWEEN)
  for (let image = 0; image < shown; image++) {
    const [left, top] = [(image % columns) * (width + 1), Math.floor(image / columns) * (height + 1)]
    for (let i = 0; i < width * height; i++) {
      values[(top + Math.floor(i / width)) * wide + left + (i % width)] = Number(numbers[image * width * height + i])
    }
  }
  return { width: wide, height: high, values, images: { shown, all } }
}

/** The value of gaps between images. */
const BETWEEN = -1.7976931348623e308

/** The kind of pictures that the terminal draws, by its environment. */
export function pictureFor(env: NodeJS.ProcessEnv): Exclude<PictureName, 'auto' | 'none'> {
  const { TERM = '', TERM_PROGRAM = '', KITTY_WINDOW_ID, TMUX } = env
  // tmux passes on neither.
  if (TMUX !== undefined || TERM.startsWith('screen') || TERM.startsWith('tmux')) return 'blocks'
  if (KITTY_WINDOW_ID !== undefined || /kitty|ghostty/.test(TERM) || TERM_PROGRAM === 'ghostty') return 'kitty'
  if (
    /^(foot|mlterm|yaft|contour)/.test(TERM) ||
    /sixel/.test(TERM) ||
    /^(WezTerm|iTerm\.app|mintty)$/.test(TERM_PROGRAM)
  )
    return 'sixel'
  return 'blocks'
}

/**
 * @param columns the width of the terminal
 * @param isColored true if blocks may have colours
 */
export function pictureText(
  grid: Grid,
  how: Exclude<PictureName, 'auto' | 'none'>,
  columns: number,
  isColored: boolean,
): string {
  const shade = shadesOf(grid)
  if (how === 'blocks') return blocksText(grid, shade, columns, isColored)
  const scale = Math.max(1, Math.floor(SIDE / Math.max(grid.width, grid.height)))
  return `${how === 'sixel' ? sixelText(grid, scale) : kittyText(grid, shade, scale)}\n`
}

/** The number of colours of a picture in sixels. Terminals keep 256, some fewer. */
const SIXEL_SHADES = 48

/**
 * A picture in DEC's sixels (DEC STD 070): bands of six rows, in which one colour is drawn after the other, with run
 * lengths.
 */
function sixelText({ width, height, values }: Grid, scale: number): string {
  const place = placeOf(values)
  const registerOf = (value: number) =>
    Number.isFinite(value) ? Math.round(place(value) * (SIXEL_SHADES - 1)) : SIXEL_SHADES
  const percent = (color: readonly number[]) => color.map(part => Math.round((part * 100) / 255)).join(';')
  const palette = Array.from({ length: SIXEL_SHADES }, (_, i) => viridis(i / (SIXEL_SHADES - 1)))
  const parts = [`\x1bP0;1q"1;1;${width * scale};${height * scale}`]
  for (const [i, color] of [...palette, NOT_FINITE].entries()) parts.push(`#${i};2;${percent(color)}`)
  for (let top = 0; top < height * scale; top += 6) {
    // Of each colour the bits of its six rows, column by column.
    const rows = new Map<number, Uint8Array>()
    for (let y = top; y < Math.min(top + 6, height * scale); y++) {
      for (let x = 0; x < width; x++) {
        const value = values[Math.floor(y / scale) * width + x]!
        if (value === BETWEEN) continue
        const register = registerOf(value)
        const bits = rows.get(register) ?? new Uint8Array(width)
        bits[x]! |= 1 << (y - top)
        rows.set(register, bits)
      }
    }
    const bands = [...rows].map(([register, bits]) => `#${register}${runs(bits, scale)}`)
    parts.push(`${bands.join('$')}-`)
  }
  return `${parts.join('')}\x1b\\`
}

function runs(bits: Uint8Array, scale: number): string {
  let text = ''
  for (let x = 0; x < bits.length; ) {
    let end = x + 1
    while (end < bits.length && bits[end] === bits[x]) end++
    text += `!${(end - x) * scale}${String.fromCharCode(63 + bits[x]!)}`
    x = end
  }
  return text
}

/** The graphics protocol of kitty: base64 in pieces of at most 4,096 characters. */
function kittyText(grid: Grid, shade: ReturnType<typeof shadesOf>, scale: number): string {
  const [width, height] = [grid.width * scale, grid.height * scale]
  const rgba = new Uint8Array(width * height * 4)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const value = grid.values[Math.floor(y / scale) * grid.width + Math.floor(x / scale)]!
      if (value !== BETWEEN) rgba.set([...shade(value), 255], (y * width + x) * 4)
    }
  }
  const base64 = Buffer.from(rgba).toString('base64')
  const pieces: string[] = []
  for (let at = 0; at < base64.length; at += 4096) {
    const more = at + 4096 < base64.length ? 1 : 0
    const keys = at === 0 ? `a=T,f=32,s=${width},v=${height},m=${more}` : `m=${more}`
    pieces.push(`\x1b_G${keys};${base64.slice(at, at + 4096)}\x1b\\`)
  }
  return pieces.join('')
}

type Color = readonly [red: number, green: number, blue: number]

function shadesOf({ values }: Grid): (value: number) => Color {
  const place = placeOf(values)
  return value => (Number.isFinite(value) ? viridis(place(value)) : NOT_FINITE)
}

/** @param place from 0 to 1 */
function viridis(place: number): Color {
  const at = place * (VIRIDIS.length - 1)
  const [from, to] = [VIRIDIS[Math.floor(at)]!, VIRIDIS[Math.ceil(at)]!]
  const part = at - Math.floor(at)
  const mixed = (i: 0 | 1 | 2) => Math.round(from[i] * (1 - part) + to[i] * part)
  return [mixed(0), mixed(1), mixed(2)]
}

/** The position of a value from the smallest finite one (0) to the largest (1). */
function placeOf(values: Float64Array): (value: number) => number {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    if (!Number.isFinite(value) || value === BETWEEN) continue
    if (value < low) low = value
    if (value > high) high = value
  }
  const range = high / 2 - low / 2
  return value => (range > 0 ? Math.max(0, Math.min(1, (value / 2 - low / 2) / range)) : 0.5)
}

const DENSITIES = [' ', '░', '▒', '▓', '█']

/**
 * A picture of blocks: with colours, two rows of numbers per line; without, one row per line as densities. A column is
 * a number, or the mean of several.
 */
function blocksText(grid: Grid, shade: ReturnType<typeof shadesOf>, columns: number, isColored: boolean): string {
  const { width, height, values } = isColored ? fitted(grid, columns, 2 * MAX_ROWS) : fitted(grid, columns, MAX_ROWS)
  const lines: string[] = []
  if (!isColored) {
    const place = placeOf(grid.values)
    for (let y = 0; y < height; y++) {
      const row = Array.from(values.subarray(y * width, (y + 1) * width), value => {
        if (value === BETWEEN) return ' '
        return Number.isFinite(value) ? DENSITIES[Math.min(4, Math.floor(place(value) * 5))]! : '!'
      })
      lines.push(row.join('').trimEnd())
    }
    return `${lines.join('\n')}\n`
  }
  const color = (value: number | undefined, code: number) =>
    value === undefined || value === BETWEEN
      ? `\x1b[${code === 38 ? 39 : 49}m`
      : `\x1b[${code};2;${shade(value).join(';')}m`
  for (let y = 0; y < height; y += 2) {
    let line = ''
    for (let x = 0; x < width; x++) {
      const [top, bottom] = [values[y * width + x]!, y + 1 < height ? values[(y + 1) * width + x] : undefined]
      line +=
        top === BETWEEN && (bottom === undefined || bottom === BETWEEN)
          ? '\x1b[0m '
          : `${color(top, 38)}${color(bottom, 48)}▀`
    }
    lines.push(`${line}\x1b[0m`)
  }
  return `${lines.join('\n')}\n`
}

/**
 * The picture in as many columns and rows as fit, each the mean of its part. A part with a non-finite element is not finite.
 */
function fitted(
  { width, height, values }: Grid,
  columns: number,
  rows: number,
): Pick<Grid, 'width' | 'height' | 'values'> {
  const [wide, high] = [Math.min(width, columns), Math.min(height, rows)]
  if (wide === width && high === height) return { width, height, values }
  const part = (i: number, parts: number, all: number) => {
    const from = Math.floor((i * all) / parts)
    return [from, Math.max(from + 1, Math.floor(((i + 1) * all) / parts))] as const
  }
  const means = Float64Array.from({ length: wide * high }, (_, i) => {
    const [left, right] = part(i % wide, wide, width)
    const [top, bottom] = part(Math.floor(i / wide), high, height)
    let [sum, count] = [0, 0]
    for (let row = top; row < bottom; row++) {
      for (const value of values.subarray(row * width + left, row * width + right)) {
        if (value === BETWEEN) continue
        sum += value
        count++
      }
    }
    return count === 0 ? BETWEEN : sum / count
  })
  return { width: wide, height: high, values: means }
}
