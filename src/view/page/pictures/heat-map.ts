/**
 * Numbers of many rows at many steps, as colours. A canvas draws them: libraries with a mark per cell take seconds for two million. Each
 * cell becomes a pixel of one image, once; moving about draws that image again.
 */

import { h } from '../dom.js'
import { moment } from '../moment.js'
import { labelsOf } from '../text.js'
import { resolved } from './colors.js'
import type { Shading } from './shading.js'

export interface HeatMapOptions {
  readonly rows: number
  readonly steps: number
  /** The number of a cell; NaN can be one. */
  readonly value: (row: number, step: number) => number
  /** True if the cell has a number. */
  readonly isThere: (row: number, step: number) => boolean
  readonly shading: Shading
  readonly rowText: (row: number) => string
  /** The text of a cell. */
  readonly cellText: (row: number, step: number) => string
  readonly stepText: (step: number) => string
  /** True if the columns are named: names that do not fit side by side stand aslant. */
  readonly areNames?: boolean
  readonly onOpen: (row: number, step: number) => void
  /** The address that Enter and a click open; null for none. Default: the tensor. */
  readonly opens?: string | null
  /** The numbers of the steps; none if columns are not steps. */
  readonly numbers?: readonly number[]
  /** A colour for each step, as a line below its number; none without modes. */
  readonly bands?: readonly string[]
  /** The row that the cursor marks at first, at the step that is chosen on the page; -1 for none. */
  readonly chosenRow?: number
  readonly onPoint?: (row: number) => void
  /** The words where no cell is pointed at. Default: what a pointer can do. */
  readonly hint?: string
  /** A description of the picture for screen readers. */
  readonly label: string
}

const MAX_LABELS = 260
/** The width of a letter: at most, and about. */
const [LETTER, NARROW_LETTER] = [7, 6.5]
const LINE = 13
const AXIS = 26
/** The width of a step's number and of a name; where names have less, they stand aslant, which takes such a height and width. */
const STEP_WIDTH = 64
const NAME_WIDTH = 130
const ASLANT = 118
const ASLANT_WIDTH = 16
const MIN_HEIGHT = 120
const MAX_HEIGHT = 620
const ROW_HEIGHT = 18

/** The moves of keys, in rows and columns. */
const MOVES: Readonly<Record<string, readonly [down: number, right: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [0, Number.NEGATIVE_INFINITY],
  End: [0, Number.POSITIVE_INFINITY],
}

/** The visible part of all cells. */
interface View {
  row: number
  step: number
  /** The numbers of rows and steps that fit. */
  rows: number
  steps: number
}

export class HeatMap {
  readonly element: HTMLElement
  readonly #options: HeatMapOptions
  readonly #canvas: HTMLCanvasElement
  readonly #readout: HTMLElement
  readonly #image: HTMLCanvasElement
  readonly #view: View
  readonly #hint: string
  #cursor: { row: number; step: number } | null = null
  #isDue = false
  readonly #plotHeight: number
  readonly #longest: number
  #width = 0
  /** The names of rows in the room that they have. */
  #rowNames: readonly string[] = []
  #height = 0

  constructor(options: HeatMapOptions) {
    this.#options = options
    this.#image = imageOf(options)
    this.#view = { row: 0, step: 0, rows: options.rows, steps: options.steps }
    const { opens = 'the tensor' } = options
    this.#hint = options.hint ?? hintOf(opens)
    this.#canvas = h('canvas', {
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'heat map',
      'aria-label': `${options.label}. Arrow keys move from cell to cell, ${opens === null ? '' : `Enter opens ${opens}, `}plus and minus zoom, 0 shows all.`,
    })
    this.#readout = h('p', { class: 'readout', 'aria-live': 'polite' }, this.#hint)
    this.element = h('div', { class: 'heat-map' }, this.#readout, this.#canvas)
    this.#plotHeight = Math.max(MIN_HEIGHT, Math.min(MAX_HEIGHT, options.rows * ROW_HEIGHT))
    this.#longest = longestName(options)
    this.#setHeight()
    this.#listen()
    const { numbers, chosenRow = -1 } = options
    if (numbers !== undefined) moment.follow(this.element, () => this.#due())
    if (chosenRow >= 0 && this.#marked >= 0) this.#point({ row: chosenRow, step: this.#marked })
    new ResizeObserver(() => this.#resize()).observe(this.#canvas)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw())
  }

  /** Takes over the visible part of another map, which had the same rows and steps or fewer. */
  takeOver(other: HeatMap | undefined): void {
    if (other === undefined || other.#options.rows !== this.#options.rows) return
    const { rows, steps } = other.#options
    const { row, step, ...size } = other.#view
    if (size.rows < rows || size.steps < steps) Object.assign(this.#view, other.#view)
    if (other.#cursor !== null) this.#point(other.#cursor)
    this.#clamp()
  }

  /** The column of the step that is chosen on the page; -1 for none. */
  get #marked(): number {
    return this.#options.numbers?.indexOf(moment.step ?? Number.NaN) ?? -1
  }

  focus(): void {
    this.#canvas.focus({ preventScroll: true })
  }

  #listen(): void {
    const canvas = this.#canvas
    let held: { x: number; y: number; view: View; isMoved: boolean } | null = null
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId)
      held = { x: event.offsetX, y: event.offsetY, view: { ...this.#view }, isMoved: false }
    })
    canvas.addEventListener('pointermove', event => {
      if (held === null) {
        this.#point(this.#cellAt(event.offsetX, event.offsetY))
        return
      }
      const [dx, dy] = [event.offsetX - held.x, event.offsetY - held.y]
      if (!held.isMoved && Math.hypot(dx, dy) < 4) return
      held.isMoved = true
      this.#view.step = held.view.step - (dx * held.view.steps) / this.#plotWidth
      this.#view.row = held.view.row - (dy * held.view.rows) / this.#plotHeight
      this.#clamp()
    })
    canvas.addEventListener('pointerup', event => {
      const cell = this.#cellAt(event.offsetX, event.offsetY)
      if (held && !held.isMoved && cell !== null) {
        // A finger can't hover: its first touch reads a cell, its second opens it.
        const isRead = cell.row === this.#cursor?.row && cell.step === this.#cursor.step
        if (event.pointerType !== 'touch' || isRead) this.#options.onOpen(cell.row, cell.step)
        else this.#point(cell)
      }
      held = null
    })
    // A finger that scrolls the page.
    canvas.addEventListener('pointercancel', () => (held = null))
    canvas.addEventListener('pointerleave', ({ pointerType }) => pointerType !== 'touch' && this.#point(null))
    canvas.addEventListener(
      'wheel',
      event => {
        // Without a modifier key the wheel scrolls the page.
        if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return
        event.preventDefault()
        this.#zoom(Math.exp((event.deltaY || event.deltaX) / 300), event.offsetX, event.offsetY)
      },
      { passive: false },
    )
    canvas.addEventListener('dblclick', () => this.#reset())
    canvas.addEventListener('keydown', event => this.#press(event))
  }

  #press(event: KeyboardEvent): void {
    const { rows, steps, onOpen } = this.#options
    const at = this.#cursor ?? { row: 0, step: 0 }
    const move = MOVES[event.key]
    if (move) {
      const first = this.#cursor === null
      const [down, right] = first ? [0, 0] : move
      const row = Math.max(0, Math.min(rows - 1, at.row + down))
      const step = Math.max(0, Math.min(steps - 1, at.step + right))
      this.#show(row, step)
      this.#point({ row, step })
    } else if (event.key === 'Enter') onOpen(at.row, at.step)
    else if (event.key === '+' || event.key === '=') this.#zoom(0.7)
    else if (event.key === '-') this.#zoom(1 / 0.7)
    else if (event.key === '0' || event.key === 'Escape') this.#reset()
    else return
    event.preventDefault()
  }

  /** Scrolls a cell into sight. */
  #show(row: number, step: number): void {
    const view = this.#view
    view.row = Math.min(row, Math.max(view.row, row + 1 - view.rows))
    view.step = Math.min(step, Math.max(view.step, step + 1 - view.steps))
    this.#clamp()
  }

  #reset(): void {
    Object.assign(this.#view, { row: 0, step: 0, rows: this.#options.rows, steps: this.#options.steps })
    this.#due()
  }

  #zoom(factor: number, x = this.#labels + this.#plotWidth / 2, y = this.#plotHeight / 2): void {
    const view = this.#view
    const [fx, fy] = [(x - this.#labels) / this.#plotWidth, y / this.#plotHeight]
    const [step, row] = [view.step + fx * view.steps, view.row + fy * view.rows]
    view.steps = Math.min(this.#options.steps, Math.max(4, view.steps * factor))
    view.rows = Math.min(this.#options.rows, Math.max(Math.min(4, this.#options.rows), view.rows * factor))
    view.step = step - fx * view.steps
    view.row = row - fy * view.rows
    this.#clamp()
  }

  #clamp(): void {
    const view = this.#view
    view.step = Math.max(0, Math.min(this.#options.steps - view.steps, view.step))
    view.row = Math.max(0, Math.min(this.#options.rows - view.rows, view.row))
    this.#due()
  }

  /** The width of the row names. */
  get #labels(): number {
    return Math.min(this.#longest, MAX_LABELS, Math.round(this.#width * 0.4))
  }

  get #plotWidth(): number {
    return Math.max(1, this.#width - this.#labels)
  }

  /** True if the names of columns are too wide to lie side by side. */
  get #isAslant(): boolean {
    return this.#options.areNames === true && this.#plotWidth / this.#options.steps < NAME_WIDTH
  }

  #setHeight(): void {
    this.#height = this.#plotHeight + (this.#isAslant ? ASLANT : AXIS)
    this.#canvas.style.height = `${this.#height}px`
  }

  #cellAt(x: number, y: number): { row: number; step: number } | null {
    const { row, step, rows, steps } = this.#view
    const at = {
      row: Math.floor(row + (y / this.#plotHeight) * rows),
      step: Math.floor(step + (Math.max(0, x - this.#labels) / this.#plotWidth) * steps),
    }
    return at.row < this.#options.rows && at.step < this.#options.steps && y < this.#plotHeight ? at : null
  }

  #point(cell: { row: number; step: number } | null): void {
    if (cell?.row === this.#cursor?.row && cell?.step === this.#cursor?.step) return
    this.#cursor = cell
    const { numbers, onPoint } = this.#options
    if (cell !== null) {
      onPoint?.(cell.row)
      if (numbers !== undefined) moment.point(numbers[cell.step]!)
    }
    this.#readout.textContent = cell === null ? this.#hint : this.#options.cellText(cell.row, cell.step)
    this.#due()
  }

  #resize(): void {
    const ratio = devicePixelRatio || 1
    this.#width = this.#canvas.clientWidth
    this.#setHeight()
    this.#rowNames = labelsOf(namesOf(this.#options), Math.floor((this.#labels - 12) / NARROW_LETTER))
    this.#canvas.width = Math.round(this.#width * ratio)
    this.#canvas.height = Math.round(this.#height * ratio)
    this.#draw()
  }

  /** Schedules a drawing before the next frame. */
  #due(): void {
    if (this.#isDue) return
    this.#isDue = true
    requestAnimationFrame(() => {
      this.#isDue = false
      this.#draw()
    })
  }

  #draw(): void {
    const context = this.#canvas.getContext('2d')!
    const ratio = devicePixelRatio || 1
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.clearRect(0, 0, this.#width, this.#height)
    const { row, step, rows, steps } = this.#view
    // Cells of less than a pixel are averaged by the browser; larger ones are sharp boxes.
    context.imageSmoothingEnabled = steps > this.#plotWidth * ratio || rows > this.#plotHeight * ratio
    context.drawImage(this.#image, step, row, steps, rows, this.#labels, 0, this.#plotWidth, this.#plotHeight)
    this.#drawText(context)
    const [w, t] = [this.#plotWidth / steps, this.#plotHeight / rows]
    if (this.#marked >= step && this.#marked < step + steps) {
      context.fillStyle = getComputedStyle(this.#canvas).color
      context.fillRect(this.#labels + (this.#marked - step) * w, this.#plotHeight + 1, Math.max(2, w), 3)
    }
    drawBands(context, this.#options.bands ?? [], this.#view, { left: this.#labels, bottom: this.#height, width: w })
    if (this.#cursor === null) return
    const [x, y] = [this.#labels + (this.#cursor.step - step) * w, (this.#cursor.row - row) * t]
    context.strokeStyle = getComputedStyle(this.#canvas).color
    context.lineWidth = 1.5
    context.strokeRect(x, y, Math.max(2, w), Math.max(2, t))
  }

  #drawText(context: CanvasRenderingContext2D): void {
    const { step, steps } = this.#view
    const { stepText, areNames = false } = this.#options
    context.fillStyle = getComputedStyle(this.#canvas).color
    context.font = '12px system-ui, sans-serif'
    drawRowNames(context, this.#rowNames, this.#view, { left: this.#labels, bottom: this.#plotHeight })
    context.textBaseline = 'top'
    context.textAlign = 'center'
    const width = this.#plotWidth / steps
    const isAslant = this.#isAslant
    const labelWidth = isAslant ? ASLANT_WIDTH : areNames ? NAME_WIDTH : STEP_WIDTH
    for (const i of labelledSteps(this.#options, this.#view, Math.max(1, Math.ceil(labelWidth / width)))) {
      const x = this.#labels + (i + 0.5 - step) * width
      const text = stepText(i)
      if (isAslant) {
        context.save()
        context.translate(x, this.#plotHeight + 8)
        context.rotate(-Math.PI / 4)
        context.textAlign = 'right'
        context.fillText(text, 0, 0)
        context.restore()
        continue
      }
      const half = context.measureText(text).width / 2
      context.fillText(text, Math.min(x, this.#width - half), this.#plotHeight + 8)
    }
  }
}

/** A hint for a mouse, or for fingers. @param opens what opens; null for nothing */
export function hintOf(opens: string | null): string {
  return matchMedia('(hover: none)').matches
    ? `Touch a cell to read it${opens === null ? '' : `, and again to open ${opens}`}.`
    : `Point at a cell to read it${opens === null ? '' : `, click it to open ${opens}`}. Drag to move; Ctrl or Shift and the wheel zoom; a double click shows all.`
}

/** The visible columns that have labels: all, those of round steps or, where these are few, one in `every`. */
function labelledSteps({ steps: count, numbers }: HeatMapOptions, { step, steps }: View, every: number): number[] {
  const visible = Array.from({ length: count }, (_, i) => i).slice(Math.ceil(step), Math.ceil(step + steps))
  const last = numbers?.at(-1) ?? 0
  for (let unit = 1; every > 1 && unit <= last; unit *= String(unit).startsWith('2') ? 2.5 : 2) {
    const round = visible.filter(i => numbers![i]! % unit === 0)
    if (round.every((i, at) => at === 0 || i - round[at - 1]! >= every)) {
      if (round.length * every * 2 > visible.length) return round
      break
    }
  }
  return visible.filter(i => i % every === 0)
}

/** The width of the longest row name, about. */
function longestName(options: HeatMapOptions): number {
  return 16 + LETTER * namesOf(options).reduce((most, { length }) => Math.max(most, length), 1)
}

function namesOf({ rows, rowText }: HeatMapOptions): readonly string[] {
  return Array.from({ length: rows }, (_, row) => rowText(row))
}

/** The names of rows, as many as there is room for. @param place the left and lower ends of the cells */
function drawRowNames(
  context: CanvasRenderingContext2D,
  names: readonly string[],
  { row, rows }: View,
  { left, bottom }: { readonly left: number; readonly bottom: number },
): void {
  context.textBaseline = 'middle'
  context.textAlign = 'right'
  const height = bottom / rows
  const every = Math.max(1, Math.ceil(14 / height))
  let above = Number.NEGATIVE_INFINITY
  for (let i = Math.ceil(row / every) * every; i < Math.min(row + rows, names.length); i += every) {
    const y = Math.max(7, (i + 0.5 - row) * height)
    if (y >= bottom || y - above < LINE) continue
    context.fillText(names[i]!, left - 8, y, left - 12)
    above = y
  }
}

/** Lines at the foot of a picture, in the colours of its columns. */
function drawBands(
  context: CanvasRenderingContext2D,
  bands: readonly string[],
  { step, steps }: View,
  { left, bottom, width }: { readonly left: number; readonly bottom: number; readonly width: number },
): void {
  for (let i = Math.floor(step); i < step + steps && i < bands.length; i++) {
    const [from, to] = [i, i + 1].map(at => Math.max(left, left + (at - step) * width))
    context.fillStyle = resolved(bands[i]!, context.canvas)
    context.fillRect(from!, bottom - 3, to! - from!, 3)
  }
}

/** An image with a pixel for each cell; a cell without a value is transparent. */
function imageOf({ rows, steps, value, isThere, shading }: HeatMapOptions): HTMLCanvasElement {
  const canvas = h('canvas', { width: Math.max(1, steps), height: Math.max(1, rows) })
  const image = new ImageData(canvas.width, canvas.height)
  const pixels = new Uint32Array(image.data.buffer)
  for (let row = 0; row < rows; row++) {
    for (let step = 0; step < steps; step++) {
      if (isThere(row, step)) pixels[row * steps + step] = shading.pixel(value(row, step))
    }
  }
  canvas.getContext('2d')!.putImageData(image, 0, 0)
  return canvas
}
