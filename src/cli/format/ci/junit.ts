/** JUnit's XML: a suite for each trial, a test case for each question. */

import { safe } from '../../terminal.js'
import type { Case, Report } from './report.js'

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export function junitText(reports: readonly Report[]): string {
  const all = reports.flatMap(({ cases }) => cases)
  const name = text(`trialscan ${reports[0]?.command ?? ''}`.trim())
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    `<testsuites name="${name}" ${countsText(all)}>\n`,
    ...reports.map(suiteText),
    '</testsuites>\n',
  ].join('')
}

function suiteText({ trial, verdict, cases }: Report): string {
  const head = `name="${text(trial)}" ${countsText(cases)} skipped="${countOf(cases, 'unjudged')}"`
  const out = `    <system-out>${text(`verdict: ${verdict.word}; ${verdict.text}`)}</system-out>\n`
  return `  <testsuite ${head}>\n${cases.map(item => caseText(trial, item)).join('')}${out}  </testsuite>\n`
}

function caseText(trial: string, { name, state, message, help, results }: Case): string {
  const head = `    <testcase classname="${text(trial)}" name="${text(name)}"`
  if (state === 'passed') return `${head}/>\n`
  const lines = [...(help ? [help] : []), ...results.map(result => result.message)]
  const body = lines.map(text).join('\n')
  const inner =
    state === 'unjudged'
      ? `<skipped message="${text(message)}"/>`
      : state === 'noted'
        ? `<system-out>${[text(message), ...lines.map(text)].join('\n')}</system-out>`
        : state === 'failed'
          ? `<failure message="${text(message)}" type="${text(name)}">${body}</failure>`
          : `<error message="${text(message)}" type="${text(name)}">${body}</error>`
  return `${head}>${inner}</testcase>\n`
}

function countsText(cases: readonly Case[]): string {
  return `tests="${cases.length}" failures="${countOf(cases, 'failed')}" errors="${countOf(cases, 'unread')}"`
}

function countOf(cases: readonly Case[], state: Case['state']): number {
  return cases.filter(item => item.state === state).length
}

/** Text for an attribute or an element, without the characters that XML can't hold. */
function text(raw: string): string {
  return safe(raw)
    .replace(/[&<>"]/g, mark => ENTITIES[mark]!)
    .replace(/[\ufffe\uffff]/g, '\ufffd')
}
