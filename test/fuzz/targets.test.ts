/** Every reader on mutations of its inputs, as many as are quick, and on all that a fuzzer once found. */

import { describe, expect, it } from 'vitest'
import { isLong } from '../support/part.js'
import { findsOf, readCorpus, readFind } from './corpus.js'
import type { ReadersCount, ReadersRun } from './readers-run.js'
import { FIXTURES, LIMIT_MS, run, SEED } from './run.js'
import { TARGETS } from './targets.js'

const MUTATIONS = isLong ? 6000 : 300

it('all readers hold on mutated inputs', { timeout: LIMIT_MS }, async () => {
  const options: ReadersRun = { fixtures: FIXTURES, seed: SEED, mutations: MUTATIONS }
  const counts = await run<Record<string, ReadersCount>>('readers-run.ts', options)
  console.log(
    `fuzz: mutated inputs (seed ${SEED}): ${Object.entries(counts)
      .map(([name, { inputs }]) => `${name} ${inputs}`)
      .join(', ')}`,
  )
  expect(Object.keys(counts)).toEqual(Object.keys(TARGETS))
  for (const { inputs } of Object.values(counts)) expect(inputs).toBeGreaterThan(MUTATIONS / 2)
})

it('a run from the corpus tries the same inputs each time', { timeout: LIMIT_MS }, async () => {
  const options: ReadersRun = { fixtures: FIXTURES, seed: SEED, mutations: 40, fromCorpus: true }
  const [once, again] = await Promise.all(
    [0, 1].map(() => run<Record<string, ReadersCount>>('readers-run.ts', options)),
  )
  expect(again).toEqual(once)
  expect(Object.keys(once!)).toEqual(Object.keys(TARGETS))
})

describe.each(Object.entries(TARGETS))('%s', (name, target) => {
  it('reads what it should', async () => {
    const seeds = target.seeds(FIXTURES)
    expect(seeds.length).toBeGreaterThan(0)
    for (const seed of seeds) await target.run(seed)
  })

  it.each(findsOf(FIXTURES, name))('holds on %s', async file => {
    await target.run(readFind(FIXTURES, name, file))
  })

  it('holds on the corpus', async () => {
    const corpus = readCorpus(FIXTURES, name)
    expect(corpus.length).toBeGreaterThan(0)
    for (const input of corpus) await target.run(input)
  })
})
