/** Findings of several trials: lines that begin with the trial, or a line a trial for people. */

import { type Colors, colorsFor, columnLines, safe, tableWidth, wrapped } from '../../terminal.js'
import type { Lost, Verdict } from '../ci/report.js'
import { Answers, writerIn } from '../ci/text.js'
import type { FormatOf } from '../formats.js'
import { counted, countText } from '../number.js'
import { findingAnswer } from './cases.js'
import { type FindingFormat, judgingOf, readText } from './format.js'
import { findingCsv, findingJsonl } from './lines.js'

/** A format for each of several trials. */
export interface SeveralFormats {
  of(path: string): FindingFormat
  /** The text after all trials. @param lost the trials that could not be had */
  end(verdict: Verdict, lost: readonly Lost[]): Iterable<string>
}

/** The number of rules named for a trial. Further ones are counted. */
const MAX_RULES = 4

export function severalFormats(
  format: FormatOf<'check'>,
  onTerminal: boolean,
  isExplained: boolean | undefined,
): SeveralFormats {
  let isFirst = true
  const csvOf = (path: string): FindingFormat => {
    const ofTrial = findingCsv(onTerminal, { path, isFirst })
    isFirst = false
    return ofTrial
  }
  return writerIn<FormatOf<'check'>, SeveralFormats>(
    format,
    {
      jsonl: () => ({ of: path => findingJsonl(onTerminal, isExplained, path), end: () => [] }),
      csv: () => ({ of: csvOf, end: () => [] }),
      table: () => summary(colorsFor(onTerminal ? process.stdout : null), tableWidth(onTerminal)),
    },
    format => {
      const answers = new Answers(format, 'check')
      return {
        of: path => findingAnswer(path, answers, false),
        end: (verdict, lost) => [answers.text(verdict, lost)],
      }
    },
  )
}

/** The line of a trial. */
interface Line {
  readonly path: string
  readonly steps: string
  readonly findings: number
  /** The rules that fired, each with its first step. */
  readonly rules: ReadonlyMap<string, number>
  /** The text if no rule fired. */
  readonly otherwise: string
  /** The share that could be read; null if all was read. */
  readonly read: string | null
}

/** A table of several trials, which holds only the counts of findings. */
/** @param width of the terminal; null elsewhere */
function summary(colors: Colors, width: number | null): SeveralFormats {
  const lines: Line[] = []
  return {
    of(path) {
      const rules = new Map<string, number>()
      let findings = 0
      return {
        isLive: true,
        tellsMissing: true,
        line({ name, step }) {
          findings++
          rules.set(name, Math.min(step, rules.get(name) ?? step))
          return ''
        },
        end(judged) {
          const steps = judged.steps === null ? '' : countText(judged.steps)
          const read = readText(judged) ?? (judged.problems.length > 0 ? 'not everything could be read' : null)
          const otherwise = read === null && judgingOf(judged).length === 0 ? 'no rule had anything to judge' : ''
          lines.push({ path, steps, findings, rules, otherwise, read })
          return ''
        },
      }
    },
    *end() {
      const head = ['trial', 'steps', 'findings', 'rules that fired, and at which step first'].map(colors.bold)
      yield* columnLines([head, ...lines.map(line => cells(line, colors))], [1, 2], width)
      const sick = lines.filter(({ findings }) => findings > 0)
      const unread = lines.filter(({ read }) => read !== null).length
      if (sick.length === 0) {
        const text = `no rule fired in ${unread > 0 ? 'what could be read of ' : ''}${counted(lines.length, 'trial')}`
        yield `\n${unread > 0 ? `${text}; not everything could be read of ${countText(unread)}` : colors.green(text)}\n`
      } else {
        const worst = sick.reduce((most, line) => (line.findings > most.findings ? line : most))
        const count = `${countText(sick.length)} of ${counted(lines.length, 'trial')}`
        const text = `${count} ${sick.length === 1 ? 'has' : 'have'} findings; for one of them, with causes and advice: trialscan check ${safe(quoted(worst.path))}`
        const whole = width === null ? text : wrapped(text, width, '', '  ')
        yield `\n${colors.red(count)}${whole.slice(count.length)}\n`
      }
    },
  }
}

function cells({ path, steps, findings, rules, otherwise, read }: Line, colors: Colors): string[] {
  const bySteps = [...rules].sort(([, a], [, b]) => a - b)
  const named = bySteps.slice(0, MAX_RULES).map(([name, step]) => `${name} (${step})`)
  const more = rules.size - named.length
  const texts = [...named, ...(more > 0 ? [`${countText(more)} more`] : []), ...(read === null ? [] : [read])]
  return [
    safe(path),
    steps,
    findings > 0 ? colors.red(countText(findings)) : '0',
    texts.length > 0 ? safe(texts.join(', ')) : otherwise,
  ]
}

/** A path, quoted for a shell. */
function quoted(path: string): string {
  return /^[\w./:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
