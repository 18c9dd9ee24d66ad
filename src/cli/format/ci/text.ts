/** The formats of answers for programs by name, and annotations of GitHub Actions: a line for each case that has not passed. */

import { EXIT } from '../../exit.js'
import { safe, safeJson } from '../../terminal.js'
import { countText } from '../number.js'
import { junitText } from './junit.js'
import { type Case, type Lost, type Report, type Verdict, verdictFields, verdictOf } from './report.js'
import { sarifText } from './sarif.js'

const WRITERS = { github: githubText, junit: junitText, sarif: sarifText } as const

export type ReportFormat = keyof typeof WRITERS
/** The formats that hold the whole verdict. */
export type ProgramFormat = ReportFormat | 'json'

export function isForPrograms(format: string): format is ProgramFormat {
  return format === 'json' || Object.hasOwn(WRITERS, format)
}

export function reportText(format: ReportFormat, reports: readonly Report[]): string {
  return WRITERS[format](reports)
}

/** The writer of a format, of which those for programs share one. */
export function writerIn<F extends string, W>(
  format: F,
  writers: Readonly<Record<Exclude<F, ProgramFormat>, () => W>>,
  forPrograms: (format: ProgramFormat) => W,
): W {
  return isForPrograms(format) ? forPrograms(format) : writers[format as Exclude<F, ProgramFormat>]()
}

/** The answer about a trial: its cases, and its JSON object. */
export interface Answer {
  readonly trial: string
  readonly verdict: Verdict
  cases(): readonly Case[]
  json(): string
}

/** The answers of a command, as one text. */
export class Answers {
  readonly #format: ProgramFormat
  readonly #command: string
  readonly #reports: Report[] = []
  readonly #objects: string[] = []

  constructor(format: ProgramFormat, command: string) {
    this.#format = format
    this.#command = command
  }

  add({ trial, verdict, cases, json }: Answer): this {
    if (this.#format === 'json') this.#objects.push(json())
    else this.#reports.push({ command: this.#command, trial, verdict, cases: cases() })
    return this
  }

  /**
   * @param common the verdict of several trials; undefined if there is one trial
   * @param lost the trials that could not be read
   */
  text(common?: Verdict, lost: readonly Lost[] = []): string {
    for (const { path: trial, error } of lost) {
      const message = error instanceof Error ? error.message : String(error)
      const verdict = verdictOf(EXIT.format, message)
      const cases = () => [{ name: 'read', state: 'unread', message, results: [] } as const]
      this.add({ trial, verdict, cases, json: () => JSON.stringify({ trial, ...verdictFields(verdict) }) })
    }
    if (this.#format !== 'json') return reportText(this.#format, this.#reports)
    const objects = this.#objects.join(',')
    const head = common && JSON.stringify(verdictFields(common)).slice(0, -1)
    return `${safeJson(head === undefined ? objects : `${head},"trials":[${objects}]}`)}\n`
  }
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
