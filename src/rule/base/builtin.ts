/** What the built-in rules share: parameters, and one judgement after the other. */

import type { Catalog, WorkerStep } from '../../catalog/catalog.js'
import { InsufficientInformationForRuleInvocation, QueryError, TrialscanError } from '../../errors.js'
import type { TensorAtStep } from '../../measure/tensor-at-step.js'
import { expectOptions } from '../../options.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { type Problem, problemAt } from '../finding.js'
import {
  type Arguments,
  type mode as modeParameter,
  type Parameters,
  readParameters,
  type Values,
} from '../parameters.js'
import { type Found, Rule, type RuleClass, type RuleOptions } from '../rule.js'
import { hasTraining, type Moment, momentOf, type Sequence, stepsOfWorkers } from './moment.js'
import { gradientNames, isGradientName } from './names.js'
import { type Choice, Selection } from './selection.js'

/**
 * Judges, once the answers are there, what was asked about; undefined: there was nothing to judge. Where an answer is missing,
 * it is passed over.
 */
export type Judgement = () => Judged
export type Judged = Found | readonly Found[] | null | false | undefined

/** A judgement for each of many tensors: there are as many as tensors, steps and rules, so that they share a function. */
export interface Judgements {
  readonly count: number
  readonly judge: (i: number) => Judged
}

/**
 * Asks about each of some tensors, and judges each alone.
 * @param ask undefined: nothing is to be judged
 */
export function each<A>(
  tensors: readonly TensorAtStep[],
  ask: (tensor: TensorAtStep) => A | undefined,
  judge: (asked: A, tensor: TensorAtStep) => Judged,
): Judgements {
  const asked = tensors.map(ask)
  return {
    count: tensors.length,
    judge: i => {
      const own = asked[i]
      return own === undefined ? undefined : judge(own, tensors[i]!)
    },
  }
}

/** A class of built-in rules, and what is to be known about it. */
export interface BuiltinClass extends RuleClass {
  readonly parameters: Parameters
  /** What it means for the training when the rule fires: one sentence. */
  readonly meaning: string
  /** What to do about it. */
  readonly advice: string
  /** Parameters that `check` takes where nobody gave any; {} where the defaults do. */
  readonly suggested: Readonly<Record<string, string>>
  /** Why it takes them, one sentence a parameter. */
  readonly reasons: Readonly<Record<string, string>>
  /** Why `check` does not run the rule unless it is asked for by name; null: it does. */
  readonly onlyByName: string | null
  /** Why the rule can say nothing about the trial: which data it lacks, and what there is instead; null: it can. */
  lacks(trial: Trial, options?: Pick<RuleOptions, 'otherTrials' | 'workers'>): string | null
}

/** What a class of built-in rules says about itself. */
export interface Definition<P extends Parameters> {
  readonly parameters: P
  readonly meaning: string
  readonly advice: string
  /** Parameters that `check` takes where nobody gave any, each with the reason. */
  readonly suggested?: Readonly<Record<string, readonly [value: string, reason: string]>>
  /** Why `check` does not run the rule unless it is asked for by name. */
  readonly onlyByName?: string
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
      // What a class made of a built-in one takes and keeps is not known here.
      if (Object.getPrototypeOf(this.constructor) !== Defined) return this
      const Own = this.constructor as RuleClass
      const own = new Own(this.baseTrial, { ...this.options })
      this.reportOf(own)
      return own
    }
  }
  return Defined as unknown as BuiltinBase<P>
}

export abstract class BuiltinRule<P extends Parameters> extends Rule {
  protected readonly parameters: Values<P>
  /** To make another rule like this one. */
  protected options: Readonly<RuleOptions>
  readonly #selections: Selection[] = []
  /** Whether gradients of any of its tensors were saved. */
  #gradients: { readonly catalog: Catalog; readonly areThere: boolean } | undefined
  readonly #judgements = new WeakMap<object, readonly (Judgement | Judgements)[]>()
  /** Tensors that could never be judged, and why not; those that could at least once. */
  readonly #unavailable = new Map<string, string>()
  readonly #problems: Omit<Problem, 'trial'>[] = []
  #hasJudged = false

  constructor(baseTrial: Trial, options: RuleOptions & Arguments<P>, parameters: P) {
    expectOptions(`rule ${new.target.name}`, options, Object.keys(parameters))
    const { otherTrials, actions, name, logger, workers, startStep, endStep, ...given } = options as RuleOptions
    super(baseTrial, { otherTrials, actions, name, logger, workers, startStep, endStep })
    this.options = options
    this.parameters = readParameters(this.ruleName, parameters, given as Readonly<Record<string, unknown>>)
    this.report.ruleParameters = JSON.stringify(this.parameters)
    this.check()
  }

  /** Makes sure that the parameters make sense together. @throws InsufficientInformationForRuleInvocation */
  protected check(): void {}

  /** Asks about what a worker saved at a step, and says how the answers are judged. Called in the order of steps. */
  protected abstract examine(moment: Moment): Iterable<Judgement | Judgements>

  /** Which steps one of a worker's is judged with; undefined: it is not judged. */
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
      if (sequence !== undefined) judgements.push(...this.examine(momentOf(workerStep, sequence)))
    }
    this.#judgements.set(this.reqTensors, judgements)
  }

  override invokeAtStep(step: number): boolean {
    let isMet = false
    for (const judgement of this.#judgements.get(this.reqTensors) ?? []) {
      const { count, judge } = typeof judgement === 'function' ? { count: 1, judge: judgement } : judgement
      for (let i = 0; i < count; i++) {
        try {
          const found = judge(i)
          if (found !== undefined) this.#hasJudged = true
          if (!found) continue
          for (const one of Array.isArray(found) ? (found as readonly Found[]) : [found as Found]) {
            this.found(one)
            isMet = true
          }
        } catch (error) {
          this.#passOver(step, error)
        }
      }
    }
    return isMet
  }

  /** A tensor that could not be judged. @throws what is no fault of the tensor's */
  #passOver(step: number, error: unknown): void {
    if (!(error instanceof TrialscanError)) throw error
    const problem = problemAt(step, error)
    if (!(error instanceof QueryError)) this.#problems.push(problem)
    else if (!this.#unavailable.has(problem.tensor ?? '')) this.#unavailable.set(problem.tensor ?? '', error.message)
  }

  /** The steps of a moment's sequence at which its worker saved a tensor, ascending. */
  protected stepsOf(name: string, { worker, sequence }: Moment): readonly WorkerStep[] {
    const saved = stateOf(this.baseTrial).catalog.byTensor.get(name)
    const own = saved && stepsOfWorkers(saved).get(worker)
    return own?.get(sequence) ?? []
  }

  /** Whether a weight is trained, for all that is known: gradients were saved, but none of it, where it is frozen. */
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

  /** Chooses tensors: those in any of the collections, or with a name that any of the patterns matches. */
  protected select(choice: Choice): Selection {
    const selection = new Selection(this, choice)
    this.#selections.push(selection)
    return selection
  }

  /** Which tensors are meant was not given. */
  protected unselected(): InsufficientInformationForRuleInvocation {
    return this.insufficient('expected collection_names or tensor_regex, got neither')
  }

  /** What the rule can't do without was not given. */
  protected insufficient(detail: string): InsufficientInformationForRuleInvocation {
    return new InsufficientInformationForRuleInvocation(this.ruleName, detail)
  }

  override missing(): readonly string[] {
    const unmatched = this.#selections.flatMap(selection => selection.missing())
    const [first] = this.#unavailable
    if (unmatched.length > 0) return unmatched
    if (first === undefined) return this.report.datapoints > 0 ? this.#unjudged() : []
    const more = this.#unavailable.size > 1 ? ` (and of ${this.#unavailable.size - 1} more tensors)` : ''
    return [`${first[1]}${more}`]
  }

  override get hasJudged(): boolean {
    return this.#hasJudged && this.lack() === null
  }

  /** Why nothing was judged, though the tensors are there. */
  #unjudged(): readonly string[] {
    const lacking = this.lacking()
    if (lacking.length > 0 || this.#hasJudged || this.#selections.length === 0) return lacking
    const { byTensor } = stateOf(this.baseTrial).catalog
    const lists = new Set(this.#selections.map(({ names }) => names))
    const names = lists.size === 1 ? [...lists][0]! : [...new Set([...lists].flat())]
    // Names that were saved together have one list.
    const saved = new Set(names.map(name => byTensor.get(name) ?? []))
    const steps = [...new Set([...saved].flatMap(list => list.map(({ step }) => step)))].sort((a, b) => a - b)
    const there = `${JSON.stringify(names[0])}${names.length > 1 ? ` and ${names.length - 1} more` : ''}`
    return [
      `more steps with its tensors among those that were judged; ${there} were saved at ${steps.length} steps, from ${steps[0]} to ${steps.at(-1)}`,
    ]
  }

  /** What kept the rule from judging anything at the steps that it was asked about, though its tensors are there. */
  protected lacking(): readonly string[] {
    return []
  }

  override problems(): readonly Omit<Problem, 'trial'>[] {
    return this.#problems
  }

  /** Why there is nothing to judge; null: there is. */
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

/** A number as findings print it. */
export function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : String(Number(value.toPrecision(4)))
}
