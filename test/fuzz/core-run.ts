/**
 * Mutated records through the core, as many as asked for: the work of core.test.ts, in a process that can be ended.
 * A CoreRun as JSON is its argument; CoreCounts as JSON is its output.
 */

import { Chance, mutateByte } from './bytes.js'
import { compareWithProtobufjs } from './differential.js'
import { mutateRecord, RecordProbe, readRecordInput, recordInput } from './record.js'
import { eventPayloads } from './seeds.js'

export interface CoreRun {
  readonly fixtures: string
  readonly seed: number
  readonly records: number
  /** Of so many records one is held against protobufjs. */
  readonly comparedEvery: number
}

export interface CoreCounts {
  records: number
  /** By the core's status; 0: read. */
  readonly statuses: Record<number, number>
  /** Records that were held against protobufjs: those it refuses, and those both read alike, or refuse alike. */
  compared: number
  refused: number
  agreed: number
  overlong: number
}

function run({ fixtures, seed, records, comparedEvery }: CoreRun): CoreCounts {
  const counts: CoreCounts = { records: 0, statuses: {}, compared: 0, refused: 0, agreed: 0, overlong: 0 }
  const seeds = eventPayloads(fixtures).map(payload => recordInput(0x14, payload))
  const chance = new Chance(seed)
  const probe = new RecordProbe()
  const other = () => chance.pick(seeds)
  let mutated = other()
  while (counts.records < records) {
    // Taking an Event apart costs more than scanning it: what came out is changed some more, byte by byte.
    const isFresh = counts.records % 2 === 0
    const bytes = isFresh
      ? mutateRecord(other(), chance, other)
      : recordInput(mutated[0]!, mutateByte(mutated.subarray(1), chance))
    if (isFresh) mutated = bytes
    if (bytes.length > 1 << 17) continue
    const input = readRecordInput(bytes)
    try {
      const status = probe.check(input)
      counts.records++
      counts.statuses[status] = (counts.statuses[status] ?? 0) + 1
      if (counts.records % comparedEvery !== 0 || input.payload === null || input.isTornasole) continue
      counts.compared++
      counts[compareWithProtobufjs(input.payload, input)]++
    } catch (cause) {
      const record = `record ${counts.records} of seed ${seed}, as a fixture ${Buffer.from(bytes).toString('base64')}`
      throw new Error(`${String(cause)}; ${record}`, { cause })
    }
  }
  return counts
}

console.log(JSON.stringify(run(JSON.parse(process.argv[2]!) as CoreRun)))
