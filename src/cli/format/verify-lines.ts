/** Problems of a trial for other programs, one per line. The keys, the columns and their order don't change. */

import type { VerifyProblem } from '../../integrity/verify/problem.js'
import type { Verification } from '../../integrity/verify/verify.js'
import type { Lost, Verdict } from './ci/report.js'
import { csvLine, jsonLine } from './lines.js'

export interface VerifyFormat {
  /** The head, in whole lines. */
  readonly head: string
  /** A problem or note, as soon as it is found. */
  line(trial: string, problem: VerifyProblem): string
  /** The text after a trial. */
  end(trial: string, verification: Verification, verdict: Verdict): string
  /** The text after all trials. */
  tail?(verdict: Verdict, lost: readonly Lost[]): string
}

/** The keys of a problem or note. */
const FIELDS = [
  'severity',
  'code',
  'file',
  'offset',
  'tensor',
  'step',
  'expected',
  'found',
  'lost',
  'advice',
  'message',
] as const

/** A problem or note as an object. */
export function problemFields(problem: VerifyProblem) {
  return Object.fromEntries(FIELDS.map(field => [field, problem[field]]))
}

/** The number of all problems or notes. @param counts by code */
export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

/**
 * Comma-separated values, without a summary.
 * @param isOnly true for a single trial; with several, each line begins with the trial
 * @param onTerminal true to escape characters that could do harm on a terminal
 */
export function verifyCsv(isOnly: boolean, onTerminal: boolean): VerifyFormat {
  const line = (trial: string, cells: readonly (string | number | null)[]) =>
    csvLine(isOnly ? cells : [trial, ...cells], onTerminal)
  return {
    head: line('trial', FIELDS),
    line: (trial, problem) =>
      line(
        trial,
        FIELDS.map(field => problem[field]),
      ),
    end: () => '',
  }
}

/**
 * JSON objects.
 * @param isOnly true for a single trial; with several, each object begins with the trial
 * @param onTerminal true to escape characters that could do harm on a terminal; the JSON parses to the same
 */
export function verifyJsonl(isOnly: boolean, onTerminal: boolean): VerifyFormat {
  return {
    head: '',
    line: (trial, problem) => {
      const fields = problemFields(problem)
      return jsonLine(isOnly ? fields : { trial, ...fields }, onTerminal)
    },
    end: (trial, { ok, problemCounts, noteCounts, stats }) =>
      jsonLine(
        {
          summary: true,
          trial,
          ok,
          problems: problemCounts,
          notes: noteCounts,
          event_files: stats.eventFiles,
          index_files: stats.indexFiles,
          records: stats.records,
          records_without_checksum: stats.recordsWithoutChecksum,
          tensors: stats.tensors,
          bytes: stats.readBytes,
          ...(stats.values && { values_read: stats.values.read, values_found: stats.values.of }),
          ...(stats.digests && { digests_equal: stats.digests.equal, digests_listed: stats.digests.of }),
          seconds: stats.seconds,
          threads: stats.threads,
        },
        onTerminal,
      ),
  }
}
