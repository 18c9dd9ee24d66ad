/** A training that is killed at any moment leaves a trial that opens, and is right up to its last whole step. */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, verifyTrial } from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('crash')
const PROGRAM = join(ROOT, 'test/support/capture.mjs')
const KILLS = 200
const COLLECTIONS = 'collections/000000000/worker_0_collections.json'
const INDEX = 'index/000000000/000000000000_worker_0.json'

/** Starts the training and kills it so many milliseconds after a file is there. */
async function killed(path: string, first: string, ms: number): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['ignore', 'ignore', 'pipe'] })
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

describe.runIf(process.platform !== 'win32')('a training that is killed', () => {
  it(`${KILLS} times leaves a sound trial each time`, async () => {
    let steps = 0
    for (let i = 0; i < KILLS; i += 4) {
      await Promise.all(
        [0, 1, 2, 3].map(async j => {
          const path = join(scratch, `${i + j}`)
          await killed(path, j < 2 ? COLLECTIONS : INDEX, Math.random() * 60)
          const { ok, problems } = await verifyTrial(path, { deep: true, threads: 0 })
          expect(problems).toEqual([])
          expect(ok).toBe(true)
          const trial = await createTrial(path, { threads: 0 })
          const there = trial.steps()
          expect(there).toEqual(Array.from({ length: there.length }, (_, step) => step))
          steps += there.length
          for (const step of there) {
            expect([...(await trial.tensor('short').value(step)).data]).toEqual([step, -step])
            const { shape, data } = await trial.tensor('long').value(step)
            expect(shape).toEqual([100, 1000])
            expect((data as Float32Array).every(element => element === step)).toBe(true)
            if (step % 3 === 0) expect(trial.collection(`of-${step % 2}`).members).toContain(`new/${step}`)
          }
          await trial.close()
        }),
      )
    }
    // Half of them had saved a step at least.
    expect(steps).toBeGreaterThanOrEqual(KILLS / 2)
  })
})
