/** The findings of rules, and the updates of weights, from one evaluation. */

import { ProblemLines } from '../base/problem-lines.js'
import { inTurns } from '../base/turns.js'
import type { ReductionValue } from '../core/moments.js'
import type { BuiltinClass } from '../rules/base/builtin.js'
import { LearningRates, type UnusualRate } from '../rules/base/learning-rates.js'
import { positionOf, stepsOfWorkers } from '../rules/base/moment.js'
import { VanishingGradient } from '../rules/builtin/vanishing-gradient.js'
import { type DiagnosedFinding, diagnose } from '../rules/diagnosis.js'
import { type EvaluateOptions, evaluate } from '../rules/evaluate.js'
import type { Finding } from '../rules/finding.js'
import { RuleRegistry } from '../rules/registry.js'
import { Rule } from '../rules/rule.js'
import { kindsOf } from '../trial/kinds/kinds.js'
import type { Question } from '../trial/measure/question.js'
import type { ScanSelection } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import type { AdviceView, JudgedView, LimitView } from './data.js'

/** ‖W − W₀‖ / ‖W₀‖ of a weight, where W₀ is what its worker saved of it before in the same mode. */
export interface Update {
  readonly tensor: string
  readonly worker: string
  readonly step: number
  readonly ratio: number
}

/** A rule that judged nothing, and what it lacked. */
export interface NotJudged {
  readonly rule: string
  readonly missing: string
}

/** Rules that judge a trial, and what they have found so far. */
export class Judging {
  /** The read errors. */
  readonly problems = new ProblemLines()
  readonly #trial: Trial
  /** The rules until they have judged: each keeps what it has seen of many tensors. */
  #rules: readonly Rule[]
  readonly #descriptions: readonly RuleDescription[]
  readonly #updates: UpdateRatios
  readonly #rates: LearningRates
  readonly #findings: Finding[] = []
  /** Rules that judged nothing although their tensors were saved, and what they lacked. */
  notJudged: readonly NotJudged[] = []
  /** Steps at which a rule had anything to judge. */
  judgedSteps = 0
  #diagnosed: readonly DiagnosedFinding[] = []
  #isDone = false
  #doneSteps = 0
  #totalSteps = 0

  private constructor(trial: Trial, rules: readonly Rule[]) {
    this.#trial = trial
    this.#rules = rules
    this.#descriptions = rules.map(describe)
    this.#updates = new UpdateRatios(trial)
    this.#rates = new LearningRates(trial)
  }

  /** Makes all rules for which the trial has the data. */
  static async of(trial: Trial): Promise<Judging> {
    return new Judging(trial, (await new RuleRegistry().allInTurns(trial, { logger: null })).rules)
  }

  /** The rules that judge, without those known to have had nothing to judge. */
  get rules(): readonly string[] {
    const idle = new Set(this.notJudged.map(({ rule }) => rule))
    return this.#descriptions.map(({ rule }) => rule).filter(name => !idle.has(name))
  }

  /** Advice about the findings, by rule. */
  get advice(): readonly AdviceView[] {
    const fired = new Set(this.#findings.map(({ name }) => name))
    return this.#descriptions.flatMap(({ rule, meaning, advice }) =>
      fired.has(rule) && meaning && advice ? [{ rule, meaning, advice }] : [],
    )
  }

  /** The limits of gradients. */
  get limits(): readonly LimitView[] {
    return this.#descriptions.flatMap(({ limit }) => limit ?? [])
  }

  /** Findings in the order of steps, each with its cause. */
  get findings(): readonly DiagnosedFinding[] {
    if (this.#diagnosed.length < this.#findings.length) this.#diagnosed = diagnose(this.#trial, this.#findings)
    return this.#diagnosed
  }

  get findingCount(): number {
    return this.#findings.length
  }

  /** The progress of the rules. In a running job they may be done with all steps so far. */
  get judged(): JudgedView {
    const isDone = this.#isDone || (this.#doneSteps > 0 && this.#doneSteps >= this.#totalSteps)
    return { state: isDone ? 'done' : 'judging', steps: this.#doneSteps }
  }

  /** Learning rates out of the ordinary, beside what they do. */
  get learningRates(): readonly UnusualRate[] {
    return this.#rates.besides(this.findings.filter(({ cause }) => cause === null))
  }

  /** Weights that were zero at a step and not at the next. */
  get fromZero(): readonly string[] {
    return this.#updates.fromZero
  }

  /** Updates of weights, in the order of steps. */
  get updates(): readonly Update[] {
    return this.#updates.updates
  }

  /** Runs the evaluation. It is called once. */
  async run(options: Omit<EvaluateOptions, 'onFinding' | 'keepFindings'>): Promise<void> {
    const rules = [...this.#rules, this.#updates, this.#rates]
    this.#rules = []
    const { stats, problems, missing } = await evaluate(rules, {
      ...options,
      onFinding: finding => this.#findings.push(finding),
      keepFindings: false,
      onProgress: progress => {
        this.#doneSteps = progress.doneSteps
        this.#totalSteps = progress.totalSteps
        options.onProgress?.(progress)
      },
    })
    this.judgedSteps += stats.judged
    this.#doneSteps = stats.steps
    this.#isDone = true
    for (const { error } of problems) this.problems.add(error)
    this.notJudged = missing.filter(({ partial }) => !partial).map(({ rule, missing }) => ({ rule, missing }))
  }
}

interface RuleDescription {
  readonly rule: string
  readonly meaning: string | undefined
  readonly advice: string | undefined
  /** The limit of gradients, if the rule has one. */
  readonly limit: LimitView | null
}

function describe(judgingRule: Rule): RuleDescription {
  const { ruleName: rule } = judgingRule
  const { meaning, advice } = judgingRule.constructor as Partial<BuiltinClass>
  if (!(judgingRule instanceof VanishingGradient)) return { rule, meaning, advice, limit: null }
  const { threshold, relative_threshold } = JSON.parse(judgingRule.report.ruleParameters) as Record<
    string,
    number | null
  >
  return { rule, meaning, advice, limit: { rule, below: threshold!, share: relative_threshold ?? null } }
}

/** Runs all rules for which the trial has the data, over its present steps. */
export async function judged(trial: Trial, options: ScanSelection): Promise<Judging> {
  const { threads, signal, memory, checkLevel, steps, modeSteps } = options
  const judging = await Judging.of(trial)
  await judging.run({ follow: false, threads, memory, checkLevel, steps, modeSteps, signal })
  return judging
}

/** A rule that never fires: it reads updates of weights in the same pass as the other rules, so that each weight is read once. */
class UpdateRatios extends Rule {
  readonly updates: Update[] = []
  readonly #fromZero = new Set<string>()

  /** Weights that were zero at a step and not at the next. */
  get fromZero(): readonly string[] {
    return [...this.#fromZero]
  }

  readonly #weights: readonly string[]
  readonly #questions = new Map<number, Asked[]>()

  constructor(trial: Trial) {
    super(trial, { logger: null })
    const kindOf = kindsOf(trial)
    this.#weights = stateOf(trial).catalog.names.filter(name => kindOf(name) === 'weights')
  }

  override setRequiredTensors(step: number): void {
    if (this.#weights.length === 0) return
    const { byTensor } = stateOf(this.baseTrial).catalog
    const questions: Asked[] = []
    for (const { worker, mode } of stateOf(this.baseTrial).catalog.atStep(step)) {
      for (const tensor of this.#weights) {
        const newer = this.reqTensors.find(tensor, step, null, worker)
        const steps = newer && stepsOfWorkers(byTensor.get(tensor)!).get(worker)?.get(mode)
        const before = steps?.stepAt(positionOf(step, steps) - 1)
        const older = before === undefined ? undefined : this.reqTensors.find(tensor, before, null, worker)
        if (!older?.hasValue || !newer?.hasValue) continue
        questions.push({ tensor, worker, step, change: newer.distance(older), size: older.reduction('l2') })
      }
    }
    this.#questions.set(step, questions)
  }

  /** False: it judges nothing. */
  override get hasJudgedStep(): boolean {
    return false
  }

  override async invokeAtStep(step: number): Promise<boolean> {
    await inTurns(this.#questions.get(step) ?? [], ({ change, size, ...place }) => {
      const [by, of] = [change.answer, size.answer]
      if (typeof by !== 'number' || typeof of !== 'number') return
      // Zeros that stay zero are an update of 0; a weight that leaves zero has no norm to divide by.
      if (of !== 0 || by === 0) this.updates.push({ ...place, ratio: by === 0 ? 0 : by / of })
      else this.#fromZero.add(place.tensor)
    })
    this.#questions.delete(step)
    return false
  }
}

/** The question about a weight. */
interface Asked extends Omit<Update, 'ratio'> {
  readonly change: Question<number | null>
  readonly size: Question<ReductionValue>
}
