/** The outcome of an evaluation: findings, what could not be judged, and which rules have ended. */

import { FormatError, QueryError, StoreError } from '../base/errors.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { type Finding, holdOf, isUnavailable, type Missing, type Problem, problemAt } from './finding.js'
import type { Rule } from './rule.js'

/** The receivers of findings. */
interface Telling {
  readonly onFinding?: (finding: Finding) => void
  readonly keepFindings?: boolean
}

export class Outcome {
  readonly findings: Finding[] = []
  findingCount = 0
  /** The number of steps at which a rule had something to judge, counted per trial. */
  judgedSteps = 0
  /** Rules that are no longer run. */
  readonly ended = new Set<Rule>()
  /** The latest of these steps for each trial. */
  readonly #lastJudged = new Map<Trial, number>()
  readonly #telling: Telling
  readonly #problems = new Map<string, Problem>()
  /** The findings that are not reported yet, in order. */
  readonly #queue: { readonly rule: Rule; readonly step: number; readonly findings: readonly Finding[] }[] = []
  /** The first reason, and the number of reasons, for each rule that doesn't report what it lacks. */
  readonly #unavailable = new Map<Rule, { readonly first: string; count: number }>()

  constructor(telling: Telling) {
    this.#telling = telling
  }

  /** The problems, without duplicates. */
  get problems(): Problem[] {
    return [...this.#problems.values()]
  }

  /** Counts a step that a rule judged. The steps of a trial arrive in order. */
  judged(rule: Rule, step: number): void {
    if (!rule.hasJudgedStep || this.#lastJudged.get(rule.baseTrial) === step) return
    this.#lastJudged.set(rule.baseTrial, step)
    this.judgedSteps++
  }

  /** Records findings and runs the rule's actions, unless they are held back. */
  async fired(rule: Rule, step: number, findings: readonly Finding[]): Promise<void> {
    this.#queue.push({ rule, step, findings })
    await this.tell()
  }

  /** Reports the findings that are no longer held back. @param isLast true at the end: all findings that are not dropped are reported */
  async tell(isLast = false): Promise<void> {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const { rule, step, findings } = next
      if (!isLast && findings.some(finding => holdOf(finding)?.state === 'open')) return
      this.#queue.shift()
      const kept = findings.filter(finding => holdOf(finding)?.state !== 'dropped')
      if (kept.length > 0) await this.#tell(rule, step, kept)
    }
  }

  /** Reports findings. An error of `onFinding` goes to the caller, who wrote it. */
  async #tell(rule: Rule, step: number, findings: readonly Finding[]): Promise<void> {
    const { onFinding, keepFindings = true } = this.#telling
    for (const finding of findings) {
      this.findingCount++
      if (keepFindings) this.findings.push(finding)
      onFinding?.(finding)
    }
    try {
      await rule.fire(step, findings)
    } catch (thrown) {
      this.failed(rule, step, thrown)
    }
  }

  /** Records what a rule threw. Unavailable data and unreadable bytes don't end the rule; any other error does. */
  failed(rule: Rule, step: number, error: unknown): void {
    if (isUnavailable(error)) {
      rule.logger.debug(`${rule.name} at step ${step}: ${error.message}`)
      const earlier = this.#unavailable.get(rule)
      if (earlier) earlier.count++
      else this.#unavailable.set(rule, { first: error.message, count: 1 })
      return
    }
    if (error instanceof FormatError || error instanceof StoreError) {
      this.#problem(rule.baseTrial, problemAt(step, error))
      return
    }
    this.ended.add(rule)
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    const message = `rule ${rule.name} failed at step ${step}, and is not asked any more: ${reason}`
    const failure = new QueryError('RuleFailed', message, { rule: rule.name, step }, error)
    this.#problem(rule.baseTrial, problemAt(step, failure))
  }

  #problem(trial: Trial, problem: Omit<Problem, 'trial'>): void {
    const key = `${trial.path}\n${problem.error.message}`
    if (!this.#problems.has(key)) this.#problems.set(key, { trial: trial.name, ...problem })
  }

  /** Adds the problems of the trials themselves, and those that rules report. */
  addProblemsOf(trials: readonly Trial[], rules: readonly Rule[]): void {
    for (const trial of trials) {
      for (const { step, error } of stateOf(trial).catalog.workerSteps) {
        if (error) this.#problem(trial, { step, tensor: null, error })
      }
      for (const error of stateOf(trial).contents.problems) this.#problem(trial, problemAt(0, error))
    }
    for (const rule of rules) for (const problem of rule.problems()) this.#problem(rule.baseTrial, problem)
  }

  /** The data that rules lacked. */
  missing(rules: readonly Rule[]): Missing[] {
    return rules.flatMap(rule => {
      const sentences = [...rule.missing()]
      const unavailable = this.#unavailable.get(rule)
      if (unavailable && sentences.length === 0) {
        const { first, count } = unavailable
        sentences.push(count > 1 ? `${first} (and at ${count - 1} more steps)` : first)
      }
      return sentences.map(missing => ({
        rule: rule.ruleName,
        name: rule.name,
        trial: rule.baseTrial.name,
        missing,
        partial: rule.hasJudged,
      }))
    })
  }
}
