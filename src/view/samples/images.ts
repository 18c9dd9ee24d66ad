/** Images that a model was given, and its reconstructions of them. */

import { compileOwnPattern } from '../../format/regex/pattern.js'
import { elements } from '../../rules/base/labels.js'
import { MODEL_INPUTS } from '../../rules/base/names.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { ImagesView } from '../data.js'
import { packed } from '../packing.js'

const MAX_IMAGES = 64
const MAX_SIDE = 64
const MAX_CHANNELS = 4

/** Losses of autoencoders, whose inputs are the reconstruction and the original. */
const RECONSTRUCTION_LOSS = /^(l1|l2|mse|huber|smoothl1|bce|bcewithlogits|sigmoidbce)loss\d*_input_1$/i

/** The names of the model's images and reconstructions by the hooks: its input; its own output, or what its loss compares. */
export function imagesOf(trial: Trial): {
  readonly images: string | undefined
  readonly reconstructions: string | undefined
} {
  const { names } = stateOf(trial).catalog
  const images = names.find(compileOwnPattern(MODEL_INPUTS).matches)
  const reconstructions = outputOf(trial, images)
  // A part of the model has an output of another kind.
  const isPart = images === undefined || reconstructions === undefined || /sequential\d+_input_0$/.test(images)
  const target = isPart ? names.find(name => RECONSTRUCTION_LOSS.test(name)) : undefined
  const reconstructed = target?.replace(/1$/, '0')
  return reconstructed !== undefined && trial.hasTensor(reconstructed)
    ? { images: target, reconstructions: reconstructed }
    : { images, reconstructions }
}

/** The output that belongs to an input: `AutoEncoder_output_0` for `AutoEncoder_input_0`. */
export function outputOf(trial: Trial, input: string | undefined): string | undefined {
  const output = input?.replace(/^inputs(?=(_\d+)?$)/, 'predictions').replace(/input(?=(_\d+)?$)/, 'output')
  return output !== undefined && output !== input && trial.hasTensor(output) ? output : undefined
}

/** The first samples as grey images, from black for their least element to white for their largest; null: they are no images. */
export function grey(value: TensorValue, count: number): ImagesView | null {
  const { shape, dtype } = value
  // N×H×W, N×C×H×W or, of TensorFlow, N×H×W×C: the first channel is shown.
  const isLast = shape.length === 4 && shape[1]! > MAX_CHANNELS
  const [height, width] = isLast ? shape.slice(1) : shape.slice(-2)
  const pixelStride = isLast ? shape[3]! : 1
  const isImages = shape.length === 3 || (shape.length === 4 && (isLast ? pixelStride : shape[1]!) <= MAX_CHANNELS)
  if (!isImages || shape[0] !== count || dtype === 'string' || dtype.startsWith('complex')) return null
  if (height! < 2 || width! < 2 || height! > MAX_SIDE || width! > MAX_SIDE) return null
  const data = elements(value)
  const [size, stride, some] = [height! * width!, data.length / count, Math.min(MAX_IMAGES, count)]
  const pixels = new Uint8Array(size * some)
  for (let image = 0; image < some; image++) {
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (let i = 0; i < size; i++) {
      const x = data[image * stride + i * pixelStride]!
      if (x < low) low = x
      if (x > high) high = x
    }
    for (let i = 0; i < size; i++) {
      const x = data[image * stride + i * pixelStride]!
      pixels[image * size + i] = high > low ? (255 * (x - low)) / (high - low) : 0
    }
  }
  return { count: some, height: height!, width: width!, pixels: packed(pixels) }
}

/** The mean squared error of each reconstruction, to four digits; empty if the shapes differ. */
export function errorsOf(given: TensorValue, reconstructions: TensorValue, most: number): readonly number[] {
  const [a, b] = [given, reconstructions]
  const isSame = a.shape.length === b.shape.length && a.shape.every((size, axis) => size === b.shape[axis])
  const isNumeric = [a, b].every(({ dtype }) => dtype !== 'string' && !dtype.startsWith('complex'))
  const count = a.shape[0] ?? 0
  if (!isSame || !isNumeric || count === 0) return []
  const [x, y] = [elements(a), elements(b)]
  const size = x.length / count
  return Array.from({ length: Math.min(most, count) }, (_, sample) => {
    let sum = 0
    for (let i = sample * size; i < (sample + 1) * size; i++) sum += (x[i]! - y[i]!) ** 2
    return Number((sum / size).toPrecision(4))
  })
}
