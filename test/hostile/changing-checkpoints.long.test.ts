/** Checkpoints that are changed between header and elements: the numbers of the header's file or an error, never others. */

import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type Trial } from '#dist/index.js'
import { safetensors, tensorOf } from '../../fixtures/checkpoint-writer.js'
import { dict, distributedMetadata, pickled, tensor, torchZip } from '../support/pickles.js'
import { HAS_S3, makeBucket, OPTIONS, put } from '../support/s3.js'
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

describe.runIf(HAS_S3)('on S3', () => {
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
