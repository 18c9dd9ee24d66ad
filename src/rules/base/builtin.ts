/** The base class of the built-in rules: parameters, selections of tensors, judgements. */

import {
  InsufficientInformationForRuleInvocation,
  nearestNames,
  QueryError,
  TrialscanError,
  UsageError,
} from '../../base/errors.js'
import { checkOptions, expectOptions } from '../../base/options.js'
import { turnsWhenDue } from '../../base/turns.js'
import type { Catalog } from '../../scan/catalog/catalog.js'
import { NO_WORKER_STEPS, type WorkerStep, type WorkerSteps } from '../../scan/catalog/worker-steps.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import {
  COLLECTION_CONFIGS_OPTIONS,
  type CollectionConfigsOptions,
  type HookCollection,
  type Problem,
  problemAt,
} from '../finding.js'
import {
  type Arguments,
  type mode as modeParameter,
  type Parameters,
  readParameters,
  snakeCase,
  type Values,
} from '../parameters.js'
import { type Found, Rule, type RuleClass, type RuleOptions } from '../rule.js'
import { collectionConfigsOf } from './collection-configs.js'
import { hasTraining, type Moment, momentOf, type Sequence, stepsOfWorkers } from './moment.js'
import { frameworkOf, gradientNames, isGradientName } from './names.js'
import { type Choice, moreSteps, OTHER_NAMES, Selection } from './selection.js'

/**
 * Judges the answers to earlier questions. Returns undefined if there was nothing to judge. A judgement that reads an unavailable answer
 * is skipped.
 */
export type Judgement = () => Judged
export type Judged = Found | readonly Found[] | null | false | undefined

/** A judgement for each of many tensors. A shared function is cheaper than a closure per tensor, step and rule. */
export interface Judgements {
  readonly count: number
  readonly judge: (i: number) => Judged
}

/** Asks about each tensor, and judges each on its own. @param ask returns undefined for a tensor that is not judged */
export function each<A>(
  tensors: readonly TensorAtStep[],
  ask: (tensor: TensorAtStep) => A | undefined,
  judge: (question: A, tensor: TensorAtStep) => Judged,
): Judgements {
  const questions = tensors.map(ask)
  return {
    count: tensors.length,
    judge: i => {
      const question = questions[i]
      return question === undefined ? undefined : judge(question, tensors[i]!)
    },
  }
}

/** Judgements of a step that are made without a turn of the event loop. */
const AT_ONCE = 4096

/** A class of built-in rules, with its description. */
export interface BuiltinClass extends RuleClass {
  readonly parameters: Parameters
  /** The meaning for the training if the rule fires, in one sentence. */
  readonly meaning: string
  /** The advice if the rule fires. */
  readonly advice: string
  /** Parameters for a rule that `check` chose; {} if the defaults serve. */
  readonly suggested: Readonly<Record<string, string>>
  /** The reasons for these parameters, one sentence each. */
  readonly reasons: Readonly<Record<string, string>>
  /** The reason why `check` runs the rule only by name; null if it may choose the rule. */
  readonly onlyByName: string | null
  /** The reason why the rule can't judge the trial: the data that it lacks, and what there is instead. Null if it can judge. */
  lacks(trial: Trial, options?: Pick<RuleOptions, 'otherTrials' | 'workers' | 'tensorFilter'>): string | null
}

/** The description of a built-in rule. */
export interface Definition<P extends Parameters> {
  readonly parameters: P
  readonly meaning: string
  readonly advice: string
  /** Parameters for a rule that `check` chose, each with the reason. */
  readonly suggested?: Readonly<Record<string, readonly [value: string, reason: string]>>
  /** The reason why `check` runs the rule only by name. */
  readonly onlyByName?: string
  /** True if `check` chooses the rule only for checkpoints. */
  readonly isOfCheckpoints?: boolean
}

type BuiltinBase<P extends Parameters> = Omit<BuiltinClass, 'parameters' | 'prototype' | 'name'> & {
  readonly parameters: P
} & (abstract new (
    baseTrial: Trial,
    options?: RuleOptions & Arguments<P>,
  ) => BuiltinRule<P>)

/** The base class of a rule with these parameters. */
export function builtin<P extends Parameters>({
  parameters,
  meaning,
  advice,
  suggested: given = {},
  onlyByName,
  isOfCheckpoints = false,
}: Definition<P>): BuiltinBase<P> {
  const suggested = Object.fromEntries(Object.entries(given).map(([name, [value]]) => [name, value]))
  const reasons = Object.fromEntries(Object.entries(given).map(([name, [, reason]]) => [name, reason]))
  abstract class Defined extends BuiltinRule<P> {
    static readonly parameters = parameters
    static readonly meaning = meaning
    static readonly advice = advice
    static readonly suggested = suggested
    static readonly reasons = reasons
    static readonly onlyByName = onlyByName ?? null

    static lacks(trial: Trial, options: RuleOptions = {}): string | null {
      if (isOfCheckpoints && trial.checkpoint === null) return 'checkpoints, which this trial does not consist of'
      try {
        // biome-ignore lint/complexity/noThisInStatic: the rule's own class, which extends this one.
        const Own = this as unknown as RuleClass
        return (new Own(trial, { ...suggested, ...options }) as BuiltinRule<P>).lack()
      } catch (error) {
        if (error instanceof InsufficientInformationForRuleInvocation) return error.detail
        throw error
      }
    }

    constructor(baseTrial: Trial, options: RuleOptions & Arguments<P> = {}) {
      super(baseTrial, options, parameters)
    }

    override forEvaluation(): Rule {
      // A user's subclass may take other arguments and keep its own state: it is not copied.
      if (Object.getPrototypeOf(this.constructor) !== Defined) return this
      const Own = this.constructor as RuleClass
      const rule = new Own(this.baseTrial, { ...this.options })
      this.reportOf(rule)
      return rule
    }
  }
  return Defined as unknown as BuiltinBase<P>
}

export abstract class BuiltinRule<P extends Parameters> extends Rule {
  protected readonly parameters: Values<P>
  /** The options for another instance like this one. */
  protected options: Readonly<RuleOptions>
  readonly #selections: Selection[] = []
  /** True if the trial has gradients of any of its weights, for one catalog. */
  #gradients: { readonly catalog: Catalog; readonly areThere: boolean } | undefined
  /** The reasons why tensors could not be judged, by name. */
  readonly #unavailable = new Map<string, string>()
  readonly #problems: Omit<Problem, 'trial'>[] = []
  readonly #unread = new Set<string>()
  /** The data that would let it judge what it last passed over. */
  #need: string | undefined
  #hasJudged = false
  #hasJudgedStep = false
  /** Requested collections that the trial does not have. */
  readonly #unknown: readonly string[]

  constructor(baseTrial: Trial, options: RuleOptions & Arguments<P>, parameters: P) {
    expectOptions(`rule ${new.target.name}`, options, Object.keys(parameters))
    const { otherTrials, actions, name, logger, workers, tensorFilter, startStep, endStep, ...given } =
      options as RuleOptions
    super(baseTrial, { otherTrials, actions, name, logger, workers, tensorFilter, startStep, endStep })
    this.options = options
    this.parameters = readParameters(this.ruleName, parameters, given as Readonly<Record<string, unknown>>)
    this.report.ruleParameters = JSON.stringify(this.parameters)
    this.#unknown = this.#unknownCollections(given as Readonly<Record<string, unknown>>)
    this.check()
  }

  /** @throws UsageError for a likely typing error: the trial has a collection with nearly this name */
  #unknownCollections(given: Readonly<Record<string, unknown>>): readonly string[] {
    const { collections } = stateOf(this.baseTrial).contents.collections
    const names = Object.keys(given)
      .map(snakeCase)
      .filter(name => /collection(_names)?$/.test(name) && !name.startsWith('use_'))
      .flatMap(name => this.parameters[name] as string | readonly string[])
    const isKnown = (name: string): boolean => collections.has(name) || collections.has(OTHER_NAMES.get(name) ?? '')
    const unknown = names.filter(name => name && !isKnown(name) && !USUAL_COLLECTIONS.has(name))
    for (const name of unknown) {
      const nearest = nearestNames(name, collections.keys())
      if (nearest.length === 0) continue
      const message = `rule ${this.ruleName}: the trial has no collection ${JSON.stringify(name)}; did you mean ${nearest.map(near => JSON.stringify(near)).join(' or ')}?`
      throw new UsageError(message, { rule: this.ruleName, collection: name, nearest })
    }
    return unknown
  }

  /** Checks that the parameters are consistent. @throws InsufficientInformationForRuleInvocation */
  protected check(): void {}

  /** Asks about what a worker saved at a step, and yields judgements of the answers. Steps ascend. */
  protected abstract examine(moment: Moment): Iterable<Judgement | Judgements>

  /** The sequence in which a worker's step is judged; undefined if it is not judged. */
  protected sequenceOf({ mode }: WorkerStep): Sequence | undefined {
    const { mode: wanted = null } = this.parameters as { readonly mode?: ReturnType<typeof modeParameter>['default'] }
    switch (wanted) {
      case null:
      case 'GLOBAL':
        return 'all'
      case 'each':
        return mode
      case 'training':
        return mode === (hasTraining(this.baseTrial) ? 'TRAIN' : 'GLOBAL') ? mode : undefined
      default:
        return mode === wanted ? mode : undefined
    }
  }

  override setRequiredTensors(step: number): void {
    const judgements: (Judgement | Judgements)[] = []
    for (const workerStep of stateOf(this.baseTrial).catalog.atStep(step)) {
      if (this.workers !== null && !this.workers.has(workerStep.worker)) continue
      const sequence = this.sequenceOf(workerStep)
      if (sequence === undefined) continue
      for (const judgement of this.examine(momentOf(workerStep, sequence))) judgements.push(judgement)
    }
    if (judgements.length === 0) return
    const all = judgements.map(judgement =>
      typeof judgement === 'function' ? { count: 1, judge: judgement } : judgement,
    )
    this.reqTensors.judgement = {
      count: all.reduce((sum, { count }) => sum + count, 0),
      atOnce: () => this.#judgeAll(step, all),
      inTurns: () => this.#judgeInTurns(step, all),
    }
  }

  override get hasJudgedStep(): boolean {
    return this.#hasJudgedStep
  }

  override invokeAtStep(_step: number): boolean {
    this.#hasJudgedStep = false
    return this.reqTensors.judgement?.atOnce() ?? false
  }

  protected override judgeInTurns(_step: number): Promise<boolean> | undefined {
    const { judgement } = this.reqTensors
    // A user's subclass may have its own way.
    const isOwn = this.invokeAtStep !== BuiltinRule.prototype.invokeAtStep
    if (judgement === undefined || judgement.count <= AT_ONCE || isOwn) return undefined
    this.#hasJudgedStep = false
    return judgement.inTurns()
  }

  #judgeAll(step: number, judgements: readonly Judgements[]): boolean {
    for (const { count, judge } of judgements) for (let i = 0; i < count; i++) this.#judge(step, judge, i)
    return this.hasFound
  }

  async #judgeInTurns(step: number, judgements: readonly Judgements[]): Promise<boolean> {
    const turn = turnsWhenDue()
    for (const { count, judge } of judgements) {
      for (let i = 0; i < count; i++) {
        this.#judge(step, judge, i)
        const isDue = turn()
        if (isDue) await isDue
      }
    }
    return this.hasFound
  }

  #judge(step: number, judge: Judgements['judge'], i: number): void {
    try {
      const result = judge(i)
      if (result !== undefined) this.#hasJudged = this.#hasJudgedStep = true
      if (!result) return
      for (const finding of Array.isArray(result) ? (result as readonly Found[]) : [result as Found])
        this.found(finding)
    } catch (error) {
      this.#passOver(step, error)
    }
  }

  /** Records why a tensor could not be judged. @throws errors of other kinds */
  #passOver(step: number, error: unknown): void {
    if (!(error instanceof TrialscanError)) throw error
    const problem = problemAt(step, error)
    if (!(error instanceof QueryError)) {
      this.#problems.push(problem)
      this.#unread.add(`${problem.step} ${problem.tensor ?? ''}`)
    } else if (!this.#unavailable.has(problem.tensor ?? '')) this.#unavailable.set(problem.tensor ?? '', error.message)
  }

  /** The steps of a moment's sequence at which its worker saved a tensor, ascending. */
  protected stepsOf(name: string, { worker, sequence }: Moment): WorkerSteps {
    const saved = stateOf(this.baseTrial).catalog.byTensor.get(name)
    return (saved && stepsOfWorkers(saved).get(worker)?.get(sequence)) ?? NO_WORKER_STEPS
  }

  /** True if a weight is trained, as far as the trial shows: a frozen one has no gradient while others have. */
  protected isTrained(weight: string): boolean {
    const { catalog } = stateOf(this.baseTrial)
    const has = (name: string): boolean => gradientNames(name).some(gradient => catalog.byTensor.has(gradient))
    if (this.#gradients?.catalog !== catalog) {
      const canBe = catalog.names.some(isGradientName)
      this.#gradients = { catalog, areThere: canBe && this.#selections.some(({ names }) => names.some(has)) }
    }
    return !this.#gradients.areThere || has(weight)
  }

  /** The tensor as its worker saved it at an earlier step. */
  protected earlier({ name, worker }: TensorAtStep, { step }: WorkerStep): TensorAtStep | undefined {
    return this.reqTensors.find(name, step, null, worker)
  }

  /** Selects tensors that are in any of the collections, or whose name matches any of the patterns. */
  protected select(choice: Choice): Selection {
    const selection = new Selection(this, choice)
    this.#selections.push(selection)
    return selection
  }

  /** Selects the tensors of the parameters `collection_names` and `tensor_regex`. @param choice all: true for all tensors if both are empty */
  protected selectGiven({ all = false, ...choice }: Choice): Selection {
    const { collection_names, tensor_regex } = this.parameters as unknown as {
      readonly collection_names: readonly string[]
      readonly tensor_regex: readonly string[]
    }
    const isEmpty = collection_names.length + tensor_regex.length === 0
    return this.select({ collections: collection_names, regex: tensor_regex, all: all && isEmpty, ...choice })
  }

  /** The error of a rule without a selection of tensors. */
  protected unselected(): InsufficientInformationForRuleInvocation {
    return this.insufficient('expected collection_names or tensor_regex, got neither')
  }

  /** The error of a rule that lacks something it requires. */
  protected insufficient(detail: string): InsufficientInformationForRuleInvocation {
    return new InsufficientInformationForRuleInvocation(this.ruleName, detail)
  }

  /** The selections whose absence is reported. */
  protected get wanted(): readonly Selection[] {
    return this.#selections
  }

  /** True if it is known why a tensor can't be judged. */
  protected isUnavailable(name: string): boolean {
    return this.#unavailable.has(name)
  }

  /** Passes over what can't be judged. @param need what the rule needs for it; `missing` says it if nothing is judged at all */
  protected needs(need: string): undefined {
    this.#need = need
    return undefined
  }

  override missing(): readonly string[] {
    if (!this.#hasJudged && this.#need !== undefined) return [this.#need]
    const unmatched = this.wanted.flatMap(selection => selection.missing())
    const [first] = this.#unavailable
    if (unmatched.length > 0) return unmatched
    const unknown = this.#unknown.filter(name => !stateOf(this.baseTrial).contents.collections.collections.has(name))
    if (unknown.length > 0)
      return unknown.map(name => `the collection ${JSON.stringify(name)}, which the trial does not have`)
    if (first === undefined) return this.report.datapoints > 0 ? this.#unjudged() : []
    const more = this.#unavailable.size > 1 ? ` (and of ${this.#unavailable.size - 1} more tensors)` : ''
    return [`${first[1]}${more}`]
  }

  override collectionConfigs(options?: CollectionConfigsOptions): readonly HookCollection[] {
    const settings = checkOptions('rule.collectionConfigs', COLLECTION_CONFIGS_OPTIONS, options)
    const framework = settings.framework ?? frameworkOf(stateOf(this.baseTrial).contents)
    const choices = this.#selections.map(({ choice }) => choice)
    return collectionConfigsOf(this.ruleName, choices, { ...settings, ...(framework && { framework }) })
  }

  override get hasJudged(): boolean {
    return this.#hasJudged && this.lack() === null
  }

  /** The reasons why nothing was judged although the tensors were saved. */
  #unjudged(): readonly string[] {
    const lacking = this.lacking()
    if (lacking.length > 0 || this.#hasJudged || this.#selections.length === 0) return lacking
    if (this.#problems.length > 0) return ['tensors that can be read: of those that it judges none could be']
    return [moreSteps(this.baseTrial, new Set(this.#selections.map(({ names }) => names)))]
  }

  /** The reasons why the rule judged no step although its tensors were saved, one sentence each. */
  protected lacking(): readonly string[] {
    return []
  }

  override problems(): readonly Omit<Problem, 'trial'>[] {
    return this.#problems
  }

  override get unreadRecords(): ReadonlySet<string> {
    return this.#unread
  }

  /** The number of selections without tensors, or without the values that they need. @internal */
  get emptySelections(): number {
    return this.#selections.filter(({ isEmpty, choice }) => isEmpty && !choice.quiet).length
  }

  /** The reason why there is nothing to judge; null if there is something. */
  lack(): string | null {
    const required = this.#selections.filter(({ isOptional }) => !isOptional)
    const lacking = required.filter(({ isEmpty }) => isEmpty)
    if (lacking.length > 0) return lacking.flatMap(selection => selection.missing()).join('; ')
    if (required.length === 0 && this.#selections.length > 0 && this.#selections.every(({ isEmpty }) => isEmpty)) {
      return this.#selections.flatMap(selection => selection.missing()).join('; ')
    }
    return null
  }
}

/** Collections that a trial has or lacks depending on what was saved; their absence is no typing error. */
const USUAL_COLLECTIONS: ReadonlySet<string> = new Set(
  'all,default,weights,biases,gradients,losses,metrics,inputs,outputs,labels,predictions,layers,optimizer_variables,sm_metrics,scalars,hyperparameters,feature_importance,average_shap,full_shap,trees,relu_output,relu_input,input_image,input_sequence'.split(
    ',',
  ),
)
