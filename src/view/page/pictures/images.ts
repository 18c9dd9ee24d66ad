/** Small images beside each other, pixel by pixel. */

import type { ImagesView } from '../../data.js'
import { h } from '../dom.js'
import { pixel } from './colors.js'

export interface ImagesOptions {
  readonly count: number
  readonly height: number
  readonly width: number
  /** The colour of the i-th pixel of all images. */
  readonly colorOf: (i: number) => number
  /** The text below an image. */
  readonly text: (image: number) => string
  readonly label: string
}

/** The approximate length of an image's longer side, in pixels of the page. */
const SIDE = 72

export function images({ count, height, width, colorOf, text, label }: ImagesOptions): HTMLElement {
  const all = Array.from({ length: count }, (_, image) =>
    h(
      'figure',
      {},
      imageOf(height, width, i => colorOf(image * height * width + i)),
      h('figcaption', {}, text(image)),
    ),
  )
  return h('div', { class: 'images', role: 'img', 'aria-label': `${label}: ${count} images` }, ...all)
}

/** @param colorOf the colour of its i-th pixel */
export function imageOf(height: number, width: number, colorOf: (i: number) => number, side = SIDE): HTMLCanvasElement {
  const scale = Math.max(1, Math.floor(side / Math.max(height, width)))
  const canvas = h('canvas', { width, height, style: `width: ${width * scale}px; height: ${height * scale}px` })
  const image = new ImageData(width, height)
  const pixels = new Uint32Array(image.data.buffer)
  for (let i = 0; i < pixels.length; i++) pixels[i] = colorOf(i)
  canvas.getContext('2d')!.putImageData(image, 0, 0)
  return canvas
}

/** Unpacked images; null: there are none. */
export type Pixels = (Omit<ImagesView, 'pixels'> & { readonly pixels: Uint8Array }) | null

export function greyImage(images: Pixels, sample: number): HTMLElement | null {
  if (images === null || sample >= images.count) return null
  const { height, width, pixels } = images
  const at = sample * height * width
  return imageOf(height, width, i => {
    const grey = pixels[at + i]!
    return pixel(grey, grey, grey)
  })
}
