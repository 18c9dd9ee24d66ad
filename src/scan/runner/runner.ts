/** Runners of jobs. */

import { EngineError, ThreadError } from '../../base/errors.js'
import type { Job, ReplyTo } from '../job/job.js'

export interface Runner {
  /** The number of threads; 0 for the calling thread. */
  readonly threads: number
  /** The number of jobs to keep in progress, so that a free thread finds the next one. */
  readonly ahead: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>>
}

/**
 * Runs a job, and once more if its thread died or its engine failed: there is a new thread or engine then. Jobs change nothing, so the
 * first attempt leaves no trace. If the second one also fails, the job itself is at fault.
 */
export async function runTwice<J extends Job>(runner: Runner, job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
  try {
    return await runner.run(job, signal)
  } catch (error) {
    signal?.throwIfAborted()
    if (!isFaultOfJob(error)) throw error
    return runner.run(job, signal)
  }
}

/** True if no job can run: no threads, no engine, or no memory for one. */
export function isOutOfResources(error: unknown): boolean {
  return (error instanceof EngineError || error instanceof ThreadError) && !isFaultOfJob(error)
}

/** True if an error concerns one job, not a lack of threads or engines. */
export function isFaultOfJob(error: unknown): boolean {
  return (
    (error instanceof EngineError && error.code === 'Engine') ||
    (error instanceof ThreadError && error.code === 'ThreadDied')
  )
}
