/** The checkpoints of spec/checkpoints.md, with what they must decode to: by numpy, over bytes decoded apart from ours. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Trial } from '#dist/index.js'
import { isRequired, ROOT } from './golden.js'

export const CHECKPOINTS = join(ROOT, '..', 'shared', 'checkpoints')
export const FIXTURES = join(ROOT, 'fixtures', 'checkpoints')

/** Whether they are there. In CI they must be. */
export const hasCheckpoints = existsSync(CHECKPOINTS) || isRequired('shared')

type GoldenNumber = number | 'NaN' | 'Infinity' | '-Infinity' | null

/** What a tensor must decode to. */
export interface GoldenTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly first?: readonly GoldenNumber[]
  /** Σ|x| over finite elements. */
  readonly S?: number
  readonly [reduction: string]: unknown
}

export type GoldenTensors = Readonly<Record<string, GoldenTensor>>

export function expectedOf(name: string): unknown {
  return JSON.parse(readFileSync(join(CHECKPOINTS, 'expected', `${name}.json`), 'utf8'))
}

export function stepsOf(name: string): Readonly<Record<string, GoldenTensors>> {
  return (expectedOf(name) as { readonly steps: Readonly<Record<string, GoldenTensors>> }).steps
}

const REDUCTIONS = [
  'count',
  'nan_count',
  'inf_count',
  'zero_count',
  'min',
  'max',
  'mean',
  'sum',
  'std',
  'l1',
  'l2',
  'abs_max',
  'abs_mean',
] as const

/** dtypes as the answers spell some of them. */
const SPELLED: Readonly<Record<string, string>> = {
  F8_E4M3: 'float8_e4m3fn',
  F8_E5M2: 'float8_e5m2',
  F8_E4M3FNUZ: 'float8_e4m3fnuz',
  F8_E5M2FNUZ: 'float8_e5m2fnuz',
  F8_E8M0: 'float8_e8m0fnu',
  F4: 'float4_e2m1fn',
  I64: 'int64',
}

function numberOf(golden: GoldenNumber): number {
  return golden === null ? Number.NaN : Number(golden)
}

/** How a trial differs from what it must decode to: dtype, shape, all reductions, the first values; nothing if it doesn't. */
export async function differences(
  trial: Trial,
  steps: Readonly<Record<string, GoldenTensors>>,
  nameOf: (row: { readonly tensor: string | null; readonly worker: string }) => string = ({ tensor }) => tensor!,
  isExtra: (name: string) => boolean = () => false,
): Promise<string[]> {
  const wrong: string[] = []
  const seen = new Set<string>()
  for await (const row of trial.scan({ reductions: [...REDUCTIONS] })) {
    const name = nameOf(row)
    const at = `${row.step} ${name}`
    const golden = steps[row.step]?.[name]
    seen.add(at)
    if (golden === undefined) {
      if (!isExtra(name)) wrong.push(`${at}: not expected`)
      continue
    }
    if (row.error) {
      wrong.push(`${at}: ${row.error.message}`)
      continue
    }
    const dtype = SPELLED[golden.dtype] ?? golden.dtype
    if (row.dtype !== dtype) wrong.push(`${at}: expected ${dtype}, got ${row.dtype}`)
    if (`${row.shape}` !== `${golden.shape}`) wrong.push(`${at}: expected shape ${golden.shape}, got ${row.shape}`)
    for (const reduction of REDUCTIONS) {
      const given = golden[reduction] as GoldenNumber | undefined
      if (given === undefined || given === null) continue
      const [expected, got] = [numberOf(given), Number(row.reductions[reduction])]
      // Sums of numbers that cancel are as good as their terms.
      const near = 1e-9 * Math.max(Math.abs(expected), /min|max|count/.test(reduction) ? 0 : (golden.S ?? 0) / 1000)
      const isSame = Number.isNaN(expected) ? Number.isNaN(got) : expected === got || Math.abs(expected - got) <= near
      if (!isSame) wrong.push(`${at}: expected ${reduction} ${expected}, got ${got}`)
    }
    if (golden.first !== undefined && golden.first.length > 0) {
      const value = await trial.tensor(row.tensor!).value(row.step, { worker: row.worker })
      const got = Array.from(value.data as ArrayLike<number | bigint>)
        .slice(0, golden.first.length)
        .map(Number)
      const isSame = golden.first.every((one, i) => Object.is(numberOf(one), got[i]) || numberOf(one) === got[i])
      if (!isSame) wrong.push(`${at}: expected values ${golden.first}, got ${got}`)
    }
  }
  for (const [step, tensors] of Object.entries(steps)) {
    for (const name of Object.keys(tensors)) if (!seen.has(`${step} ${name}`)) wrong.push(`${step} ${name}: missing`)
  }
  return wrong
}
