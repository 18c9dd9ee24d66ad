/** The opt-in cache of index files: faster, and never believed blindly. */

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, lstatSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { eventFilePath } from '#dist/format/paths.js'
import { createTrial, type GlobalStep, type Trial } from '#dist/index.js'
import { IndexColumns } from '#dist/scan/catalog/columns/index-columns.js'
import { decodeIndexCache, encodeIndexCache } from '#dist/scan/catalog/load/index-cache.js'
import { openStore, storeSpec } from '#dist/storage/open.js'
import { fixtureTrials } from './support/golden.js'
import { plainRows, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'
import { WholeFiles } from './support/whole-files.js'

const scratch = scratchDirectory('cache')
afterEach(() => vi.restoreAllMocks())

const indexed = fixtureTrials().filter(({ directory }) => existsSync(join(directory, 'collections')))
const INDEX = 'index/000000000'
let copies = 0

/** A copy of a trial, with a cache of it. */
async function cached(name = 'plain'): Promise<{ trial: string; cache: string }> {
  const trial = join(scratch, `${copies++}`)
  cpSync(indexed.find(fixture => fixture.name === name)!.directory, trial, { recursive: true })
  const cache = `${trial}.cache`
  await createTrial(trial, { indexCache: cache })
  return { trial, cache }
}

/** Opens a trial and tells which index files were read. */
async function open(trial: string, cache: string): Promise<{ opened: Trial; read: string[] }> {
  const files = new WholeFiles()
  const opened = await createTrial(trial, { indexCache: cache })
  const read = files.paths.filter(path => path.startsWith('index/'))
  files.stop()
  return { opened, read }
}

describe.each(indexed)('$name', ({ name }) => {
  it('opens from the cache as it does from its files', async () => {
    const { trial, cache } = await cached(name)
    const { opened, read } = await open(trial, cache)
    expect(read).toEqual([])
    const plain = await createTrial(trial)
    expect(plainRows(await rowsOf(opened))).toEqual(plainRows(await rowsOf(plain)))
    expect(opened.steps({ showIncompleteSteps: true })).toEqual(plain.steps({ showIncompleteSteps: true }))
    const tensor = plain.tensorNames()[0]!
    expect(await opened.tensor(tensor).shapes()).toEqual(await plain.tensor(tensor).shapes())
    expect(opened.tensor(tensor).originalName).toBe(plain.tensor(tensor).originalName)
  })
})

it('reads again what has changed, also in the same length and with the old time put back', async () => {
  const { trial, cache } = await cached()
  const path = join(trial, INDEX, '000000000001_worker_0.json')
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace('fc.bias', 'fc.bios'))
  utimesSync(path, new Date(0), new Date(0))
  const { opened, read } = await open(trial, cache)
  expect(read).toEqual([`${INDEX}/000000000001_worker_0.json`])
  expect(opened.hasTensor('fc.bios')).toBe(true)
  // And keeps it.
  expect((await open(trial, cache)).read).toEqual([])
})

it('reads what is new and forgets what is gone', async () => {
  const { trial, cache } = await cached()
  rmSync(join(trial, INDEX, '000000000000_worker_0.json'))
  cpSync(join(trial, INDEX, '000000000001_worker_0.json'), join(trial, INDEX, '000000000007_worker_0.json'))
  const { opened, read } = await open(trial, cache)
  expect(read).toEqual([`${INDEX}/000000000007_worker_0.json`])
  expect(opened.steps()).toEqual([1, 2, 7])
})

it('does not keep what could not be read', async () => {
  const { trial, cache } = await cached()
  const path = join(trial, INDEX, '000000000001_worker_0.json')
  const text = readFileSync(path)
  writeFileSync(path, '{')
  expect((await open(trial, cache)).opened.problems).toHaveLength(1)
  writeFileSync(path, text)
  expect((await open(trial, cache)).opened.problems).toEqual([])
})

it('takes a cache that is cut, damaged, empty or of another trial for none', async () => {
  const { trial, cache } = await cached()
  const other = await cached('workers-4')
  const whole = readFileSync(cache)
  const damaged = [
    whole.subarray(0, 0),
    whole.subarray(0, 20),
    whole.subarray(0, whole.length - 1),
    ...[0, 5, 30, whole.indexOf('sections') + 11, whole.indexOf(10) + 3, whole.length - 2].map(at =>
      whole.map((byte, i) => (i === at ? byte ^ 4 : byte)),
    ),
    Buffer.from('null\n'),
    Buffer.from('{"form":"trialscan index cache 1"}\n'),
    readFileSync(other.cache),
  ]
  for (const bytes of damaged) {
    writeFileSync(cache, bytes)
    const { opened, read } = await open(trial, cache)
    expect(read).toHaveLength(3)
    expect(opened.steps()).toEqual([0, 1, 2])
    expect(readFileSync(cache)).toEqual(whole)
  }
})

it('says so when the cache can not be written, and opens the trial all the same', async () => {
  const { trial } = await cached()
  const opened = await createTrial(trial, { indexCache: join(scratch, 'missing', 'cache') })
  expect(opened.steps()).toEqual([0, 1, 2])
  const [problem] = opened.scan().problems
  expect(problem).toMatchObject({ name: 'StoreError', code: 'Unavailable' })
  expect(problem!.message).toMatch(/missing.cache can't be written: ENOENT/)
})

it('opens a trial of which a file can not be looked at as it does without', async () => {
  const { trial, cache } = await cached()
  const path = 'index/000000000/000000000001_worker_0.json'
  rmSync(join(trial, path))
  // Nothing can be told of it: it leads to itself.
  symlinkSync(join(trial, path), join(trial, path))
  const store = openStore(storeSpec(trial))
  const [one, two] = [await store.stamps([path]), await store.stamps(['index/000000000/000000000002_worker_0.json'])]
  expect([[...one], two[0]! > 0]).toEqual([[Number.NaN, Number.NaN, Number.NaN], true])
  const [plain, opened] = [await createTrial(trial), await createTrial(trial, { indexCache: cache })]
  expect(opened.steps()).toEqual(plain.steps())
})

it('gives back what it was given', () => {
  const [step, worker] = [3 as GlobalStep, 'worker_0']
  const from = new IndexColumns()
  const shapes = [{ name: 'ß/😀', originalName: '', shape: [0, 2 ** 40] }]
  const tensors = [{ name: '__proto__', startByte: 2 ** 52, byteLength: 16 }]
  const content = { mode: 'EVAL', modeStep: 3, eventFile: null, tensors: [], shapes } as const
  const contents = [
    content,
    { ...content, modeStep: -1, eventFile: 'events/é', tensors },
    { ...content, eventFile: eventFilePath(step, worker), tensors },
    { ...content, shapes: [] },
  ]
  const files = contents.map((one, i) => ({
    path: `index/${i}.json`,
    stamp: Float64Array.of(i, 2.25, i + 3),
    row: from.listed(from.add(step, worker, one)),
  }))
  const bytes = encodeIndexCache('t', { files, columns: from })
  const decoded = decodeIndexCache('t', bytes)!
  expect(decoded.paths).toEqual(files.map(({ path }) => path))
  const to = new IndexColumns()
  for (const [i, one] of contents.entries()) {
    expect(decoded.stamp(i)).toEqual(files[i]!.stamp)
    expect(to.content(decoded.addTo(to, i, step, worker))).toEqual(one)
  }
  // Steps that are alike share what they have in common.
  expect(to.list(1)).toBe(to.list(2))
  expect(decodeIndexCache('u', bytes)).toBeNull()
})

it('is written through a link, and to no pipe', async () => {
  const { trial, cache } = await cached()
  const link = join(scratch, 'link')
  symlinkSync(cache, link)
  const before = readFileSync(cache)
  writeFileSync(cache, 'something else')
  await createTrial(trial, { indexCache: link })
  expect(readFileSync(cache)).toEqual(before)
  expect(lstatSync(link).isSymbolicLink()).toBe(true)

  const pipe = join(scratch, 'pipe')
  execFileSync('mkfifo', [pipe])
  const opened = await createTrial(trial, { indexCache: pipe })
  expect(opened.scan().problems[0]!.message).toMatch(/pipe can't be written: it is not a regular file$/)
})
