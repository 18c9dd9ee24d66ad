/** Problems of a trial as comma-separated values; what was checked is not told. */

import { csvLine } from './csv.js'
import type { VerifyFormat } from './verify-jsonl.js'

const CSV_COLUMNS = [
  ...([
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
  ] as const),
]

/** @param onTerminal spell out what could do harm on a terminal */
export function verifyCsv(onTerminal: boolean): VerifyFormat {
  return {
    head: csvLine(CSV_COLUMNS, onTerminal),
    line: problem =>
      csvLine(
        CSV_COLUMNS.map(column => problem[column]),
        onTerminal,
      ),
    end: () => '',
  }
}
