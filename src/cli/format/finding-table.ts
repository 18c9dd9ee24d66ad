/** Findings for people: what is wrong with the training, since when, where it is worst, and what to do about it. */

import type { Finding, Missing } from '../../index.js'
import { type Colors, safe } from '../terminal.js'
import { type FindingFormat, isOf, type Judged, type JudgingRule, stepsOf, type Trouble } from './finding-format.js'
import { counted, countText, shortNumber } from './number.js'
import { messageOf } from './row-format.js'
import { wrapped } from './text.js'

/** More problems than these are only counted. */
const MAX_PROBLEMS = 10

const STATES: Readonly<Record<Judged['state'], string>> = {
  ended: 'the job has ended',
  running: 'the job may still run: --follow goes on with it',
  left: 'the job may still run',
  interrupted: 'interrupted',
}

const MAX_WIDTH = 100

/** @param columns of the terminal, if it is one */
export function findingTable(columns: number | undefined, colors: Colors): FindingFormat {
  const width = Math.min(columns || MAX_WIDTH, MAX_WIDTH)
  const paragraph = (text: string, indent: string, hanging = indent) => `${wrapped(text, width, indent, hanging)}\n`

  /** A paragraph that begins with words in colour; if they take more than a line, they are left as they are. */
  const headed = (head: string, rest: string, color: (text: string) => string): string => {
    const text = paragraph(head + rest, '', '  ')
    return text.startsWith(head) ? color(head) + text.slice(head.length) : text
  }

  const fired = (rule: JudgingRule, findings: readonly Finding[]): string => {
    const lines = [headed(safe(titleOf(rule)), ` ${whenAndWhere(findings)}`, text => colors.bold(colors.red(text)))]
    if (rule.meaning) lines.push(paragraph(safe(rule.meaning), '  '))
    lines.push(paragraph(`Worst ${safe(worstText(findings))}`, '  ', '    '))
    if (rule.advice) lines.push(paragraph(`What to do: ${safe(rule.advice)}`, '  ', '    '))
    return lines.join('')
  }

  const section = (title: string, lines: readonly string[]): string =>
    [`${colors.bold(title)}\n`, ...lines.map(line => paragraph(safe(line), '  ', '    '))].join('')

  return {
    isLive: false,
    line: () => '',
    end(judged: Judged): string {
      const { rules, findings, missing, problems } = judged
      // What went wrong first is perhaps why the rest did.
      const firing = distinct(rules)
        .map(rule => {
          const own = findings.filter(isOf(rule))
          return { rule, own, first: own.reduce((first, { step }) => Math.min(first, step), Infinity) }
        })
        .filter(({ own }) => own.length > 0)
        .sort((a, b) => a.first - b.first)
      const silent = distinct(rules).filter(rule => !findings.some(isOf(rule)) && !missing.some(isOf(rule)))
      const blocks = [
        headed(safe(judged.trial), `: ${summary(judged, firing.length, silent.length)}`, colors.bold),
        ...firing.map(({ rule, own }) => fired(rule, own)),
      ]
      if (silent.length > 0) {
        const names = silent.map(rule => safe(titleOf(rule))).join(', ')
        blocks.push(`${colors.bold('Nothing found by')}\n${paragraph(names, '  ')}`)
      }
      if (missing.length > 0) blocks.push(section('Data missing', missingLines(missing)))
      if (problems.length > 0) blocks.push(section(colors.red('Could not be read'), problemLines(problems)))
      return blocks.join('\n')
    },
  }
}

function summary({ steps, state }: Judged, firing: number, silent: number): string {
  const all = counted(firing + silent, 'rule')
  const result = firing > 0 ? `${firing} of ${all} fired` : silent > 0 ? `nothing found by ${all}` : 'nothing judged'
  const judged = steps === null || firing + silent === 0 ? [] : [`${counted(steps, 'step')} judged`]
  return [result, ...judged, STATES[state]].join('; ')
}

/** Two configurations of the same name are told of as one. */
function distinct(rules: readonly JudgingRule[]): readonly JudgingRule[] {
  return [...new Map(rules.map(rule => [JSON.stringify([rule.ruleName, rule.name]), rule])).values()]
}

function titleOf({ ruleName, name }: Pick<JudgingRule, 'ruleName' | 'name'>): string {
  return name === ruleName || name.startsWith(`${ruleName},`) ? name : `${name} (${ruleName})`
}

function whenAndWhere(findings: readonly Finding[]): string {
  const steps = stepsOf(findings)
  const tensors = new Set(findings.map(({ tensor }) => tensor).filter(tensor => tensor !== null))
  const when =
    steps.length === 1
      ? `fired at step ${steps[0]}`
      : `fired at ${countText(steps.length)} steps, from ${steps[0]} to ${steps.at(-1)}`
  return tensors.size > 1 ? `${when}, because of ${countText(tensors.size)} tensors` : when
}

/** The finding farthest from what would be right. */
export function worstOf(findings: readonly Finding[]): Finding {
  const severity = new Map(findings.map(finding => [finding, severityOf(finding)]))
  return findings.reduce((worst, finding) => {
    const [kind, size] = severity.get(finding)!
    const [worstKind, worstSize] = severity.get(worst)!
    return kind > worstKind || (kind === worstKind && size > worstSize) ? finding : worst
  })
}

/**
 * Numbers that are none are worst. Then what has another sign than its threshold, or is zero, by the distance; then what
 * is so many times as large or small as its threshold.
 */
function severityOf({ value, threshold }: Finding): readonly [kind: number, size: number] {
  if (value === null) return [0, 0]
  if (!Number.isFinite(value)) return [3, 0]
  if (threshold === null) return [1, 0]
  return value > 0 && threshold > 0
    ? [1, Math.abs(Math.log(value) - Math.log(threshold))]
    : [2, Math.abs(value - threshold)]
}

/** When and how bad. */
export function worstText(findings: readonly Finding[]): string {
  const { tensor, step, mode, modeStep, value, threshold, message } = worstOf(findings)
  const modeText = mode === 'GLOBAL' ? '' : ` (${mode} ${modeStep})`
  const about = tensor === null || message.includes(tensor) ? '' : `${tensor}: `
  const isMeasured = value === null || /\d|NaN/.test(tensor === null ? message : message.replaceAll(tensor, ''))
  const limit = threshold === null ? '' : `, threshold ${shortNumber(threshold)}`
  return `at step ${step}${modeText}: ${about}${message}${isMeasured ? '' : ` (${shortNumber(value)}${limit})`}`
}

/** A line a rule. What several of them say of the trial is said once, in the end. */
function missingLines(missing: readonly Missing[]): readonly string[] {
  const parts = missing.map(({ rule, name, missing }) => {
    const text = missing.replace(`rule ${rule}: `, '')
    const at = text.lastIndexOf('; the trial has ')
    const there = at < 0 ? '' : text.slice(at + 2)
    const wanted = at < 0 ? text : text.replaceAll(`; ${there}`, '')
    return { title: titleOf({ ruleName: rule, name }), wanted, there }
  })
  const common = parts.map(({ there }) => there).find((there, i, all) => there !== '' && all.indexOf(there) !== i)
  const wanted = new Map<string, string[]>()
  for (const { title, wanted: own, there } of parts) {
    const texts = wanted.get(title) ?? []
    wanted.set(title, [...texts, there === '' || there === common ? own : `${own}; ${there}`])
  }
  const lines = [...wanted].map(([title, texts]) => `${title}: ${texts.join('; ')}`)
  return common === undefined ? lines : [...lines, common]
}

function problemLines(problems: readonly Trouble[]): readonly string[] {
  const lines = problems.slice(0, MAX_PROBLEMS).map(({ step, tensor, error }) => {
    const place = step === null ? '' : tensor === null ? `step ${step}: ` : `${tensor} at step ${step}: `
    return `${place}${messageOf(error)}`
  })
  const more = problems.length - lines.length
  return more > 0 ? [...lines, `and ${countText(more)} more`] : lines
}
