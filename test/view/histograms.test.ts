/** Pictures of tensors: the bars of each frame are the counts of the step. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, histograms } from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { type Gif, readGif } from '../support/gif.js'
import { ROOT } from '../support/golden.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('histograms')
const out = join(scratch, 'x.gif')
const [GAP, PANEL, BARS] = [16, 420, 120]
const [FIRST, SECOND, BOTH] = [3, 4, 5]

/** How high the bars of the first panel are, in pixels of some colours. */
function heights({ frames, width, height }: Gif, frame: number, bins: number, ...colors: number[]): number[] {
  return Array.from({ length: bins }, (_, bin) => {
    const x = GAP + Math.floor(((bin + 0.5) * PANEL) / bins)
    // Below the legend.
    const column = Array.from({ length: height - 90 }, (_, y) => frames[frame]!.pixels[(y + 90) * width + x]!)
    return column.filter(pixel => colors.includes(pixel)).length
  })
}

const repeated = (counts: readonly number[]) => counts.flatMap((count, value) => new Array<number>(count).fill(value))

it('has a frame for each step, and bars as high as the counts', async () => {
  const steps = { 0: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 20: [0, 20, 0, 5, 0, 0, 0, 0, 0, 1] }
  const [first, second] = [Int32Array.from(repeated(steps[0])), repeated(steps[20])]
  await histograms({ 'conv0.weight': { 20: second, 0: first } }, { out, title: 'Weights', bins: 10, delay: 100 })
  const gif = readGif(readFileSync(out))
  expect(gif.frames.map(({ delay }) => delay)).toEqual([100, 100])
  for (const [frame, counts] of Object.values(steps).entries()) {
    expect(heights(gif, frame, 10, FIRST)).toEqual(counts.map(count => Math.round((count / 20) * BARS)))
  }
})

it('draws the tensors of two trials over each other', async () => {
  const one = new Map([['w', new Map([[5, Float32Array.from(repeated([4, 2, 0]))]])]])
  await histograms(one, { out, beside: { w: { 5: repeated([1, 4, 2]) } }, labels: ['bad', 'good'], bins: 3 })
  const gif = readGif(readFileSync(out))
  expect(heights(gif, 0, 3, FIRST)).toEqual([90, 0, 0])
  expect(heights(gif, 0, 3, SECOND)).toEqual([0, 60, 60])
  expect(heights(gif, 0, 3, BOTH)).toEqual([30, 60, 0])
})

it('draws what a trial gives, NaN and single numbers, and many steps and tensors', async () => {
  const trial = await createTrial(join(ROOT, 'fixtures/trials/mlp-vanishing'), { refresh: 'manual' })
  const tensor = trial.tensor('gradient/DeepSigmoid_out.bias')
  const step = tensor.steps()[0]!
  await histograms({ [tensor.name]: { [step]: await tensor.value(step) }, none: { 0: [Number.NaN] } }, { out })
  await trial.close()
  expect(readGif(readFileSync(out)).frames).toHaveLength(1)
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, step) => [step, [step]]))
  await histograms({ many }, { out })
  expect(readGif(readFileSync(out)).frames).toHaveLength(100)
})

it('writes a page with a picture for each step', async () => {
  const page = join(scratch, 'x.html')
  await histograms({ w: { 3: [1, 2], 7: [1, 1] } }, { out: page, title: '</title><script>' })
  const html = readFileSync(page, 'utf8')
  expect(html).not.toContain('</title><script>')
  expect(html).toContain('steps = [3,7]')
  const pictures = JSON.parse(/const pictures = (\[.*?\]), steps/.exec(html)![1]!) as string[]
  expect(pictures.map(text => readGif(Buffer.from(text, 'base64')).frames.length)).toEqual([1, 1])
})

it('refuses what is nothing to draw', async () => {
  expect(await rejectionOf(histograms({}, { out }))).toMatchObject({
    message: expect.stringMatching(/expected tensors with values, got none/),
  })
  expect(await rejectionOf(histograms({ a: [1] } as never, { out }))).toMatchObject({
    message: expect.stringMatching(/the values of "a" by step/),
  })
  expect(await rejectionOf(histograms({ a: { x: [1] } } as never, { out }))).toMatchObject({
    message: expect.stringMatching(/steps as keys of "a"/),
  })
  expect(await rejectionOf(histograms({ a: { 1: [1] } }, { out: 'x.png' }))).toMatchObject({
    message: expect.stringMatching(/\.gif or \.html/),
  })
})

it('is what show writes, of a pattern, and refuses options of one step', async () => {
  const trial = join(ROOT, 'fixtures/trials/mlp-vanishing')
  const shown = await trialscan('show', trial, '^gradient/.*bias', '--out', out)
  expect(shown).toMatchObject({ code: 0, stdout: '' })
  expect(shown.stderr).toMatch(/wrote .*x\.gif: 10 tensors/)
  expect(readGif(readFileSync(out)).frames.length).toBeGreaterThan(1)
  expect((await trialscan('show', trial, '^gradient', '--out', out, '--step', '0')).stderr).toMatch(/without --step/)
  expect((await trialscan('show', trial, 'gradient/DeepSigmoid_ou.bias', '--out', out)).stderr).toMatch(/did you mean/)
})

it('finds the outputs of numbered ReLU layers by the name of their collection', async () => {
  const trial = join(scratch, 'relu')
  const writer = new TrialWriter(trial)
  for (const step of [0, 1]) {
    const tensors = ['relu0_output_0', 'relu12_output_0', 'conv0_output_0'].map(name => {
      return { name, dtype: 'float32' as const, shape: [2], values: [step, 1] }
    })
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
  const shown = await trialscan('show', trial, 'relu_output', '--out', out)
  expect([shown.code, shown.stderr]).toEqual([0, expect.stringMatching(/wrote .*x\.gif: 2 tensors/)])
  expect(readGif(readFileSync(out)).frames).toHaveLength(2)
})
