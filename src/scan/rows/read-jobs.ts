/** Reads records with a runner: a reply for each job, in order, also of records that were read in parts and of jobs that failed as a whole. */

import { type ErrorData, errorToData } from '../../base/errors.js'
import type { CombinedRow, RecordPlace, RecordRun } from '../job/plan/coalesce.js'
import {
  failedReply,
  type PartReply,
  type PlanContext,
  type PlannedJob,
  placesOf,
  planJobs,
  type ScanReply,
} from '../job/scan-job.js'
import { failureOfRecord } from '../runner/failed-job.js'
import { pump } from '../runner/pump.js'
import { isFaultOfJob, type Runner, runTwice } from '../runner/runner.js'
import type { Costs } from './costs.js'
import { replyOfParts } from './record-parts.js'

/**
 * The number of times that failing jobs are halved before all of their records are given up. From 16,384 records to one takes
 * 14.
 */
const MAX_HALVINGS = 16

export interface RecordReading {
  readonly context: PlanContext
  readonly runner: Runner
  readonly signal?: AbortSignal | undefined
  readonly url: (path: string) => string
  readonly costs?: Costs
}

/** The plan of a job, and what is known of its records. */
export interface ReadJob {
  readonly plan: PlannedJob
  readonly reply: ScanReply
}

/**
 * A job that failed as a whole, perhaps with its thread, is halved, and halved again, until only the records to blame are lost.
 * @param records in the order of their rows
 * @param halvings the number of halvings so far
 */
export async function* readJobs(
  records: Iterable<RecordPlace | RecordRun | CombinedRow>,
  reading: RecordReading,
  ahead = reading.runner.ahead,
  halvings = { count: 0 },
): AsyncGenerator<ReadJob> {
  const { context, runner, signal, url, costs } = reading
  const work = ({ job, count }: PlannedJob): Promise<ScanReply | PartReply> =>
    // Rows without records need no thread.
    count === 0 ? Promise.resolve(failedReply([])) : runTwice<PlannedJob['job']>(runner, job, signal)
  let parts: PartReply[] = []
  for await (const { plan, reply, error, waitMs } of pump(planJobs(records, context), work, { ahead, signal })) {
    const { job, count } = plan
    if (count > 0) costs?.add(reply, waitMs)
    if (reply?.kind === 'scan') yield { plan, reply }
    else if (job.kind === 'part') {
      parts.push(reply ?? lostPart(failedReply(errorsOf(plan, error, url))))
      if (job.part + job.partCount < job.parts) continue
      yield { plan, reply: replyOfParts(job, parts, url) }
      parts = []
    } else if (count === 1 || halvings.count === MAX_HALVINGS || !isFaultOfJob(error)) {
      yield { plan, reply: failedReply(errorsOf(plan, error, url)) }
    } else {
      halvings.count++
      const middle = count >> 1
      for (const half of [placesOf(plan, 0, middle), placesOf(plan, middle, count)]) {
        yield* readJobs(half, reading, 1, halvings)
      }
    }
  }
}

/** The errors of a job's records, from that of the whole job. */
function errorsOf({ job, count }: PlannedJob, error: unknown, url: RecordReading['url']): ErrorData[] {
  const data = errorToData(error)
  return Array.from({ length: count }, (_, record) => failureOfRecord(data, job, record, url).toJSON())
}

function lostPart(failed: ScanReply): PartReply {
  return { ...failed, kind: 'part', elementByteLength: 0, checksums: [], wallTime: undefined }
}
