/**
 * Whole trials of which one file was mutated on disk: nothing but a TrialscanError comes out, never one that means a
 * bug, and what was not damaged is as it was.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, EngineError, type ScanRow, type Trial, TrialscanError } from '#dist/index.js'
import { copyTrial, PLAIN_TRIAL } from '../../fixtures/corrupt.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { plainRow, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { Chance, mutateBytes } from './bytes.js'
import { mutateJson } from './json.js'
import { SEED } from './run.js'
import { mutateFile } from './targets.js'

const DAMAGED_STEP = 1
const MUTATIONS = 150

const scratch = scratchDirectory('fuzz')
const dir = join(scratch, 'trial')
const unindexed = join(scratch, 'unindexed')
const runs = join(scratch, 'runs')
const COLLECTIONS = 'collections/000000000/worker_0_collections.json'
/** TensorBoard's file is one whose name says so, in a directory that has nothing of smdebug's. */
const RUN = 'train/events.out.tfevents.1700000000.host'
const EVENT_FILE = eventFilePath(DAMAGED_STEP, 'worker_0')

let good: Map<string, unknown>

beforeAll(async () => {
  copyTrial(PLAIN_TRIAL, dir)
  copyTrial(PLAIN_TRIAL, unindexed)
  rmSync(join(unindexed, 'index'), { recursive: true })
  copyTrial(join(PLAIN_TRIAL, EVENT_FILE), join(runs, RUN))
  good = byPlace(await read(dir))
  expect(good.size).toBe(15)
})

afterAll(closePools)

function byPlace(rows: readonly ScanRow[]): Map<string, unknown> {
  return new Map(rows.map(row => [`${row.step} ${row.tensor}`, plainRow(row)]))
}

/** Everything that a trial can be asked for at once, on the calling thread. */
async function read(path: string): Promise<ScanRow[]> {
  const trial: Trial = await createTrial(path, { threads: 0 })
  try {
    for (const problem of trial.problems) expectRefusal(problem)
    const rows = await rowsOf(trial, { checkLevel: 'full', threads: 0 })
    for (const { tensor, step, error } of rows) {
      if (error) expectRefusal(error)
      if (step !== DAMAGED_STEP || error || tensor === null) continue
      // What can be reduced can be too large to be handed out.
      await trial.tensor(tensor).value(step, { threads: 0 }).catch(expectRefusal)
    }
    return rows
  } finally {
    await trial.close()
  }
}

function expectRefusal(error: unknown): void {
  if (!(error instanceof TrialscanError) || error instanceof EngineError) throw error
}

interface Case {
  readonly name: string
  readonly path: string
  readonly file: string
  readonly mutate: (bytes: Uint8Array, chance: Chance) => Uint8Array
  /** Whether what was read of other steps has to be as it was. */
  readonly hasOthers: boolean
}

const noOther = (bytes: Uint8Array) => () => bytes
const cases: readonly Case[] = [
  {
    name: 'an event file',
    path: dir,
    file: EVENT_FILE,
    mutate: (bytes, chance) => mutateFile(bytes, chance, noOther(bytes)),
    hasOthers: true,
  },
  {
    name: 'an index file',
    path: dir,
    file: indexFilePath(DAMAGED_STEP, 'worker_0'),
    mutate: (bytes, chance) => mutateJson(bytes, chance, [], noOther(bytes)),
    hasOthers: true,
  },
  {
    name: 'a collections file',
    path: dir,
    file: COLLECTIONS,
    mutate: (bytes, chance) => mutateJson(bytes, chance, [], noOther(bytes)),
    hasOthers: true,
  },
  {
    name: 'an event file of a trial without an index',
    path: unindexed,
    file: EVENT_FILE,
    mutate: (bytes, chance) => mutateFile(bytes, chance, noOther(bytes)),
    hasOthers: true,
  },
  {
    name: 'a file of TensorBoard',
    path: runs,
    file: RUN,
    mutate: (bytes, chance) =>
      chance.once(2) ? mutateBytes(bytes, chance) : mutateFile(bytes, chance, noOther(bytes)),
    hasOthers: false,
  },
]

describe.each(cases)('$name', ({ path, file, mutate, hasOthers }) => {
  it('can be anything', { timeout: 5 * 60_000 }, async () => {
    const target = join(path, file)
    const original = new Uint8Array(readFileSync(target))
    const chance = new Chance(SEED)
    let opened = 0
    for (let i = 0; i < MUTATIONS; i++) {
      const bytes = mutate(original, chance)
      writeFileSync(target, bytes)
      try {
        const rows = byPlace(await read(path))
        opened++
        if (!hasOthers) continue
        for (const [place, row] of good) {
          if (!place.startsWith(`${DAMAGED_STEP} `)) expect([place, rows.get(place)]).toEqual([place, row])
        }
      } catch (cause) {
        // A trial can be refused as a whole, but only for its collections, or if nothing else is in it.
        if (cause instanceof TrialscanError && (file === COLLECTIONS || !hasOthers)) expectRefusal(cause)
        else {
          const content = Buffer.from(bytes).toString('base64')
          throw new Error(`mutation ${i} of seed ${SEED}: ${String(cause)}, as base64 ${content}`, { cause })
        }
      }
    }
    writeFileSync(target, original)
    expect(opened).toBeGreaterThan(MUTATIONS / 10)
  })
})
