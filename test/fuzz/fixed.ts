/**
 * The fuzzing of every change: `npm run fuzz:fixed`. Each reader gets what fixtures/fuzz has for it, and a fixed number of
 * mutations of that, drawn from a fixed seed. So a run says the same whenever and wherever the same code is run; what it finds
 * fails. Campaigns search for what is new: docs/fuzz.md.
 */

import type { ReadersCount, ReadersRun } from './readers-run.js'
import { FIXTURES, run } from './run.js'
import { TARGETS } from './targets.js'

const SEED = 20191113
/** Some 3 seconds of a target. */
const MUTATIONS = 2000

let failed = 0
for (const target of Object.keys(TARGETS)) {
  const options: ReadersRun = { fixtures: FIXTURES, seed: SEED, mutations: MUTATIONS, target, fromCorpus: true }
  try {
    const counts = await run<Record<string, ReadersCount>>('readers-run.ts', options)
    const { inputs, digest } = counts[target]!
    console.log(`${target}: ${inputs.toLocaleString('en-US')} inputs, ${digest}`)
  } catch (error) {
    failed++
    console.error(error instanceof Error ? error.message : error)
  }
}
process.exitCode = failed > 0 ? 1 : 0
