/** Golden answers: the trials there are, and how close a reduction must come. Source: expected/README.md. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What one worker saved of a tensor at a step, as it must decode. */
export interface GoldenRecord {
  readonly dtype?: string
  readonly shape?: readonly number[]
  readonly sha256?: string
  readonly strings?: readonly string[]
  /** In the order of Golden.reductions. */
  readonly reductions?: readonly (number | string)[]
  readonly saved_shape?: readonly number[]
  readonly original_name?: string
  readonly saved_reductions?: Readonly<Record<string, number | string>>
}

export interface Golden {
  readonly trial: string
  readonly reductions: readonly string[]
  readonly modes: readonly string[]
  readonly workers: readonly string[]
  readonly steps: Readonly<Record<string, readonly number[]>>
  readonly steps_incl_incomplete: Readonly<Record<string, readonly number[]>>
  readonly loaded_all_steps: boolean
  readonly mode_and_mode_step: Readonly<Record<string, readonly [string, number]>>
  readonly tensor_names: readonly string[]
  readonly collections: Readonly<Record<string, readonly string[]>>
  readonly tensors: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, GoldenRecord>>>>>>
}

export interface GoldenTrial {
  readonly name: string
  readonly directory: string
  readonly golden: () => Golden
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SHARED = join(ROOT, '..', 'shared')

/** Trials that wait for a later issue. */
const LATER: readonly string[] = []

/** Whether a part that a machine may lack must be there: in CI nothing is skipped. */
export function isRequired(
  part: 'shared' | 'numpy' | 's3' | 'chromium' | 'duckdb' | 'parallel' | 'redis' | 'torch' | 'pandas',
): boolean {
  return (process.env.TRIALSCAN_REQUIRE ?? '').split(',').includes(part)
}

function trialsIn(directory: string, expected: string): GoldenTrial[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory)
    .filter(name => !LATER.includes(name) && existsSync(join(expected, `${name}.json`)))
    .map(name => ({
      name,
      directory: join(directory, name),
      golden: () => JSON.parse(readFileSync(join(expected, `${name}.json`), 'utf8')) as Golden,
    }))
}

/** The trials that lie beside the project, where they are. */
export function sharedTrials(): GoldenTrial[] {
  return trialsIn(join(SHARED, 'trials'), join(SHARED, 'expected'))
}

/** The trials of fixtures/: real ones and generated ones. */
export function fixtureTrials(): GoldenTrial[] {
  const fixtures = join(ROOT, 'fixtures')
  return ['trials', 'generated'].flatMap(kind => trialsIn(join(fixtures, kind), join(fixtures, 'expected')))
}

export function fixtureTrial(name: string): GoldenTrial {
  const found = fixtureTrials().find(trial => trial.name === name)
  if (!found) throw new Error(`no fixture ${name}; there are ${fixtureTrials().map(trial => trial.name)}`)
  return found
}

/** A golden number: non-finite ones are strings. */
export function goldenNumber(value: number | string): number {
  return typeof value === 'number' ? value : Number(value)
}

/**
 * Says what is wrong with a record's reductions, or null. `got` by the names of `golden.reductions`.
 * @param count elements
 */
export function reductionFault(
  golden: Golden,
  record: GoldenRecord,
  got: Readonly<Record<string, unknown>>,
  count: number,
): string | null {
  const wanted = Object.fromEntries(
    golden.reductions.map((name, i) => [name, goldenNumber(record.reductions![i]!)]),
  ) as Record<string, number>
  const total = wanted.l1!
  for (const name of golden.reductions) {
    const want = wanted[name]!
    const value = got[name]
    if (typeof value !== 'number' || !isClose(name.replace('abs_', ''), value, want, total, count)) {
      return `${name}: expected ${want}, got ${value}`
    }
  }
  return null
}

function isClose(base: string, got: number, want: number, total: number, count: number): boolean {
  if (Number.isNaN(want) || !Number.isFinite(want)) return Object.is(got, want)
  switch (base) {
    case 'min':
    case 'max':
      return got === want
    case 'sum':
    case 'l1':
      return Math.abs(got - want) <= 1e-12 * total
    case 'mean':
      return Math.abs(got - want) <= (1e-12 * total) / count
    case 'l2':
      return Math.abs(got - want) <= 1e-12 * Math.abs(want)
    case 'variance':
    case 'std':
      return Math.abs(got - want) <= Math.max(1e-24, 1e-9 * Math.abs(want))
    case 'prod':
      // Outside of 1e±290 the golden product has left its own range; its sign stands.
      if (want === 0 || Math.abs(want) < 1e-290) return Math.abs(got) < 1e-289 && sameSign(got, want)
      if (Math.abs(want) > 1e290) return Math.abs(got) > 1e289 && sameSign(got, want)
      return Math.abs(got - want) <= 1e-9 * Math.abs(want)
    default:
      throw new Error(`no rule for ${base}`)
  }
}

function sameSign(a: number, b: number): boolean {
  return a === 0 || b === 0 || Math.sign(a) === Math.sign(b)
}
