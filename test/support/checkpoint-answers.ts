/** How what was read of a checkpoint differs from golden answers. It runs in a page, too. */

import type { Trial } from '#dist/index.js'

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

export const REDUCTIONS = [
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

/** What a place must decode to. Plain data, so that a page can be sent it. */
export interface GoldenPlace {
  /** Relative to the checkpoints. */
  readonly place: string
  /** By step and name; of several workers by `worker name`. */
  readonly steps: Readonly<Record<string, GoldenTensors>>
  readonly byWorker?: boolean
  /** A pattern of names that the answers say nothing of. */
  readonly extra?: string
}

/** A row of a scan, from the library or the command line. */
export interface ReadRow {
  readonly tensor: string | null
  readonly step: number
  readonly worker: string
  readonly dtype?: string | null
  readonly shape?: readonly number[] | null
  readonly error?: { readonly message: string } | undefined
  readonly reductions: Readonly<Record<string, unknown>>
}

/** How a trial differs from what it must decode to: dtype, shape, all reductions, the first values; nothing if it doesn't. */
export function differences(trial: Trial, golden: Omit<GoldenPlace, 'place'>): Promise<string[]> {
  const rows = trial.scan({ reductions: [...REDUCTIONS] }) as AsyncIterable<ReadRow>
  return differencesOf(rows, golden, async ({ tensor, step, worker }) => {
    const { data } = await trial.tensor(tensor!).value(step, { worker })
    return Array.from(data as ArrayLike<number | bigint>)
  })
}

/** @param valuesOf all values of a tensor, or the first */
export async function differencesOf(
  rows: AsyncIterable<ReadRow> | Iterable<ReadRow>,
  { steps, byWorker = false, extra }: Omit<GoldenPlace, 'place'>,
  valuesOf: (row: ReadRow) => Promise<readonly (number | bigint)[]>,
): Promise<string[]> {
  const wrong: string[] = []
  const seen = new Set<string>()
  for await (const row of rows) {
    const name = byWorker ? `${row.worker} ${row.tensor}` : row.tensor!
    const at = `${row.step} ${name}`
    const golden = steps[row.step]?.[name]
    seen.add(at)
    if (golden === undefined) {
      if (extra === undefined || !new RegExp(extra).test(name)) wrong.push(`${at}: not expected`)
      continue
    }
    // Complex numbers have no least: the answers say no more of them than what they are.
    if (row.error && !golden.dtype.startsWith('complex')) {
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
      const got = (await valuesOf(row)).slice(0, golden.first.length).map(Number)
      const isSame = golden.first.every((one, i) => Object.is(numberOf(one), got[i]) || numberOf(one) === got[i])
      if (!isSame) wrong.push(`${at}: expected values ${golden.first}, got ${got}`)
    }
  }
  for (const [step, tensors] of Object.entries(steps)) {
    for (const name of Object.keys(tensors)) if (!seen.has(`${step} ${name}`)) wrong.push(`${step} ${name}: missing`)
  }
  return wrong
}
