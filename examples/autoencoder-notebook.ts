/**
 * The loop of SageMaker Debugger's autoencoder notebook, line by line. It draws each evaluation step as soon as it is saved,
 * and ends with the training. While the loop sleeps, the trial keeps up with the job by itself. The caller provides `plot`,
 * for which the notebook uses sklearn and seaborn.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { createTrial, modes, TensorUnavailableForStep, type TensorValue } from 'trialscan'

/** What is drawn for a step. */
export interface Plot {
  readonly step: number
  /** One row of the bottleneck layer per sample, for the last thousand or so samples, and their labels. */
  readonly tensors: readonly ArrayLike<number>[]
  readonly labels: readonly number[]
  /** The first image that went into the autoencoder, and what came out, row after row. */
  readonly input: ArrayLike<number>
  readonly output: ArrayLike<number>
}

const label_input = 'convolutionalautoencoder0_input_1'
const autoencoder_bottleneck = 'convolutionalautoencoder0_hybridsequential0_dense0_output_0'
const autoencoder_input = 'l2loss0_input_1'
const autoencoder_output = 'l2loss0_input_0'

export async function watchAutoencoder(
  path: string,
  plot: (plot: Plot) => void,
  { waitMs = 3000, pauseMs = 5000, print = (_line: string): void => {} } = {},
): Promise<void> {
  const trial = await createTrial(path)

  // get available steps
  while (trial.steps().length === 0) {
    print('Waiting for tensors to become available...')
    await sleep(waitMs)
  }
  print('Getting tensors...')
  const rendered_steps: number[] = []

  let loaded_all_steps = false
  while (!loaded_all_steps) {
    // get available steps
    loaded_all_steps = trial.loadedAllSteps
    const steps = trial.steps({ mode: modes.EVAL })

    // quick way to get diff between two lists
    const steps_to_render = steps.filter(step => !rendered_steps.includes(step))

    let tensors: ArrayLike<number>[] = []
    let labels: number[] = []

    // iterate over available steps
    for (const step of steps_to_render) {
      try {
        if (tensors.length > 1000) {
          tensors = []
          labels = []
        }

        // get tensor from bottleneck layer and label
        const tensor = await trial.tensor(autoencoder_bottleneck).value(step, { mode: modes.EVAL })
        const label = await trial.tensor(label_input).value(step, { mode: modes.EVAL })
        for (let batch = 0; batch < tensor.shape[0]!; batch++) {
          tensors.push(part(tensor, batch))
          labels.push(Number(label.data[batch]))
        }

        // get autoencoder input and output: [0,0,:,:]
        const input = part(await trial.tensor(autoencoder_input).value(step, { mode: modes.EVAL }), 0, 0)
        const output = part(await trial.tensor(autoencoder_output).value(step, { mode: modes.EVAL }), 0, 0)

        // plot results
        plot({ step, tensors, labels, input, output })
      } catch (error) {
        if (!(error instanceof TensorUnavailableForStep)) throw error
        print(`Tensor unavailable for step ${step}`)
      }
    }
    rendered_steps.push(...steps_to_render)

    await sleep(pauseMs)
  }
  print('Done')
}

/** `value[i, j, …, :]` */
function part({ data, stride }: TensorValue, ...indices: number[]): ArrayLike<number> {
  const start = indices.reduce((sum, index, dimension) => sum + index * stride[dimension]!, 0)
  const size = stride[indices.length - 1]!
  return Array.from((data as Float32Array).subarray(start, start + size))
}
