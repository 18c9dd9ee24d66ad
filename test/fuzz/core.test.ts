/** A million mutated records through the core (quick: thirty thousand): no trap, no byte read outside of the record, no end of the work missed. */

import { expect, it } from 'vitest'
import { isLong } from '../support/part.js'
import type { CoreCounts, CoreRun } from './core-run.js'
import { FIXTURES, LIMIT_MS, run, SEED } from './run.js'

const RECORDS = isLong ? 1_000_000 : 30_000
const PROCESSES = isLong ? 2 : 1

it(`${RECORDS.toLocaleString('en-US')} mutated records are read, or refused, and as protobufjs reads them`, {
  timeout: LIMIT_MS,
}, async () => {
  const runs = await Promise.all(
    Array.from({ length: PROCESSES }, (_, i) => {
      const options: CoreRun = { fixtures: FIXTURES, seed: SEED + i, records: RECORDS / PROCESSES, comparedEvery: 4 }
      return run<CoreCounts>('core-run.ts', options)
    }),
  )
  const sum = (of: (counts: CoreCounts) => number) => runs.reduce((total, counts) => total + of(counts), 0)
  const number = (value: number) => value.toLocaleString('en-US')
  const [records, read] = [sum(counts => counts.records), sum(({ statuses }) => statuses[0] ?? 0)]
  const [compared, refused, agreed] = [sum(c => c.compared), sum(c => c.refused), sum(c => c.agreed)]
  const overlong = sum(counts => counts.overlong)
  console.log(
    `fuzz: ${number(records)} mutated records (seed ${SEED}), each in 2 places: ${number(read)} read, the others refused; ` +
      `${number(compared)} of them held against protobufjs: it accepted ${number(compared - refused)}, ` +
      `of which ${number(agreed)} agreed and ${number(overlong)} have a varint of more than ten bytes`,
  )
  expect(records).toBe(RECORDS)
  // Mutations that break everything would show nothing, and so would mutations that break nothing.
  expect(read / records).toBeGreaterThan(0.1)
  expect(read / records).toBeLessThan(0.8)
  expect(agreed).toBeGreaterThan(RECORDS / 20)
  expect(overlong / agreed).toBeLessThan(0.05)
  for (const status of [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]) expect(sum(c => c.statuses[status] ?? 0)).toBeGreaterThan(0)
})
