/** The share of the requested data that could be read. */

import { counted, countText } from '../number.js'
import type { JudgingReport } from './format.js'

/** The share in words; undefined if all counted values could be read. */
export function readText({ values, unread }: Pick<JudgingReport, 'values' | 'unread'>): string | undefined {
  if (unread === 0) return undefined
  const read = values === unread ? 'none' : countText(values - unread)
  return `${read} of ${counted(values, 'tensor value')} could be read`
}

/** True if nothing could be read, so that the rules have judged nothing. */
export function isBlind({ values, unread }: Pick<JudgingReport, 'values' | 'unread'>): boolean {
  return unread > 0 && values === unread
}
