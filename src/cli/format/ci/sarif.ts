/** SARIF 2.1.0: one run, a rule for each kind of case, a result for each place. */

import { safeJson } from '../../terminal.js'
import { VERSION } from '../../version.js'
import type { Case, Report, Result } from './report.js'

const LEVELS = { failed: 'error', noted: 'warning' } as const

export function sarifText(reports: readonly Report[]): string {
  const all = reports.flatMap(({ cases }) => cases)
  const rules = [...new Map(all.map(item => [item.name, item])).values()]
  const indices = new Map(rules.map(({ name }, i) => [name, i]))
  const results = reports.flatMap(({ trial, cases }) =>
    cases.flatMap(item => {
      if (item.state !== 'failed' && item.state !== 'noted') return []
      const results: readonly Result[] = item.results.length > 0 ? item.results : [{ message: item.message }]
      const level = LEVELS[item.state]
      return results.map(result => ({
        ruleId: item.name,
        ruleIndex: indices.get(item.name)!,
        level,
        ...resultOf(trial, result),
      }))
    }),
  )
  const run = {
    tool: {
      driver: {
        name: 'trialscan',
        semanticVersion: VERSION,
        rules: rules.map(({ name, help }) => ({ id: name, ...(help && { shortDescription: { text: help } }) })),
      },
    },
    invocations: reports.map(invocationOf),
    results,
  }
  const log = { $schema: 'https://json.schemastore.org/sarif-2.1.0.json', version: '2.1.0', runs: [run] }
  return `${JSON.stringify(log, null, 1).split('\n').map(safeJson).join('\n')}\n`
}

/** The invocation of the run, with notes on data that could not be read or judged, which are no results. */
function invocationOf({ command, trial, verdict, cases }: Report) {
  const notification = (item: Case, level: 'error' | 'note') => ({
    level,
    message: { text: `${item.name}: ${item.message}` },
    associatedRule: { id: item.name },
  })
  return {
    arguments: [command, trial],
    exitCode: verdict.exitCode,
    exitCodeDescription: `${verdict.word}; ${verdict.text}`,
    executionSuccessful: verdict.word === 'passed' || verdict.word === 'failed',
    toolExecutionNotifications: cases.flatMap(item =>
      item.state === 'unread'
        ? [notification(item, 'error')]
        : item.state === 'unjudged'
          ? [notification(item, 'note')]
          : [],
    ),
  }
}

function resultOf(trial: string, { message, tensor, worker, step, file, offset, count = 1 }: Result) {
  const [, scheme, path] = /^(\w+:\/\/)?(.*)$/s.exec(file ? `${trial.replace(/\/$/, '')}/${file}` : trial)!
  const uri = `${scheme ?? ''}${path!.split('/').map(encodeURIComponent).join('/')}`
  return {
    message: { text: message },
    occurrenceCount: count,
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri },
          ...(offset != null && { region: { byteOffset: offset } }),
        },
        ...(tensor != null && { logicalLocations: [{ name: tensor }] }),
      },
    ],
    properties: { trial, step: step ?? null, worker: worker ?? null },
  }
}
