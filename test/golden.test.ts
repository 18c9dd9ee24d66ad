/**
 * Every golden trial through the library and through the command line, at threads 0, 1 and 2. Quick: those of fixtures/, on
 * the command line at 2.
 */

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type Mode, type ScanRow, type Trial } from '#dist/index.js'
import {
  fixtureTrials,
  type Golden,
  type GoldenRecord,
  goldenNumber,
  isRequired,
  ROOT,
  reductionFault,
  sharedTrials,
} from './support/golden.js'
import { isLong, part } from './support/part.js'

const CLI = join(ROOT, 'dist/bundle/main.js')
const MODES: readonly Mode[] = ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL']

it('has the shared trials where they are required', () => {
  if (isRequired('shared')) expect(sharedTrials().length).toBeGreaterThan(10)
})

afterAll(closePools)

describe.each([...fixtureTrials(), ...(isLong ? sharedTrials() : [])])(
  '$name ($directory)',
  ({ directory, golden: read }) => {
    const golden = read()
    const records = recordsOf(golden)
    let trial: Trial
    beforeAll(async () => {
      trial = await createTrial(directory)
    })

    it('has the steps, modes, workers, names and collections', () => {
      expect(trial.modes()).toEqual(golden.modes)
      expect(trial.workers()).toEqual(golden.workers)
      expect(trial.tensorNames()).toEqual(golden.tensor_names)
      expect(trial.loadedAllSteps).toBe(golden.loaded_all_steps)
      for (const mode of MODES) {
        expect(trial.steps({ mode })).toEqual(golden.steps[mode])
        expect(trial.steps({ mode, showIncompleteSteps: true })).toEqual(golden.steps_incl_incomplete[mode])
      }
      for (const [step, [mode, modeStep]] of Object.entries(golden.mode_and_mode_step)) {
        expect([trial.mode(Number(step)), trial.modeStep(Number(step))]).toEqual([mode, modeStep])
      }
      const collections = [...trial.collections()].map(([name, { members }]) => [name, members])
      expect(Object.fromEntries(collections)).toEqual(golden.collections)
      expect(trial.problems).toEqual([])
    })

    it('has every value', async () => {
      let seen = 0
      for (const { tensor, step, worker, record } of records) {
        if (record.dtype === undefined) continue
        const value = await trial.tensor(tensor).value(step, { worker, checkLevel: 'full' })
        expect([value.dtype, value.shape]).toEqual([record.dtype, record.shape])
        if (record.strings) expect(value.data).toEqual(record.strings)
        else expect(createHash('sha256').update(value.bytes).digest('hex')).toBe(record.sha256)
        seen++
      }
      expect(seen).toBe(records.filter(({ record }) => record.dtype).length)
    })

    it.each([0, 1, 2])('has every reduction at threads %i', async threads => {
      const rows = new Map<string, ScanRow>()
      for await (const row of trial.scan({ threads, checkLevel: 'full' })) {
        expect(row.error).toBeUndefined()
        rows.set(keyOf(row.tensor!, row.step, row.worker), row)
      }
      expect(rows.size).toBe(records.filter(({ record }) => record.dtype || record.saved_reductions).length)
      for (const { tensor, step, worker, record } of records) {
        const row = rows.get(keyOf(tensor, step, worker))
        if (row === undefined) {
          expect(record.dtype ?? record.saved_reductions).toBeUndefined()
          continue
        }
        if (record.dtype) {
          expect([row.saved, row.dtype, row.shape]).toEqual([false, record.dtype, record.shape])
          if (!record.reductions) continue
          const count = record.shape!.reduce((product, size) => product * size, 1)
          const fault = reductionFault(golden, record, row.reductions, count)
          expect(fault && `${tensor} at ${step}: ${fault}`).toBeNull()
        } else {
          expect(row.saved).toBe(true)
          expect(row.reductions).toEqual(savedReductions(record))
        }
      }
    })

    it('has every saved reduction, bit for bit', async () => {
      for (const { tensor, step, worker, record } of records) {
        for (const [name, value] of Object.entries(savedReductions(record))) {
          const abs = name.startsWith('abs_')
          const base = name.replace('abs_', '') as 'mean'
          const got = await trial.tensor(tensor).reductionValue(step, base, { worker, abs })
          expect(got).toBe(value)
        }
      }
    })

    const isFixture = directory.startsWith(ROOT)
    it.each(part([0, 1, 2], threads => isFixture && threads === 2))(
      'prints every reduction at --threads %i',
      async threads => {
        const run = promisify(execFile)
        const { stdout } = await run(
          process.execPath,
          [CLI, 'scan', directory, '--reductions', 'all', '--format', 'jsonl', '--threads', String(threads)],
          { maxBuffer: 1 << 28 },
        )
        const lines = stdout.trimEnd().split('\n')
        const rows = new Map<string, Record<string, unknown>>()
        for (const line of lines) {
          const row = JSON.parse(line) as Record<string, unknown>
          rows.set(keyOf(row.tensor as string, row.step as number, row.worker as string), row)
        }
        expect(rows.size).toBe(lines.length)
        for (const { tensor, step, worker, record } of records) {
          const row = rows.get(keyOf(tensor, step, worker))
          if (row === undefined) {
            expect(record.dtype ?? record.saved_reductions).toBeUndefined()
            continue
          }
          const [mode, modeStep] = golden.mode_and_mode_step[step]!
          expect([row.mode, row.mode_step]).toEqual([mode, modeStep])
          if (record.dtype) {
            expect([row.dtype, row.shape]).toEqual([record.dtype, record.shape])
            if (!record.reductions) continue
            const got = Object.fromEntries(
              golden.reductions.map(name => [name, goldenNumber(row[name] as number | string)]),
            )
            const count = record.shape!.reduce((product, size) => product * size, 1)
            const fault = reductionFault(golden, record, got, count)
            expect(fault && `${tensor} at ${step}: ${fault}`).toBeNull()
          } else {
            expect(row.saved).toBe(true)
            for (const [name, value] of Object.entries(savedReductions(record))) {
              expect(goldenNumber(row[name] as number | string)).toBe(value)
            }
          }
        }
      },
    )
  },
)

function savedReductions(record: GoldenRecord): Record<string, number> {
  const saved = Object.entries(record.saved_reductions ?? {})
  return Object.fromEntries(saved.map(([name, value]) => [name, goldenNumber(value)]))
}

function keyOf(tensor: string, step: number, worker: string): string {
  return JSON.stringify([tensor, step, worker])
}

function recordsOf(golden: Golden): { tensor: string; step: number; worker: string; record: GoldenRecord }[] {
  return Object.entries(golden.tensors).flatMap(([tensor, steps]) =>
    Object.entries(steps).flatMap(([step, workers]) =>
      Object.entries(workers).map(([worker, record]) => ({ tensor, step: Number(step), worker, record })),
    ),
  )
}
