/** Files of a trial listed and copied: those that are new, in an order that never leaves half of a step. */

import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  copyTrial,
  createTrial,
  createWriter,
  debugOutput,
  StoreError,
  tensorboardOutput,
  trialFiles,
  UsageError,
} from '#dist/index.js'
import { objects, PLAIN, trialscan } from '../cli/run.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('copy')
let count = 0
const place = () => join(scratch, String(count++))

describe('a copy', () => {
  it('has all files, and then those that are new or have changed', async () => {
    const [source, target] = [place(), place()]
    cpSync(PLAIN, source, { recursive: true })
    const files = await trialFiles(source)
    const bytes = files.reduce((sum, { byteLength }) => sum + byteLength, 0)
    expect(await copyTrial(source, target)).toEqual({ copied: files.length, copiedBytes: bytes, kept: 0 })
    for (const { path, byteLength } of files) {
      const copy = readFileSync(join(target, path))
      expect([path, copy.length, copy.equals(readFileSync(join(source, path)))]).toEqual([path, byteLength, true])
    }
    expect((await createTrial(target)).steps()).toEqual((await createTrial(source)).steps())
    expect(await copyTrial(source, target)).toEqual({ copied: 0, copiedBytes: 0, kept: files.length })

    const [first, second, third] = files.map(({ path }) => path) as [string, string, string]
    appendFileSync(join(source, first), 'x')
    rmSync(join(target, second))
    const later = new Date(Date.now() + 60_000)
    utimesSync(join(source, third), later, later)
    writeFileSync(join(target, 'mine'), 'stays')
    const again: string[] = []
    const { copied, kept } = await copyTrial(source, target, { onFile: ({ path }) => again.push(path) })
    expect([copied, kept, again.sort()]).toEqual([3, files.length - 3, [first, second, third].sort()])
    expect(readFileSync(join(target, 'mine'), 'utf8')).toBe('stays')
  })

  it('is of a trial on S3, and takes what has come since', async () => {
    const s3 = await FaultyS3.start()
    try {
      const from = 's3://bucket/trial'
      const writer = await createWriter(from, { saveConfig: { saveInterval: 1 }, s3: s3.options })
      const target = place()
      const steps = async () => (await createTrial(target, { refresh: 'manual' })).steps()
      const saved = async () => {
        const step = await writer.step()
        await writer.save('x', Float32Array.of(step))
        await writer.flush()
      }
      await saved()
      const first = await copyTrial(from, target, { s3: s3.options })
      expect([await steps(), first.kept]).toEqual([[0], 0])
      await saved()
      await writer.close()
      // Its event file, its index file and the end of the job; the collections may say more.
      const { copied, kept } = await copyTrial(from, target, { s3: s3.options })
      expect([await steps(), kept > 0]).toEqual([[0, 1], true])
      expect(copied + kept).toBe((await trialFiles(from, { s3: s3.options })).length)
      expect((await createTrial(target)).loadedAllSteps).toBe(true)
    } finally {
      await s3.stop()
    }
  })

  it('has index files after what they name, and the end of the job last', async () => {
    const source = place()
    for (const path of ['events/a', 'index/000000000/a', 'collections/a', 'training_job_end.ts', 'z']) {
      mkdirSync(join(source, path, '..'), { recursive: true })
      writeFileSync(join(source, path), 'x')
    }
    const order: string[] = []
    await copyTrial(source, place(), { onFile: ({ path }) => order.push(path) })
    expect(order.at(-1)).toBe('training_job_end.ts')
    expect(order.at(-2)).toBe('index/000000000/a')
  })

  it('ends where it is aborted, and refuses what is no directory, no trial, and links that lead out', async () => {
    const target = place()
    await expect(copyTrial(PLAIN, target, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/)
    expect(existsSync(target)).toBe(false)
    await expect(copyTrial(PLAIN, 's3://bucket/prefix')).rejects.toThrow(UsageError)
    await expect(copyTrial(PLAIN, '')).rejects.toThrow(/expected a directory to copy to, got ""/)
    await expect(copyTrial(place(), target)).rejects.toThrow(StoreError)
    const [linked, outside] = [place(), place()]
    mkdirSync(linked)
    mkdirSync(outside)
    symlinkSync(outside, join(linked, 'events'))
    await expect(copyTrial(PLAIN, linked)).rejects.toThrow(/a symbolic link leads to/)
    expect(existsSync(join(outside, '000000000000'))).toBe(false)
  })
})

describe('the command line', () => {
  it('copies, and says how much of it is new', async () => {
    const target = place()
    const first = await trialscan('copy', PLAIN, target)
    expect([first.code, first.stdout]).toEqual([0, expect.stringMatching(/^copied \d+ files, .*B, to .*\n$/)])
    const second = await trialscan('copy', PLAIN, target)
    expect(second.stdout).toMatch(/^copied 0 files, 0 B, to .*; \d+ were there already\n$/)
    const inside = await trialscan('copy', target, join(target, 'index'))
    expect([inside.code, inside.stderr]).toEqual([2, expect.stringContaining('outside of the trial')])
  })

  it('lists files', async () => {
    const files = await trialFiles(PLAIN)
    const { stdout } = await trialscan('ls', '--files', PLAIN, '--format', 'jsonl')
    expect(objects(stdout)).toEqual(
      files.map(({ path, byteLength, modifiedMs }) => ({
        path,
        bytes: byteLength,
        modified: new Date(modifiedMs).toISOString(),
      })),
    )
    const table = await trialscan('ls', '--files', PLAIN, '--format', 'table')
    expect(table.stdout.split('\n').length).toBe(files.length + 2)
    const csv = await trialscan('ls', '--files', PLAIN, PLAIN, '--format', 'csv')
    expect(csv.stdout.split('\n')[0]).toBe('trial,path,bytes,modified')
  })
})

it('a job of SageMaker saves below its name', () => {
  expect(debugOutput('s3://bucket/jobs/', 'mnist-1')).toBe('s3://bucket/jobs/mnist-1/debug-output')
  expect(tensorboardOutput('s3://bucket', 'mnist-1')).toBe('s3://bucket/mnist-1/tensorboard-output')
  expect(() => debugOutput('/tmp', 'x')).toThrow(
    'debugOutput: expected an output path such as s3://bucket/prefix, got "/tmp"',
  )
  expect(() => tensorboardOutput('s3://bucket', 'a/b')).toThrow(
    'tensorboardOutput: expected the name of a job, got "a/b"',
  )
})
