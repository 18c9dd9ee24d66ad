/** Problems of a trial as JSON objects, one a line: the contract for other programs. Their keys don't change. */

import type { Verification, VerifyProblem } from '../../index.js'
import { safeJson } from '../terminal.js'

export interface VerifyFormat {
  /** What comes before all; whole lines. */
  readonly head: string
  /** A problem or note, as soon as it is there. */
  line(problem: VerifyProblem): string
  end(trial: string, verification: Verification): string
}

/** @param onTerminal spell out what could do harm on a terminal; the JSON parses to the same */
export function verifyJsonl(onTerminal: boolean): VerifyFormat {
  const line = (value: unknown) => {
    const json = JSON.stringify(value)
    return `${onTerminal ? safeJson(json) : json}\n`
  }
  return {
    head: '',
    line: ({ severity, code, file, offset, tensor, step, expected, found, lost, advice, message }) =>
      line({ severity, code, file, offset, tensor, step, expected, found, lost, advice, message }),
    end: (trial, { ok, problemCounts, noteCounts, stats }) =>
      line({
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
        seconds: stats.seconds,
        threads: stats.threads,
      }),
  }
}
