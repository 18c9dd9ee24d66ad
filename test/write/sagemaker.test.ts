/** Metrics of a training job, as SageMaker reads them. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createTrial, createWriter, type WriterOptions } from '#dist/index.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('sagemaker')
let count = 0
const place = () => join(scratch, `${count++}`)
const EVERY: WriterOptions = { saveConfig: { saveInterval: 1 } }

/** A directory of metrics, as a job has it. */
function job(): string {
  const directory = place()
  vi.stubEnv('SAGEMAKER_METRICS_DIRECTORY', directory)
  return directory
}

function metricsIn(directory: string): unknown[] {
  const text = readFileSync(join(directory, `${process.pid}.json`), 'utf8')
  expect(text.endsWith('\n')).toBe(true)
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('in a job', () => {
  it('scalars that are metrics are told, with their modes and steps', async () => {
    const [directory, path] = [job(), place()]
    const timestamp = Math.floor(Date.now() / 1000) - 60
    const writer = await createWriter(path)
    for (const mode of ['TRAIN', 'EVAL', 'TRAIN'] as const) {
      writer.setMode(mode)
      await writer.step()
      await writer.saveScalar('accuracy', 0.5, { sagemakerMetric: true, timestamp })
      await writer.saveScalar('lr', 0.1)
      await writer.saveScalar('diverged', Number.NaN, { sagemakerMetric: true })
    }
    await writer.close()
    const of = (mode: string, step: number) => {
      return { MetricName: `scalar/accuracy_${mode}`, Value: 0.5, Timestamp: timestamp, IterationNumber: step }
    }
    expect(metricsIn(directory)).toEqual([of('TRAIN', 0), of('EVAL', 0), of('TRAIN', 1)])
    const trial = await createTrial(path)
    expect([...trial.collection('sm_metrics').members].sort()).toEqual(['scalar/accuracy', 'scalar/diverged'])
    expect(trial.tensor('scalar/diverged').steps()).toEqual([0, 1, 2])
  })

  it('losses and metrics that are saved are, by their means', async () => {
    const directory = job()
    const writer = await createWriter(place(), { saveConfig: { saveInterval: 2 } })
    const before = Date.now() / 1000
    for (let i = 0; i < 3; i++) {
      await writer.step()
      await writer.save('CrossEntropyLoss_output_0', Float32Array.of(i, i + 1))
      await writer.save('top1', i, { collection: 'metrics' })
      await writer.save('fc.weight', i, { collection: 'weights' })
    }
    await writer.close()
    const metrics = metricsIn(directory) as { MetricName: string; Value: number; Timestamp: number }[]
    expect(metrics.map(({ MetricName, Value }) => [MetricName, Value])).toEqual([
      ['CrossEntropyLoss_output_0_GLOBAL', 0.5],
      ['top1_GLOBAL', 0],
      ['CrossEntropyLoss_output_0_GLOBAL', 2.5],
      ['top1_GLOBAL', 2],
    ])
    for (const { Timestamp } of metrics) expect(Timestamp).toBeGreaterThanOrEqual(before)
  })

  it('a directory that cannot be written is told', async () => {
    vi.stubEnv('SAGEMAKER_METRICS_DIRECTORY', join(import.meta.dirname, 'sagemaker.test.ts'))
    const writer = await createWriter(place(), EVERY)
    await writer.step()
    await writer.saveScalar('accuracy', 1, { sagemakerMetric: true })
    await expect(writer.step()).rejects.toThrow(/cannot write .*sagemaker.test.ts/)
  })
})

it('outside of a job a metric is a member of a collection, and nothing else', async () => {
  vi.stubEnv('SAGEMAKER_METRICS_DIRECTORY', undefined)
  const path = place()
  const writer = await createWriter(path, EVERY)
  await writer.step()
  await writer.saveScalar('accuracy', 0.5, { sagemakerMetric: true })
  await writer.save('loss', 1, { collection: 'sm_metrics' })
  await writer.close()
  expect(existsSync(`${process.pid}.json`)).toBe(false)
  expect((await createTrial(path)).collection('sm_metrics').members).toEqual(['loss', 'scalar/accuracy'])
})

it('a time that SageMaker would not take is told, in a job or not', async () => {
  const writer = await createWriter(place(), EVERY)
  await writer.step()
  const save = (timestamp: number) => writer.saveScalar('x', 1, { sagemakerMetric: true, timestamp })
  const now = Date.now() / 1000
  expect(() => save(Date.now())).toThrow(/timestamp: expected a time between two weeks ago and in two hours/)
  expect(() => save(now - 15 * 24 * 3600)).toThrow(/timestamp/)
  await save(now)
  await writer.close()
})
