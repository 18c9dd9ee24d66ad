/** Trials in which nothing is wrong: a repair changes nothing, and index files made anew tell what those that were lost told. */

import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { closePools, createTrial, repairTrial, type ScanRow, type Trial } from '#dist/index.js'
import { type IndexFile, maskedCrc32c } from '../../fixtures/event-writer.js'
import { fixtureTrials, sharedTrials } from '../support/golden.js'
import { part } from '../support/part.js'
import { plainRows, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { contentsOf } from './tree.js'

const scratch = scratchDirectory('healthy')
const out = join(scratch, 'out')
const source = join(scratch, 'source')

afterEach(() => {
  for (const dir of [out, source]) rmSync(dir, { recursive: true, force: true })
})

afterAll(closePools)

const trials = [
  ...fixtureTrials().map(({ name, directory }) => [`fixture ${name}`, directory] as const),
  ...sharedTrials().map(({ name, directory }) => [`shared ${name}`, directory] as const),
]

/** All that a trial answers but for its values. */
function answersOf(trial: Trial): unknown {
  const steps = trial.steps({ showIncompleteSteps: true })
  return {
    names: trial.tensorNames(),
    workers: trial.workers(),
    modes: trial.modes(),
    steps: steps.map(step => [step, trial.mode(step), trial.modeStep(step)]),
    complete: trial.steps(),
    collections: [...trial.collections().keys()],
    loadedAllSteps: trial.loadedAllSteps,
    problems: trial.problems,
  }
}

async function readAll(dir: string): Promise<{ answers: unknown; rows: unknown[] }> {
  const trial = await createTrial(dir)
  const rows = await rowsOf(trial, { checkLevel: 'full' })
  expect(rows.filter(({ error }) => error)).toEqual([])
  const answers = answersOf(trial)
  await trial.close()
  return { answers, rows: plainRows(rows) }
}

// Quick: a trial of each kind.
const QUICK = ['plain', 'workers-4', 'tornasole-2019', 'dtypes-checksummed'].map(name => `fixture ${name}`)

describe.each(part(trials, ([name]) => QUICK.includes(name)))('%s', (_, directory) => {
  it('is copied byte for byte', async () => {
    const before = contentsOf(directory)
    const report = await repairTrial(directory, out)
    expect(contentsOf(out)).toEqual(before)
    expect(contentsOf(directory)).toEqual(before)
    const { files, leftOut, leftOutCount, rebuilt, ignored } = report
    expect({ leftOut, leftOutCount, rebuilt, ignored }).toEqual({
      leftOut: [],
      leftOutCount: 0,
      rebuilt: [],
      ignored: [],
    })
    const count = Object.values(before).filter(content => content !== 'directory').length
    expect(files).toEqual({ copied: count, rebuilt: 0, leftOut: 0, ignored: 0 })
    expect(report.records).toMatchObject({ leftOut: 0 })
    expect(await readAll(out)).toEqual(await readAll(directory))
  })

  it('is the same with true checksums', async () => {
    const report = await repairTrial(directory, out, { checksums: true, threads: 1 })
    expect(report.leftOutCount).toBe(0)
    let records = 0
    for (const path of filesOf(out, '.tfevents')) {
      for (const { payload, crc } of framesOf(readFileSync(join(out, path)))) {
        if (crc !== maskedCrc32c(payload)) expect.fail(`${path}: a record without its checksum`)
        records++
      }
    }
    expect(report.records).toEqual({ kept: records, leftOut: 0 })
    expect(await readAll(out)).toEqual(await readAll(directory))
  })

  it('is the same with index files that had been lost', async () => {
    // Those of Tornasole have another name; what tells it from smdebug's stays.
    cpSync(directory, source, { recursive: true })
    rmSync(join(source, 'index'), { recursive: true })
    await repairTrial(source, out)
    const written = filesOf(out, '.json').filter(path => path.startsWith('index/'))
    for (const path of filesOf(directory, '.json').filter(path => path.startsWith('index/'))) {
      const original = JSON.parse(readFileSync(join(directory, path), 'utf8')) as IndexFile
      if (original.tensor_payload.length === 0) {
        expect(written).not.toContain(path)
        continue
      }
      const rebuilt = JSON.parse(readFileSync(join(out, path), 'utf8')) as IndexFile
      // Shapes stand in no record.
      expect({ ...rebuilt, tensor_payload: sorted(rebuilt) }).toEqual({
        ...original,
        tensor_payload: sorted(original),
        shape_payload: [],
      })
    }
    const hasShapes = filesOf(directory, '.json').some(path =>
      /"shape": \[/.test(readFileSync(join(directory, path), 'utf8')),
    )
    if (hasShapes) return
    const [copy, wanted] = [await readAll(out), await readAll(directory)]
    expect(copy.answers).toEqual(wanted.answers)
    // In the order of the names: an index file need not have that of the records.
    expect(copy.rows.sort(byPlace)).toEqual(wanted.rows.sort(byPlace))
  })
})

it('has trials to copy', () => {
  expect(trials.length).toBeGreaterThanOrEqual(14)
})

function byPlace(a: unknown, b: unknown): number {
  const [x, y] = [a, b].map(row => {
    const { step, worker, tensor } = row as ScanRow
    return `${String(step).padStart(9, '0')} ${worker} ${tensor}`
  }) as [string, string]
  return x < y ? -1 : x > y ? 1 : 0
}

function sorted({ tensor_payload }: IndexFile) {
  return [...tensor_payload].sort((a, b) => a.start_idx - b.start_idx)
}

function filesOf(dir: string, extension: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith(extension))
}

function* framesOf(bytes: Buffer): Generator<{ payload: Buffer; crc: number }> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + 12 + Number(bytes.readBigUInt64LE(at))
    yield { payload: bytes.subarray(at + 12, end), crc: bytes.readUInt32LE(end) }
    at = end + 4
  }
}
