/** Names that were saved together are looked at together: what is held, and done, does not grow with names times steps. */

import { expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { stateOf } from '#dist/trial/trial.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { scratchDirectory } from './support/scratch.js'

const directory = scratchDirectory('together')

it('the list of the steps of names that come and go together is one, in order', async () => {
  const writer = new TrialWriter(directory, { numWorkers: 2 })
  const tensor = (name: string, size: number) => ({ name, shape: [size], data: new Array<number>(size).fill(1) })
  for (let step = 0; step < 40; step++) {
    for (const worker of [0, 1]) {
      const names = ['a', 'b', ...(step % 2 ? ['odd', 'strange'] : []), ...(worker === 0 ? ['first'] : [])]
      writer.step({ step, mode: 'TRAIN', worker, tensors: names.map(name => tensor(name, 1 + (step % 3))) })
    }
  }
  writer.end()
  const trial = await createTrial(directory)
  const { byTensor, workerSteps } = stateOf(trial).catalog
  for (const [name, found] of byTensor) {
    const wanted = [...workerSteps].filter(({ tensors }) => tensors.has(name))
    expect([...found].map(({ step, worker }) => [step, worker])).toEqual(
      wanted.map(({ step, worker }) => [step, worker]),
    )
    expect([...found].every(({ tensors }) => tensors.has(name))).toBe(true)
  }
  expect(byTensor.get('a')).toBe(byTensor.get('b'))
  expect(byTensor.get('odd')).toBe(byTensor.get('strange'))
  const { tensors, byteLength } = await trial.summary()
  for (const { name, stepCount, byteLength, shape, lastShape } of tensors) {
    const own = [...byTensor.get(name)!]
    expect([name, stepCount]).toEqual([name, new Set(own.map(({ step }) => step)).size])
    expect(byteLength).toBe(own.reduce((sum, { tensors }) => sum + tensors.get(name)!.value!.byteLength, 0))
    expect([shape, lastShape]).toEqual([[1 + (own[0]!.step % 3)], [1 + (own.at(-1)!.step % 3)]])
  }
  expect(byteLength).toBe(tensors.reduce((sum, { byteLength }) => sum + byteLength, 0))
  await trial.close()
})
