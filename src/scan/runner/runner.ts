/** Where jobs run. */

import { EngineError, ThreadError } from '../../base/errors.js'
import type { Job, ReplyTo } from '../job/job.js'

export interface Runner {
  /** Threads that jobs run on; 0: the calling one. */
  readonly threads: number
  /** How many jobs to have under way, so that the next one is there when one is done. */
  readonly ahead: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>>
}

/**
 * Runs a job, and once more if its thread died or its engine failed: by then there is a new thread, or a new engine.
 * Jobs change nothing, so the first attempt leaves no trace. If the second one fails, too, the job itself is to blame.
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

/** Whether nothing can run any job: there are no threads, no engine, or no memory for one. */
export function isOutOfResources(error: unknown): boolean {
  return (error instanceof EngineError || error instanceof ThreadError) && !isFaultOfJob(error)
}

/** Whether an error concerns one job only, rather than a lack of threads or of an engine to run any job. */
export function isFaultOfJob(error: unknown): boolean {
  return (
    (error instanceof EngineError && error.code === 'Engine') ||
    (error instanceof ThreadError && error.code === 'ThreadDied')
  )
}
