/**
 * Mutations of the inputs of every reader: the work of targets.test.ts and of fixed.ts, in a process that can be ended. A
 * ReadersRun as JSON is its argument; for each target, as JSON, how many inputs were tried is its output.
 */

import { createHash } from 'node:crypto'
import { Chance } from './bytes.js'
import { findsOf, readCorpus, readFind } from './corpus.js'
import { TARGETS } from './targets.js'

export interface ReadersRun {
  readonly fixtures: string
  readonly seed: number
  readonly mutations: number
  /** The only target. Default: all. */
  readonly target?: string
  /** Begin with what fixtures/fuzz has of a target, and with no other fixture: no fixture that is added changes the inputs. */
  readonly fromCorpus?: boolean
}

export interface ReadersCount {
  readonly inputs: number
  /** Of all inputs. */
  readonly digest: string
}

async function run(options: ReadersRun): Promise<Record<string, ReadersCount>> {
  const counts: Record<string, ReadersCount> = {}
  for (const name of options.target === undefined ? Object.keys(TARGETS) : [options.target]) {
    counts[name] = await runTarget(name, options)
  }
  return counts
}

async function runTarget(name: string, { fixtures, seed, mutations, fromCorpus = false }: ReadersRun) {
  const target = TARGETS[name]!
  const chance = new Chance(seed)
  const corpus = readCorpus(fixtures, name)
  const kept = [...corpus, ...findsOf(fixtures, name).map(find => readFind(fixtures, name, find))]
  const seeds = fromCorpus ? kept : target.seeds(fixtures)
  const other = () => chance.pick(seeds)
  const hash = createHash('sha256')
  let inputs = 0
  const hold = async (input: Uint8Array, what: string): Promise<void> => {
    inputs++
    hash.update(`${input.length}\n`).update(input)
    try {
      await target.run(input)
    } catch (cause) {
      const fixture = `as a fixture ${Buffer.from(input).toString('base64')}`
      throw new Error(`${name}, ${what}: ${String(cause)}; ${fixture}`, { cause })
    }
  }
  if (fromCorpus) for (const [i, input] of kept.entries()) await hold(input, `input ${i} of fixtures/fuzz`)
  let input = other()
  for (let i = 0; i < mutations; i++) {
    // Mutations of mutations, up to four deep.
    const mutated = target.mutate(i % 4 === 0 ? other() : input, chance, other)
    if (mutated.length > target.maxByteLength) continue
    input = mutated
    await hold(input, `mutation ${i} of seed ${seed}`)
  }
  return { inputs, digest: hash.digest('hex').slice(0, 16) }
}

console.log(JSON.stringify(await run(JSON.parse(process.argv[2]!) as ReadersRun)))
