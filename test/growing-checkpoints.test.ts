/** A run of checkpoints beside which others look: a step is seen once, when it is whole, and one that is written is no error. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, serveTrials } from '#dist/index.js'
import { npz, safetensors, tensorOf, writeShards } from '../fixtures/checkpoint-writer.js'
import { CLI, objects } from './cli/run.js'
import { FIXTURES } from './support/checkpoints.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('growing-checkpoints')
afterAll(closePools)

const PATIENCE = { timeout: 60_000, interval: 50 }

/** The files of a checkpoint in two shards, in the order in which they are written. */
function filesOf(step: number, isBroken = false): readonly (readonly [path: string, bytes: Uint8Array])[] {
  const directory = join(scratch, `whole-${step}`)
  const values = isBroken ? [1, Number.NaN] : [1, step]
  writeShards(directory, [[tensorOf('a.weight', 'F32', [2], values)], [tensorOf('b.weight', 'F32', [2], [step, 1])]])
  writeFileSync(join(directory, 'trainer_state.json'), `{"log_history": [{"step": ${step}, "loss": 1}]}`)
  return readdirSync(directory).map(name => [name, readFileSync(join(directory, name))] as const)
}

/** Writes a checkpoint as a training does, a piece of a file at a time. */
async function* pieces(directory: string, step: number, isBroken = false): AsyncGenerator<string> {
  for (const [name, bytes] of filesOf(step, isBroken)) {
    const path = join(directory, `checkpoint-${step}`, name)
    mkdirSync(dirname(path), { recursive: true })
    for (const length of [0, 4, bytes.length >> 1, bytes.length]) {
      writeFileSync(path, bytes.subarray(0, length))
      yield `${name}, ${length} bytes`
    }
  }
}

async function written(directory: string, step: number, isBroken = false): Promise<void> {
  for await (const _ of pieces(directory, step, isBroken)) await setTimeout(5)
}

describe('the library', () => {
  it('sees a step when its index names only shards that are there and whole', async () => {
    const directory = join(scratch, 'refreshed')
    await written(directory, 1)
    const trial = await createTrial(directory, { refresh: 'manual' })
    let seen = ''
    for await (const piece of pieces(directory, 2)) {
      await trial.refresh()
      expect(trial.problems, piece).toEqual([])
      expect(await trial.tensor('b.weight').value(1)).toMatchObject({ data: Float32Array.of(1, 1) })
      if (trial.steps().includes(2)) seen ||= piece
    }
    expect(seen).toMatch(/^model-00002-of-00002.safetensors, [^04]/)
    expect(trial.steps()).toEqual([1, 2])
    await trial.close()
  })

  it('does not take what a Trainer renames at the end for steps', async () => {
    const directory = join(scratch, 'renamed')
    await written(directory, 1)
    const temporary = join(directory, 'tmp-checkpoint-2')
    mkdirSync(temporary)
    for (const [name, bytes] of filesOf(2)) writeFileSync(join(temporary, name), bytes)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect([trial.steps(), trial.notes]).toEqual([[1], []])
    renameSync(temporary, join(directory, 'checkpoint-2'))
    await trial.refresh()
    expect(trial.steps()).toEqual([1, 2])
    await trial.close()
  })

  it.each([
    ['safetensors', safetensors([tensorOf('a.weight', 'F32', [2], [1, 2])])],
    ['npz', npz([tensorOf('a', 'F32', [2], [1, 2])])],
    ['pt', readFileSync(join(FIXTURES, 'torch/zip.pt'))],
  ])('sees a file of .%s when it is whole', async (extension, bytes) => {
    const directory = join(scratch, extension)
    const name = `step_2.${extension}`
    mkdirSync(directory)
    writeFileSync(join(directory, name.replace('2', '1')), bytes)
    const trial = await createTrial(directory, { refresh: 'manual' })
    for (const length of [0, 20, bytes.length - 1]) {
      writeFileSync(join(directory, name), bytes.subarray(0, length))
      await trial.refresh()
      expect([trial.steps(), trial.problems]).toEqual([[1], []])
    }
    writeFileSync(join(directory, name), bytes)
    await trial.refresh()
    expect(trial.steps()).toEqual([1, 2])
    await trial.close()
  })

  it('follows', async () => {
    const directory = join(scratch, 'followed')
    await written(directory, 1)
    const trial = await createTrial(directory)
    const steps: number[] = []
    for await (const step of trial.follow({ pollMs: 50, timeoutMs: 60_000 })) {
      steps.push(step)
      expect(await trial.tensor('b.weight').value(step)).toMatchObject({ data: Float32Array.of(step, 1) })
      if (step === 3) break
      void written(directory, step + 1)
    }
    expect(steps).toEqual([1, 2, 3])
    await trial.close()
  })
})

describe('check --follow', () => {
  it('judges each step once it is whole, and tells of nothing else', async () => {
    const directory = join(scratch, 'checked')
    await written(directory, 1)
    const rules = ['--rule', 'ExplodingTensor', '--poll', '0.1']
    const child: ChildProcess = spawn(process.execPath, [CLI, 'check', directory, '--follow', ...rules])
    const texts = { out: '', err: '' }
    child.stdout!.on('data', some => (texts.out += some))
    child.stderr!.on('data', some => (texts.err += some))
    const ended = new Promise(resolve => child.on('close', resolve))
    await written(directory, 2)
    await written(directory, 3, true)
    await expect.poll(() => texts.out, PATIENCE).toMatch(/"step":3,.*\n/)
    await written(directory, 4)
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(objects(texts.out).map(({ step, tensor }) => [step, tensor])).toEqual([[3, 'a.weight']])
    // What is being written when the run is opened is noted.
    expect(texts.err.replace(/^.*(interrupted|changed less than a minute ago: it is left out).*\n/gm, '')).toBe('')
  })
})

describe('serve', () => {
  it('has steps when they are whole, and answers while they are written', async () => {
    const directory = join(scratch, 'served')
    await written(directory, 1)
    const server = await serveTrials([directory], { port: 0, version: '1', pollMs: 50 })
    try {
      const of = async (path: string) => {
        const answer = await fetch(`${server.url}/api/trials/served${path}`)
        expect(answer.status, path).toBe(200)
        return answer.text()
      }
      const rows = async () => objects(await of('/scan?reductions=sum')).filter(({ tensor }) => tensor === 'b.weight')
      expect((await rows()).map(({ step }) => step)).toEqual([1])
      for await (const _ of pieces(directory, 2)) {
        for (const { step, sum, error } of await rows())
          expect([step, sum, error]).toEqual([step, 1 + +step!, undefined])
      }
      await expect.poll(async () => (await rows()).map(({ step }) => step), PATIENCE).toEqual([1, 2])
      await written(directory, 3, true)
      await expect.poll(() => of('/findings'), PATIENCE).toContain('a.weight has 1 NaN')
    } finally {
      await server.close()
    }
  })
})
