/** Where jobs run. */

import type { Job, ReplyTo } from './message.js'

export interface Runner {
  /** Threads that jobs run on; 0: on the calling one. */
  readonly threads: number
  /** Jobs to have under way: enough that the next one is there when one is done, and no more. */
  readonly ahead: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>>
}
