/** Pictures as pixels: PNG files, and animations as GIF. */

import { applyPalette, GIFEncoder, quantize } from 'gifenc'
import { save } from '../dom.js'
import { withColors } from './colors.js'

/** An SVG element as a text that needs no page around it. */
export function svgText(svg: Element): string {
  const copy = svg.cloneNode(true) as Element
  for (const pointed of copy.querySelectorAll('.moment')) pointed.remove()
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  copy.setAttribute('color', 'black')
  return withColors(new XMLSerializer().serializeToString(copy))
}

/** Twice as many pixels as it has on a page, on white. */
async function rasterOf(svg: Element, scale = 2): Promise<HTMLCanvasElement> {
  const { width, height } = (svg as SVGSVGElement).viewBox.baseVal
  const image = new Image(width, height)
  const copy = new DOMParser().parseFromString(svgText(svg), 'image/svg+xml').documentElement
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

export async function savePng(svg: Element, name: string): Promise<void> {
  const canvas = await rasterOf(svg)
  canvas.toBlob(blob => blob && save(name, 'image/png', blob))
}

/** @param frames pictures of one size, one after the other @param delay milliseconds that each is shown */
export async function saveGif(frames: Iterable<Element>, name: string, delay: number): Promise<void> {
  const gif = GIFEncoder()
  for (const frame of frames) {
    const canvas = await rasterOf(frame, 1)
    const { data, width, height } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height)
    const palette = quantize(data, 64)
    gif.writeFrame(applyPalette(data, palette), width, height, { palette, delay })
  }
  gif.finish()
  save(name, 'image/gif', gif.bytes() as Uint8Array<ArrayBuffer>)
}
