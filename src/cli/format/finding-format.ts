/** What rules have found, as text. */

import type { DiagnosedFinding, Finding, Missing, TrialscanError } from '../../index.js'

export interface FindingFormat {
  /** Whether each finding is a line of its own, as soon as it is there. */
  readonly isLive: boolean
  /** Whether the end tells what was missing. */
  readonly tellsMissing: boolean
  /** A finding as whole lines; none where they are told of together, at the end. */
  line(finding: DiagnosedFinding): string
  /** What is told when all is judged. */
  end(judged: JudgingReport): string
}

/** What was judged by which rules, and what came of it. */
export interface JudgingReport {
  /** The trial's name. */
  readonly trial: string
  /** Of the trial. */
  readonly workers: number
  /** Whose data were judged; null: all workers'. */
  readonly onlyWorkers: readonly string[] | null
  readonly rules: readonly JudgingRule[]
  /** As diagnosed: a cause is named by its place among them. */
  readonly findings: readonly DiagnosedFinding[]
  readonly missing: readonly Missing[]
  /** Rules that would have run had they been asked for, and why only then. */
  readonly onlyByName: readonly { readonly rule: string; readonly reason: string }[]
  readonly problems: readonly JudgingError[]
  /** How many; null where nobody has counted. */
  readonly steps: number | null
  /** The job has ended; it may still run and was not followed, or followed till nothing came; somebody pressed Ctrl-C. */
  readonly state: 'ended' | 'running' | 'left' | 'interrupted'
}

/** A rule as it was configured. */
export interface JudgingRule {
  readonly ruleName: string
  readonly name: string
  readonly meaning: string | undefined
  readonly advice: string | undefined
  /** It was asked for by name. */
  readonly isAsked: boolean
  /** Parameters that are not as the class has them by default. */
  readonly parameters: readonly ChosenParameter[]
}

/** A parameter that was given, by whoever asked for the rule, or else as its class suggests it. */
export interface ChosenParameter {
  readonly parameter: string
  readonly value: string
  readonly reason: string
}

/** What could not be read, so that it was not judged; of the trial as a whole where there is no step. */
export interface JudgingError {
  readonly step: number | null
  readonly tensor: string | null
  readonly error: TrialscanError
}

/** The steps of some findings, each once, in ascending order. */
export function stepsOfFindings(findings: readonly Finding[]): readonly number[] {
  return [...new Set(findings.map(({ step }) => step))].sort((a, b) => a - b)
}

/** Whether a finding, or a lack of data, is of a rule as it was configured. */
export function isFindingOf({ ruleName, name }: JudgingRule): (told: Finding | Missing) => boolean {
  return told => told.rule === ruleName && told.name === name
}

/** The rules that had something to judge; two configurations of the same name are told of as one. */
export function judgingOf({ rules, missing }: JudgingReport): readonly JudgingRule[] {
  return distinct(rules).filter(rule => !missing.some(told => !told.partial && isFindingOf(rule)(told)))
}

/** Two configurations of the same name are told of as one. */
export function distinct(rules: readonly JudgingRule[]): readonly JudgingRule[] {
  return [...new Map(rules.map(rule => [configurationKey(rule.ruleName, rule.name), rule])).values()]
}

export function configurationKey(rule: string, name: string): string {
  return JSON.stringify([rule, name])
}
