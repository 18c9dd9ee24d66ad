/** Findings for people: what is wrong with the training, since when, where it is worst, and what to do about it. */

import { entryOf } from '../../../base/maps.js'
import { problemLines } from '../../../base/problem-lines.js'
import type { DiagnosedFinding } from '../../../rules/diagnosis.js'
import { type Finding, lacksTensors, type Missing, TRIAL_HAS } from '../../../rules/finding.js'
import { type Colors, safe, wrapped } from '../../terminal.js'
import { counted, countText, shortNumber } from '../number.js'
import {
  AT_END,
  configurationKey,
  distinct,
  type FindingFormat,
  isBlind,
  isFindingOf,
  type JudgingError,
  type JudgingReport,
  type JudgingRule,
  judgingOf,
  readText,
  stepsOfFindings,
} from './format.js'
import { toSaveText } from './to-save.js'

/** The number of listed problems. Further ones are counted. */
const MAX_PROBLEM_LINES = 10
/** The number of listed tensors, workers or causes. Further ones are counted. */
const MAX_NAMES = 3

const STATES: Readonly<Record<JudgingReport['state'], string>> = {
  ended: 'the job has ended',
  running: 'the job may still run: --follow goes on with it',
  left: 'the job may still run',
  interrupted: 'interrupted',
}

const MAX_FINDING_WIDTH = 100

export interface TableOptions {
  /** List all tensors and problems. Default: the first ones, and how many more there are. */
  readonly isFull?: boolean | undefined
  /** List which rules judge, how and why, and why others don't. Default: how many don't. */
  readonly isExplained?: boolean | undefined
}

/** A rule's findings that are causes, and the findings that follow from them. */
interface Section {
  readonly rule: JudgingRule
  /** The rule's own findings, the first cause first. */
  readonly ruleFindings: readonly DiagnosedFinding[]
  /** Other rules, each with its findings. */
  readonly consequences: readonly (readonly [rule: JudgingRule, findings: readonly DiagnosedFinding[]])[]
}

/** @param columns of the terminal, if it is one */
export function findingTable(
  columns: number | undefined,
  colors: Colors,
  { isFull = false, isExplained = false }: TableOptions = {},
): FindingFormat {
  const width = Math.min(columns || MAX_FINDING_WIDTH, MAX_FINDING_WIDTH)
  const maxNames = isFull ? Number.POSITIVE_INFINITY : MAX_NAMES
  const paragraph = (text: string, indent: string, hanging = indent) => `${wrapped(text, width, indent, hanging)}\n`

  /** A paragraph whose head is coloured, unless the head takes more than a line. */
  const headed = (head: string, rest: string, color: (text: string) => string, indent = ''): string => {
    const text = paragraph(head + rest, indent, `${indent}  `)
    return text.startsWith(indent + head) ? indent + color(head) + text.slice(indent.length + head.length) : text
  }

  const section = ({ rule, ruleFindings: findings, consequences }: Section, judged: JudgingReport): string => {
    const lines = [
      headed(safe(titleOf(rule)), ` fired ${safe(whenAndWhere(findings, judged))}`, text =>
        colors.bold(colors.red(text)),
      ),
    ]
    const tensors = tensorsFoundIn(findings)
    if (tensors.length > 1) lines.push(paragraph(safe(someOf(tensors, maxNames)), '  '))
    if (rule.meaning) lines.push(paragraph(safe(rule.meaning), '  '))
    lines.push(paragraph(`Worst ${safe(worstText(findings, judged))}`, '  ', '    '))
    if (rule.advice) lines.push(paragraph(`What to do: ${safe(rule.advice)}`, '  ', '    '))
    if (consequences.length > 0) lines.push('  What follows from it:\n')
    for (const [rule, findings] of consequences) {
      const tensors = tensorsFoundIn(findings)
      const names = tensors.length > 0 ? `: ${someOf(tensors, maxNames)}` : ''
      lines.push(headed(safe(titleOf(rule)), safe(` ${whenAndWhere(findings, judged)}${names}`), colors.yellow, '    '))
    }
    return lines.join('')
  }

  const listed = (title: string, lines: readonly string[]): string =>
    [`${colors.bold(title)}\n`, ...lines.map(line => paragraph(safe(line), '  ', '    '))].join('')

  /** The parameters of a rule other than its defaults, with reasons. */
  const ways = (rule: JudgingRule): string => {
    const { parameters } = rule
    if (parameters.length === 0) return paragraph(`${safe(titleOf(rule))}: with its defaults`, '  ', '    ')
    const lines = parameters.map(({ parameter, value, reason }) => `${parameter}=${value}: ${reason}`)
    return [
      paragraph(safe(titleOf(rule)), '  ', '    '),
      ...lines.map(line => paragraph(safe(line), '    ', '      ')),
    ].join('')
  }

  return {
    ...AT_END,
    end(judged: JudgingReport): string {
      const { rules, missing, toSave, onlyByName, problems } = judged
      const { sections, firing, judging, silent } = outcomeOf(judged)
      const head = `${safe(judged.trial)}:`
      const blocks =
        sections.length > 0
          ? [
              headed(head, ` ${safe(diagnosisText(sections, judged))}`, colors.bold),
              paragraph(summary(judged, firing.size, silent.length), ''),
              ...sections.map(part => section(part, judged)),
            ]
          : [
              headed(
                head,
                ` ${safe(healthText(judged, silent.length))}`,
                silent.length > 0 && problems.length === 0 ? colors.green : colors.bold,
              ),
            ]
      if (silent.length > 0) {
        const names = silent.map(rule => safe(titleOf(rule))).join(', ')
        blocks.push(`${colors.bold('Nothing found by')}\n${paragraph(names, '  ')}`)
      }
      if (isExplained && judging.length > 0)
        blocks.push(`${colors.bold('How they judge')}\n${judging.map(ways).join('')}`)
      const isDetailed = (lack: Missing) => isExplained || rules.some(rule => rule.isAsked && isFindingOf(rule)(lack))
      const detailed = missing.filter(isDetailed)
      if (detailed.length > 0) blocks.push(listed('Data missing', missingLines(detailed)))
      if (toSave.length > 0) blocks.push(`${colors.bold('What to save')}\n${toSaveText(toSave)}`)
      const notJudged = notJudgedLines(
        missing.filter(lack => !isDetailed(lack)),
        rules,
      )
      if (notJudged.length > 0) blocks.push(listed('Not judged', notJudged))
      if (isExplained && onlyByName.length > 0) {
        const lines = onlyByName.map(({ rule, reason }) => `${rule}: ${reason}`)
        blocks.push(listed('Only if asked for by name', lines))
      }
      if (problems.length > 0) blocks.push(listed(colors.red('Could not be read'), unreadLines(problems, isFull)))
      return blocks.join('\n')
    },
  }
}

function outcomeOf(judged: JudgingReport) {
  const sections = sectionsOf(judged)
  const firing = new Set(sections.flatMap(({ rule, consequences }) => [rule, ...consequences.map(([rule]) => rule)]))
  const judging = isBlind(judged) || judged.isUnjudged ? [] : judgingOf(judged)
  return { sections, firing, judging, silent: judging.filter(rule => !firing.has(rule)) }
}

/** The outcome in a line, with the cause that came first and the number of rules that had nothing to judge. */
export function verdictText(judged: JudgingReport): string {
  const { sections, firing, silent } = outcomeOf(judged)
  const [first] = sections
  const lacking = new Set(judged.missing.filter(({ partial }) => !partial).map(({ name }) => name)).size
  return [
    first === undefined ? healthText(judged, silent.length) : summary(judged, firing.size, silent.length),
    ...(lacking > 0 ? [`${counted(lacking, 'rule')} had nothing to judge`] : []),
    ...(first === undefined ? [] : [`first ${titleOf(first.rule)} ${foundText(first.ruleFindings[0]!, judged)}`]),
  ].join('; ')
}

/** Findings by the rule of their cause, the earliest first. */
function sectionsOf({ rules, findings }: JudgingReport): readonly Section[] {
  const all = distinct(rules)
  const ruleOf = new Map<string, JudgingRule>()
  for (const rule of all) ruleOf.set(configurationKey(rule.ruleName, rule.name), rule)
  const sections = new Map<JudgingRule, Map<JudgingRule, DiagnosedFinding[]>>()
  for (const finding of findings) {
    const root = finding.cause === null ? finding : findings[finding.cause]!
    const cause = ruleOf.get(configurationKey(root.rule, root.name))!
    const rule = ruleOf.get(configurationKey(finding.rule, finding.name))!
    const byRule = sections.get(cause) ?? new Map<JudgingRule, DiagnosedFinding[]>([[cause, []]])
    sections.set(cause, byRule)
    entryOf(byRule, rule, () => []).push(finding)
  }
  return [...sections].map(([rule, byRule]) => {
    const [[, ruleFindings], ...consequences] = [...byRule] as [
      [JudgingRule, DiagnosedFinding[]],
      ...[JudgingRule, DiagnosedFinding[]][],
    ]
    return { rule, ruleFindings, consequences }
  })
}

/** The cause, its consequences, and the other findings, one sentence each. */
function diagnosisText([first, ...others]: readonly Section[], judged: JudgingReport): string {
  const { rule, ruleFindings: findings, consequences } = first!
  const [cause] = findings as [DiagnosedFinding]
  const roots = findings.filter(({ cause }) => cause === null)
  const atOnce = roots.filter(({ step }) => step === cause.step)
  const sentences = [`${titleOf(rule)} ${foundText(cause, judged)}.`]
  const alike = tensorsFoundIn(atOnce).length - 1
  const workers = new Set(atOnce.map(({ worker }) => worker)).size - 1
  if (alike > 0) sentences.push(`The same is true of ${counted(alike, 'more tensor')}.`)
  else if (workers > 0) sentences.push(`The same is true of ${counted(workers, 'more worker')}.`)
  // What follows from a later cause of the same rule does not follow from this one.
  const causes = new Set(atOnce.map(finding => judged.findings.indexOf(finding)))
  const isOfIt = (finding: DiagnosedFinding) => finding.cause !== null && causes.has(finding.cause)
  const spread = new Set(findings.filter(isOfIt).map(tensorKey))
  for (const root of roots) spread.delete(tensorKey(root))
  const explained = consequences.filter(([, findings]) => findings.some(isOfIt)).map(([rule]) => titleOf(rule))
  const effects = [
    ...(spread.size > 0 ? [`spreads to ${counted(spread.size, 'more tensor')}`] : []),
    ...(explained.length > 0 ? [`explains ${enumerated(explained)}`] : []),
  ]
  if (effects.length > 0) sentences.push(`It ${effects.join(explained.length > 1 ? ', and ' : ' and ')}.`)
  for (const { message } of judged.learningRates ?? []) sentences.push(`Beside that, ${message}.`)
  if (others.length > 0) {
    const named = others.slice(0, MAX_NAMES).map(({ rule, ruleFindings: findings }, i) => {
      const steps = stepsOfFindings(findings)
      return `${titleOf(rule)}${i === 0 ? ' fired' : ''} ${steps.length > 1 ? `from step ${steps[0]} on` : `at step ${steps[0]}`}`
    })
    const more = others.length - named.length
    const rest = more > 0 ? `, and so did ${counted(more, 'more rule')}` : ''
    sentences.push(`Apart from that, ${more > 0 ? named.join(', ') : enumerated(named)}${rest}.`)
  }
  return sentences.join(' ')
}

function healthText(judged: JudgingReport, silent: number): string {
  const { steps, workers, onlyWorkers, problems, state } = judged
  const read = readText(judged)
  if (silent === 0 || judged.isUnjudged) {
    const nothing = [...(read === undefined ? [] : [read]), 'nothing was judged', ...restriction(judged)]
    return [...nothing, STATES[state]].join('; ')
  }
  const over = steps === null ? '' : ` ${counted(steps, 'step')}`
  const all = workers > 1 ? ` of ${countText(workers)} workers` : ''
  const workersText = onlyWorkers === null ? all : ` of ${someOf(onlyWorkers, MAX_NAMES)}`
  const outcome = problems.length > 0 ? 'found nothing wrong in what could be read' : 'found nothing wrong'
  const what = over === '' && workersText !== '' ? ' what there was' : over
  const text = `${counted(silent, 'rule')} judged${what}${workersText} and ${outcome}`
  return [...(read === undefined ? [] : [read]), text, ...restriction(judged), STATES[state]].join('; ')
}

/** The selected part in words; empty if everything was judged. */
function restriction({ selection }: JudgingReport): readonly string[] {
  return selection === null ? [] : [`only ${selection}`]
}

function summary(report: JudgingReport, firing: number, silent: number): string {
  const { steps, state } = report
  const judged = steps === null ? [] : [`${counted(steps, 'step')} judged`]
  const read = readText(report)
  const parts = [
    `${firing} of ${counted(firing + silent, 'rule')} fired`,
    ...judged,
    ...(read === undefined ? [] : [read]),
    ...restriction(report),
  ]
  return [...parts, STATES[state]].join('; ')
}

function tensorKey({ tensor, worker }: Finding): string {
  return JSON.stringify([tensor, worker])
}

export function titleOf({ ruleName, name }: Pick<JudgingRule, 'ruleName' | 'name'>): string {
  return name === ruleName || name.startsWith(`${ruleName},`) ? name : `${name} (${ruleName})`
}

/** `a, b and c` */
function enumerated(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** The first few names, and the number of others. */
function someOf(names: readonly string[], most: number): string {
  const more = names.length - most
  return more > 1 ? `${names.slice(0, most).join(', ')} and ${countText(more)} more` : enumerated(names)
}

export function whenAndWhere(findings: readonly Finding[], { workers }: JudgingReport): string {
  const steps = stepsOfFindings(findings)
  const tensors = tensorsFoundIn(findings).length
  const when =
    steps.length === 1
      ? `at step ${steps[0]}`
      : `at ${countText(steps.length)} steps, from ${steps[0]} to ${steps.at(-1)}`
  const by = [...new Set(findings.map(({ worker }) => worker).filter(worker => worker !== null))].sort()
  const workersText = workers > 1 && by.length > 0 ? ` of ${someOf(by, MAX_NAMES)}` : ''
  return tensors > 1 ? `${when}, because of ${countText(tensors)} tensors${workersText}` : `${when}${workersText}`
}

/** The tensors of findings, each once, in the order of the findings. */
function tensorsFoundIn(findings: readonly Finding[]): readonly string[] {
  return [...new Set(findings.map(({ tensor }) => tensor).filter(tensor => tensor !== null))]
}

/** The finding that is farthest from its threshold. */
export function worstOf(findings: readonly Finding[]): Finding {
  const severity = new Map(findings.map(finding => [finding, severityOf(finding)]))
  return findings.reduce((worst, finding) => {
    const [kind, size] = severity.get(finding)!
    const [worstKind, worstSize] = severity.get(worst)!
    return kind > worstKind || (kind === worstKind && size > worstSize) ? finding : worst
  })
}

/**
 * The severity of a finding, for comparison. NaN and infinities are worst. Next are values that are zero or have
 * another sign than their threshold, by the distance; then all others, by the ratio of value and threshold.
 */
function severityOf({ value, threshold }: Finding): readonly [kind: number, size: number] {
  if (value === null) return [0, 0]
  if (!Number.isFinite(value)) return [3, 0]
  if (threshold === null) return [1, 0]
  return value > 0 && threshold > 0
    ? [1, Math.abs(Math.log(value) - Math.log(threshold))]
    : [2, Math.abs(value - threshold)]
}

/** The worst finding: its step, and its values. */
export function worstText(findings: readonly Finding[], judged: Pick<JudgingReport, 'workers'>): string {
  return foundText(worstOf(findings), judged)
}

/** A finding in a line: its step, its worker, and its message. */
function foundText(finding: Finding, { workers }: Pick<JudgingReport, 'workers'>): string {
  const { tensor, worker, step, mode, modeStep, value, threshold, message } = finding
  const modeText = mode === 'GLOBAL' ? '' : ` (${mode} ${modeStep})`
  const workerText = workers > 1 && worker !== null ? ` of ${worker}` : ''
  const about = tensor === null || message.includes(tensor) ? '' : `${tensor}: `
  const isMeasured = value === null || /\d|NaN/.test(tensor === null ? message : message.replaceAll(tensor, ''))
  const limit = threshold === null ? '' : `, threshold ${shortNumber(threshold)}`
  return `at step ${step}${modeText}${workerText}: ${about}${message}${isMeasured ? '' : ` (${shortNumber(value)}${limit})`}`
}

/** Lines on rules that judged nothing or only part of the data, and on the data that they lacked. */
function notJudgedLines(all: readonly Missing[], rules: readonly JudgingRule[]): readonly string[] {
  const hasRun = (lack: Missing) => !lack.partial && !lacksTensors(lack) && rules.some(rule => isFindingOf(rule)(lack))
  const byReason = new Map<string, string[]>()
  for (const { rule, name, missing } of all.filter(hasRun)) {
    byReason.set(missing, [...(byReason.get(missing) ?? []), titleOf({ ruleName: rule, name })])
  }
  const idle = [...byReason].map(
    ([reason, names]) => `${enumerated(names)} ${names.length === 1 ? 'needs' : 'need'} ${reason}`,
  )
  const missing = all.filter(lack => !hasRun(lack))
  const titles = (isPartial: boolean): readonly string[] => [
    ...new Set(
      missing.filter(({ partial }) => partial === isPartial).map(({ rule, name }) => titleOf({ ruleName: rule, name })),
    ),
  ]
  const line = (names: readonly string[], what: string): readonly string[] =>
    names.length > 0 ? [`${counted(names.length, 'rule')} ${what}: ${names.join(', ')}`] : []
  const lines = [...line(titles(false), 'had nothing to judge'), ...line(titles(true), 'had only part of the data')]
  return [...lines.map((line, i) => (i === lines.length - 1 ? `${line} (--explain says why)` : line)), ...idle]
}

/** One line per rule. Statements about the trial that several rules share come once, at the end. */
function missingLines(missing: readonly Missing[]): readonly string[] {
  const parts = missing.map(({ rule, name, missing, partial }) => {
    const text = missing.replace(`rule ${rule}: `, '')
    const at = text.lastIndexOf(TRIAL_HAS)
    const has = at < 0 ? '' : text.slice(at + 2)
    const wanted = at < 0 ? text : text.replaceAll(`; ${has}`, '')
    const title = titleOf({ ruleName: rule, name })
    return { title: partial ? `${title}, for a part of it` : title, wanted, has }
  })
  const common = parts.map(({ has }) => has).find((has, i, all) => has !== '' && all.indexOf(has) !== i)
  const byTitle = new Map<string, string[]>()
  for (const { title, wanted, has } of parts) {
    const texts = byTitle.get(title) ?? []
    byTitle.set(title, [...texts, has === '' || has === common ? wanted : `${wanted}; ${has}`])
  }
  const lines = [...byTitle].map(([title, texts]) => `${title}: ${texts.join('; ')}`)
  return common === undefined ? lines : [...lines, common]
}

function unreadLines(problems: readonly JudgingError[], isFull: boolean): readonly string[] {
  const all = problemLines(problems.map(({ error }) => error))
  const lines = all.slice(0, isFull ? all.length : MAX_PROBLEM_LINES)
  const more = all.length - lines.length
  return more > 0 ? [...lines, `and ${countText(more)} more`] : lines
}
