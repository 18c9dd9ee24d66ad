/** Checkpoints that are changed between header and elements: the numbers of the header's file or an error, never others. */

import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DeleteObjectCommand } from '@aws-sdk/client-s3'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type Trial, TrialscanError } from '#dist/index.js'
import { safetensors, tensorOf } from '../../fixtures/checkpoint-writer.js'
import { dict, distributedMetadata, pickled, tensor, torchZip } from '../support/pickles.js'
import { client, HAS_S3, makeBucket, OPTIONS, put } from '../support/s3.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('changing-checkpoints')
const COUNT = 20_000
afterAll(closePools)

const filled = (value: number) => new Array<number>(COUNT).fill(value)

function ofSafetensors(value: number): Uint8Array {
  return safetensors([tensorOf('w', 'F32', [COUNT], filled(value))])
}

/** A chunk is the tensor alone. */
function ofTorch(value: number, rootOf: (one: Uint8Array) => Uint8Array = one => one): Uint8Array {
  const content = new Uint8Array(Float32Array.from(filled(value)).buffer)
  const root = rootOf(tensor({ count: COUNT, size: [COUNT], stride: [1] }))
  return torchZip({ 'data.pkl': pickled(root), 'data/0': content })
}

interface Kind {
  readonly name: string
  /** The file that has the elements. */
  readonly file: string
  readonly content: (value: number) => Uint8Array
  /** What lies beside it. */
  readonly beside?: () => Readonly<Record<string, Uint8Array>>
}

const metadata = () =>
  distributedMetadata({
    w: {
      size: [COUNT],
      chunks: [{ offsets: [0], sizes: [COUNT], place: { file: '__0_0.distcp', start: 0, length: ofTorch(1).length } }],
    },
  })

const KINDS: readonly Kind[] = [
  { name: 'safetensors', file: 'model.safetensors', content: ofSafetensors },
  { name: 'torch.save', file: 'model.pt', content: value => ofTorch(value, w => dict({ w })) },
  {
    name: 'a chunk of DCP',
    file: '__0_0.distcp',
    content: value => ofTorch(value),
    beside: () => ({ '.metadata': metadata() }),
  },
]

type Change = readonly [name: string, (path: string, other: Uint8Array) => void]

const CHANGES: readonly Change[] = [
  ['overwritten in place', (path, other) => writeFileSync(path, other)],
  [
    'replaced',
    (path, other) => {
      writeFileSync(`${path}.tmp`, other)
      renameSync(`${path}.tmp`, path)
    },
  ],
  ['cut', path => truncateSync(path, 1000)],
  [
    'cut and filled again',
    (path, other) => {
      truncateSync(path, 0)
      writeFileSync(path, other)
    },
  ],
  ['grown', path => appendFileSync(path, new Uint8Array(1000))],
  ['removed', path => rmSync(path)],
  [
    'a link out of the place',
    (path, other) => {
      rmSync(path)
      const target = join(scratch, 'elsewhere')
      writeFileSync(target, other)
      symlinkSync(target, path)
    },
  ],
  [
    'a FIFO',
    path => {
      rmSync(path)
      execFileSync('mkfifo', [path])
    },
  ],
]

/** All that is read of the tensor, as sums; codes of errors. */
async function readings(trial: Trial, threads: number): Promise<readonly unknown[]> {
  const rows = await rowsOf(trial, { reductions: ['sum'], threads })
  const value = trial.tensor('w').value(0, { threads })
  return [
    ...rows.map(({ error, reductions }) => error?.code ?? reductions.sum),
    await value.then(
      ({ data }) => (data as Float32Array).reduce((sum, x) => sum + x, 0),
      (error: { code?: string }) => error.code ?? error,
    ),
  ]
}

describe.each(KINDS)('$name', ({ name, file, content, beside }) => {
  it.each(CHANGES)('%s', { timeout: 300_000 }, async (change, disturb) => {
    for (const threads of [0, 2]) {
      const directory = join(scratch, `${name} ${change} ${threads}`)
      const path = join(directory, 'step-0', file)
      mkdirSync(dirname(path), { recursive: true })
      for (const [other, bytes] of Object.entries(beside?.() ?? {})) writeFileSync(join(dirname(path), other), bytes)
      writeFileSync(path, content(1))
      const trial = await createTrial(directory, { refresh: 'manual', threads })
      // Longer than file systems take two changes for one.
      await setTimeout(50)
      disturb(path, content(2))
      for (const reading of await readings(trial, threads)) {
        expect(typeof reading === 'string' ? 'an error' : reading).toEqual(
          typeof reading === 'string' ? 'an error' : COUNT,
        )
      }
      if (change === 'overwritten in place' || change === 'replaced') {
        expect(await readings(trial, threads)).toEqual(['CheckpointChanged', 'CheckpointChanged'])
        await trial.refresh()
        expect(await readings(trial, threads)).toEqual([2 * COUNT, 2 * COUNT])
      }
      await trial.close()
    }
  })
})

/** Swaps a file for others, until it is ended: in a process of its own, amid the reads. */
const SWAP = `
const { copyFileSync, renameSync, truncateSync } = require('node:fs')
const [path, ...others] = process.argv.slice(1)
const pause = new Int32Array(new SharedArrayBuffer(4))
for (let i = 0; ; i++) {
  copyFileSync(others[i % others.length], path + '.tmp')
  if (i % 3 === 2) truncateSync(path + '.tmp', 1000 * (i % 1000))
  if (i % 2 === 0) renameSync(path + '.tmp', path)
  else copyFileSync(path + '.tmp', path)
  // Longer than file systems take two changes for one.
  Atomics.wait(pause, 0, 0, 20)
}`

it.each(KINDS)('$name that is swapped, cut and written over while it is read', { timeout: 600_000 }, async kind => {
  const { name, file, beside } = kind
  const directory = join(scratch, `swapped ${name}`)
  const path = join(directory, 'step-0', file)
  mkdirSync(dirname(path), { recursive: true })
  for (const [other, bytes] of Object.entries(beside?.() ?? {})) writeFileSync(join(dirname(path), other), bytes)
  const others = [1, 2].map(value => {
    const other = join(scratch, `${name} ${value}`)
    writeFileSync(other, kind.content(value))
    return other
  })
  writeFileSync(path, kind.content(1))
  const child = spawn(process.execPath, ['-e', SWAP, path, ...others])
  const seen = new Set<unknown>()
  const endMs = Date.now() + 5000
  try {
    while (Date.now() < endMs) {
      for (const threads of [0, 1]) {
        try {
          const trial = await createTrial(directory, { refresh: 'manual', threads })
          const known = trial.tensorNames().includes('w') ? await readings(trial, threads) : []
          for (const reading of known) seen.add(typeof reading === 'string' ? 'an error' : reading)
          await trial.close()
        } catch (error) {
          if (!(error instanceof TrialscanError)) throw error
        }
      }
    }
  } finally {
    child.kill()
  }
  const right: readonly unknown[] = [COUNT, 2 * COUNT, 'an error']
  expect([...seen].filter(reading => !right.includes(reading))).toEqual([])
})

describe.runIf(HAS_S3)('on S3', () => {
  it('a listing that changes: a shard that goes, and one that comes', async () => {
    const bucket = await makeBucket()
    const shard = (number: number) => `run/checkpoint-1/model-0000${number}-of-00002.safetensors`
    const content = (name: string) => safetensors([tensorOf(name, 'F32', [2], [1, 2])])
    const map = { a: shard(1).slice(17), b: shard(2).slice(17) }
    await put(bucket, 'run/checkpoint-1/model.safetensors.index.json', Buffer.from(JSON.stringify({ weight_map: map })))
    await put(bucket, shard(1), content('a'))
    await put(bucket, shard(2), content('b'))
    const trial = await createTrial(`s3://${bucket}/run`, { refresh: 'manual', s3: OPTIONS, threads: 0 })
    const sums = async () => {
      const rows = await rowsOf(trial, { reductions: ['sum'], threads: 0 })
      return rows.map(({ tensor, error, reductions }) => [tensor, error?.code ?? reductions.sum])
    }
    expect(await sums()).toEqual([
      ['a', 3],
      ['b', 3],
    ])
    const s3 = client()
    await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: shard(2) }))
    s3.destroy()
    expect(await sums()).toEqual([
      ['a', 3],
      ['b', 'NotFound'],
    ])
    await trial.refresh()
    // It may be written yet.
    expect([trial.steps(), trial.problems.length, trial.notes.length]).toEqual([[], 0, 1])
    await put(bucket, shard(2), content('b'))
    await trial.refresh()
    expect((await sums()).length).toBe(2)
    await put(bucket, 'run/checkpoint-2/model.safetensors', content('a'))
    await trial.refresh()
    expect(trial.steps()).toEqual([1, 2])
    await trial.close()
  })

  it.each([0, 2])('an object that is replaced, on %s threads', async threads => {
    const bucket = await makeBucket()
    await put(bucket, 'run/model.safetensors', ofSafetensors(1))
    const trial = await createTrial(`s3://${bucket}/run`, { refresh: 'manual', s3: OPTIONS, threads })
    await put(bucket, 'run/model.safetensors', ofSafetensors(2))
    for (const reading of await readings(trial, threads)) {
      expect(['ObjectChanged', 'CheckpointChanged', COUNT]).toContain(reading)
    }
    await trial.close()
  })
})
