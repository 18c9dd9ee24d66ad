/** `--threads`: no more than can help. */

import { maxThreads } from '../index.js'
import { note } from './terminal.js'

/** Says so where fewer are started than were asked for; what makes no sense at all is left for the library to refuse. */
export function withHelpfulThreads<T extends { readonly threads?: number }>(trial: string, options: T): T {
  const asked = options.threads!
  const threads = maxThreads(trial)
  if (asked <= threads || asked > 1024) return options
  note(`--threads ${asked}: ${threads} are started, since more do not help on this machine`)
  return { ...options, threads }
}
