/** Where jobs run. */

import type { Job, ReplyTo } from './message.js'

export interface Runner {
  /** Threads that jobs run on; 0: on the calling one. */
  readonly threads: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>>
}
