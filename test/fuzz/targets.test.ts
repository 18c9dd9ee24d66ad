/** Every reader on mutations of its inputs, as many as are quick, and on all that a fuzzer once found. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../support/golden.js'
import { Chance } from './bytes.js'
import { SEED } from './seed.js'
import { TARGETS } from './targets.js'

const FIXTURES = join(ROOT, 'fixtures')
const MUTATIONS = 6000
/** A target that has not come to its end by then has a loop without one. */
const LIMIT_MS = 5 * 60_000

describe.each(Object.entries(TARGETS))('%s', (name, target) => {
  it('reads what it should', async () => {
    const seeds = target.seeds(FIXTURES)
    expect(seeds.length).toBeGreaterThan(0)
    for (const seed of seeds) await target.run(seed)
  })

  it('holds on mutated inputs', { timeout: LIMIT_MS }, async () => {
    const chance = new Chance(SEED)
    const seeds = target.seeds(FIXTURES)
    const other = () => chance.pick(seeds)
    let input = other()
    for (let i = 0; i < MUTATIONS; i++) {
      // Mutations of mutations, up to four deep.
      const mutated = target.mutate(i % 4 === 0 ? other() : input, chance, other)
      if (mutated.length > target.maxByteLength) continue
      input = mutated
      try {
        await target.run(input)
      } catch (cause) {
        throw new Error(`mutation ${i} of seed ${SEED}, as base64 ${Buffer.from(input).toString('base64')}`, { cause })
      }
    }
  })

  const finds = join(FIXTURES, 'fuzz', name)
  it.each(existsSync(finds) ? readdirSync(finds) : [])('holds on %s', async file => {
    await target.run(new Uint8Array(readFileSync(join(finds, file))))
  })
})
