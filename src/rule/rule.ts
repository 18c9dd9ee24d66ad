/** The base class of all rules (rules.md §3). */

import { withHold } from '../catalog/hold.js'
import { type WaitOptions, waitingOf } from '../catalog/wait.js'
import { InvalidWorker, NoMoreData, RuleEvaluationConditionMet, StepUnavailable, UsageError } from '../errors.js'
import type { Inquiry, MeasureOptions } from '../measure/measure.js'
import { checkOptions, type Kind, kinds, optionsOf, shown } from '../options.js'
import { stateOf, Trial } from '../trial/trial.js'
import { type Action, type Actions, runActions } from './action/action.js'
import { actionsOf } from './action/action-json.js'
import { type Finding, isLogger, type Logger, type Problem, silent } from './finding.js'
import { type Parameters, splitList } from './parameters.js'
import { READ_OPTIONS, RequiredTensors, trialKind } from './required.js'
import { judgements } from './turns.js'

export interface RuleOptions {
  readonly otherTrials?: readonly Trial[] | null | undefined
  /** What to do at every step where the rule fires. */
  readonly actions?: Actions | null | undefined
  /** What findings call the rule. Default: its class's name. */
  readonly name?: string | undefined
  /** Default: one that says nothing. */
  readonly logger?: Logger | undefined
  /** Only what these workers saved is judged: names, in an array or with commas between them. Default: of all. */
  readonly workers?: string | readonly string[] | null | undefined
  /** Global steps `[startStep, endStep)` that the rule is about, where that is fewer than what is evaluated. */
  readonly startStep?: number | null | undefined
  readonly endStep?: number | null | undefined
}

export const loggerKind: Kind<Logger> = kinds.that('an object with debug, info, warn and error', isLogger)
export const trialsKind = kinds.listOf('trials', trialKind)
export const workersKind = kinds.orNull(kinds.oneOrMore('names of workers', 'such', kinds.text))

const RULE_OPTIONS = optionsOf<RuleOptions>({
  otherTrials: kinds.orNull(trialsKind),
  // Each is checked apart.
  actions: kinds.that('actions', () => true),
  name: kinds.text,
  logger: loggerKind,
  workers: workersKind,
  startStep: kinds.orNull(kinds.step),
  endStep: kinds.orNull(kinds.step),
})

/** @throws UsageError for what is none */
export function expectRule(call: string, rule: unknown): void {
  if (!(rule instanceof Rule)) throw new UsageError(`${call}: expected a rule, got ${shown(rule)}`, { call })
}

/** What a rule has done so far, under smdebug's names for it. */
export interface RuleReport {
  /** Steps at which the rule fired. */
  ruleTriggered: number
  /** Findings. */
  violations: number
  /** Steps at which it was asked. */
  datapoints: number
  /** The rule's parameters as JSON. */
  ruleParameters: string
  /** For the rule to fill. */
  details: Record<string, unknown>
}

/** What a rule tells of a finding; the rest is known. */
export type Found = Partial<Pick<Finding, 'tensor' | 'worker' | 'value' | 'threshold'>> & { readonly message: string }

export abstract class Rule {
  readonly baseTrial: Trial
  readonly otherTrials: readonly Trial[]
  /** The base trial first. */
  readonly trials: readonly Trial[]
  /** The class's name. */
  readonly ruleName: string
  /** What findings call the rule. */
  readonly name: string
  readonly logger: Logger
  readonly actions: readonly Action[]
  /** Null: all. */
  readonly workers: ReadonlySet<string> | null
  readonly startStep: number
  /** Exclusive. */
  readonly endStep: number
  #required: RequiredTensors
  #report: RuleReport
  #found: Found[] = []

  constructor(baseTrial: Trial, given?: RuleOptions) {
    const call = `rule ${new.target.name}`
    if (!(baseTrial instanceof Trial))
      throw new UsageError(`${call}: expected a trial, got ${shown(baseTrial)}`, { call })
    const options = checkOptions(call, RULE_OPTIONS, given)
    this.baseTrial = baseTrial
    this.otherTrials = options.otherTrials ?? []
    this.trials = [baseTrial, ...this.otherTrials]
    this.ruleName = new.target.name
    this.name = options.name ?? this.ruleName
    this.logger = options.logger ?? silent
    this.actions = options.actions ? actionsOf(options.actions) : []
    this.workers = chosenWorkers(baseTrial, options.workers)
    this.startStep = options.startStep ?? 0
    this.endStep = options.endStep ?? Number.POSITIVE_INFINITY
    this.#report = { ruleTriggered: 0, violations: 0, datapoints: 0, ruleParameters: '{}', details: {} }
    this.#required = new RequiredTensors(this.trials, undefined, this.workers)
  }

  /** What the rule needs at the step in hand: each step has its own. */
  get reqTensors(): RequiredTensors {
    return this.#required
  }

  /** What the rule has done so far; of a built-in rule that is evaluated, in the evaluation that began last. */
  get report(): RuleReport {
    return this.#report
  }

  /**
   * The rule that judges in an evaluation. What a built-in rule keeps from step to step is that of one evaluation: it is
   * another one each time. A rule of one's own is always itself.
   */
  forEvaluation(): Rule {
    return this
  }

  /** Tells what another rule does. */
  protected reportOf(other: Rule): void {
    this.#report = other.#report
  }

  /**
   * Adds to `reqTensors` what the rule will need at a step. `evaluate` reads it together with what other rules, and other
   * steps, need: it calls this for many steps ahead of `invokeAtStep`. What was not added is read when it is asked for.
   */
  setRequiredTensors(_step: number): void {}

  /**
   * Judges a step.
   * @param step a global step, complete
   * @returns whether the rule's condition is met
   */
  abstract invokeAtStep(step: number): boolean | Promise<boolean>

  /**
   * Waits for a step, and until it is known of other trials whether they have it; reads what the rule needs, and judges it.
   * @throws RuleEvaluationConditionMet where the rule's condition is met, after its actions; StepUnavailable, NoMoreData,
   *   TensorUnavailable, TensorUnavailableForStep, WaitTimeout
   */
  async invoke(step: number, options?: WaitOptions & MeasureOptions): Promise<void> {
    const reading = checkOptions('rule.invoke', READ_OPTIONS, options)
    const waiting = waitingOf(reading)
    await this.baseTrial.waitForSteps([step], waiting)
    for (const other of this.otherTrials) await untilKnown(other, step, waiting)
    const isMet = await judgements.take([this], reading.signal, async () => {
      const required = this.require(step)
      await required.fetch(reading)
      return withHold(this.trials.map(stateOf), { ahead: required.ahead, owners: [this] }, async () => {
        const findings = await this.judge(step, required)
        if (findings.length > 0) await this.fire(step, findings)
        return findings.length > 0
      })
    })
    if (isMet) throw new RuleEvaluationConditionMet(this.ruleName, step)
  }

  /**
   * Has the rule say what it needs at a step.
   * @param inquiry where questions are gathered that are answered together
   * @throws what `setRequiredTensors` throws
   */
  require(step: number, inquiry?: Inquiry): RequiredTensors {
    this.#required = new RequiredTensors(this.trials, inquiry, this.workers)
    this.setRequiredTensors(step)
    return this.#required
  }

  /**
   * Judges a step whose tensors are there; within a hold, its reads look there first.
   * @param required what it said it needs at the step
   * @returns what was found; nothing: the condition is not met
   */
  async judge(step: number, required: RequiredTensors): Promise<readonly Finding[]> {
    this.#required = required
    this.#found = []
    this.report.datapoints++
    const isMet = await this.invokeAtStep(step)
    if (!isMet) return []
    const found = this.#found.length > 0 ? this.#found : [{ message: `the condition of ${this.name} is met` }]
    return found.map(one => this.finding(step, one))
  }

  /** Counts findings, and runs the actions. */
  async fire(step: number, findings: readonly Finding[]): Promise<void> {
    this.report.ruleTriggered++
    this.report.violations += findings.length
    await this.act(this.actions, step, findings)
  }

  /** Runs actions. */
  protected async act(actions: readonly Action[], step: number, findings: readonly Finding[]): Promise<void> {
    if (actions.length === 0) return
    const { ruleName, name, baseTrial, logger } = this
    const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : ''
    const message = `${findings[0]!.message}${more}`
    await runActions(actions, { rule: ruleName, name, trial: baseTrial.name, step, message, findings }, logger)
  }

  /** For `invokeAtStep`, before it returns true: what was found, of which tensor, and what it was held against. */
  protected found(found: Found): void {
    this.#found.push(found)
  }

  /** Whether something was found at the step in hand. */
  protected get hasFound(): boolean {
    return this.#found.length > 0
  }

  /** A finding about a step as a whole. */
  findingOf(step: number, message: string): Finding {
    return this.finding(step, { message })
  }

  /** A finding at a step. */
  protected finding(step: number, { tensor, worker, value, threshold, message }: Found): Finding {
    const { baseTrial } = this
    const { catalog } = stateOf(baseTrial)
    // A worker's mode is its own: another one may evaluate at the same global step.
    const own = worker == null ? undefined : catalog.atStep(step).find(saved => saved.worker === worker)
    return {
      rule: this.ruleName,
      name: this.name,
      trial: baseTrial.name,
      step: step as Finding['step'],
      mode: own?.mode ?? baseTrial.mode(step),
      modeStep: own?.modeStep ?? baseTrial.modeStep(step),
      tensor: tensor ?? null,
      worker: worker ?? null,
      value: value ?? null,
      threshold: threshold ?? null,
      message,
    }
  }

  /** Whether there was anything to judge so far. */
  get hasJudged(): boolean {
    return this.report.datapoints > 0
  }

  /** Data that the rule wants and the trial does not have: a sentence each. */
  missing(): readonly string[] {
    return []
  }

  /** Tensors that were not judged because their bytes can't be read, or are not what they claim to be. */
  problems(): readonly Omit<Problem, 'trial'>[] {
    return []
  }

  /** Milliseconds without a step that the rule itself waits for. */
  get patienceMs(): number {
    return 0
  }

  /**
   * Called at every look for new steps of a running job.
   * @returns findings, which end the rule
   */
  whileWaiting(): readonly Finding[] {
    return []
  }
}

/** @throws InvalidWorker for one that the trial does not have, UsageError for none at all */
function chosenWorkers(trial: Trial, given: RuleOptions['workers']): ReadonlySet<string> | null {
  if (given === undefined || given === null) return null
  const workers = typeof given === 'string' ? splitList(given) : given
  if (workers.length === 0) throw new UsageError('expected workers to be names of workers, got none')
  const known = trial.workers()
  for (const worker of workers) if (!known.some(name => name === worker)) throw new InvalidWorker(worker, known)
  return new Set(workers)
}

/** Waits until a trial has a step, or it is known that it won't. */
async function untilKnown(trial: Trial, step: number, options: WaitOptions): Promise<void> {
  try {
    await trial.waitForSteps([step], options)
  } catch (error) {
    if (!(error instanceof StepUnavailable || error instanceof NoMoreData)) throw error
  }
}

/** A class of rules: a built-in one or a user's own. */
export interface RuleClass {
  new (baseTrial: Trial, options?: RuleOptions & Readonly<Record<string, unknown>>): Rule
  readonly name: string
  /** What its constructor takes; absent: anything (a user's rule). */
  readonly parameters?: Parameters
  /** What it means for the training when the rule fires: one sentence. */
  readonly meaning?: string
}
