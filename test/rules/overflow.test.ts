/** Mixed precision: gradients that overflow until the scale of the loss is low enough are no fault; NaN that stays is. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, diagnose, evaluate, RuleRegistry, traceNonFinite } from '#dist/index.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('overflow')

interface Made {
  readonly dtype?: 'float16' | 'float32'
  /** Steps at which the gradient overflows. */
  readonly overflows: readonly number[]
  /** From which step on the gradient is NaN, and the rest from the next one on. */
  readonly brokenFrom?: number
  readonly steps?: number
}

function write({ dtype = 'float16', overflows, brokenFrom = Number.POSITIVE_INFINITY, steps = 20 }: Made): string {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, {
    collections: {
      weights: { includeRegex: ['^fc'] },
      gradients: { includeRegex: ['^gradient/'] },
      losses: { includeRegex: ['Loss'] },
    },
  })
  for (let step = 0; step < steps; step++) {
    const isBroken = step > brokenFrom
    const gradient =
      step >= brokenFrom ? Number.NaN : overflows.includes(step) ? Number.POSITIVE_INFINITY : 1 / (step + 1)
    const weight = 1 + Math.sin(step)
    const tensors: StepTensor[] = [
      { name: 'fc.weight', dtype: 'float32', shape: [2], values: [isBroken ? Number.NaN : weight, weight] },
      { name: 'Loss_output_0', dtype: 'float32', shape: [], values: [isBroken ? Number.NaN : 1 / (step + 1)] },
      { name: 'gradient/fc.weight', dtype, shape: [2], values: [0.5, gradient] },
    ]
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
  return directory
}

async function checked(made: Made) {
  const trial = await createTrial(write(made))
  const { findings } = await evaluate(new RuleRegistry().all(trial).rules, { threads: 0, follow: false })
  const causes = diagnose(trial, findings).filter(({ cause }) => cause === null)
  await trial.close()
  return causes.map(({ rule, step, tensor }) => `${rule} ${step} ${tensor}`)
}

const traced = async (made: Made) => traceNonFinite(await createTrial(write(made)))

describe('an overflow that passed', () => {
  const healthy: Made = { overflows: [0, 1, 11] }

  it('is no finding, and exits with 0', async () => {
    expect(await checked(healthy)).toEqual([])
    const path = write(healthy)
    expect(await trialscan('check', path, '--format', 'jsonl')).toMatchObject({ code: 0 })
    const { code, stdout } = await trialscan('nan', path, '--format', 'table')
    expect(code).toBe(0)
    expect(stdout).toMatch(/: no NaN and no infinity in 60 tensor values but for an overflow that passed\n/)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'An overflow that passed: gradient/fc.weight was not finite from step 0 to 1 of worker_0, and finite again after that',
    )
  })

  it('is told by nan, each run of steps for itself', async () => {
    const tensors = ['gradient/fc.weight']
    expect(await traced(healthy)).toMatchObject({
      origin: null,
      later: [],
      passed: [
        { step: 0, lastStep: 1, worker: 'worker_0', tensors },
        { step: 11, lastStep: 11, worker: 'worker_0', tensors },
      ],
    })
  })

  it('is a finding where a rule is told so, and of SageMaker', async () => {
    const trial = await createTrial(write(healthy))
    const { findings } = await evaluate(new (new RuleRegistry().get('ExplodingTensor'))(trial), { threads: 0 })
    expect(findings.map(({ step }) => step)).toEqual([0, 1, 11])
  })
})

describe('what is no overflow of a scaled loss', () => {
  it('begins where it goes wrong, not where an overflow passed long before', async () => {
    const sick: Made = { overflows: [0, 1], brokenFrom: 14 }
    expect(await checked(sick)).toEqual(['ExplodingTensor 14 gradient/fc.weight'])
    const { origin, chain, passed } = await traced(sick)
    expect(origin).toMatchObject({ step: 14, tensor: 'gradient/fc.weight' })
    expect(chain.map(({ tensor, step }) => `${tensor} ${step}`)).toEqual([
      'gradient/fc.weight 14',
      'fc.weight 15',
      'Loss_output_0 15',
    ])
    expect(passed).toHaveLength(1)
  })

  it('is an overflow in full precision, which scales nothing', async () => {
    const full: Made = { dtype: 'float32', overflows: [3] }
    expect(await checked(full)).toEqual(['ExplodingTensor 3 gradient/fc.weight'])
    expect(await traced(full)).toMatchObject({ origin: { step: 3 }, passed: [] })
  })

  it('is one that has not passed by the end', async () => {
    const late: Made = { overflows: [19] }
    expect(await checked(late)).toEqual(['ExplodingTensor 19 gradient/fc.weight'])
    expect(await traced(late)).toMatchObject({ origin: { step: 19 }, passed: [] })
  })

  it('is one that goes on for longer than any scale lasts', async () => {
    const steps = Array.from({ length: 40 }, (_, step) => step)
    expect(await checked({ overflows: steps, steps: 60 })).toContain('ExplodingTensor 0 gradient/fc.weight')
  })
})
