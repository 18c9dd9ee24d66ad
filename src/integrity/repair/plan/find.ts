/** The intact records of an event file, and the problems between them. */

import { VALUE_KINDS } from '../../../scan/job/verify-job.js'
import type { Checked } from '../../verify/event-files.js'
import type { FoundFile, FoundProblem, WholeRecord } from './known.js'

const OTHER = VALUE_KINDS.indexOf('other')

/** @param ranges the ranges of the file, in order */
export function findRecords(ranges: readonly Checked[]): FoundFile {
  const records: WholeRecord[] = []
  const problems: FoundProblem[] = []
  for (const { range, tags } of ranges) {
    const { recordStart, recordByteLength, step, isBad, record, kind, tag, mode, modeStep, shape } = range
    let value = 0
    for (const [i, startByte] of recordStart.entries()) {
      const values: WholeRecord['values'][number][] = []
      const names = new Set<string>()
      for (; value < record.length && record[value] === i; value++) {
        const name = tags[tag[value]!]!
        // A reader finds only the first of several values with one name.
        if (kind[value] === OTHER || names.has(name)) continue
        names.add(name)
        values.push({ name, mode: mode[value]!, modeStep: modeStep[value]!, shape: shape[value] ?? null })
      }
      if (isBad[i] === 0) records.push({ startByte, byteLength: recordByteLength[i]!, step: step[i]!, values })
    }
    for (const { startByte, error } of range.problems) {
      problems.push({ offset: startByte, code: error.code, message: error.message })
    }
    // The problems beyond the limit of those reported one by one.
    const toldEnd = range.problems.at(-1)?.endByte ?? 0
    const untold = [...recordStart.filter((_, i) => isBad[i] === 1), ...range.skipped.filter((_, i) => i % 2 === 0)]
    for (const offset of untold) {
      if (offset >= toldEnd) problems.push({ offset, code: 'DamagedRecord', message: 'one of many damaged records' })
    }
  }
  return { byteLength: ranges.at(-1)?.range.byteLength ?? 0, records, problems }
}
