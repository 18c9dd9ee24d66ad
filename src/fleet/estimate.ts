/** An estimate of a plan's duration, before it is run. */

import { expectArgument } from '../base/arguments.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { COSTS, costOf, type FleetPlan, type PlannedShard, total } from './plan.js'

export interface EstimateOptions {
  /** The number of cores of all machines together. */
  readonly cores: number
  /** The bandwidth of all machines together, in bytes per second. Default: reading takes no time. */
  readonly bytesPerSecond?: number
}

const ESTIMATE_OPTIONS = optionsOf<EstimateOptions>(
  { cores: kinds.wholeNumber(1), bytesPerSecond: kinds.wholeNumber(1) },
  'cores',
)

/** The estimated cost of a plan, from costs measured on the cores named in docs/fleet.md. */
export interface FleetEstimate {
  /** The CPU time of all cores together, in seconds. */
  readonly coreSeconds: number
  /** The time from the start of the first shard to the end of the last, in seconds, with all cores busy. */
  readonly seconds: number
  /** The resource that limits the plan. */
  readonly boundBy: 'cores' | 'network' | 'largest shard'
  /** Requests to S3, if all trials lie there: for index files, and for parts of records. */
  readonly requests: number
}

/** The time of two threads for a shard relative to one: for bytes, rows and index files. */
const ON_TWO_THREADS = [0.5, 0.6, 0.5] as const
/** The time that a process takes to start, load the plan and start its threads. */
const START_SECONDS = 0.3
/** The size up to which records of neighbouring tensors share one request, in bytes. */
const PART_BYTES = 2 << 20

export function estimateFleet(plan: FleetPlan, options: EstimateOptions): FleetEstimate {
  const { cores, bytesPerSecond = Number.POSITIVE_INFINITY } = checkOptions('estimateFleet', ESTIMATE_OPTIONS, options)
  expectArgument('estimateFleet', 'plan', 'a plan', plan, Array.isArray(plan?.shards))
  const openSeconds = ({ pieces }: PlannedShard) => START_SECONDS + pieces.length * COSTS.trial
  const coreSeconds = plan.shards.reduce((sum, shard) => sum + openSeconds(shard) + costOf(shard), 0)
  const [bytePart, rowPart, filePart] = cores > 1 ? ON_TWO_THREADS : [1, 1, 1]
  const longest = plan.shards.map(shard => {
    const { rows, files, bytes } = shard
    const parts = rows * COSTS.row * rowPart + files * COSTS.file * filePart + bytes * COSTS.byte * bytePart
    return openSeconds(shard) + parts
  })
  const { bytes, files } = total(plan.shards)
  const ways = [
    { seconds: coreSeconds / cores, boundBy: 'cores' },
    { seconds: bytes / bytesPerSecond, boundBy: 'network' },
    { seconds: longest.reduce((most, seconds) => Math.max(most, seconds), 0), boundBy: 'largest shard' },
  ] as const
  const slowest = ways.reduce((most, way) => (way.seconds > most.seconds ? way : most))
  return { coreSeconds, ...slowest, requests: files + Math.ceil(bytes / PART_BYTES) }
}
