/**
 * A small training whose arithmetic is inexact by a known amount, as that of GPUs is, and into which a known fault can be put: two layers,
 * trained by gradient descent. What it saves is in the order of execution.
 */

import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { normals } from '../../fixtures/random.js'

const [INPUTS, HIDDEN, OUTPUTS, SAMPLES] = [8, 16, 4, 12] as const
const RATE = 0.05

export const FAULTY = [
  'fc0_output',
  'fc1_output',
  'gradient/fc1.weight',
  'gradient/fc0.weight',
  'fc0.weight',
  'fc1.weight',
] as const

/** From a step on, some elements of a tensor are too large by a factor. */
export interface Fault {
  readonly tensor: (typeof FAULTY)[number]
  readonly step: number
  readonly factor: number
}

export interface TrainingOptions {
  /** Of the data and the initial weights: runs of one configuration share it. */
  readonly seed: number
  /** Of the noise: no two runs share it. */
  readonly noiseSeed: number
  /** How inexact results are, in relation to themselves: the standard deviation. */
  readonly noise: number
  readonly steps: number
  readonly fault?: Fault
}

export function writeTraining(path: string, { seed, noiseSeed, noise, steps, fault }: TrainingOptions): void {
  const random = drawing(seed)
  const error = drawing(noiseSeed)
  const matrix = (rows: number, columns: number, size: number) =>
    Float32Array.from({ length: rows * columns }, () => size * random())
  const [x, truth] = [matrix(SAMPLES, INPUTS, 1), matrix(SAMPLES, OUTPUTS, 1)]
  const [w0, w1] = [matrix(INPUTS, HIDDEN, 0.4), matrix(HIDDEN, OUTPUTS, 0.4)]
  const writer = new TrialWriter(path)
  for (let step = 0; step < steps; step++) {
    const tensors: StepTensor[] = []
    const save = (name: string, values: Float32Array, shape: readonly number[]): Float32Array => {
      if (fault?.tensor === name && step >= fault.step) {
        for (let i = 0; i < values.length; i += 3) values[i]! *= fault.factor
      }
      tensors.push({ name, dtype: 'float32', shape, values: [...values] })
      return values
    }
    const inexact = (values: Float32Array) => values.map(value => value * (1 + noise * error()))
    save('fc0.weight', w0, [INPUTS, HIDDEN])
    const hidden = save('fc0_output', inexact(product(x, w0, SAMPLES, INPUTS, HIDDEN)), [SAMPLES, HIDDEN])
    const active = hidden.map(Math.tanh)
    save('fc1.weight', w1, [HIDDEN, OUTPUTS])
    const output = save('fc1_output', inexact(product(active, w1, SAMPLES, HIDDEN, OUTPUTS)), [SAMPLES, OUTPUTS])
    const apart = output.map((value, i) => value - truth[i]!)
    const loss = apart.reduce((sum, value) => sum + value * value, 0) / apart.length
    save('loss', Float32Array.of(loss), [])
    const g1 = save(
      'gradient/fc1.weight',
      inexact(product(transposed(active, SAMPLES, HIDDEN), apart, HIDDEN, SAMPLES, OUTPUTS)),
      [HIDDEN, OUTPUTS],
    )
    const back = product(apart, transposed(w1, HIDDEN, OUTPUTS), SAMPLES, OUTPUTS, HIDDEN)
    const inner = back.map((value, i) => value * (1 - active[i]! ** 2))
    const g0 = save(
      'gradient/fc0.weight',
      inexact(product(transposed(x, SAMPLES, INPUTS), inner, INPUTS, SAMPLES, HIDDEN)),
      [INPUTS, HIDDEN],
    )
    for (const [weights, gradient] of [
      [w0, g0],
      [w1, g1],
    ] as const) {
      for (let i = 0; i < weights.length; i++) weights[i]! -= (RATE / SAMPLES) * gradient[i]!
    }
    writer.step({ step, tensors })
  }
  writer.end()
}

function product(a: Float32Array, b: Float32Array, rows: number, inner: number, columns: number): Float32Array {
  const result = new Float32Array(rows * columns)
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let sum = 0
      for (let k = 0; k < inner; k++) sum += a[i * inner + k]! * b[k * columns + j]!
      result[i * columns + j] = sum
    }
  }
  return result
}

function transposed(a: Float32Array, rows: number, columns: number): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, i) => a[(i % rows) * columns + Math.floor(i / rows)]!)
}

/** Normal numbers, one after the other. */
function drawing(seed: number): () => number {
  let block = normals(4096, seed)
  let at = 0
  return () => {
    if (at === block.length) {
      block = normals(4096, ++seed * 7919)
      at = 0
    }
    return block[at++]!
  }
}
