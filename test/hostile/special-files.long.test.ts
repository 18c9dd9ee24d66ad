/** What is no file where one of the trial should be: links, directories, FIFOs, sockets, devices. And two files for one. */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, reindexTrial, repairTrial, type ScanRow, verifyTrial } from '#dist/index.js'
import { collectionsFileText, eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeCollections, writeStep } from './museum.js'

const scratch = scratchDirectory('special')
const servers: Server[] = []
let made = 0

afterAll(async () => {
  for (const server of servers) server.close()
  await closePools()
})

/** Steps 0, 1 and 2 of two workers. */
function goodTrial({ ended = true } = {}): string {
  const directory = join(scratch, `t${made++}`)
  writeCollections(directory, collectionsFileText({}, 2))
  cpSync(
    join(directory, 'collections/000000000/worker_0_collections.json'),
    join(directory, 'collections/000000000/worker_1_collections.json'),
  )
  for (const step of [0, 1, 2]) for (const worker of ['worker_0', 'worker_1']) writeStep(directory, step, { worker })
  if (ended) writeFile(directory, 'training_job_end.ts')
  return directory
}

function writeFile(directory: string, path: string): void {
  execFileSync('touch', [join(directory, path)])
}

const INDEX = indexFilePath(1, 'worker_1')
const EVENTS = eventFilePath(1, 'worker_1')

/** What may be in place of a file; each is given its path, after the file has gone elsewhere. */
const kinds: Record<string, readonly [code: string, make: (path: string, away: string) => void | Promise<void>]> = {
  'a dangling link': ['NotFound', path => symlinkSync('.git/annex/objects/nowhere', path)],
  'a link to itself': ['Unavailable', path => symlinkSync(basename(path), path)],
  'a link out of the trial': ['Denied', (path, away) => symlinkSync(away, path)],
  'a link to a directory': ['NotAFile', path => symlinkSync('.', path)],
  'a link to a directory out of the trial': ['Denied', (path, away) => symlinkSync(dirname(away), path)],
  'a directory': ['NotAFile', path => void mkdirSync(path)],
  'a FIFO': ['NotAFile', path => void execFileSync('mkfifo', [path])],
  'a link to a device': ['Denied', path => symlinkSync('/dev/zero', path)],
  'a socket': [
    'NotAFile',
    async path => {
      // A path of a socket is short.
      const short = join(scratch, `s${made++}`)
      const server = createServer()
      servers.push(server)
      await new Promise<void>(resolve => server.listen(short, resolve))
      renameSync(short, path)
    },
  ],
}

async function replace(directory: string, path: string, kind: string): Promise<void> {
  const away = join(scratch, `away${made++}`, 'file')
  mkdirSync(dirname(away))
  renameSync(join(directory, path), away)
  await kinds[kind]![1](join(directory, path), away)
}

const errorsOf = (rows: readonly ScanRow[]) =>
  rows.flatMap(({ step, worker, tensor, error }) => (error ? [[step, worker, tensor, error.code]] : []))

describe.each(Object.keys(kinds))('%s', kind => {
  const [code] = kinds[kind]!

  it('in place of an index file is a row with an error', async () => {
    const directory = goodTrial()
    const good = plainRows(await rowsOf(await createTrial(directory)))
    await replace(directory, INDEX, kind)
    const trial = await createTrial(directory)
    const rows = await rowsOf(trial)
    expect(errorsOf(rows)).toEqual([[1, 'worker_1', null, code]])
    expect(plainRows(rows.filter(({ error }) => !error)).length).toBe(good.length - 2)
    expect(good).toEqual(expect.arrayContaining(plainRows(rows.filter(({ error }) => !error))))
    expect(trial.problems.map(({ code }) => code)).toEqual([code])
    expect(trial.steps()).toEqual([0, 1, 2])
    for (const command of ['ls', 'scan', 'check']) {
      const { code, stderr } = await trialscan(command, directory)
      expect([command, code, stderr]).toEqual([command, 4, expect.stringContaining(basename(INDEX))])
    }
    const { problems } = await verifyTrial(directory)
    expect(problems).toEqual([expect.objectContaining({ code: 'Unreadable', file: INDEX, step: 1 })])
    expect(await rejectionOf(reindexTrial(directory))).toMatchObject({ code })
    // The records are there: the copy has an index file of them.
    const copy = join(scratch, `copy${made++}`)
    const { leftOut } = await repairTrial(directory, copy)
    expect(leftOut.map(({ file }) => file)).toEqual([INDEX])
    expect(plainRows(await rowsOf(await createTrial(copy)))).toEqual(good)
    expect((await verifyTrial(copy)).ok).toBe(true)
  })

  it('in place of an event file is rows with errors, with an index and without', async () => {
    const directory = goodTrial()
    await replace(directory, EVENTS, kind)
    const rows = await rowsOf(await createTrial(directory))
    expect(errorsOf(rows)).toEqual([
      [1, 'worker_1', 'good', code],
      [1, 'worker_1', 'bad', code],
    ])
    rmSync(join(directory, 'index'), { recursive: true })
    const unindexed = await createTrial(directory)
    expect(errorsOf(await rowsOf(unindexed))).toEqual([[1, 'worker_1', null, code]])
    expect(unindexed.problems.map(({ code }) => code)).toEqual([code])
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file }) => [code, file])).toEqual([['Unreadable', EVENTS]])
    const { leftOut } = await repairTrial(directory, join(scratch, `copy${made++}`))
    expect(leftOut.map(({ file }) => file)).toEqual([EVENTS])
    expect(await rejectionOf(reindexTrial(directory))).toMatchObject({ code })
  })

  it('in place of a collections file is a problem', async () => {
    const directory = goodTrial()
    const path = 'collections/000000000/worker_1_collections.json'
    await replace(directory, path, kind)
    expect(await rejectionOf(createTrial(directory))).toMatchObject({ code })
    const trial = await createTrial(directory, { requireCollections: false })
    expect(trial.problems.map(({ code }) => code)).toEqual([code])
    expect((await rowsOf(trial)).length).toBe(12)
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file }) => [code, file])).toEqual([['Unreadable', path]])
    const { leftOut } = await repairTrial(directory, join(scratch, `copy${made++}`))
    expect(leftOut.map(({ file }) => file)).toEqual([path])
  })
})

it('a link that leads nowhere yet is read once its file is there', async () => {
  const directory = goodTrial({ ended: false })
  const away = join(directory, 'annex')
  renameSync(join(directory, INDEX), away)
  symlinkSync('../../annexed', join(directory, INDEX))
  const trial = await createTrial(directory, { refresh: 'manual' })
  expect(errorsOf(await rowsOf(trial)).length).toBe(1)
  renameSync(away, join(directory, 'annexed'))
  await trial.refresh()
  expect(errorsOf(await rowsOf(trial))).toEqual([])
  expect(trial.problems).toEqual([])
})

it.each(['index/000000000', eventFilePath(1, 'worker_1').replace(/\/[^/]*$/, '')])(
  'where %s, a directory, is a link that leads nowhere or a FIFO, that is a problem',
  async path => {
    for (const kind of ['a dangling link', 'a FIFO']) {
      const directory = goodTrial()
      if (path.startsWith('events')) rmSync(join(directory, 'index'), { recursive: true })
      await replace(directory, path, kind)
      const trial = await createTrial(directory)
      expect(trial.problems.map(({ code }) => code)).toContain(kinds[kind]![0])
      expect((await trialscan('scan', directory)).code).toBe(4)
      expect((await verifyTrial(directory)).problems.map(({ file }) => file)).toContain(path)
      const { leftOut } = await repairTrial(directory, join(scratch, `copy${made++}`))
      expect(leftOut.map(({ file }) => file)).toContain(path)
    }
  },
)

describe('two index files for one step and worker', () => {
  const OTHERS = {
    unpadded: 'index/000000000/1_worker_1.json',
    'with another pad': 'index/000000000/0001_worker_1.json',
    'in another directory': 'index/000000007/000000000001_worker_1.json',
    'at the root of the index': 'index/000000000001_worker_1.json',
    'as Tornasole wrote them': 'index/000000001/000000000001_worker_1.csv',
  }

  it.each(Object.values(OTHERS))('%s: the one that the hook would write counts', async other => {
    for (const ended of [true, false]) {
      const directory = goodTrial({ ended })
      const good = plainRows(await rowsOf(await createTrial(directory)))
      mkdirSync(dirname(join(directory, other)), { recursive: true })
      cpSync(join(directory, INDEX), join(directory, other))
      const trial = await createTrial(directory)
      expect(plainRows(await rowsOf(trial))).toEqual(good)
      expect(trial.problems.map(({ code, fields }) => [code, String(fields.url).endsWith(other)])).toEqual([
        ['DuplicateFile', true],
      ])
      for (const command of ['ls', 'scan', 'check']) {
        const { code, stderr } = await trialscan(command, directory)
        expect([command, code, stderr]).toEqual([command, 4, expect.stringContaining(basename(other))])
      }
      const { problems } = await verifyTrial(directory)
      expect(problems.map(({ code, file }) => [code, file])).toEqual([['DuplicateFile', other]])
      const copy = join(scratch, `copy${made++}`)
      const { leftOut } = await repairTrial(directory, copy)
      expect(leftOut.map(({ file, code }) => [file, code])).toEqual([[other, 'DuplicateFile']])
      expect(plainRows(await rowsOf(await createTrial(copy)))).toEqual(good)
      expect((await verifyTrial(copy)).ok).toBe(true)
    }
  })

  it('of which none is called as the hook would: the first counts', async () => {
    const directory = goodTrial()
    const good = plainRows(await rowsOf(await createTrial(directory)))
    const [first, second] = [OTHERS['with another pad'], OTHERS.unpadded]
    cpSync(join(directory, INDEX), join(directory, second))
    renameSync(join(directory, INDEX), join(directory, first))
    const trial = await createTrial(directory)
    expect(plainRows(await rowsOf(trial))).toEqual(good)
    expect(trial.problems.map(({ fields }) => basename(String(fields.url)))).toEqual([basename(second)])
  })

  it('of which the one that counts is broken: its error, whatever the other says', async () => {
    const directory = goodTrial()
    cpSync(join(directory, INDEX), join(directory, OTHERS.unpadded))
    execFileSync('truncate', ['-s', '20', join(directory, INDEX)])
    const trial = await createTrial(directory)
    expect(errorsOf(await rowsOf(trial))).toEqual([[1, 'worker_1', null, 'BadIndexFile']])
    expect(trial.problems.map(({ code }) => code).sort()).toEqual(['BadIndexFile', 'DuplicateFile'])
    // A repair makes it anew from the records.
    const copy = join(scratch, `copy${made++}`)
    await repairTrial(directory, copy)
    expect(errorsOf(await rowsOf(await createTrial(copy)))).toEqual([])
  })

  it('do not make a step complete that another worker has not written', async () => {
    const directory = goodTrial({ ended: false })
    rmSync(join(directory, indexFilePath(2, 'worker_1')))
    rmSync(join(directory, eventFilePath(2, 'worker_1')))
    cpSync(join(directory, indexFilePath(2, 'worker_0')), join(directory, 'index/000000000/2_worker_0.json'))
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.steps({ showIncompleteSteps: true })]).toEqual([
      [0, 1],
      [0, 1, 2],
    ])
    const { notes } = await verifyTrial(directory)
    expect(notes.map(({ code }) => code)).toContain('StepIncomplete')
  })

  it('of which the one that counts comes later: it takes the place of the other', async () => {
    const directory = goodTrial({ ended: false })
    renameSync(join(directory, INDEX), join(directory, OTHERS.unpadded))
    const trial = await createTrial(directory, { refresh: 'manual' })
    const good = plainRows(await rowsOf(trial))
    expect(trial.problems).toEqual([])
    cpSync(join(directory, OTHERS.unpadded), join(directory, INDEX))
    await trial.refresh()
    expect(plainRows(await rowsOf(trial))).toEqual(good)
    expect(trial.problems.map(({ code }) => code)).toEqual(['DuplicateFile'])
    rmSync(join(directory, OTHERS.unpadded))
    await trial.refresh()
    expect(trial.problems).toEqual([])
  })

  it('event files, where there is no index: one of them counts, too', async () => {
    const directory = goodTrial()
    rmSync(join(directory, 'index'), { recursive: true })
    const good = plainRows(await rowsOf(await createTrial(directory)))
    const other = 'events/1/1_worker_1.tfevents'
    mkdirSync(join(directory, 'events/1'))
    cpSync(join(directory, EVENTS), join(directory, other))
    const trial = await createTrial(directory)
    expect(plainRows(await rowsOf(trial))).toEqual(good)
    expect(trial.problems.map(({ code }) => code)).toEqual(['DuplicateFile'])
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file }) => [code, file])).toEqual([['DuplicateFile', other]])
    const copy = join(scratch, `copy${made++}`)
    const { leftOut } = await repairTrial(directory, copy)
    expect(leftOut.map(({ file }) => file)).toEqual([other])
    expect(readdirSync(join(copy, 'index/000000000')).length).toBe(6)
    expect(plainRows(await rowsOf(await createTrial(copy)))).toEqual(good)
  })
})
