/** Noise and faults told apart: error rates over 200 pairs of trainings with known noise, half of which have a known fault. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, type DiffOptions, diff } from '#dist/index.js'
import { uniform } from '../../fixtures/random.js'
import { FAULTY, type Fault, writeTraining } from '../support/noisy-training.js'
import { scratchDirectory } from '../support/scratch.js'

const PAIRS = 200
const STEPS = 28

const scratch = scratchDirectory('noise')

/** What was found in a pair, beside what is known. */
interface Outcome {
  readonly fault: Fault
  readonly clean: { readonly step: number } | null
  readonly found: { readonly step: number; readonly tensor: string } | null
}

/** Beside a run of the same configuration, and by the trend of the steps before. */
async function outcomes(seed: number): Promise<Record<'noise' | 'trend', Outcome[]>> {
  const random = uniform(seed)
  const found: Record<'noise' | 'trend', Outcome[]> = { noise: [], trend: [] }
  for (let i = 0; i < PAIRS; i++) {
    // From the last bits of float32 to a tenth of a percent.
    const noise = 10 ** (-7 + 4 * random())
    const fault: Fault = {
      tensor: FAULTY[Math.floor(random() * FAULTY.length)]!,
      step: 8 + Math.floor(random() * 15),
      factor: 1 + Math.max(0.03, 100 * noise) + random(),
    }
    const written = (name: string, noiseSeed: number, wrong?: Fault) => {
      const path = join(scratch, `${seed}-${i}-${name}`)
      writeTraining(path, { seed: seed + i, noiseSeed, noise, steps: STEPS, ...(wrong && { fault: wrong }) })
      return createTrial(path, { requireCollections: false, refresh: 'manual' })
    }
    const first = 1_000_000 + 3 * i + seed
    const [a, again, clean, faulty] = await Promise.all([
      written('a', first),
      written('again', first + 1),
      written('clean', first + 2),
      written('faulty', first + 2, fault),
    ])
    const beside: DiffOptions = { noise: [again], stopAtFirst: true }
    found.noise.push({
      fault,
      clean: (await diff(a, clean, beside)).divergence,
      found: (await diff(a, faulty, beside)).divergence,
    })
    found.trend.push({ fault, clean: (await diff(a, clean)).departure, found: (await diff(a, faulty)).departure })
    for (const trial of [a, again, clean, faulty]) {
      await trial.close()
      rmSync(trial.path, { recursive: true })
    }
  }
  return found
}

it('faults are told from noise, beside a run of the same configuration and by the trend of the steps before', async () => {
  for (const [way, all] of Object.entries(await outcomes(20_000))) {
    const right = all.filter(({ fault, found }) => found?.step === fault.step && found.tensor === fault.tensor)
    const alarms = all.filter(({ clean }) => clean !== null)
    console.log(`${way}: of ${PAIRS} faults ${right.length} at their step and tensor; ${alarms.length} false alarms`)
    expect(right.length).toBeGreaterThanOrEqual(0.95 * PAIRS)
    expect(alarms.length).toBeLessThan(0.01 * PAIRS)
  }
}, 600_000)
