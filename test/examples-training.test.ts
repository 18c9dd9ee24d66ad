/** The examples that train with TensorFlow.js: they learn, what is wrong with the bad trainings is found, and nothing about the good ones. */

import '@tensorflow/tfjs-backend-cpu'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Scalar, Tensor4D } from '@tensorflow/tfjs-core'
import { createTrial } from 'trialscan'
import { describe, expect, it } from 'vitest'
import { mnistDigits, tf } from '../examples/tfjs-mnist.js'
import { ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('examples-training')

// npx keeps a link to the package's command; one of an earlier build may point to a file that is gone.
process.env.npm_config_cache = join(scratch, 'npm')

/** What an example prints, and what it writes. */
async function run(name: string) {
  const directory = join(scratch, name)
  const args = ['--import', 'tsx', join(ROOT, 'examples', `${name}.ts`), directory]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  const html = readFileSync(join(directory, 'report.html'), 'utf8')
  const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(html)!
  const checked = (trial: string): string => {
    const [, text] = stdout.split(`$ trialscan check ${join(directory, trial)} --format table\n`) as [string, string]
    return text.split('\n$ trialscan')[0]!.replaceAll(/\s+/g, ' ')
  }
  return { directory, stdout, checked, report: JSON.parse(json!) }
}

describe.concurrent('the notebooks with TensorFlow.js', () => {
  it('a CNN that learns, and one that is badly initialised', async () => {
    const { stdout, checked, report } = await run('train-cnn')
    const [good, bad] = [...stdout.matchAll(/accuracy ([\d.]+)/g)].map(([, accuracy]) => Number(accuracy))
    expect(good).toBeGreaterThan(0.8)
    expect(bad).toBeLessThan(0.2)
    expect(checked('good')).toMatch(/^good: 11 rules judged 20 steps and found nothing wrong/)
    const fault = /as initialised, the variance of relu1\/inputs is [\d.]+ times that of relu0\/inputs/
    expect(stdout.split('$ trialscan')[0]).toMatch(RegExp(`^step 0: ${fault.source}`, 'm'))
    expect(checked('bad')).toMatch(RegExp(`^bad: PoorWeightInitialization at step 0 \\(TRAIN 0\\): ${fault.source}`))
    expect(checked('bad')).toMatch(/It explains AllZero\. 2 of 11 rules fired/)
    // The images are the same.
    expect(stdout).toContain('good and bad first differ at step 0 (TRAIN 0) in conv0/outputs')
    expect(report.trials).toHaveLength(2)
  })

  it('an autoencoder that learns, and one that is given bytes', async () => {
    const { directory, stdout, checked, report } = await run('train-autoencoder')
    expect(checked('good')).toMatch(/^good: 11 rules judged 27 steps and found nothing wrong/)
    expect(checked('bytes')).toMatch(
      /^bytes: SaturatedActivation at step 0 .* of deconv1\/sigmoid\/outputs are saturated/,
    )
    expect(checked('bytes')).toMatch(/CheckInputImages fired at \d+ steps.* The input images are not normalised/)
    expect(stdout).toContain('good and bytes first differ at step 0 (TRAIN 0) in conv0/inputs')
    expect(report.trials[0].embedding).toMatchObject({
      tensor: 'bottleneck/outputs',
      labels: 'digits',
      images: 'inputs',
      reconstructions: 'predictions',
    })

    // Closer to the digits than black images are.
    const trial = await createTrial(join(directory, 'good'))
    const last = trial.steps({ mode: 'EVAL' }).at(-1)!
    const [input, output] = await Promise.all(
      ['inputs', 'predictions'].map(
        async name => (await trial.tensor(name).value(last, { mode: 'EVAL' })).data as Float32Array,
      ),
    )
    const error = input!.reduce((sum, pixel, i) => sum + (pixel - output![i]!) ** 2, 0)
    expect(error / input!.reduce((sum, pixel) => sum + pixel ** 2, 0)).toBeLessThan(0.5)
    // Neighbours in the bottleneck are mostly the same digit.
    const { data, shape } = await trial.tensor('bottleneck/outputs').value(last, { mode: 'EVAL' })
    const classes = (await trial.tensor('digits').value(last, { mode: 'EVAL' })).data
    expect(neighboursAlike(data as Float32Array, shape[1]!, classes as Float32Array)).toBeGreaterThan(0.5)
  })

  it('gradients of convolutions are those of another backend', async () => {
    const gradients = async (backend: string) => {
      await tf.setBackend(backend)
      const { images } = mnistDigits(3)
      const filter = tf.tensor4d(
        Float32Array.from({ length: 50 }, (_, i) => Math.sin(i)),
        [5, 5, 1, 2],
      )
      const back = tf.tensor4d(
        Float32Array.from({ length: 100 }, (_, i) => Math.cos(i)),
        [5, 5, 2, 2],
      )
      const loss = (one: Tensor4D, other: Tensor4D) => {
        const hidden = tf.relu(tf.conv2d(images, one, 1, 'valid'))
        return tf.sum(tf.square(tf.conv2dTranspose(hidden, other, [3, 28, 28, 2], 1, 'valid'))) as Scalar
      }
      return tf
        .grads(loss as never)([filter, back])
        .map(gradient => Array.from(gradient.dataSync()))
    }
    const [ours, theirs] = [await gradients('wasm'), await gradients('cpu')]
    for (const [i, gradient] of theirs.entries()) {
      expect(gradient.length).toBe(50 * (i + 1))
      const largest = gradient.reduce((most, one) => Math.max(most, Math.abs(one)), 0)
      for (const [k, one] of gradient.entries()) expect(Math.abs(ours[i]![k]! - one)).toBeLessThan(largest * 1e-5)
    }
  })
})

/** How many of the rows have a nearest row of the same class. */
function neighboursAlike(data: Float32Array, width: number, classes: ArrayLike<number>): number {
  const rows = Array.from(classes, (_, i) => data.subarray(i * width, (i + 1) * width))
  const distance = (a: Float32Array, b: Float32Array) => a.reduce((sum, one, i) => sum + (one - b[i]!) ** 2, 0)
  const alike = rows.filter((row, i) => {
    const others = rows.map((other, k) => (k === i ? Number.POSITIVE_INFINITY : distance(row, other)))
    return classes[others.indexOf(Math.min(...others))] === classes[i]
  })
  return alike.length / rows.length
}
