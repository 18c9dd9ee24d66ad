/** Every reader on mutations of its inputs, as many as are quick, and on all that a fuzzer once found. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isLong } from '../support/part.js'
import type { ReadersRun } from './readers-run.js'
import { FIXTURES, LIMIT_MS, run, SEED } from './run.js'
import { TARGETS } from './targets.js'

const MUTATIONS = isLong ? 6000 : 300

it('all readers hold on mutated inputs', { timeout: LIMIT_MS }, async () => {
  const options: ReadersRun = { fixtures: FIXTURES, seed: SEED, mutations: MUTATIONS }
  const counts = await run<Record<string, number>>('readers-run.ts', options)
  console.log(
    `fuzz: mutated inputs (seed ${SEED}): ${Object.entries(counts)
      .map(entry => entry.join(' '))
      .join(', ')}`,
  )
  expect(Object.keys(counts)).toEqual(Object.keys(TARGETS))
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(MUTATIONS / 2)
})

describe.each(Object.entries(TARGETS))('%s', (name, target) => {
  it('reads what it should', async () => {
    const seeds = target.seeds(FIXTURES)
    expect(seeds.length).toBeGreaterThan(0)
    for (const seed of seeds) await target.run(seed)
  })

  const finds = join(FIXTURES, 'fuzz', name)
  it.each(existsSync(finds) ? readdirSync(finds) : [])('holds on %s', async file => {
    await target.run(new Uint8Array(readFileSync(join(finds, file))))
  })
})
