/** The interface of finding formats, and their report. */

import type { TrialscanError } from '../../../base/errors.js'
import type { UnusualRate } from '../../../rules/base/learning-rates.js'
import type { DiagnosedFinding } from '../../../rules/diagnosis.js'
import type { Finding, HookCollection, Missing } from '../../../rules/finding.js'
import type { Verdict } from '../ci/report.js'
import { counted, countText } from '../number.js'

export interface FindingFormat {
  /** True if each finding is written at once, as a line. */
  readonly isLive: boolean
  /** True if `end` lists missing data. */
  readonly tellsMissing: boolean
  /** A finding as whole lines; empty if `end` writes all of them. */
  line(finding: DiagnosedFinding): string
  /** The text after all steps. */
  end(judged: JudgingReport, verdict: Verdict): string
}

/** The common part of formats that write nothing until all steps are judged. */
export const AT_END = { isLive: false, tellsMissing: true, line: () => '' } as const

/** The report of a judgement. */
export interface JudgingReport {
  /** The trial's name. */
  readonly trial: string
  /** The number of the trial's workers. */
  readonly workers: number
  /** The workers whose data were judged. Null: all. */
  readonly onlyWorkers: readonly string[] | null
  readonly rules: readonly JudgingRule[]
  /**
   * The diagnosed findings: `cause` is an index into this array. If a live format has written all findings, these are
   * the first of each rule.
   */
  readonly findings: readonly DiagnosedFinding[]
  /** Unusual learning rates and their effects. */
  readonly learningRates?: readonly UnusualRate[]
  readonly missing: readonly Missing[]
  /** The options that restrict what was judged, as they were written. Null: none. */
  readonly selection: string | null
  /** The tensors to save for rules that were asked for by name and lack data. */
  readonly toSave: readonly HookCollection[]
  /** Rules that run only when asked for by name, and why. */
  readonly onlyByName: readonly { readonly rule: string; readonly reason: string }[]
  readonly problems: readonly JudgingError[]
  /** The number of tensor values that the rules requested, and the number of those that could not be read. */
  readonly values: number
  readonly unread: number
  /** The number of steps with anything to judge. Null: unknown. */
  readonly steps: number | null
  /** True if none of the requested steps exists. */
  readonly isOutOfRange: boolean
  /** True if the selection left nothing to judge. */
  readonly isUnjudged: boolean
  /** `running`: the job may still run and was not followed. `left`: it was followed until no more steps came. */
  readonly state: 'ended' | 'running' | 'left' | 'interrupted'
}

/** A configured rule. */
export interface JudgingRule {
  readonly ruleName: string
  readonly name: string
  readonly meaning: string | undefined
  readonly advice: string | undefined
  /** True if the rule was asked for by name. */
  readonly isAsked: boolean
  /** True if its findings count for the exit code. */
  readonly counts: boolean
  /** Parameters that are not the class's defaults. */
  readonly parameters: readonly ChosenParameter[]
}

/** A parameter as the user gave it, or as the rule's class suggests it. */
export interface ChosenParameter {
  readonly parameter: string
  readonly value: string
  readonly reason: string
}

/** A read error, because of which something was not judged. Without a step it concerns the whole trial. */
export interface JudgingError {
  readonly step: number | null
  readonly tensor: string | null
  readonly error: TrialscanError
}

/** The steps of some findings, each once, in ascending order. */
export function stepsOfFindings(findings: readonly Finding[]): readonly number[] {
  return [...new Set(findings.map(({ step }) => step))].sort((a, b) => a - b)
}

/** True if a finding, or missing data, belongs to a configured rule. */
export function isFindingOf({
  ruleName,
  name,
}: Pick<JudgingRule, 'ruleName' | 'name'>): (item: Finding | Missing) => boolean {
  return item => item.rule === ruleName && item.name === name
}

/** The rules that had something to judge, as by `distinct`. */
export function judgingOf({ rules, missing }: JudgingReport): readonly JudgingRule[] {
  return distinct(rules).filter(rule => !missing.some(lack => !lack.partial && isFindingOf(rule)(lack)))
}

/** The rules without duplicates: two configurations of the same rule and name are shown as one. */
export function distinct(rules: readonly JudgingRule[]): readonly JudgingRule[] {
  return [...new Map(rules.map(rule => [configurationKey(rule.ruleName, rule.name), rule])).values()]
}

export function configurationKey(rule: string, name: string): string {
  return JSON.stringify([rule, name])
}

/** The share in words; undefined if all counted values could be read. */
export function readText({ values, unread }: Pick<JudgingReport, 'values' | 'unread'>): string | undefined {
  if (unread === 0) return undefined
  const read = values === unread ? 'none' : countText(values - unread)
  return `${read} of ${counted(values, 'tensor value')} could be read`
}

/** True if nothing could be read, so that the rules have judged nothing. */
export function isBlind({ values, unread }: Pick<JudgingReport, 'values' | 'unread'>): boolean {
  return unread > 0 && values === unread
}
