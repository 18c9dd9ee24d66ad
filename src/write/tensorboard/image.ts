/** Pictures of tensors, as PNG: images of a batch, kernels of a convolution, or the matrix itself. */

import { crc32, deflateSync } from 'node:zlib'
import type { TensorData } from '../../scan/job/tensor/data.js'
import type { ImageSummary } from './summary.js'

/** The number of images of a tensor, as in TensorBoard's own calls. */
export const MAX_IMAGES = 3
/** The largest side of a picture, in pixels. */
const MAX_SIDE = 2048
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
/** The PNG colour type by the number of channels. */
const COLOR_TYPES: Readonly<Record<number, number>> = { 1: 0, 3: 2, 4: 6 }

/** The tag of a tensor's image. */
export function imageTag(tensor: string, image: number): string {
  return `${tensor}/image/${image}`
}

/** The layout of a tensor's elements as images. */
export interface ImageLayout {
  readonly count: number
  readonly height: number
  readonly width: number
  readonly channels: number
  /** The distance of neighbours, in elements. */
  readonly stride: { readonly image: number; readonly row: number; readonly column: number; readonly channel: number }
}

/** @returns null if the shape is not that of pictures */
export function layoutOf(shape: readonly number[]): ImageLayout | null {
  if (shape.length < 2 || shape.length > 4) return null
  const [a = 0, b = 0, c = 0] = shape.slice(-3)
  const rank = shape.length
  const last = shape.at(-1)!
  let layout: Omit<ImageLayout, 'count'>
  if (rank > 2 && COLOR_TYPES[last] !== undefined) {
    const stride = { image: a * b * c, row: b * c, column: c, channel: 1 }
    layout = { height: a, width: b, channels: c, stride }
  } else if (rank > 2 && a === 3) {
    const stride = { image: a * b * c, row: c, column: 1, channel: b * c }
    layout = { height: b, width: c, channels: 3, stride }
  } else {
    const [height, width] = [shape.at(-2)!, last]
    const stride = { image: height * width, row: width, column: 1, channel: 0 }
    layout = { height, width, channels: 1, stride }
  }
  const { height, width, channels } = layout
  const count = shape.reduce((product, size) => product * size, 1) / (height * width * channels)
  const isPicture = Math.min(height, width) >= 2 && Math.max(height, width) <= MAX_SIDE && count >= 1
  return isPicture ? { ...layout, count } : null
}

/** The first pictures in the elements; none for texts and complex numbers. */
export function imagesOf(
  { height, width, channels, count, stride }: ImageLayout,
  { dtype, data: elements }: Pick<TensorData, 'dtype' | 'data'>,
): readonly ImageSummary[] {
  if (dtype === 'string' || dtype.startsWith('complex')) return []
  const data = elements as ArrayLike<number | bigint>
  return Array.from({ length: Math.min(MAX_IMAGES, count) }, (_, image) => {
    const numbers = new Float64Array(height * width * channels)
    let at = 0
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const from = image * stride.image + y * stride.row + x * stride.column
        for (let channel = 0; channel < channels; channel++) {
          numbers[at++] = Number(data[from + channel * stride.channel])
        }
      }
    }
    return { height, width, channels, png: pngOf(levelsOf(numbers, dtype === 'uint8'), height, width, channels) }
  })
}

/**
 * Levels from 0 to 255. Bytes stay as they are, numbers from 0 to 1 are scaled, all others are stretched from the smallest to the
 * largest.
 */
function levelsOf(numbers: Float64Array, areLevels: boolean): Uint8Array {
  if (areLevels) return Uint8Array.from(numbers)
  let [least, most] = [0, 1]
  for (const number of numbers) {
    if (number < least && number > Number.NEGATIVE_INFINITY) least = number
    if (number > most && number < Number.POSITIVE_INFINITY) most = number
  }
  if (least < 0 || most > 1) {
    least = numbers.reduce((min, x) => (Number.isFinite(x) ? Math.min(min, x) : min), Number.POSITIVE_INFINITY)
    most = numbers.reduce((max, x) => (Number.isFinite(x) ? Math.max(max, x) : max), Number.NEGATIVE_INFINITY)
  }
  // Computed from halves: the difference itself may exceed the largest number.
  const range = most / 2 - least / 2
  const levels = new Uint8Array(numbers.length)
  // NaN is black; so is everything if all numbers are equal.
  for (let i = 0; i < numbers.length; i++) {
    const share = (numbers[i]! / 2 - least / 2) / range
    levels[i] = Math.round(255 * Math.max(0, Math.min(1, share)))
  }
  return levels
}

/** A PNG (RFC 2083): unfiltered rows, deflated. */
function pngOf(levels: Uint8Array, height: number, width: number, channels: number): Uint8Array {
  const rowLength = width * channels
  const rows = new Uint8Array(height * (rowLength + 1))
  for (let y = 0; y < height; y++) {
    rows.set(levels.subarray(y * rowLength, (y + 1) * rowLength), y * (rowLength + 1) + 1)
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head[8] = 8
  head[9] = COLOR_TYPES[channels]!
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const bytes = Buffer.alloc(named.length + 8)
  bytes.writeUInt32BE(data.length, 0)
  bytes.set(named, 4)
  bytes.writeUInt32BE(crc32(named), named.length + 4)
  return bytes
}
