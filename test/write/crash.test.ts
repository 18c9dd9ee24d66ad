/** A training that is killed at any moment leaves a trial that opens, and is right up to its last whole step. */

import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isTensorBoardFile } from '#dist/format/paths.js'
import { createTrial, createWriter, type Trial, UsageError, verifyTrial } from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('crash')
const PROGRAM = join(ROOT, 'test/support/capture.mjs')
const KILLS = 200
const COLLECTIONS = 'collections/000000000/worker_0_collections.json'

interface Kind {
  readonly kills: number
  /** The i-th step that is saved. */
  readonly step?: (i: number) => number
  readonly workers?: readonly string[]
}

const KINDS: Readonly<Record<string, Kind>> = {
  plain: { kills: 32 },
  checksums: { kills: 28, step: i => 996 + i },
  durable: { kills: 28 },
  long: { kills: 28 },
  recorded: { kills: 28, step: i => (i * 5_003) % 10_007 },
  tensorboard: { kills: 28 },
  workers: { kills: 28, workers: ['worker_0', 'worker_1', 'worker_2'] },
}

function stepOf(kind: string, i: number): number {
  return KINDS[kind]!.step?.(i) ?? i
}

/** Starts the training and kills it so many milliseconds after a file is there. */
async function killed(path: string, kind: string, first: string, ms: number): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, path, kind], { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = new Promise<string | null>(resolve => child.on('close', (_, by) => resolve(by)))
  while (!existsSync(join(path, first)) && child.exitCode === null) {
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await new Promise(resolve => setTimeout(resolve, ms))
  child.kill('SIGKILL')
  expect(await ended, stderr).toBe('SIGKILL')
}

function indexFile(step: number): string {
  return `index/${String(Math.floor(step / 1000)).padStart(9, '0')}/${String(step).padStart(12, '0')}_worker_0.json`
}

/** The steps of a worker, all right. @returns how many there are */
async function expectSteps(trial: Trial, kind: string, worker: string): Promise<number> {
  const there = trial
    .steps()
    .filter(step => trial.hasTensor('short') && [...trial.tensor('short').workers(step)].includes(worker))
  // Those that were saved first: none is missing before the last.
  const expected = Array.from({ length: there.length }, (_, i) => stepOf(kind, i))
  expect(there).toEqual([...expected].sort((a, b) => a - b))
  for (const [i, step] of expected.entries()) {
    expect([...(await trial.tensor('short').value(step, { worker })).data]).toEqual([step, -step])
    const { shape, data } = await trial.tensor('long').value(step, { worker })
    expect(shape.reduce((count, size) => count * size, 1)).toBe(kind === 'long' ? 800_000 : 50_000)
    expect((data as Float32Array).every(element => element === step)).toBe(true)
    if (kind === 'recorded') continue
    expect(trial.mode(step)).toBe(i % 5 === 4 ? 'EVAL' : 'TRAIN')
    if (i % 3 === 0) expect(trial.collection(`of-${step % 2}`).members).toContain(`new/${step}`)
  }
  return there.length
}

/** Runs of TensorBoard grow, so that the last record of one may be cut off, and nothing else is wrong. */
async function expectRuns(path: string, steps: number): Promise<void> {
  if (!existsSync(path) || !readdirSync(path, { recursive: true, encoding: 'utf8' }).some(isTensorBoardFile)) {
    expect(steps).toBe(0)
    return
  }
  const { problems } = await verifyTrial(path, { threads: 0 })
  expect(problems.filter(({ code }) => code !== 'TruncatedRecord')).toEqual([])
  if (steps === 0) return
  const runs = await createTrial(path, { threads: 0 })
  // What is written of a step beside the trial is written before it.
  expect(runs.steps().slice(0, steps)).toEqual(Array.from({ length: steps }, (_, step) => step))
  await runs.close()
}

async function expectSound(path: string, kind: string): Promise<number> {
  const { problems } = await verifyTrial(path, { deep: true, threads: 0 })
  const trial = await createTrial(path, { threads: 0, requireCollections: kind !== 'workers' })
  let steps = 0
  for (const worker of KINDS[kind]!.workers ?? ['worker_0']) steps += await expectSteps(trial, kind, worker)
  await trial.close()
  expect(problems).toEqual([])
  if (kind === 'tensorboard') await expectRuns(`${path}-logs`, steps)
  // Nothing is written over it: whoever begins again is told what to do.
  await expect(createWriter(path)).rejects.toThrow(/expected no part of worker_0 yet, got one: write to another place/)
  await expect(createWriter(path)).rejects.toThrow(UsageError)
  return steps
}

describe.runIf(process.platform !== 'win32')('a training that is killed', () => {
  it('is killed 200 times', () => {
    expect(Object.values(KINDS).reduce((sum, { kills }) => sum + kills, 0)).toBe(KILLS)
  })

  it.each(Object.keys(KINDS))('leaves a sound trial each time: %s', async kind => {
    const { kills } = KINDS[kind]!
    let steps = 0
    for (let i = 0; i < kills; i += 4) {
      await Promise.all(
        [0, 1, 2, 3].map(async j => {
          const path = join(scratch, `${kind}-${i + j}`)
          await killed(path, kind, j < 2 ? COLLECTIONS : indexFile(stepOf(kind, 0)), Math.random() * 60)
          steps += await expectSound(path, kind)
        }),
      )
    }
    // Half of them had saved a step at least.
    expect(steps).toBeGreaterThanOrEqual(kills / 2)
  })
})
