/**
 * What a scan costs, counted and not timed: reads, bytes, crossings of the border, collections of garbage, modules that
 * are loaded. A change that makes one of these larger is to be meant.
 */

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { inTurns } from '#dist/base/turns.js'
import { LineTable } from '#dist/core/batch/line-table.js'
import { Engine } from '#dist/core/engine.js'
import { createTrial, evaluate, UnchangedTensor, VanishingGradient } from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { type Made, makeLarge, makeMany } from '../fixtures/make.js'
import { CLI } from './cli/run.js'
import { fixtureTrial, ROOT } from './support/golden.js'
import { pickled, tensor, torchZip } from './support/pickles.js'
import { scratchDirectory } from './support/scratch.js'
import { WholeFiles } from './support/whole-files.js'

const scratch = scratchDirectory('cost')
const run = promisify(execFile)
let many: Made
const manyDirectory = join(scratch, 'many')
const largeDirectory = join(scratch, 'large')

beforeAll(() => {
  many = makeMany(manyDirectory, { steps: 20 })
  makeLarge(largeDirectory, { steps: 2, scale: 0.05 })
})

/** Calls of the store and of the core while `work` runs. */
async function counted(work: () => Promise<unknown>): Promise<{ reads: number; bytes: number; crossings: number }> {
  const read = vi.spyOn(LocalStore.prototype, 'readInto')
  const crossings = vi.spyOn(Engine.prototype, 'scan')
  try {
    await work()
    const bytes = read.mock.results.reduce((sum, { value }) => sum + (value as number), 0)
    return { reads: read.mock.calls.length, bytes, crossings: crossings.mock.calls.length }
  } finally {
    read.mockRestore()
    crossings.mockRestore()
  }
}

describe('a dump of small files', () => {
  it('is opened with one read a file, and none to ask how long it is', async () => {
    const directory = join(scratch, 'dump')
    const content = new Uint8Array(Float32Array.of(1, 2, 3).buffer)
    const file = torchZip({ 'data.pkl': pickled(tensor({ count: 3, size: [3], stride: [1] })), 'data/0': content })
    mkdirSync(directory)
    for (let i = 0; i < 5; i++)
      writeFileSync(join(directory, `step=0___rank=0___dump_index=${i}___name=a${i}.pt`), file)
    const lengths = vi.spyOn(LocalStore.prototype, 'byteLength')
    const { reads, bytes } = await counted(async () => {
      const trial = await createTrial(directory, { refresh: 'manual' })
      expect(trial.tensorNames()).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
      await trial.close()
    })
    expect({ reads, bytes, lengths: lengths.mock.calls.length }).toEqual({
      reads: 5,
      bytes: 5 * file.length,
      lengths: 0,
    })
    lengths.mockRestore()
  })
})

describe('a scan', () => {
  it('reads a step of small tensors at once, and crosses the border once for it, and once for its lines', async () => {
    const trial = await createTrial(manyDirectory)
    const scan = trial.scan({ threads: 0 })
    const written = vi.spyOn(LineTable.prototype, 'write')
    const cost = await counted(async () => {
      for await (const _ of scan.lines('csv'));
    })
    expect(written).toHaveBeenCalledTimes(20)
    written.mockRestore()
    const records = many.steps.length * many.tensors.length
    expect(scan.stats).toMatchObject({ rows: records, records, reads: 20, jobs: 1 })
    expect(cost).toEqual({ reads: 20, bytes: scan.stats.readBytes, crossings: 20 })
  })

  it('has the text that threads write moved, in buffers no larger than it', async () => {
    const trial = await createTrial(manyDirectory)
    const buffers: number[][] = []
    for await (const text of trial.scan({ threads: 1 }).lines('csv')) {
      if (text.length > 1e6) buffers.push([text.length, text.buffer.byteLength])
    }
    expect(buffers.length).toBeGreaterThan(0)
    for (const [length, whole] of buffers) expect(whole).toBe(length)
  })

  it('reads no byte twice and none in vain', async () => {
    const trial = await createTrial(largeDirectory)
    const { byteLength } = await trial.summary()
    const scan = trial.scan({ threads: 0 })
    const cost = await counted(async () => {
      for await (const _ of scan);
    })
    expect(cost.bytes).toBe(byteLength)
    expect(cost.crossings).toBe(cost.reads)
    expect(cost.reads).toBeLessThanOrEqual(Math.ceil(byteLength / 2 ** 19))
  })

  it('makes little garbage: no more than some collections of the young for ten thousand rows', async () => {
    const script = `
      const { PerformanceObserver } = await import('node:perf_hooks')
      const { createTrial } = await import(${JSON.stringify(join(ROOT, 'dist/bundle/index.js'))})
      let collections = 0
      const observer = new PerformanceObserver(list => { collections += list.getEntries().length })
      const trial = await createTrial(${JSON.stringify(manyDirectory)})
      observer.observe({ entryTypes: ['gc'] })
      for (let i = 0; i < 3; i++) for await (const _ of trial.scan({ threads: 0 }).lines('csv'));
      await new Promise(done => setTimeout(done, 10))
      console.log(collections)`
    const { stdout } = await run(process.execPath, ['--max-semi-space-size=16', '--input-type=module', '-e', script])
    expect(Number(stdout)).toBeLessThanOrEqual(20)
  })
})

describe('opening', () => {
  it('reads every index file once, and no event file', async () => {
    const files = new WholeFiles()
    const cost = await counted(() => createTrial(manyDirectory))
    expect(files.paths.filter(path => path.startsWith('index/'))).toHaveLength(20)
    expect(files.paths).toHaveLength(21)
    expect(cost).toEqual({ reads: 0, bytes: 0, crossings: 0 })
    files.stop()
  })

  it('of many steps lets others on the thread have their turns', async () => {
    const turnsDuring = async (items: number): Promise<number> => {
      let turns = 0
      let isOver = false
      const turn = () => {
        turns++
        if (!isOver) setImmediate(turn)
      }
      setImmediate(turn)
      let done = 0
      await inTurns(Array(items).fill(1), one => {
        done += one
      })
      isOver = true
      expect(done).toBe(items)
      return turns
    }
    expect(await turnsDuring(4000)).toBe(0)
    expect(await turnsDuring(100_000)).toBeGreaterThanOrEqual(24)
  })

  it('of a running trial lists what it listed before, and watches nothing yet', async () => {
    const watch = vi.spyOn(LocalStore.prototype, 'watch')
    const list = vi.spyOn(LocalStore.prototype, 'list')
    const exists = vi.spyOn(LocalStore.prototype, 'exists')
    const trial = await createTrial(fixtureTrial('workers-running').directory)
    expect(list.mock.calls.map(([path]) => path)).toEqual(['index', 'collections'])
    expect([watch.mock.calls.length, exists.mock.calls.length]).toEqual([0, 3])
    await trial.close()
    for (const spy of [watch, list, exists]) spy.mockRestore()
  })

  it('reads again nothing but what is new', async () => {
    const trial = await createTrial(fixtureTrial('workers-running').directory)
    const files = new WholeFiles()
    await trial.refresh()
    expect(files.paths).toEqual([])
    files.stop()
  })
})

it('rules share what they read', async () => {
  const trial = await createTrial(manyDirectory)
  const rules = () => [
    new VanishingGradient(trial),
    new UnchangedTensor(trial, { tensor_regex: ['layer'], num_steps: 2 }),
    new UnchangedTensor(trial, { tensor_regex: ['layer'], num_steps: 3 }),
  ]
  const one = await counted(() => evaluate(rules().slice(1, 2), { threads: 0, follow: false }))
  const three = await counted(() => evaluate(rules(), { threads: 0, follow: false }))
  expect(three).toEqual(one)
})

describe('the package', () => {
  it('has a core of some ten kilobytes', () => {
    expect(statSync(join(ROOT, 'build/release.wasm')).size).toBeLessThan(110_000)
  })

  it.each([
    ['scan', ['scan', fixtureTrial('mlp-vanishing').directory]],
    ['ls', ['ls', fixtureTrial('mlp-vanishing').directory]],
    ['check', ['check', '--no-fail-on-finding', manyDirectory]],
    ['--help', ['--help']],
  ])('loads only what %s needs', async (_, args) => {
    const { packages, own } = await loadedBy(args)
    expect(packages.filter(name => name !== 're2js')).toEqual([])
    // Each takes half a millisecond to load.
    expect(own.length).toBeLessThanOrEqual(40)
  })
})

/** The packages and the files of our own that a command loads. */
async function loadedBy(args: readonly string[]): Promise<{ packages: readonly string[]; own: readonly string[] }> {
  const coverage = mkdtempSync(join(scratch, 'loaded-'))
  await run(process.execPath, [CLI, ...args], { env: { ...process.env, NODE_V8_COVERAGE: coverage } })
  const loaded = readdirSync(coverage).flatMap(file => {
    const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as { result: { url: string }[] }
    return result.map(({ url }) => url).filter(url => url.startsWith('file:'))
  })
  const packages = new Set(loaded.flatMap(url => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []))
  return { packages: [...packages], own: loaded.filter(url => !url.includes('node_modules')) }
}
