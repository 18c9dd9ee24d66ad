/** A training of samples with labels: what it was given, a bottleneck, and what it made of that. */

import { TrialWriter } from '../../fixtures/event-writer.js'

export interface Samples {
  readonly labels?: readonly number[]
  readonly predictions?: readonly number[]
}

/** One number a label, or several. */
function shapeOf({ length }: readonly number[], labels: number): readonly number[] {
  return length === labels ? [length] : [labels, length / labels]
}

/** Two steps of four samples; or of numbers that are predicted. */
export function writeSamples(directory: string, { labels, predictions }: Samples = {}): void {
  const writer = new TrialWriter(directory)
  for (const step of [0, 1]) {
    const float = (name: string, shape: readonly number[], values: readonly number[]) => ({
      name,
      dtype: 'float32' as const,
      shape,
      values,
    })
    const tensors =
      labels && predictions
        ? [
            float('labels', [labels.length], labels),
            float('predictions', shapeOf(predictions, labels.length), predictions),
          ]
        : [
            float('labels', [4], [0, 1, 2, 0]),
            float('predictions', [4, 3], [9, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 9]),
            float('bottleneck_output_0', [4, 2], [0, step, 5, 5, 9, 9, 0.1, step]),
            float(
              'Net_input_0',
              [4, 1, 2, 3],
              Array.from({ length: 24 }, (_, i) => i),
            ),
            float(
              'Net_output_0',
              [4, 1, 2, 3],
              Array.from({ length: 24 }, (_, i) => i * i),
            ),
            float('loss', [1], [1 / (step + 1)]),
          ]
    writer.step({ step, tensors })
  }
  writer.end()
}
