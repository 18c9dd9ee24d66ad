/** The formats of reports by name, and annotations of GitHub Actions: a line for each case that has not passed. */

import { safe } from '../../terminal.js'
import { countText } from '../number.js'
import { junitText } from './junit.js'
import type { Case, Report } from './report.js'
import { sarifText } from './sarif.js'

const WRITERS = { github: githubText, junit: junitText, sarif: sarifText } as const

export type ReportFormat = keyof typeof WRITERS

export function isReportFormat(format: string): format is ReportFormat {
  return Object.hasOwn(WRITERS, format)
}

/** True for the formats that hold the whole verdict. */
export function isForPrograms(format: string): boolean {
  return format === 'json' || isReportFormat(format)
}

export function reportText(format: ReportFormat, reports: readonly Report[]): string {
  return WRITERS[format](reports)
}

const LEVELS = { failed: 'error', unread: 'error', noted: 'warning' } as const

function githubText(reports: readonly Report[]): string {
  return reports.flatMap(report => [...annotations(report)]).join('')
}

function* annotations({ trial, verdict, cases }: Report): Generator<string> {
  const unjudged: Case[] = []
  for (const item of cases) {
    if (item.state === 'passed') continue
    if (item.state === 'unjudged') unjudged.push(item)
    else {
      const help = item.help ? `\n${item.help}` : ''
      yield annotation(LEVELS[item.state], `${item.name}: ${trial}`, `${item.message}${help}`)
    }
  }
  if (unjudged.length === 0) return
  // GitHub shows ten of a kind.
  const title = `not judged: ${countText(unjudged.length)} in ${trial}`
  if (verdict.word !== 'unjudged') yield annotation('notice', title, unjudged.map(({ name }) => name).join(', '))
  else yield annotation('error', title, unjudged.map(({ name, message }) => `${name}: ${message}`).join('\n'))
}

function annotation(level: 'error' | 'warning' | 'notice', title: string, message: string): string {
  const data = message.split('\n').map(safe).join('\n')
  const property = escaped(safe(title)).replaceAll(':', '%3A').replaceAll(',', '%2C')
  return `::${level} title=${property}::${escaped(data)}\n`
}

function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
