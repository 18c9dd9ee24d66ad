/** The base class of all rules. */

import { shown } from '../base/arguments.js'
import { InvalidWorker, NoMoreData, RuleEvaluationConditionMet, StepUnavailable, UsageError } from '../base/errors.js'
import { checkOptions, type Kind, kinds, optionsOf } from '../base/options.js'
import { withHold } from '../scan/catalog/hold.js'
import { type WaitOptions, waitingOf } from '../scan/catalog/wait.js'
import type { Inquiry, MeasureOptions } from '../trial/measure/measure.js'
import { stateOf, Trial } from '../trial/trial.js'
import { type Action, type Actions, runActions } from './action/action.js'
import { actionsOf } from './action/action-json.js'
import {
  COLLECTION_CONFIGS_OPTIONS,
  type CollectionConfigsOptions,
  defaultLogger,
  type Finding,
  type Hold,
  type HookCollection,
  holdBack,
  isLogger,
  type Logger,
  type Problem,
  silent,
} from './finding.js'
import { type Parameters, splitList } from './parameters.js'
import { READ_OPTIONS, RequiredTensors, trialKind } from './required.js'
import { judgements } from './turns.js'

export interface RuleOptions {
  readonly otherTrials?: readonly Trial[] | null | undefined
  /** The actions at every step where the rule fires. */
  readonly actions?: Actions | null | undefined
  /** The rule's name in findings. Default: its class's name. */
  readonly name?: string | undefined
  /** The logger. Default: the console on Node.js, without debug messages, and none in a browser. Null for none. */
  readonly logger?: Logger | null | undefined
  /** Judge only these workers: an array of names, or names separated by commas. Default: all workers. */
  readonly workers?: string | readonly string[] | null | undefined
  /** Judge only tensors of the base trial whose name it is true for. Default: all tensors. */
  readonly tensorFilter?: ((name: string) => boolean) | null | undefined
  /** Judge only global steps in `[startStep, endStep)`. */
  readonly startStep?: number | null | undefined
  readonly endStep?: number | null | undefined
}

export const loggerKind: Kind<Logger> = kinds.that('an object with debug, info, warn and error', isLogger)
export const trialsKind = kinds.listOf('trials', trialKind)
export const tensorFilterKind = kinds.orNull(kinds.callback<(name: string) => boolean>())
export const workersKind = kinds.orNull(kinds.oneOrMore('names of workers', 'such', kinds.text))

const RULE_OPTIONS = optionsOf<RuleOptions>({
  otherTrials: kinds.orNull(trialsKind),
  // `actionsOf` checks each action.
  actions: kinds.that('actions', () => true),
  name: kinds.text,
  logger: kinds.orNull(loggerKind),
  workers: workersKind,
  tensorFilter: tensorFilterKind,
  startStep: kinds.orNull(kinds.step),
  endStep: kinds.orNull(kinds.step),
})

/** @throws UsageError for anything but a rule */
export function expectRule(call: string, rule: unknown): void {
  if (!(rule instanceof Rule)) throw new UsageError(`${call}: expected a rule, got ${shown(rule)}`, { call })
}

/** The report of a rule so far. The names are smdebug's. */
export interface RuleReport {
  /** The number of steps at which the rule fired. */
  ruleTriggered: number
  /** The number of findings. */
  violations: number
  /** The number of steps at which the rule was invoked. */
  datapoints: number
  /** The rule's parameters as JSON. */
  ruleParameters: string
  /** The details that the rule may fill in. */
  details: Record<string, unknown>
}

/** The rule's part of a finding. `Rule.finding` adds the rest. */
export type Found = Partial<Pick<Finding, 'tensor' | 'worker' | 'value' | 'threshold'>> & {
  readonly message: string
  /** A hold that delays the report until later steps decide; only used by `evaluate`. */
  readonly hold?: Hold
}

const NO_FINDINGS: readonly Finding[] = []
const NO_RECORDS: ReadonlySet<string> = new Set()

export abstract class Rule {
  readonly baseTrial: Trial
  readonly otherTrials: readonly Trial[]
  /** The trials, the base trial first. */
  readonly trials: readonly Trial[]
  /** The class's name. */
  readonly ruleName: string
  /** The rule's name in findings. */
  readonly name: string
  readonly logger: Logger
  readonly actions: readonly Action[]
  /** The workers to judge; null for all. */
  readonly workers: ReadonlySet<string> | null
  /** Null: all. */
  readonly tensorFilter: ((name: string) => boolean) | null
  readonly startStep: number
  /** The step after the last one to judge. */
  readonly endStep: number
  #required: RequiredTensors
  #report: RuleReport
  #details: Found[] = []

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
    this.logger = options.logger === undefined ? defaultLogger : (options.logger ?? silent)
    this.actions = options.actions ? actionsOf(options.actions) : []
    this.workers = chosenWorkers(baseTrial, options.workers)
    this.tensorFilter = options.tensorFilter ?? null
    this.startStep = options.startStep ?? 0
    this.endStep = options.endStep ?? Number.POSITIVE_INFINITY
    this.#report = { ruleTriggered: 0, violations: 0, datapoints: 0, ruleParameters: '{}', details: {} }
    this.#required = new RequiredTensors(this.trials, undefined, this.workers, this.tensorFilter)
  }

  /** The tensors that the rule needs at the current step. Each step has its own. */
  get reqTensors(): RequiredTensors {
    return this.#required
  }

  /** The report of the rule so far; for a built-in rule, of the latest evaluation. */
  get report(): RuleReport {
    return this.#report
  }

  /**
   * The instance that judges in an evaluation. A built-in rule returns a new one, since its state belongs to one evaluation. A user's
   * rule returns itself.
   */
  forEvaluation(): Rule {
    return this
  }

  /** Copies the report of the instance that judged. */
  protected reportOf(other: Rule): void {
    this.#report = other.#report
  }

  /**
   * Adds to `reqTensors` what the rule will need at a step. `evaluate` calls this for many steps ahead of `invokeAtStep`, and reads the
   * tensors of all rules and steps together. Other tensors are read when the rule uses them.
   */
  setRequiredTensors(_step: number): void {}

  /** Judges a step. @param step a global step, complete @returns true if the rule's condition is met */
  abstract invokeAtStep(step: number): boolean | Promise<boolean>

  /**
   * Waits until the base trial has a step, and every other trial has it or is known never to. Then reads what the rule needs
   * and judges the step.
   * @throws RuleEvaluationConditionMet if the rule's condition is met, after its actions; StepUnavailable, NoMoreData,
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
   * Collects what the rule needs at a step.
   * @throws what `setRequiredTensors` throws
   */
  require(step: number): RequiredTensors
  /** @param inquiry collects the questions that are answered together @internal */
  require(step: number, inquiry: Inquiry): RequiredTensors
  require(step: number, inquiry?: Inquiry): RequiredTensors {
    this.#required = new RequiredTensors(this.trials, inquiry, this.workers, this.tensorFilter)
    this.setRequiredTensors(step)
    return this.#required
  }

  /**
   * Judges a step whose tensors have been read. Within a hold, its reads look there first.
   * @param required what `require` returned for the step
   * @returns the findings, none if the condition is not met; a promise only if `invokeAtStep` returns one
   */
  judge(step: number, required: RequiredTensors): readonly Finding[] | Promise<readonly Finding[]> {
    this.#required = required
    this.#details = []
    this.report.datapoints++
    const isMet = this.judgeInTurns(step) ?? this.invokeAtStep(step)
    if (typeof isMet === 'object') return Promise.resolve(isMet).then(isMet => this.#findings(step, isMet))
    return this.#findings(step, isMet)
  }

  /** Does as `invokeAtStep` where there is so much to judge that others want their turn meanwhile. Undefined: there is not. @internal */
  protected judgeInTurns(_step: number): Promise<boolean> | undefined {
    return undefined
  }

  /** True if there was anything to judge at the latest step. @internal */
  get hasJudgedStep(): boolean {
    return true
  }

  #findings(step: number, isMet: boolean): readonly Finding[] {
    if (!isMet) return NO_FINDINGS
    const { tensorFilter } = this
    const details = this.#details.length > 0 ? this.#details : [{ message: `the condition of ${this.name} is met` }]
    // A user's rule may look at what it was not asked about.
    const selected = details.filter(({ tensor }) => tensor == null || tensorFilter === null || tensorFilter(tensor))
    return selected.map(detail => {
      const finding = this.finding(step, detail)
      if (detail.hold) holdBack(finding, detail.hold)
      return finding
    })
  }

  /** Counts findings, and runs the actions. */
  async fire(step: number, findings: readonly Finding[]): Promise<void> {
    this.report.ruleTriggered++
    this.report.violations += findings.length
    await this.act(this.actions, step, findings)
  }

  protected async act(actions: readonly Action[], step: number, findings: readonly Finding[]): Promise<void> {
    if (actions.length === 0) return
    const { ruleName, name, baseTrial, logger } = this
    const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : ''
    const message = `${findings[0]!.message}${more}`
    await runActions(actions, { rule: ruleName, name, trial: baseTrial.name, step, message, findings }, logger)
  }

  /** Records a finding. `invokeAtStep` calls this before it returns true. */
  protected found(found: Found): void {
    this.#details.push(found)
  }

  /** True if the current step has a finding. */
  protected get hasFound(): boolean {
    return this.#details.length > 0
  }

  /** A finding about a step as a whole. */
  findingOf(step: number, message: string): Finding {
    return this.finding(step, { message })
  }

  protected finding(step: number, { tensor, worker, value, threshold, message }: Found): Finding {
    const { baseTrial } = this
    const { catalog } = stateOf(baseTrial)
    // Workers can be in different modes at one global step.
    const workerStep = worker == null ? undefined : catalog.atStep(step).find(saved => saved.worker === worker)
    return {
      rule: this.ruleName,
      name: this.name,
      trial: baseTrial.name,
      step: step as Finding['step'],
      mode: workerStep?.mode ?? baseTrial.mode(step),
      modeStep: workerStep?.modeStep ?? baseTrial.modeStep(step),
      tensor: tensor ?? null,
      worker: worker ?? null,
      value: value ?? null,
      threshold: threshold ?? null,
      message,
    }
  }

  /** True if the rule has judged anything so far. */
  get hasJudged(): boolean {
    return this.report.datapoints > 0
  }

  /** A sentence for each kind of data that the rule wants and the trial lacks. */
  missing(): readonly string[] {
    return []
  }

  /**
   * The collections to save so that the rule has data, in the form of a hook's `CollectionConfigurations`. Empty if the rule doesn't say.
   * @param options the framework whose names are used; names that have no counterpart there, and the user's own, stay unchanged
   */
  collectionConfigs(options?: CollectionConfigsOptions): readonly HookCollection[] {
    checkOptions('rule.collectionConfigs', COLLECTION_CONFIGS_OPTIONS, options)
    return []
  }

  /** Tensors that were not judged because their bytes can't be read or are not what they claim to be. */
  problems(): readonly Omit<Problem, 'trial'>[] {
    return []
  }

  /** The records among the problems, each as `STEP TENSOR`; without a tensor, all of the step. @internal */
  get unreadRecords(): ReadonlySet<string> {
    return NO_RECORDS
  }

  /** True if the rule only observes on behalf of others: an evaluation ends when all other rules have ended. */
  get isObserver(): boolean {
    return false
  }

  /** The time that the rule wants to wait for a new step, in milliseconds. `evaluate` waits at least as long. */
  get patienceMs(): number {
    return 0
  }

  /** Called whenever `evaluate` has looked for new steps of a running job. @returns findings; any of them ends the rule */
  whileWaiting(): readonly Finding[] {
    return []
  }
}

/** @throws InvalidWorker for a worker that the trial does not have, UsageError for an empty list */
function chosenWorkers(trial: Trial, given: RuleOptions['workers']): ReadonlySet<string> | null {
  if (given === undefined || given === null) return null
  const workers = typeof given === 'string' ? splitList(given) : given
  if (workers.length === 0) throw new UsageError('expected workers to be names of workers, got none')
  const known = trial.workers()
  for (const worker of workers) if (!known.some(name => name === worker)) throw new InvalidWorker(worker, known)
  return new Set(workers)
}

/** Waits until a trial has a step, or is known never to have it. */
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
  /** The parameters of its constructor. A user's rule need not declare any. */
  readonly parameters?: Parameters
  /** The meaning for the training if the rule fires, in one sentence. */
  readonly meaning?: string
}
