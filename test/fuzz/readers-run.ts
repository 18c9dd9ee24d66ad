/**
 * Mutations of the inputs of every reader: the work of targets.test.ts, in a process that can be ended. A ReadersRun as
 * JSON is its argument; for each target, as JSON, how many inputs were tried is its output.
 */

import { Chance } from './bytes.js'
import { TARGETS } from './targets.js'

export interface ReadersRun {
  readonly fixtures: string
  readonly seed: number
  readonly mutations: number
}

async function run({ fixtures, seed, mutations }: ReadersRun): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [name, target] of Object.entries(TARGETS)) {
    const chance = new Chance(seed)
    const seeds = target.seeds(fixtures)
    const other = () => chance.pick(seeds)
    let input = other()
    counts[name] = 0
    for (let i = 0; i < mutations; i++) {
      // Mutations of mutations, up to four deep.
      const mutated = target.mutate(i % 4 === 0 ? other() : input, chance, other)
      if (mutated.length > target.maxByteLength) continue
      input = mutated
      try {
        await target.run(input)
        counts[name]++
      } catch (cause) {
        const fixture = `as a fixture ${Buffer.from(input).toString('base64')}`
        throw new Error(`${name}, mutation ${i} of seed ${seed}: ${String(cause)}; ${fixture}`, { cause })
      }
    }
  }
  return counts
}

console.log(JSON.stringify(await run(JSON.parse(process.argv[2]!) as ReadersRun)))
