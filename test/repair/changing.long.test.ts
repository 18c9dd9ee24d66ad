/** A trial on S3 that changes at any request of its repair: the copy is clean, and of one version, or there is none. */

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, repairTrial, TrialscanError, verifyTrial } from '#dist/index.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { numbersOf, REDUCED, STEPS, WORKERS, writeTrial } from '../support/disturber.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('changing')
const versions: ReadonlyMap<string, Buffer>[] = []
let server: FaultyS3

beforeAll(async () => {
  server = await FaultyS3.start()
  for (const version of [0, 1]) {
    const directory = join(scratch, String(version))
    writeTrial(directory, version)
    const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(path => path.includes('.'))
    versions.push(new Map(paths.map(path => [path, readFileSync(join(directory, path))])))
  }
})

afterAll(async () => {
  await server.stop()
})

const random = uniform(21)
const upTo = (count: number): number => Math.floor(random() * count)

function reset(version = 0): void {
  server.objects.clear()
  for (const [path, bytes] of versions[version]!) server.objects.set(`t/${path}`, bytes)
}

const someStep = (): string[] => {
  const [step, worker] = [upTo(STEPS), `worker_${upTo(WORKERS)}`]
  return [eventFilePath(step, worker), indexFilePath(step, worker)]
}

/** What happens before a request is answered, and is undone some requests later or not at all. */
const CHANGES: Readonly<Record<string, () => void>> = {
  'gets other files of a step': () => {
    for (const path of someStep()) server.objects.set(`t/${path}`, versions[1]!.get(path)!)
  },
  'gets another event or index file': () => {
    const path = someStep()[upTo(2)]!
    server.objects.set(`t/${path}`, versions[1]!.get(path)!)
  },
  'loses a file': () => {
    server.objects.delete(`t/${someStep()[upTo(2)]!}`)
  },
  'is written anew': () => reset(1),
}

describe.each(Object.keys(CHANGES))('a trial that %s', change => {
  it.each([false, true])('while it is repaired (and is as before soon after: %s)', async isUndone => {
    const repair = async (out: string) => {
      server.seen.length = 0
      return repairTrial('s3://bucket/t', out, { s3: server.options })
    }
    reset()
    const parent = join(scratch, `${change} ${isUndone}`)
    mkdirSync(parent)
    const out = join(parent, 'copy')
    server.faultOf = undefined
    await repair(out)
    rmSync(out, { recursive: true })
    const count = server.seen.length
    const codes: Record<string, number> = {}
    for (let at = 1; at <= count; at += 1 + upTo(5)) {
      reset()
      const end = at + 1 + upTo(6)
      server.faultOf = number => {
        if (number === at) CHANGES[change]!()
        else if (isUndone && number === end) reset()
        return undefined
      }
      const report = await repair(out).catch((error: unknown) => {
        expect(error).toBeInstanceOf(TrialscanError)
        const { code } = error as TrialscanError
        expect(['FileChanged', 'ObjectChanged', 'NotFound'], String(error)).toContain(code)
        codes[code] = (codes[code] ?? 0) + 1
        return null
      })
      if (report === null) {
        expect(readdirSync(parent)).toEqual([])
        continue
      }
      // What was gone before it was listed is no change.
      if (change !== 'loses a file') expect(report.leftOut, `request ${at}`).toEqual([])
      expect((await verifyTrial(out)).problems, `request ${at}`).toEqual([])
      const copy = await createTrial(out)
      const rows = await rowsOf(copy, { checkLevel: 'full' })
      for (const { tensor, step, worker, error, reductions, saved } of rows) {
        expect(error).toBeUndefined()
        expect(numbersOf(tensor!, step!, worker!)).toContain(saved ? reductions.mean : reductions.max)
        expect(saved === (tensor === REDUCED)).toBe(true)
      }
      await copy.close()
      rmSync(out, { recursive: true })
    }
    server.faultOf = undefined
    // How many requests see the change depends on how they interleave.
    expect((codes.FileChanged ?? 0) + (codes.ObjectChanged ?? 0)).toBeGreaterThan(0)
  })
})
