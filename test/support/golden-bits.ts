/** What golden-bits.json holds. */

import { join } from 'node:path'
import { createTrial, type ScanOptions } from '#dist/index.js'
import { type GoldenBits, trialBits } from './bits.js'
import { fixtureTrials, ROOT } from './golden.js'

/** By the trial's name. */
export async function goldenBits(
  options: Pick<ScanOptions, 'threads' | 'memory'> = {},
): Promise<Record<string, GoldenBits>> {
  const all: Record<string, GoldenBits> = {}
  for (const { name, directory } of fixtureTrials().sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const trial = await createTrial(directory, { requireCollections: false })
    all[name] = await trialBits(trial, options)
    await trial.close()
  }
  return all
}

export const GOLDEN_BITS = join(ROOT, 'fixtures/golden-bits.json')
