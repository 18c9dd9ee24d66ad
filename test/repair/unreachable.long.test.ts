/**
 * Bytes that can't be had, at every request of a repair, a verification and a reindexing: never taken for lost, nor for
 * damaged.
 */

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type ReindexedFile,
  reindexTrial,
  repairTrial,
  type S3Options,
  StoreError,
  TrialscanError,
  type Verification,
  type VerifyProblem,
  verifyTrial,
} from '#dist/index.js'
import { copyTrial, PLAIN_TRIAL } from '../../fixtures/corrupt.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { type Fault, FaultyS3, failWith, html, resetAfter } from '../support/faulty-s3.js'
import { fixtureTrial } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { contentsOf } from './tree.js'

const scratch = scratchDirectory('unreachable')
let server: FaultyS3
let copies = 0

beforeAll(async () => {
  server = await FaultyS3.start()
  for (const [name, make] of Object.entries(TRIALS)) {
    const directory = join(scratch, name)
    make(directory)
    for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      if (path.includes('.')) server.objects.set(`${name}/${path}`, readFileSync(join(directory, path)))
    }
  }
})

afterAll(async () => {
  await server.stop()
})

const TRIALS: Readonly<Record<string, (directory: string) => void>> = {
  whole: directory => copyTrial(PLAIN_TRIAL, directory),
  /** All stages have something to do: index files that are looked at twice, files that are missing, collections to replace. */
  damaged(directory) {
    const writer = new TrialWriter(directory, { numWorkers: 2 })
    for (const step of [0, 1]) {
      for (const worker of [0, 1]) {
        const tensors = ['a', 'b'].map(name => ({ name, dtype: 'float32', shape: [1], values: [step] }) as const)
        writer.step({ step, mode: 'TRAIN', worker, tensors })
      }
    }
    writer.end()
    const [event, index, collections] = ['events', 'index', 'collections'].map(part =>
      readdirSync(join(directory, part), { recursive: true, encoding: 'utf8' })
        .filter(path => path.includes('.'))
        .sort()
        .map(path => join(directory, part, path)),
    ) as [string[], string[], string[]]
    writeFileSync(event[0]!, readFileSync(event[0]!).subarray(0, -5))
    rmSync(event[1]!)
    writeFileSync(index[2]!, readFileSync(index[2]!, 'utf8').replace('mode_step', 'mode'))
    rmSync(index[3]!)
    writeFileSync(collections[0]!, '{')
  },
  tornasole: directory => copyTrial(fixtureTrial('tornasole-2019').directory, directory),
  TensorBoard(directory) {
    const from = join(PLAIN_TRIAL, 'events/000000000000/000000000000_worker_0.tfevents')
    for (const run of ['one', 'two']) {
      mkdirSync(join(directory, run), { recursive: true })
      cpSync(from, join(directory, run, 'events.out.tfevents.1.host'))
    }
  },
}

/** Whatever a store may answer but that there is no such object. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'may not be read': failWith(403, 'AccessDenied'),
  'is asked for with credentials that have expired': failWith(400, 'ExpiredToken'),
  'costs the server its life': failWith(500, 'InternalError'),
  'is reset': answer => void answer.socket?.resetAndDestroy(),
  'breaks off': resetAfter(10),
  'is none that a gateway knows': html(404),
  'is the page of a portal': html(200),
}

/** Never again: each failure is final. */
const options = (): S3Options => ({ ...server.options, maxAttempts: 1 })

/** Does something once in peace, and then while a request fails: each of them alone, and each with all behind it. */
async function sweep(fault: Fault, work: () => Promise<unknown>, judge: () => Promise<void>): Promise<number> {
  const requests = async (work: () => Promise<unknown>): Promise<number> => {
    server.seen.length = 0
    await work()
    return server.seen.length
  }
  server.faultOf = undefined
  const count = await requests(work)
  for (let failing = 1; failing <= count; failing++) {
    for (const isLast of [true, false]) {
      server.faultOf = number => (number === failing || (!isLast && number > failing) ? fault : undefined)
      expect(await requests(judge), `request ${failing}`).toBeGreaterThanOrEqual(failing)
    }
  }
  server.faultOf = undefined
  return count
}

/** The step of a fault, and what is lost by it, can be told only where its index file can be read. */
const placeOf = ({ code, file, offset }: VerifyProblem): string => [code, file, offset].join(' ')

describe.each(Object.keys(TRIALS))('%s: what', name => {
  const url = `s3://bucket/${name}`

  it.each(Object.keys(FAULTS))('%s ends a repair, and there is no copy', async fault => {
    const parent = join(scratch, `copies-${copies++}`)
    mkdirSync(parent)
    const out = join(parent, 'copy')
    const local = join(parent, 'local')
    await repairTrial(join(scratch, name), local)
    const repair = () => repairTrial(url, out, { s3: options() })
    const count = await sweep(
      FAULTS[fault]!,
      async () => {
        rmSync(out, { recursive: true, force: true })
        await repair()
      },
      async () => {
        rmSync(out, { recursive: true, force: true })
        const error = await repair().then(
          () => null,
          (error: unknown) => error,
        )
        // Of the shortest files nothing is left to break off, and a length that nobody tells can be done without.
        if (error === null) return expect(contentsOf(out)).toEqual(contentsOf(local))
        expect(error).toBeInstanceOf(TrialscanError)
        expect(readdirSync(parent)).toEqual(['local'])
      },
    )
    expect(count).toBeGreaterThan(4)
    // All is well again.
    await repair()
    expect(contentsOf(out)).toEqual(contentsOf(local))
  })

  it.each(Object.keys(FAULTS))('%s is what verifying tells of, and no other fault', async fault => {
    const verify = () => verifyTrial(url, { s3: options() })
    let whole: Verification
    const told = ({ problems, notes }: Verification) => [...problems, ...notes].map(placeOf)
    await sweep(
      FAULTS[fault]!,
      async () => {
        whole = await verify()
      },
      async () => {
        const found = await verify().catch((error: unknown) => {
          expect(error).toBeInstanceOf(StoreError)
          return null
        })
        if (found === null || (found.ok && fault === 'breaks off')) return
        expect(found.ok).toBe(false)
        expect(found.problemCounts.Unreadable).toBeGreaterThan(0)
        const others = [...found.problems, ...found.notes].filter(({ code }) => code !== 'Unreadable')
        const known = told(whole)
        expect(others.map(placeOf).filter(place => !known.includes(place))).toEqual([])
      },
    )
  })

  // Those have nothing to be made anew from, or more than one answer.
  if (name === 'TensorBoard' || name === 'damaged') return
  it.each(Object.keys(FAULTS))('%s ends a reindexing', async fault => {
    const reindex = () => reindexTrial(url, { s3: options() })
    let whole: ReindexedFile[]
    await sweep(
      FAULTS[fault]!,
      async () => {
        whole = await reindex()
      },
      async () => {
        const made = await reindex().catch((error: unknown) => {
          expect(error).toBeInstanceOf(TrialscanError)
          return null
        })
        // What it can do without it need not have.
        if (made !== null) expect(made).toEqual(whole)
      },
    )
  })
})
