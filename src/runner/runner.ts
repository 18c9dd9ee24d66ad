/** Where jobs run. */

import { EngineError, ThreadError } from '../errors.js'
import type { Job, ReplyTo } from '../job/job.js'

export interface Runner {
  /** Threads that jobs run on; 0: on the calling one. */
  readonly threads: number
  /** Jobs to have under way: enough that the next one is there when one is done, and no more. */
  readonly ahead: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>>
}

/**
 * Runs a job, and a second time if its thread died or its engine failed: by then there is another thread, or another
 * engine. Jobs change nothing, so that the first time leaves no trace. What fails twice is the job's own fault.
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

/** Whether there is nothing to run any job on: no threads, no engine, or no room for one. */
export function isLackOfMeans(error: unknown): boolean {
  return (error instanceof EngineError || error instanceof ThreadError) && !isFaultOfJob(error)
}

/** Whether an error costs one job, and others need not mind: not, if there are no threads to run any on, or no engine. */
export function isFaultOfJob(error: unknown): boolean {
  return (
    (error instanceof EngineError && error.code === 'Engine') ||
    (error instanceof ThreadError && error.code === 'ThreadDied')
  )
}
