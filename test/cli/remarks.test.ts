/** What `summary` says in sentences: findings that numbers alone leave out, and no trend where there is none. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { scratchDirectory } from '../support/scratch.js'
import { trialscan } from './run.js'

const scratch = scratchDirectory('remarks')

interface Made {
  readonly losses: readonly number[]
  readonly gradient?: (step: number) => readonly number[]
  readonly weight?: (step: number) => readonly number[]
}

async function summaryOf({ losses, gradient = () => [0.1, 0.2], weight = step => [1 + step, 2] }: Made) {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, {
    collections: {
      weights: { includeRegex: ['^fc'] },
      gradients: { includeRegex: ['^gradient/'] },
      losses: { includeRegex: ['loss'] },
    },
  })
  losses.forEach((loss, step) => {
    const tensors = [
      { name: 'fc0.weight', dtype: 'float64', shape: [2], values: weight(step) },
      { name: 'loss', dtype: 'float64', shape: [], values: [loss] },
      { name: 'gradient/fc0.weight', dtype: 'float64', shape: [2], values: gradient(step) },
      { name: 'gradient/fc1.weight', dtype: 'float64', shape: [2], values: [Math.abs(loss), 0.4] },
    ] as const
    writer.step({ step, mode: 'TRAIN', tensors })
  })
  writer.end()
  const { stdout } = await trialscan('summary', directory)
  return stdout
}

const said = (text: string) => text.split('What this says\n')[1]!.replaceAll(/\s+/g, ' ')

it.each<[string, readonly number[], string]>([
  ['NaN', [2, Number.NaN, Number.POSITIVE_INFINITY], 'is NaN or infinite from step 1 on.'],
  ['one NaN', [2, Number.NaN, 1], 'is NaN or infinite at 1 of 3 steps, first at 1.'],
  ['noise', [296, 380, 203, 282, 269], 'goes up and down between 203 and 380, from 296 to 269: no trend beside that.'],
  [
    'a minimum that has passed',
    [2, 1, 0.625, 0.875, 1],
    'was lowest at step 2, 0.625; since then it rose by 60.0 %, to 1.',
  ],
  ['a fall', [2, 1.5, 1.25, 1], 'fell by 50.0 %, from 2 to 1.'],
  ['a large rise', [0.5, 50, 100, 1500], 'rose to 3000 times that, from 0.5 to 1500.'],
  ['what stands still', [2, 2, 2], 'stands still at 2.'],
])('tells %s', async (_, losses, expected) => {
  expect(said(await summaryOf({ losses }))).toContain(`loss of TRAIN ${expected}`)
})

it('tells gradients that are exactly zero', async () => {
  const text = said(await summaryOf({ losses: [3, 2, 1], gradient: () => [0, 0] }))
  expect(text).toContain('1 gradient of 2 is exactly zero at every step: gradient/fc0.weight.')
})

it('compares no gradients where some are not finite', async () => {
  const text = said(await summaryOf({ losses: [3, 2, 1], gradient: step => [step > 0 ? Number.NaN : 1, 1] }))
  expect(text).toContain('1 gradient of 2 is not finite at some step.')
  expect(text).not.toContain('times the gradient')
})

it('tells updates of weights that stand still, also at zero, and of those that start there', async () => {
  const still = await summaryOf({ losses: [3, 2, 1], weight: () => [0, 0] })
  expect(still).toMatch(/Updates.*\n {2}fc0\.weight {2}0 {2}→ {2}0 /)
  expect(said(still)).toContain('1 weight of 1 never changes: fc0.weight.')
  const begun = await summaryOf({ losses: [3, 2, 1], weight: step => [step, 2 * step] })
  expect(begun).toMatch(/Updates.*\n {2}fc0\.weight {2}1 {2}▁\n/)
  expect(said(begun)).toContain('fc0.weight starts at zero: the first update has no ratio.')
})
