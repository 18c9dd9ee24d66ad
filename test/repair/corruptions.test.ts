/** Every corruption of fixtures/corrupt.ts, repaired: what is right is in the copy, and nothing that is wrong. */

import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  MissingCollectionFiles,
  repairTrial,
  type ScanRow,
  StoreError,
  verifyTrial,
} from '#dist/index.js'
import { type Corruption, copyTrial, corruptions, PLAIN_TRIAL } from '../../fixtures/corrupt.js'
import { part } from '../support/part.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { contentsOf } from './tree.js'

const scratch = scratchDirectory('repair')
const isRoot = process.getuid?.() === 0

let good: ScanRow[]
let copies = 0

beforeAll(async () => {
  good = await rowsOf(await createTrial(PLAIN_TRIAL), { checkLevel: 'full' })
  expect(good.length).toBe(15)
})

afterAll(closePools)

const usable = corruptions.filter(({ needsUnprivilegedUser }) => !(needsUnprivilegedUser && isRoot))
const named = (list: readonly Corruption[]) => list.map(corruption => [corruption.name, corruption] as const)

/** Nothing can be copied of these. */
const isNoTrial = ({ name }: Corruption): boolean => name.startsWith('directory that is no')

/** Tensors of step 1 that are lost: those that a damaged index misplaces, its records still tell. */
function lostTensors({ name, expect: { error, when, tensors } }: Corruption): readonly string[] {
  if (error === 'none' || when !== 'read' || name.startsWith('index entry')) return []
  // The value stands for all its elements, and can be reduced.
  return name === 'one value for 2^50 elements' ? [] : tensors
}

/** What is left out although no tensor is lost with it, as its code says. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'collections files missing': 'MissingCollectionFiles',
  'collections file cut': 'BadCollectionsFile',
  'event file longer than its index': 'TruncatedRecord',
  'index file cut': 'BadIndexFile',
  'index file empty': 'BadIndexFile',
  'index file of another kind': 'BadIndexFile',
  'index file of binary rubbish': 'BadIndexFile',
}

function spoilt({ apply }: Corruption): { dir: string; out: string } {
  const dir = join(scratch, `${copies}`)
  copyTrial(PLAIN_TRIAL, dir)
  apply(dir)
  return { dir, out: join(scratch, `${copies++}-clean`) }
}

describe.each([false, true])('repaired, checksums: %s', checksums => {
  // Quick: every third, in turns with checksums and without.
  const isQuick = (_: unknown, i: number) => i % 6 === (checksums ? 3 : 0)
  it.each(part(named(usable.filter(corruption => !isNoTrial(corruption))), isQuick))('%s', async (name, corruption) => {
    const { dir, out } = spoilt(corruption)
    const before = contentsOf(dir)
    const report = await repairTrial(dir, out, { checksums })
    expect(contentsOf(dir)).toEqual(before)
    const trial = await createTrial(out)
    expect(trial.problems).toEqual([])
    const lost = lostTensors(corruption)
    const rows = await rowsOf(trial, { checkLevel: 'full' })
    expect(rows.filter(({ error }) => error)).toEqual([])
    const isHeld = ({ step, tensor }: ScanRow): boolean => !(step === 1 && lost.includes(tensor!))
    const isTouched = name === 'one value for 2^50 elements' || name === 'record of another tensor'
    const compared = (list: readonly ScanRow[]) =>
      plainRows(list.filter(({ step, tensor }) => !(isTouched && step === 1 && /^fc\.bi[ao]s$/.test(tensor!))))
    expect(compared(rows)).toEqual(compared(good.filter(isHeld)))
    // A record of another name is a good one.
    if (name === 'record of another tensor') {
      expect(rows.filter(({ tensor }) => tensor === 'fc.bios')).toMatchObject([{ step: 1, shape: [5] }])
    }
    if (name === 'one value for 2^50 elements') expect(rows.length).toBe(15)
    // What is lost is told, and nothing else.
    const told = report.leftOut.flatMap(({ tensors, step }) => tensors.map(tensor => [step, tensor]))
    expect(told).toEqual(lost.map(tensor => [1, tensor]))
    expect(report.records.leftOut).toBe(Math.max(lost.length, name === 'event file longer than its index' ? 1 : 0))
    if (lost.length === 0) {
      expect(report.leftOut.map(({ code }) => code)).toEqual(LEFT_OUT[name] ? [LEFT_OUT[name]] : [])
    }
    expect(report.leftOutCount).toBe(report.leftOut.length)
    await trial.close()
    const { ok, problems } = await verifyTrial(out, { deep: true })
    expect([ok, problems]).toEqual([true, []])
    // A clean copy has nothing to be repaired, and is not changed.
    const again = `${out}-again`
    const second = await repairTrial(out, again, { checksums })
    expect([second.leftOut, second.rebuilt, second.ignored]).toEqual([[], [], []])
    expect(contentsOf(again)).toEqual(contentsOf(out))
    for (const done of [dir, out, again]) rmSync(done, { recursive: true, force: true })
  })
})

describe('no trial', () => {
  it.each(named(usable.filter(isNoTrial)))('%s', async (name, corruption) => {
    const { dir, out } = spoilt(corruption)
    const error = await rejectionOf(repairTrial(dir, out))
    if (name === 'directory that is not there') {
      expect(error).toBeInstanceOf(StoreError)
      expect(error).toMatchObject({ code: 'NotFound' })
    } else expect(error).toBeInstanceOf(MissingCollectionFiles)
    expect(contentsOf(out)).toEqual({})
    cpSync(PLAIN_TRIAL, out, { recursive: true, errorOnExist: true, force: false })
  })
})
