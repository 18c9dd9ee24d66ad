/** A shape in an index file that is not the one of the tensor's record. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { closePools, createTrial, repairTrial, verifyTrial } from '#dist/index.js'
import { indexFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('shape')

afterAll(closePools)

/** A trial of a small tensor and one that streams, with their shapes in the index. */
function trialWith(name: string, edit: (index: Record<string, unknown>) => void): string {
  const directory = join(scratch, name)
  const writer = new TrialWriter(directory)
  const large = new Float32Array(6 << 20)
  for (const step of [0, 1]) {
    writer.step({
      step,
      tensors: [
        { name: 'w', dtype: 'float32', shape: [2, 3], values: [1, 2, 3, 4, 5, 6] },
        { name: 'scalar', dtype: 'float32', shape: [], values: [1] },
        { name: 'large', dtype: 'float32', shape: [6 << 10, 1 << 10], data: new Uint8Array(large.buffer) },
      ],
    })
  }
  writer.end()
  for (const step of [0, 1]) {
    const path = join(directory, indexFilePath(step, 'worker_0'))
    const index = JSON.parse(readFileSync(path, 'utf8'))
    const shape = (tensorname: string, shape: number[]) => ({ tensorname, originalname: tensorname, shape })
    index.shape_payload = [shape('w', [2, 3]), shape('scalar', []), shape('large', [6 << 10, 1 << 10])]
    if (step === 1) edit(index)
    writeFileSync(path, JSON.stringify(index))
  }
  return directory
}

it.each([
  ['w', [3, 2]],
  ['w', [6]],
  ['scalar', [1]],
  ['large', [6 << 20]],
])('of %s, %j, is told by verify and mended by repair', async (tensor, shape) => {
  const directory = trialWith(`${tensor}${shape.length}${shape[0]}`, index => {
    const saved = index.shape_payload as { tensorname: string; shape: number[] }[]
    saved.find(({ tensorname }) => tensorname === tensor)!.shape = shape
  })
  const trial = await createTrial(directory)
  const right = (await trial.tensor(tensor).value(1)).shape
  expect([await trial.tensor(tensor).shape(1), right]).toEqual([shape, await trial.tensor(tensor).shape(0)])
  const { problems } = await verifyTrial(directory)
  expect(problems.map(({ code, file, tensor, step }) => [code, file, tensor, step])).toEqual([
    ['SavedShapeMismatch', indexFilePath(1, 'worker_0'), tensor, 1],
  ])
  const copy = `${directory}-copy`
  const { leftOutCount, rebuilt } = await repairTrial(directory, copy)
  expect([leftOutCount, rebuilt.map(({ file }) => file)]).toEqual([0, [indexFilePath(1, 'worker_0')]])
  expect(await (await createTrial(copy)).tensor(tensor).shape(1)).toEqual(right)
  expect((await verifyTrial(copy)).ok).toBe(true)
})

it('that is right is no fault', async () => {
  expect((await verifyTrial(trialWith('right', () => {}))).ok).toBe(true)
})
