/** The share of the requested data that could be read. */

import { counted, countText } from '../number.js'
import type { JudgingReport } from './format.js'

/** Undefined if all of it could be read, as far as it was counted. */
export function readText({ asked, unread }: Pick<JudgingReport, 'asked' | 'unread'>): string | undefined {
  if (unread === 0) return undefined
  const read = asked === unread ? 'none' : countText(asked - unread)
  return `${read} of ${counted(asked, 'tensor value')} could be read`
}

/** Nothing could be read: what rules then say of it is no judgement. */
export function isBlind({ asked, unread }: Pick<JudgingReport, 'asked' | 'unread'>): boolean {
  return unread > 0 && asked === unread
}
