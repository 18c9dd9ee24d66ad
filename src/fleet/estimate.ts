/** How long a plan takes, before it is run. */

import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { COSTS, costOf, type FleetPlan, type PlannedShard, total } from './plan.js'

export interface EstimateOptions {
  /** Of all machines together. */
  readonly cores: number
  /** Of all machines together. Default: nothing waits for bytes. */
  readonly bytesPerSecond?: number
}

const ESTIMATE_OPTIONS = optionsOf<EstimateOptions>(
  { cores: kinds.wholeNumber(1), bytesPerSecond: kinds.wholeNumber(1) },
  'cores',
)

/** What is to be expected. Measured costs, on cores as those of docs/fleet.md. */
export interface FleetEstimate {
  /** Of all cores together: seconds. */
  readonly coreSeconds: number
  /** From the start of the first shard to the end of the last, if all cores have work. */
  readonly seconds: number
  /** What it waits for. */
  readonly boundBy: 'cores' | 'network' | 'largest shard'
  /** Requests to S3, if all trials lie there: for index files, and for parts of records. */
  readonly requests: number
}

/** What two threads take for a shard, as parts of what one does for bytes, rows and index files. */
const ON_TWO_THREADS = [0.5, 0.6, 0.5] as const
/** A process: Node.js, the plan, threads. */
const START_SECONDS = 0.3
/** Records of several tensors are asked for together, up to so many bytes. */
const PART_BYTES = 2 << 20

export function estimateFleet(plan: FleetPlan, options: EstimateOptions): FleetEstimate {
  const { cores, bytesPerSecond = Number.POSITIVE_INFINITY } = checkOptions('estimateFleet', ESTIMATE_OPTIONS, options)
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
