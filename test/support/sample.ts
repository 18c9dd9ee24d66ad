/** A small trial with a bit of everything, for the tests of the API. */

import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'

/** Mode and mode step of the global steps; at 30 only the first worker has written. */
export const SAMPLE_STEPS = [
  [0, 'TRAIN', 0],
  [10, 'TRAIN', 1],
  [11, 'EVAL', 0],
  [20, 'TRAIN', 2],
  [30, 'TRAIN', 3],
] as const

/** Two workers; weights and biases, gradients in TRAIN only, reductions without a value, a shape without either. */
export function writeSample(directory: string, { ended = false } = {}): void {
  const writer = new TrialWriter(directory, {
    numWorkers: 2,
    checksum: 'true',
    collections: {
      all: { includeRegex: ['.*'] },
      weights: { includeRegex: ['weight$'] },
      named: { includeRegex: false, tensorNames: ['loss', 'fc.bias', 'never saved'] },
      empty: {},
    },
  })
  for (const [step, mode, modeStep] of SAMPLE_STEPS) {
    for (const worker of [0, 1]) {
      if (step === 30 && worker === 1) continue
      writer.step({ step, mode, modeStep, worker, tensors: sampleTensors(step, worker, mode === 'TRAIN') })
    }
  }
  if (ended) writer.end()
}

function sampleTensors(step: number, worker: number, isTrain: boolean): StepTensor[] {
  const tensors: StepTensor[] = [
    { name: 'fc.weight', dtype: 'float32', shape: [2, 3], values: [step, -1, 2, worker, 0.5, -8] },
    { name: 'fc.bias', dtype: 'float64', shape: [2], values: [step + worker, -0.25] },
    { name: 'loss', reductions: { mean: step / 10 + worker, abs_max: 7 } },
    { name: 'shaped', savedShape: [step, 2], originalName: 'layer/shaped' },
  ]
  if (isTrain) tensors.push({ name: 'gradient/fc.weight', dtype: 'float16', shape: [3], values: [1, 2, step] })
  else tensors.push({ name: 'accuracy', dtype: 'float32', shape: [1], values: [0.5] })
  if (worker === 1) tensors.push({ name: 'only/worker_1', dtype: 'int32', shape: [2], values: [step, -step] })
  return tensors
}
