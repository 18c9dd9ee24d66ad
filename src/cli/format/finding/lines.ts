/** Findings for other programs, one per line. The keys, the columns and their order don't change. */

import type { UnusualRate } from '../../../rules/base/learning-rates.js'
import type { DiagnosedFinding } from '../../../rules/diagnosis.js'
import type { Missing } from '../../../rules/finding.js'
import { safeJson } from '../../terminal.js'
import { csvLine, jsonOf } from '../lines.js'
import { type FindingFormat, type JudgingError, type JudgingReport, judgingOf } from './format.js'

const COLUMNS = [
  ...(['rule', 'name', 'step', 'mode', 'mode_step', 'tensor', 'worker'] as const),
  ...(['value', 'threshold', 'message', 'cause'] as const),
]

/** A finding in these columns. */
function cellsOf(finding: DiagnosedFinding) {
  const named = { ...finding, mode_step: finding.modeStep }
  return COLUMNS.map(name => named[name])
}

/**
 * Comma-separated values. Missing and unreadable data have no rows; they are noted on standard error.
 * @param onTerminal escape what could do harm on a terminal
 * @param trial one of several: its lines begin with the path; those of the first come after the header
 */
export function findingCsv(
  onTerminal: boolean,
  trial?: { readonly path: string; readonly isFirst: boolean },
): FindingFormat {
  const columns = trial ? ['trial', ...COLUMNS] : COLUMNS
  let head = trial?.isFirst === false ? '' : csvLine(columns, onTerminal)
  const withHead = (lines: string): string => {
    const whole = head + lines
    head = ''
    return whole
  }
  return {
    isLive: true,
    tellsMissing: false,
    line: finding => {
      const cells = cellsOf(finding)
      return withHead(csvLine(trial ? [trial.path, ...cells] : cells, onTerminal))
    },
    end: () => withHead(''),
  }
}

/**
 * JSON objects.
 * @param onTerminal escape what could do harm on a terminal; the JSON parses to the same
 * @param isExplained add which rules judge, how and why
 * @param trial one of several: its objects begin with the path
 */
export function findingJsonl(onTerminal: boolean, isExplained = false, trial?: string): FindingFormat {
  const begin = trial === undefined ? '{' : `{"trial":${JSON.stringify(trial)},`
  const line = (json: string) => {
    const whole = begin + json.slice(1)
    return `${onTerminal ? safeJson(whole) : whole}\n`
  }
  return {
    isLive: true,
    tellsMissing: true,
    line: finding => line(findingJson(finding)),
    end: (judged: JudgingReport) => {
      const { missing, problems } = judged
      const rates = (judged.learningRates ?? []).map(rateJson)
      const lacking = [...missing.map(missingJson), ...toSaveJson(judged)]
      const explained = isExplained ? explanationsJson(judged) : []
      return [...rates, ...lacking, ...explained, ...problems.map(problemJson)].map(line).join('')
    },
  }
}

export function rateJson({ tensor, step, value, message }: UnusualRate): string {
  return JSON.stringify({ learning_rate: tensor, step, value, message })
}

export function findingJson(finding: DiagnosedFinding): string {
  return `{${cellsOf(finding).map((cell, i) => `"${COLUMNS[i]}":${jsonOf(cell)}`)}}`
}

export function missingJson({ rule, name, missing, partial }: Missing): string {
  return JSON.stringify({ rule, name, missing, partial })
}

/**
 * The explanations of the rules, as lines of JSON. Rules that lack data are left out, since `missing` explains them.
 */
function explanationsJson(judged: JudgingReport): readonly string[] {
  const judging = judgingOf(judged).map(({ ruleName: rule, name, parameters }) => {
    return { rule, name, judges: true, parameters }
  })
  const others = judged.onlyByName.map(({ rule, reason }) => ({ rule, name: rule, judges: false, reason }))
  return [...judging, ...others].map(line => JSON.stringify(line))
}

function toSaveJson({ toSave }: JudgingReport): readonly string[] {
  return toSave.length > 0 ? [JSON.stringify({ CollectionConfigurations: toSave })] : []
}

export function problemJson({ step, tensor, error }: JudgingError): string {
  return JSON.stringify({ problem: error.message, step, tensor, code: error.code })
}
