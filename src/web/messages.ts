/** The messages between a page and its threads. */

import type { ErrorData } from '../base/errors.js'
import type { CompiledCore } from '../core/host.js'
import type { Job } from '../scan/job/job.js'
import type { Place } from '../storage/web/place.js'

/** A message to a thread. */
export type ToThread =
  /** The first message. */
  | { readonly kind: 'start'; readonly core: CompiledCore }
  /** A place, sent before the first job on it. */
  | { readonly kind: 'place'; readonly number: number; readonly place: Place }
  | { readonly kind: 'forget'; readonly number: number }
  | { readonly kind: 'job'; readonly job: Job }

/** A message from a thread: an answer for a job, and one when it has started. */
export type FromThread =
  | { readonly kind: 'started' }
  | { readonly kind: 'reply'; readonly reply: unknown }
  | { readonly kind: 'failure'; readonly error: ErrorData }
