/** A trial of Tornasole with a byte that is none of UTF-8, or a line that is none of its collections. */

import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { closePools, createTrial, repairTrial, verifyTrial } from '#dist/index.js'
import { ROOT } from './support/golden.js'
import { plainRows, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const TRIAL = join(ROOT, 'fixtures/trials/tornasole-2019')
const INDEX = 'index/000000000/000000000043_algo-1.csv'
const scratch = scratchDirectory('tornasole')
let made = 0

afterAll(closePools)

function copyOf(): string {
  const directory = join(scratch, `t${made++}`)
  cpSync(TRIAL, directory, { recursive: true })
  return directory
}

it('an index file that is not UTF-8 is refused by a scan, told by verify, and made anew by a repair', async () => {
  const good = plainRows(await rowsOf(await createTrial(TRIAL)))
  const directory = copyOf()
  const bytes = readFileSync(join(directory, INDEX))
  bytes[3] = 0xff
  writeFileSync(join(directory, INDEX), bytes)
  const rows = await rowsOf(await createTrial(directory))
  expect(rows.flatMap(({ step, error }) => (error ? [[step, error.code]] : []))).toEqual([[43, 'BadIndexFile']])
  const { ok, problems } = await verifyTrial(directory)
  expect([ok, problems.map(({ code, file }) => [code, file])]).toEqual([false, [['BadIndexFile', INDEX]]])
  const copy = join(scratch, `copy${made++}`)
  await repairTrial(directory, copy)
  expect(plainRows(await rowsOf(await createTrial(copy)))).toEqual(good)
  expect((await verifyTrial(copy)).ok).toBe(true)
})

it('a bad line of collections.ts is a problem where collections are not required', async () => {
  const directory = copyOf()
  appendFileSync(join(directory, 'collections.ts'), 'nonsense\n')
  expect(await rejectionOf(createTrial(directory))).toMatchObject({ code: 'BadCollectionsFile' })
  const trial = await createTrial(directory, { requireCollections: false })
  expect(trial.problems.map(({ code }) => code)).toEqual(['BadCollectionsFile'])
  expect(plainRows(await rowsOf(trial))).toEqual(plainRows(await rowsOf(await createTrial(TRIAL))))
  expect((await verifyTrial(directory)).problems.map(({ code }) => code)).toEqual(['BadCollectionsFile'])
})
