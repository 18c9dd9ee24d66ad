/** Index files and event files that don't belong together as their names say: what the records tell counts. */

import { cpSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { closePools, createTrial, type LeftOut, repairTrial, verifyTrial } from '#dist/index.js'
import { encodeEvent, eventFilePath, frameRecord, indexFilePath, TrialWriter } from '../../fixtures/event-writer.js'
import { fixtureTrial } from '../support/golden.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { contentsOf } from './tree.js'

const scratch = scratchDirectory('entangled')
let number = 0
let dir: string
let out: string

/** Two workers, tensors x and y, two steps: 1 and 2, which are called 0 and 1 below. Records of a name are of one length. */
beforeEach(() => {
  dir = join(scratch, `${number++}`, 'trial')
  out = `${dir}-clean`
  const writer = new TrialWriter(dir, { numWorkers: 2, checksum: 'true' })
  for (const step of [0, 1]) {
    for (const worker of [0, 1]) {
      const tensors = ['x', 'y'].map((name, i) => ({
        name,
        dtype: 'float32' as const,
        shape: [1],
        values: [1 + 10 * step + 100 * worker + 4 * i],
      }))
      writer.step({ step: step + 1, mode: 'TRAIN', worker, tensors })
    }
  }
  writer.end()
})

afterAll(closePools)

const event = (worker: number, step: number): string => join(dir, eventFilePath(step + 1, `worker_${worker}`))
const index = (worker: number, step: number): string => join(dir, indexFilePath(step + 1, `worker_${worker}`))

interface IndexJson {
  meta: { mode_step: number; event_file_name?: string }
  tensor_payload: { tensorname: string; start_idx: number; length: number }[]
}

function editIndex(worker: number, step: number, edit: (json: IndexJson) => void): void {
  const json = JSON.parse(readFileSync(index(worker, step), 'utf8')) as IndexJson
  edit(json)
  writeFileSync(index(worker, step), JSON.stringify(json))
}

/** A row's number, or its error, by step, worker and tensor. */
async function answers(directory: string): Promise<Record<string, number | string>> {
  const rows = await rowsOf(await createTrial(directory), { checkLevel: 'full', reductions: ['max'] })
  return Object.fromEntries(
    rows.map(row => [
      `${row.step - 1} ${row.worker} ${row.tensor}`,
      row.error ? row.error.code : (row.reductions.max as number),
    ]),
  )
}

const ALL: Record<string, number> = {}
for (const step of [0, 1]) {
  for (const worker of [0, 1]) {
    for (const [i, name] of ['x', 'y'].entries()) {
      ALL[`${step} worker_${worker} ${name}`] = 1 + 10 * step + 100 * worker + 4 * i
    }
  }
}

const one = { dtype: 'float32', shape: [1] } as const

const unindexed = (tag: string, number: number): Uint8Array =>
  frameRecord(
    encodeEvent({
      wallTime: 1,
      step: 1,
      tag,
      mode: 'TRAIN',
      modeStep: 1,
      tensor: { ...one, values: [number] },
    }),
    { checksum: 'true' },
  )

/** Worker 1's records of step 0 behind worker 0's, in one file. */
function share(): void {
  const [mine, others] = [readFileSync(event(0, 0)), readFileSync(event(1, 0))]
  writeFileSync(event(0, 0), Buffer.concat([mine, others]))
  rmSync(event(1, 0))
  editIndex(1, 0, json => {
    json.meta.event_file_name = eventFilePath(1, 'worker_0')
    for (const entry of json.tensor_payload) entry.start_idx += mine.length
  })
}

const cases: [name: string, damage: () => void, leftOut: string[], answers?: Record<string, number>][] = [
  ['two index files of one event file, which are right', share, []],
  [
    'the same, and an entry of one that is wrong',
    () => {
      share()
      editIndex(1, 0, ({ tensor_payload }) => tensor_payload[0]!.start_idx++)
    },
    [],
  ],
  [
    'the same, and one that can not be read',
    () => {
      share()
      writeFileSync(index(1, 0), '{"meta"')
    },
    // Nothing says whose the records are; none is answered otherwise.
    ['RecordNotIndexed', 'RecordNotIndexed', 'BadIndexFile'],
    Object.fromEntries(Object.entries(ALL).filter(([key]) => !key.startsWith('0 worker_1'))),
  ],
  [
    'an index file that names no event file',
    () =>
      editIndex(0, 0, json => {
        json.tensor_payload = []
        delete json.meta.event_file_name
      }),
    [],
  ],
  [
    'index files of two steps that have changed places',
    () => {
      const first = readFileSync(index(0, 0))
      writeFileSync(index(0, 0), readFileSync(index(0, 1)))
      writeFileSync(index(0, 1), first)
    },
    [],
  ],
  [
    'index files of two workers at one step that have changed places',
    () => {
      const first = readFileSync(index(0, 0))
      writeFileSync(index(0, 0), readFileSync(index(1, 0)))
      writeFileSync(index(1, 0), first)
    },
    [],
  ],
  [
    'an index file that names another worker’s event file, and is otherwise as it was',
    () =>
      editIndex(0, 0, ({ meta }) => {
        meta.event_file_name = eventFilePath(1, 'worker_1')
      }),
    [],
  ],
  [
    'index files of three files that have gone round',
    () => {
      const first = readFileSync(index(0, 0))
      writeFileSync(index(0, 0), readFileSync(index(0, 1)))
      writeFileSync(index(0, 1), readFileSync(index(1, 1)))
      writeFileSync(index(1, 1), first)
    },
    [],
  ],
  ['an index file that is a copy of another worker’s', () => cpSync(index(0, 0), index(1, 0)), []],
  [
    'a record that no index file tells of, of a name that one does',
    () => writeFileSync(event(0, 0), Buffer.concat([readFileSync(event(0, 0)), unindexed('x', 777)])),
    ['RecordNotIndexed'],
  ],
  [
    'a record that no index file tells of, of that name and another',
    () => {
      const values = ['x', 'z'].map(tag => ({
        tag,
        mode: 'TRAIN' as const,
        modeStep: 1,
        tensor: { ...one, values: [777] },
      }))
      const record = frameRecord(encodeEvent({ wallTime: 1, step: 1, values }), { checksum: 'true' })
      writeFileSync(event(0, 0), Buffer.concat([readFileSync(event(0, 0)), record]))
    },
    ['RecordNotIndexed'],
  ],
  [
    'two index files of one event file, and another with the name of one, of no bytes',
    () => {
      share()
      writeFileSync(event(1, 0), '')
    },
    [],
  ],
  [
    'two index files of one event file, and another with the name of one, that is none',
    () => {
      share()
      writeFileSync(event(1, 0), 'x'.repeat(500))
    },
    ['BadIndexEntry'],
  ],
  [
    'an index file that names another worker’s event file, and is wrong about a record in it',
    () => {
      rmSync(event(1, 0))
      editIndex(1, 0, json => {
        json.meta.event_file_name = eventFilePath(1, 'worker_0')
        json.tensor_payload[0]!.start_idx += 3
      })
    },
    ['BadIndexFile'],
    Object.fromEntries(Object.entries(ALL).filter(([key]) => !key.startsWith('0 worker_1'))),
  ],
  [
    'an index file of nothing, and an event file of no bytes',
    () => {
      writeFileSync(event(0, 0), '')
      editIndex(0, 0, json => {
        json.tensor_payload = []
        delete json.meta.event_file_name
      })
    },
    [],
    Object.fromEntries(Object.entries(ALL).filter(([key]) => !key.startsWith('0 worker_0'))),
  ],
  [
    'a record that no index file tells of, of another name',
    () => writeFileSync(event(0, 0), Buffer.concat([readFileSync(event(0, 0)), unindexed('z', 777)])),
    [],
    { ...ALL, '0 worker_0 z': 777 },
  ],
]

describe('a repair', () => {
  it.each(cases)('of %s', async (_, damage, leftOut, expected = ALL) => {
    damage()
    const before = await answers(dir)
    const report = await repairTrial(dir, out)
    expect(report.leftOut.map(({ code }: LeftOut) => code)).toEqual(leftOut)
    expect((await verifyTrial(out)).problems).toEqual([])
    const after = await answers(out)
    for (const [key, number] of Object.entries(expected)) expect([key, after[key]]).toEqual([key, number])
    // What could be read is not answered otherwise, but for the copy of another worker's index file.
    for (const [key, number] of Object.entries(before)) {
      if (typeof number === 'number' && number === ALL[key]) expect([key, after[key]]).toEqual([key, number])
    }
    const copy = await createTrial(out)
    for (const step of copy.steps()) expect([copy.mode(step), copy.modeStep(step)]).toEqual(['TRAIN', step])
    if ((await verifyTrial(dir)).ok) {
      const [original, copied] = [contentsOf(dir), contentsOf(out)]
      expect(original).toMatchObject(copied)
      // Event files of no bytes are no part of a trial.
      for (const path of Object.keys(original)) if (!(path in copied)) expect(statSync(join(dir, path)).size).toBe(0)
    }
    await repairTrial(out, `${out}-again`)
    expect(contentsOf(`${out}-again`)).toEqual(contentsOf(out))
  })

  it('of two workers whose index files have changed places gives each its own shapes and modes', async () => {
    rmSync(dir, { recursive: true })
    const writer = new TrialWriter(dir, { numWorkers: 2, checksum: 'true' })
    for (const worker of [0, 1]) {
      const shape = [worker + 1]
      const values = new Array<number>(worker + 1).fill(worker)
      const saved = { name: `of_${worker}`, dtype: 'float32' as const, shape, values }
      const tensors = [{ ...saved, savedShape: shape, originalName: `the_${worker}` }]
      writer.step({ step: 1, mode: worker === 0 ? 'TRAIN' : 'EVAL', worker, tensors })
    }
    writer.end()
    const whole = contentsOf(dir)
    const first = readFileSync(index(0, 0))
    writeFileSync(index(0, 0), readFileSync(index(1, 0)))
    writeFileSync(index(1, 0), first)
    const { leftOutCount, rebuilt } = await repairTrial(dir, out)
    expect([leftOutCount, rebuilt.length]).toEqual([0, 2])
    expect(contentsOf(out)).toEqual(whole)
  })

  it('of a trial whose index file goes round about to its event file: nothing is wrong with it', async () => {
    editIndex(0, 0, ({ meta }) => {
      meta.event_file_name = `./${meta.event_file_name!.replace('events/', 'events//')}`
    })
    expect((await verifyTrial(dir)).problems).toEqual([])
    expect((await repairTrial(dir, out)).leftOutCount).toBe(0)
    expect(contentsOf(out)).toEqual(contentsOf(dir))
  })

  it('of Tornasole’s trial with an index file of no bytes', async () => {
    rmSync(dir, { recursive: true })
    cpSync(fixtureTrial('tornasole-2019').directory, dir, { recursive: true })
    const whole = await rowsOf(await createTrial(dir))
    const steps = (await createTrial(dir)).steps()
    const names = readdirSync(join(dir, 'index'), { recursive: true, encoding: 'utf8' })
    writeFileSync(join(dir, 'index', names.find(path => path.endsWith('.csv'))!), '')
    expect((await repairTrial(dir, out)).leftOutCount).toBe(0)
    expect((await createTrial(out)).steps()).toEqual(steps)
    expect((await rowsOf(await createTrial(out))).length).toBe(whole.length)
  })

  it('of a trial with a directory that leads out leaves out that, and no more', async () => {
    const elsewhere = `${dir}-elsewhere`
    renameSync(join(dir, 'events/000000000002'), elsewhere)
    symlinkSync(elsewhere, join(dir, 'events/000000000002'))
    const { leftOut, records } = await repairTrial(dir, out)
    expect(records).toEqual({ kept: 4, leftOut: 4 })
    expect(leftOut[0]).toMatchObject({ file: 'events/000000000002', code: 'Denied' })
    expect((await verifyTrial(out)).problems).toEqual([])
    const after = await answers(out)
    expect(after).toEqual(Object.fromEntries(Object.entries(ALL).filter(([key]) => key.startsWith('0 '))))
  })

  it.each([10_001, 5e9, Number.MAX_SAFE_INTEGER])('of a collections file of %d workers', async workers => {
    const path = join(dir, 'collections/000000000/worker_1_collections.json')
    writeFileSync(path, JSON.stringify({ collections: {}, _meta: { num_workers: workers } }))
    const { leftOutCount, rebuilt } = await repairTrial(dir, out)
    expect([leftOutCount, rebuilt.map(({ reason }) => /at most 10000 workers/.test(reason))]).toEqual([0, [true]])
    expect((await verifyTrial(out)).problems).toEqual([])
    expect(await answers(out)).toEqual(ALL)
  })
})
