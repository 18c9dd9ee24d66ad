/** Runs of TensorBoard that were restarted: what the restart left behind is no step of the run, unless asked for. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, serveTrials, type TrialOptions } from '#dist/index.js'
import { encodeEvent, frameRecord } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('restarts')
let count = 0

const framed = (payload: Uint8Array) => Buffer.from(frameRecord(payload, { checksum: 'true' }))
const version = framed(encodeEvent({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' }))
const loss = (step: number, simpleValue: number) => framed(encodeEvent({ wallTime: 1, step, tag: 'loss', simpleValue }))

/** An Event with a SessionLog of a status: 1 is START, 2 is STOP. */
function session(step: number, status: number): Buffer {
  return framed(Buffer.concat([encodeEvent({ wallTime: 1, step, fileVersion: '' }), Buffer.of(0x3a, 2, 8, status)]))
}

function run(files: Readonly<Record<string, readonly Buffer[]>>): string {
  const directory = join(scratch, `${count++}`)
  for (const [path, records] of Object.entries(files)) {
    mkdirSync(join(directory, path, '..'), { recursive: true })
    writeFileSync(join(directory, path), Buffer.concat([version, ...records]))
  }
  return directory
}

async function pointsOf(path: string, options: TrialOptions = {}): Promise<string[]> {
  const trial = await createTrial(path, { threads: 0, ...options })
  const points: string[] = []
  for await (const { worker, step, reductions, error } of trial.scan({ threads: 0 })) {
    expect(error).toBeUndefined()
    points.push(`${worker} ${step} ${reductions.max}`)
  }
  expect(trial.problems).toEqual([])
  await trial.close()
  return points
}

const first = 'events.out.tfevents.1.h'
const second = 'events.out.tfevents.2.h'
const range = (from: number, to: number, value: number) =>
  Array.from({ length: to - from }, (_, i) => loss(from + i, value))

describe('a restart', () => {
  it('takes back the steps from its own on, of earlier files too', async () => {
    const path = run({ [first]: range(0, 6, 1), [second]: [session(3, 1), ...range(3, 5, 2)] })
    expect(await pointsOf(path)).toEqual(['. 0 1', '. 1 1', '. 2 1', '. 3 2', '. 4 2'])
    expect(await pointsOf(path, { abandonedSteps: true })).toEqual([
      '. 0 1',
      '. 1 1',
      '. 2 1',
      '. 3 2',
      '. 4 2',
      '. 5 1',
    ])
    expect((await trialscan('scan', path, '--format', 'csv')).stdout.trim().split('\n')).toHaveLength(6)
    const kept = await trialscan('scan', path, '--format', 'csv', '--abandoned-steps')
    expect(kept.stdout.trim().split('\n')).toHaveLength(7)
    const server = await serveTrials(path, { port: 0, abandonedSteps: true })
    expect(await (await fetch(`${server.url}/api/trials/${basename(path)}/scan?format=json`)).json()).toHaveLength(6)
    await server.close()
    const plan = join(scratch, 'plan')
    const made = await trialscan('fleet', 'plan', path, '--out', plan, '--shards', '1', '--abandoned-steps')
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('6 rows')])
    expect((await trialscan('fleet', 'run', plan, '--all')).stdout).toContain('6 rows')
  })

  it('may come several times in a file', async () => {
    const path = run({
      [first]: [...range(0, 8, 1), session(6, 1), ...range(6, 7, 2), session(2, 1), ...range(2, 4, 3), session(9, 1)],
    })
    expect(await pointsOf(path)).toEqual(['. 0 1', '. 1 1', '. 2 3', '. 3 3'])
  })

  it('says nothing of other runs, nor of what comes after it; an end is none', async () => {
    const path = run({
      [`a/${first}`]: [session(0, 1), ...range(0, 2, 1), session(0, 2)],
      [`b/${first}`]: [...range(0, 2, 2)],
    })
    expect(await pointsOf(path)).toEqual(['a 0 1', 'b 0 2', 'a 1 1', 'b 1 2'])
  })

  it('is found behind damage, and where records are long', async () => {
    const tensor = { dtype: 'uint8', shape: [200_000], content: new Uint8Array(200_000) } as const
    const long = framed(encodeEvent({ wallTime: 1, step: 0, tag: 'x', tensor }))
    const path = run({ [first]: [...range(0, 4, 1), long, Buffer.alloc(40), session(2, 1), ...range(2, 3, 2)] })
    const trial = await createTrial(path, { threads: 0 })
    expect([trial.steps(), trial.problems.length]).toEqual([[0, 1, 2], 1])
    await trial.close()
  })

  it('is heard while the run is followed', async () => {
    const path = run({ [first]: range(0, 4, 1) })
    const trial = await createTrial(path, { threads: 0, refresh: 'manual' })
    expect(trial.steps()).toEqual([0, 1, 2, 3])
    writeFileSync(join(path, second), Buffer.concat([version, session(1, 1), loss(1, 2)]))
    expect(await trial.refresh()).toBe(true)
    expect(trial.steps()).toEqual([0, 1])
    await trial.close()
  })
})
