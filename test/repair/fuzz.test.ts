/**
 * Trials spoilt at random: a copy is clean, and does not answer otherwise than the trial did before, but for names saved
 * several times in a step of which both files are spoilt.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, repairTrial, type ScanRow, verifyTrial } from '#dist/index.js'
import { copyTrial } from '../../fixtures/corrupt.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { fixtureTrial } from '../support/golden.js'
import { isLong } from '../support/part.js'
import { plainRow, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const SEEDS = isLong ? 60 : 10
const scratch = scratchDirectory('repair-fuzz')

afterAll(closePools)

/** Numbers from 0 up to, but not including, a limit (mulberry32). */
function randomOf(seed: number): (limit: number) => number {
  let state = seed * 2654435761
  return limit => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit)
  }
}

const DAMAGES: readonly ((bytes: Buffer, random: (limit: number) => number) => Uint8Array)[] = [
  // A bit, a run of bytes, a torn tail, bytes that are gone, bytes that came, a run that comes twice, zeros.
  (bytes, random) => {
    bytes[random(bytes.length)]! ^= 1 << random(8)
    return bytes
  },
  (bytes, random) => bytes.fill(random(256), random(bytes.length), random(bytes.length)),
  (bytes, random) => bytes.subarray(0, random(bytes.length)),
  (bytes, random) => {
    const at = random(bytes.length)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(200))])
  },
  (bytes, random) => {
    const at = random(bytes.length)
    return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(1 + random(200), random(256)), bytes.subarray(at)])
  },
  (bytes, random) => {
    const [from, to, at] = [random(bytes.length), random(bytes.length), random(bytes.length)]
    return Buffer.concat([
      bytes.subarray(0, at),
      bytes.subarray(Math.min(from, to), Math.max(from, to)),
      bytes.subarray(at),
    ])
  },
  (bytes, random) => bytes.fill(0, random(bytes.length)),
]

/** What a row answers, but for what stands in the index file alone, where no checksum guards it: modes, saved shapes. */
function answerOf(row: ScanRow): unknown {
  const { mode: _, modeStep: __, shape, ...answer } = plainRow(row) as Record<string, unknown>
  return row.saved ? answer : { ...answer, shape }
}

const keyOf = ({ tensor, step, worker, saved }: Pick<ScanRow, 'tensor' | 'step' | 'worker' | 'saved'>): string =>
  `${tensor} ${step} ${worker} ${saved === true}`

describe.each(['plain', 'dtypes-checksummed', 'modes', 'wire-forms'])('%s', name => {
  it(`is repaired after ${SEEDS} kinds of damage`, async () => {
    // Without true checksums the damage of an element is the element.
    const directory = join(scratch, name)
    await repairTrial(fixtureTrial(name).directory, directory, { checksums: true })
    const before = await createTrial(directory)
    const rows = await rowsOf(before, { checkLevel: 'full' })
    const good = new Map(rows.map(row => [keyOf(row), answerOf(row)]))
    await before.close()
    let kept = 0
    let lost = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const [dir, out] = [join(scratch, `${name}-${seed}`), join(scratch, `${name}-${seed}-clean`)]
      copyTrial(directory, dir)
      const random = randomOf(seed)
      const all = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(path =>
        /\.(json|tfevents)$/.test(path),
      )
      const spoilt = new Set<string>()
      for (let times = 1 + random(4); times > 0; times--) {
        const path = join(dir, all.sort()[random(all.length)]!)
        const bytes = readFileSync(path)
        spoilt.add(path)
        if (bytes.length > 0) writeFileSync(path, DAMAGES[random(DAMAGES.length)]!(bytes, random))
      }
      const report = await repairTrial(dir, out, { threads: 0 })
      const { problems } = await verifyTrial(out, { threads: 0 })
      expect(problems, `seed ${seed}`).toEqual([])
      const trial = await createTrial(out)
      for (const row of await rowsOf(trial, { checkLevel: 'full', threads: 0 })) {
        const wanted = good.get(keyOf(row))
        // Of several saved reductions each is a record of its own; where the value is lost, they are what is left.
        if (row.saved && wanted === undefined) expect(good.has(keyOf({ ...row, saved: false }))).toBe(true)
        else if (row.saved) expect(wanted, `seed ${seed}`).toMatchObject(answerOf(row) as object)
        else if (!isDeepStrictEqual(answerOf(row), wanted)) {
          // An index file that reads well may have lost the last entry of a name: the trial answers so itself.
          const damaged = await rowsOf(await createTrial(dir), { checkLevel: 'full', threads: 0 })
          const own = damaged.find(other => keyOf(other) === keyOf(row))
          if (own && isDeepStrictEqual(answerOf(row), answerOf(own))) continue
          // Which record of several of one name is the last, only the index can tell once one of them is lost.
          const names = [eventFilePath(row.step, row.worker), indexFilePath(row.step, row.worker)]
          const both = [...spoilt].filter(path => names.includes(relative(dir, path)))
          expect(both.map(path => extname(path)).sort(), `seed ${seed}, ${keyOf(row)}`).toEqual(['.json', '.tfevents'])
          expect(report.leftOut.map(({ file }) => file)).toContain(
            relative(dir, both.find(path => path.endsWith('s'))!),
          )
        }
        kept++
      }
      lost += report.records.leftOut
      await trial.close()
      for (const done of [dir, out]) rmSync(done, { recursive: true, force: true })
    }
    // Damage of some bytes costs some records, and not the trial.
    expect(kept).toBeGreaterThan(0.6 * SEEDS * rows.length)
    expect(lost).toBeGreaterThan(0)
  })
})
