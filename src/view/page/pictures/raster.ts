/** Pictures as files: SVG and PNG with a title and a legend, animations as GIF and video. */

import { applyPalette, GIFEncoder, quantize } from 'gifenc'
import { button, h, save, svgElement } from '../dom.js'
import { withColors } from './colors.js'

/** A line of a legend. */
export interface LegendLine {
  readonly name: string
  readonly color: string
  readonly isDashed?: boolean
}

/** The words around a picture in its file. */
export interface Caption {
  readonly title: string
  readonly legend: readonly LegendLine[]
}

const FONT = 'system-ui, "Segoe UI", Roboto, sans-serif'
const TITLE_SIZE = 14
const LINE = 20
/** The approximate widths of a letter, in the title and in a legend. */
const [TITLE_LETTER, LETTER] = [7.4, 6.6]
const PAD = 12
const MAX_NAME = 120

/** A file's name without its ending: the page's trials, and the picture's subject. */
export function fileName(subject: string): string {
  const trials = document.title.replace(/ – trialscan$/, '')
  return `${trials} ${subject}`
    .replace(/[^\p{L}\p{N}._,()=-]+/gu, '-')
    .replace(/^[.-]+|[-.,]+$/g, '')
    .slice(0, MAX_NAME)
}

/** A picture as a text of SVG that needs no page around it. */
export function svgText(svg: Element, caption: Caption | null = null): string {
  const copy = svg.cloneNode(true) as SVGSVGElement
  for (const pointed of copy.querySelectorAll('.moment, [aria-label=tip]')) pointed.remove()
  const whole = caption === null ? copy : captioned(copy, (svg as SVGSVGElement).viewBox.baseVal, caption)
  whole.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  whole.setAttribute('color', 'black')
  whole.setAttribute('font-family', FONT)
  // A file of its own has no page to inherit a font from.
  whole.style?.setProperty('font-family', FONT)
  return withColors(new XMLSerializer().serializeToString(whole))
}

/** The picture between its title and its legend. */
function captioned(
  picture: SVGSVGElement,
  { width, height }: { readonly width: number; readonly height: number },
  { title, legend }: Caption,
): SVGSVGElement {
  const lines = wrapped(title, Math.floor((width - 2 * PAD) / TITLE_LETTER))
  const top = PAD + lines.length * LINE
  let [x, row] = [PAD, 0]
  const entries = legend.map(({ name, color, isDashed }) => {
    const size = 34 + name.length * LETTER
    if (x > PAD && x + size > width) [x, row] = [PAD, row + 1]
    const y = top + height + LINE * row + 12
    const dash = isDashed ? { 'stroke-dasharray': '5 3' } : {}
    const group = svgElement('g', {})
    group.append(
      svgElement('line', { x1: x, x2: x + 20, y1: y - 4, y2: y - 4, stroke: color, 'stroke-width': 3, ...dash }),
      svgElement('text', { x: x + 26, y, 'font-size': 12 }, name),
    )
    x += size
    return group
  })
  const whole = top + height + (legend.length === 0 ? 0 : LINE * (row + 1))
  const outer = svgElement('svg', { viewBox: `0 0 ${width} ${whole}`, width, height: whole })
  picture.setAttribute('width', String(width))
  picture.setAttribute('height', String(height))
  picture.setAttribute('y', String(top))
  outer.append(
    svgElement('rect', { width, height: whole, fill: 'white' }),
    ...lines.map((text, i) =>
      svgElement('text', { x: PAD, y: PAD + LINE * i + TITLE_SIZE, 'font-size': TITLE_SIZE, 'font-weight': 600 }, text),
    ),
    picture,
    ...entries,
  )
  return outer
}

function wrapped(text: string, most: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** The pixels of a picture on a white ground. */
async function rasterOf(svg: Element, scale: number, caption: Caption | null = null): Promise<HTMLCanvasElement> {
  const copy = new DOMParser().parseFromString(svgText(svg, caption), 'image/svg+xml')
    .documentElement as unknown as SVGSVGElement
  const { width, height } = copy.viewBox.baseVal
  const image = new Image(width, height)
  copy.setAttribute('width', String(width))
  copy.setAttribute('height', String(height))
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`
  await image.decode()
  const canvas = document.createElement('canvas')
  canvas.width = width * scale
  canvas.height = height * scale
  const context = canvas.getContext('2d', { willReadFrequently: true })!
  context.fillStyle = 'white'
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas
}

/** Saves a picture as PNG, at twice its size on the page. */
export async function savePng(svg: Element, name: string, caption: Caption): Promise<void> {
  const canvas = await rasterOf(svg, 2, caption)
  canvas.toBlob(blob => blob && save(`${name}.png`, 'image/png', blob))
}

/** Saves an animation as GIF. @param frames pictures of one size, in order @param delay milliseconds per frame */
export async function saveGif(frames: Iterable<Element>, name: string, delay: number): Promise<void> {
  const gif = GIFEncoder()
  for (const frame of frames) {
    const canvas = await rasterOf(frame, 1)
    const { data, width, height } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height)
    const palette = quantize(data, 64)
    gif.writeFrame(applyPalette(data, palette), width, height, { palette, delay })
  }
  gif.finish()
  save(`${name}.gif`, 'image/gif', gif.bytes() as Uint8Array<ArrayBuffer>)
}

/** The kinds of video, the most widely played first. */
const VIDEOS = [
  ['MP4', 'mp4', 'video/mp4;codecs=avc1.42E01F'],
  ['WebM', 'webm', 'video/webm'],
] as const

/** A button that saves an animation as video; a sentence if the browser can't record one. */
export function videoButton(frames: () => Iterable<Element>, name: string, delay: number): HTMLElement {
  const kind = VIDEOS.find(([, , type]) => globalThis.MediaRecorder?.isTypeSupported(type))
  if (kind === undefined) return h('span', { class: 'muted' }, 'This browser makes no videos: save the GIF.')
  const [text, ending, type] = kind
  const control = button(
    text,
    async () => {
      control.disabled = true
      control.textContent = 'Recording …'
      await saveVideo(frames(), `${name}.${ending}`, type, delay).finally(() => {
        control.disabled = false
        control.textContent = text
      })
    },
    { 'aria-label': `Save the animation as ${text}`, title: 'It is recorded as it plays.' },
  )
  return control
}

async function saveVideo(frames: Iterable<Element>, name: string, type: string, delay: number): Promise<void> {
  const rasters: HTMLCanvasElement[] = []
  for (const frame of frames) rasters.push(await rasterOf(frame, 1))
  // H.264 requires even widths and heights.
  const [width, height] = [rasters[0]!.width, rasters[0]!.height].map(size => size + (size % 2)) as [number, number]
  const canvas = h('canvas', { width, height })
  const context = canvas.getContext('2d')!
  const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 8e6 })
  const parts: Blob[] = []
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data))
  const ended = new Promise(resolve => recorder.addEventListener('stop', resolve))
  const wait = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
  recorder.start()
  for (const raster of rasters) {
    // Each frame is drawn twice, because a recorder takes only what changes.
    for (const part of [0.5, 0.5]) {
      context.fillStyle = 'white'
      context.fillRect(0, 0, width, height)
      context.drawImage(raster, 0, 0)
      await wait(delay * part)
    }
  }
  recorder.stop()
  await ended
  save(name, type, new Blob(parts))
}
