/** Where jobs run. */

import type { Traffic } from '../store/store.js'
import type { Job, ReplyTo } from './message.js'

/** What came of a job, and the requests that it made, where its stores make requests. */
export type Ran<J extends Job> = ReplyTo<J> & { readonly traffic?: Traffic }

export interface Runner {
  /** Threads that jobs run on; 0: on the calling one. */
  readonly threads: number
  /** Jobs to have under way: enough that the next one is there when one is done, and no more. */
  readonly ahead: number
  /** Runs a job. Rejects with a TrialscanError, or with the signal's reason. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<Ran<J>>
}
