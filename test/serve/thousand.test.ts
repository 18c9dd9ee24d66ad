/** A thousand trials on one server: the list answers while they are opened and judged, and its memory is bounded. */

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const COUNT = 1000
/** Generous: a machine that does other things too. */
const [MAX_MS, MAX_MB] = [30_000, 800]
const scratch = scratchDirectory('thousand')
let child: ChildProcess | undefined
afterAll(() => child?.kill())

/** A thousand trainings of two steps. */
function writeTrials(): void {
  for (let run = 0; run < COUNT; run++) {
    const writer = new TrialWriter(join(scratch, `run-${run}`))
    for (const step of [0, 1]) {
      const tensor = (name: string, values: readonly number[]) =>
        ({ name, dtype: 'float32', shape: [values.length], values }) as const
      writer.step({ step, tensors: [tensor('loss', [run + step]), tensor('gradient/w', [run, step])] })
    }
    writer.end()
  }
}

it('a list of a thousand trials answers while they are opened and judged, in bounded memory', async () => {
  writeTrials()
  const main = join(ROOT, 'dist/bundle/main.js')
  const server = spawn(process.execPath, [main, 'serve', scratch, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child = server
  let said = ''
  for (const stream of [server.stdout, server.stderr]) stream.on('data', data => (said += data))
  const address = () => /http:\/\/[\w.]+:\d+/.exec(said)?.[0]
  await expect.poll(address, { timeout: 120_000 }).toBeDefined()
  const list = async () => {
    const startedAt = performance.now()
    const listed = (await (await fetch(`${address()}/api/trials`)).json()) as {
      readonly state: string
      readonly loss?: object | null
      readonly judged?: { readonly state: string } | null
    }[]
    expect(performance.now() - startedAt).toBeLessThan(MAX_MS)
    return listed
  }
  expect(await list()).toHaveLength(COUNT)
  const done = async () => (await list()).filter(({ loss, judged }) => loss && judged?.state === 'done').length
  await expect.poll(done, { timeout: 300_000, interval: 1000 }).toBe(COUNT)
  // Nothing of Node.js's own, such as listeners that pile up.
  expect(said).not.toContain('Warning')
  if (process.platform !== 'linux') return
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))!
  expect(Number(kilobytes) / 1024).toBeLessThan(MAX_MB)
}, 480_000)
