/** Findings as JSON objects, one a line: the contract for other programs. Their keys and their order don't change. */

import type { DiagnosedFinding, Missing } from '../../index.js'
import { safeJson } from '../terminal.js'
import type { FindingFormat, Judged, Trouble } from './finding-format.js'
import { jsonNumber } from './number.js'
import { messageOf } from './row-format.js'

/** @param onTerminal spell out what could do harm on a terminal; the JSON parses to the same */
export function findingJsonl(onTerminal: boolean): FindingFormat {
  const line = (json: string) => `${onTerminal ? safeJson(json) : json}\n`
  return {
    isLive: true,
    tellsMissing: true,
    line: finding => line(findingJson(finding)),
    end: ({ missing, problems }: Judged) =>
      [...missing.map(missingJson), ...problems.map(problemJson)].map(line).join(''),
  }
}

function findingJson(finding: DiagnosedFinding): string {
  const { rule, name, step, mode, modeStep, tensor, worker, value, threshold, message, cause } = finding
  const text = JSON.stringify
  return (
    `{"rule":${text(rule)},"name":${text(name)},"step":${step},"mode":"${mode}","mode_step":${modeStep}` +
    `,"tensor":${text(tensor)},"worker":${text(worker)},"value":${number(value)},"threshold":${number(threshold)}` +
    `,"message":${text(message)},"cause":${cause}}`
  )
}

function missingJson({ rule, name, missing, partial }: Missing): string {
  return JSON.stringify({ rule, name, missing, partial })
}

function problemJson({ step, tensor, error }: Trouble): string {
  return JSON.stringify({ problem: messageOf(error), step, tensor, code: error.code })
}

function number(value: number | null): string {
  return value === null ? 'null' : jsonNumber(value)
}
