/** SARIF 2.1.0: one run, a rule for each kind of case, a result for each place. */

import { safeJson } from '../../terminal.js'
import { VERSION } from '../../version.js'
import type { Case, Report, Result } from './report.js'

const LEVELS = { failed: 'error', noted: 'warning' } as const

export function sarifText(reports: readonly Report[]): string {
  const all = reports.flatMap(({ cases }) => cases)
  const rules = [...new Map(all.map(one => [one.name, one])).values()]
  const indices = new Map(rules.map(({ name }, i) => [name, i]))
  const results = reports.flatMap(({ trial, cases }) =>
    cases.flatMap(one => {
      if (one.state !== 'failed' && one.state !== 'noted') return []
      const found: readonly Result[] = one.results.length > 0 ? one.results : [{ message: one.message }]
      const level = LEVELS[one.state]
      return found.map(result => ({
        ruleId: one.name,
        ruleIndex: indices.get(one.name)!,
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

/** The run, with what could not be read or judged: that is no result. */
function invocationOf({ command, trial, verdict, cases }: Report) {
  const told = (one: Case, level: 'error' | 'note') => ({
    level,
    message: { text: `${one.name}: ${one.message}` },
    associatedRule: { id: one.name },
  })
  return {
    arguments: [command, trial],
    exitCode: verdict.exitCode,
    exitCodeDescription: `${verdict.word}; ${verdict.text}`,
    executionSuccessful: verdict.word === 'passed' || verdict.word === 'failed',
    toolExecutionNotifications: cases.flatMap(one =>
      one.state === 'unread' ? [told(one, 'error')] : one.state === 'unjudged' ? [told(one, 'note')] : [],
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
