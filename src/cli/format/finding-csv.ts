/** Findings as comma-separated values. What was missing, or could not be read, is no row: standard error tells of it. */

import { csvLine } from './csv.js'
import type { FindingFormat } from './finding-format.js'

const HEAD = ['rule', 'name', 'step', 'mode', 'mode_step', 'tensor', 'worker', 'value', 'threshold', 'message', 'cause']

/** @param onTerminal spell out what could do harm on a terminal */
export function findingCsv(onTerminal: boolean): FindingFormat {
  let head = csvLine(HEAD, onTerminal)
  const withHead = (lines: string): string => {
    const whole = head + lines
    head = ''
    return whole
  }
  return {
    isLive: true,
    tellsMissing: false,
    line: ({ rule, name, step, mode, modeStep, tensor, worker, value, threshold, message, cause }) =>
      withHead(
        csvLine([rule, name, step, mode, modeStep, tensor, worker, value, threshold, message, cause], onTerminal),
      ),
    end: () => withHead(''),
  }
}
