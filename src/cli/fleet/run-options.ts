/** The running of a shard, as the options of `fleet run` and `fleet work` say. */

import type { FleetPlan } from '../../fleet/plan.js'
import type { ShardOptions } from '../../fleet/shard.js'
import { readingOptions } from '../options/flags.js'
import { type S3Flags, s3OptionsOf } from '../options/s3.js'
import { VERSION } from '../version.js'

export interface WorkFlags extends S3Flags {
  readonly threads?: number
  readonly memory?: number
}

export async function runOptions(plan: FleetPlan, flags: WorkFlags, signal: AbortSignal): Promise<ShardOptions> {
  const check = plan.check && (await import('./check.js')).judging(flags, signal)
  return {
    version: VERSION,
    ...(check && { check }),
    ...s3OptionsOf(flags),
    ...readingOptions(flags),
    signal,
  }
}
