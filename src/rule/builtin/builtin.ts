/** What the built-in rules share: parameters, the choice of tensors, and one judgement after the other. */

import type { Catalog, WorkerStep } from '../../catalog/catalog.js'
import type { TrialContents } from '../../catalog/load.js'
import {
  InsufficientInformationForRuleInvocation,
  nearestNames,
  QueryError,
  TrialscanError,
  UsageError,
} from '../../errors.js'
import { compileOwnPattern, compilePattern } from '../../format/pattern.js'
import type { TensorAtStep } from '../../measure/tensor-at-step.js'
import { expectOptions } from '../../options.js'
import type { Collection } from '../../trial/names.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../../types.js'
import { type Problem, problemAt } from '../finding.js'
import {
  type Arguments,
  type mode as modeParameter,
  type Parameters,
  readParameters,
  type Values,
} from '../parameters.js'
import { type Found, Rule, type RuleClass, type RuleOptions } from '../rule.js'
import { gradientNames, IN_WORDS, NOT_OF_TREES } from './names.js'

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

/**
 * Which steps of a worker are judged as one sequence: those of one mode, or all of them. Steps of the mode GLOBAL are
 * those for which the job set none.
 */
export type Sequence = Mode | 'all'

/** A step of one worker, which is what a rule judges, and the sequence that it is judged in. */
export interface Moment {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly sequence: Sequence
  /** Names worker and sequence. */
  readonly key: string
}

/** What a rule remembers of each sequence of each worker. */
export class Memory<S> {
  readonly #make: () => S
  readonly #known = new Map<string, S>()

  constructor(make: () => S) {
    this.#make = make
  }

  of({ key }: Moment): S {
    let known = this.#known.get(key)
    if (known === undefined) {
      known = this.#make()
      this.#known.set(key, known)
    }
    return known
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
    if (has(weight)) return true
    if (this.#gradients?.catalog !== catalog) {
      this.#gradients = { catalog, areThere: this.#selections.some(({ names }) => names.some(has)) }
    }
    return !this.#gradients.areThere
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
    const names = [...new Set(this.#selections.flatMap(({ names }) => names))]
    const saved = new Set(names.flatMap(name => (byTensor.get(name) ?? []).map(({ step }) => step)))
    const steps = [...saved].sort((a, b) => a - b)
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

export interface Choice {
  readonly collections?: readonly string[]
  /** Python patterns. */
  readonly regex?: readonly string[]
  readonly names?: readonly string[]
  /** All tensors. */
  readonly all?: boolean
  /** Names that are passed over. */
  readonly except?: RegExp
  /** Whether the rule can do without. */
  readonly optional?: boolean
  /** Whether it takes the value: saved reductions will not do. */
  readonly value?: boolean
  /** Not told to be missing: another selection is about the same. */
  readonly quiet?: boolean
}

/** The tensors that a rule looks at. */
export class Selection {
  readonly isOptional: boolean
  readonly #rule: Rule
  readonly #choice: Choice
  #contents: TrialContents | undefined
  #names: readonly string[] = []

  constructor(rule: Rule, choice: Choice) {
    this.#rule = rule
    this.#choice = choice
    this.isOptional = choice.optional ?? false
    // A pattern that is none is refused when the rule is made.
    for (const pattern of choice.regex ?? []) compilePattern(pattern)
  }

  /** Those that the worker saved at the step, by name. */
  at({ step, worker }: Moment): readonly TensorAtStep[] {
    return this.#rule.reqTensors.select(this.names, step, null, worker)
  }

  /** The names of all that were saved so far, sorted. */
  get names(): readonly string[] {
    const { contents } = stateOf(this.#rule.baseTrial)
    if (this.#contents !== contents) {
      this.#names = selectedNames(this.#rule.baseTrial, this.#choice)
      this.#contents = contents
    }
    return this.#names
  }

  /** Why the names can't be had: a pattern of a collection can be one that is refused. */
  get #refusal(): UsageError | null {
    try {
      this.names
      return null
    } catch (error) {
      if (error instanceof UsageError) return error
      throw error
    }
  }

  /** Whether there is nothing to look at, or nothing of it that would do. */
  get isEmpty(): boolean {
    return this.#refusal !== null || this.names.length === 0 || (this.#choice.value === true && !this.#hasValues())
  }

  /** What was wanted and is not there, a sentence each. */
  missing(): string[] {
    const { collections = [], names = [], regex = [], value, quiet } = this.#choice
    if (quiet) return []
    const trial = this.#rule.baseTrial
    const refusal = this.#refusal
    if (refusal)
      return [`tensors of the collection ${collections.map(name => JSON.stringify(name))}: ${refusal.message}`]
    if (this.names.length > 0) {
      if (!value || this.#hasValues()) return []
      const [name] = this.names
      const kept = trial.tensor(name!)
      const more = this.names.length > 1 ? ` and of ${this.names.length - 1} more` : ''
      return [`the values of ${JSON.stringify(kept.name)}${more}: only reductions were saved`]
    }
    const patterns = regex.filter(one => !IN_WORDS.has(one))
    const wanted = [
      ...collections.map(name => `tensors of the collection ${JSON.stringify(name)}`),
      ...names.map(name => `the tensor ${JSON.stringify(name)}`),
      ...regex.flatMap(one => IN_WORDS.get(one) ?? []),
      ...(patterns.length > 0 ? [`tensors that match ${patterns.map(one => JSON.stringify(one)).join(' or ')}`] : []),
    ]
    return [`${wanted.join(', or ') || 'any tensor'}; ${describeTrial(trial, collections, names)}`]
  }

  #hasValues(): boolean {
    const { byTensor } = stateOf(this.#rule.baseTrial).catalog
    return this.names.some(name => byTensor.get(name)!.some(workerStep => workerStep.tensors.get(name)!.value !== null))
  }
}

/** Names that were selected, by what selects them: rules over a trial share the lists. */
const selections = new WeakMap<TrialContents, Map<string, readonly string[]>>()

function selectedNames(trial: Trial, choice: Choice): readonly string[] {
  const { contents } = stateOf(trial)
  let known = selections.get(contents)
  if (known === undefined) {
    known = new Map()
    selections.set(contents, known)
  }
  const { collections = [], regex = [], names = [], all = false, except } = choice
  const key = JSON.stringify([collections, regex, names, all, except?.source])
  let selected = known.get(key)
  if (selected === undefined) {
    const config = contents.collections.collections
    const members = new Set(collections.flatMap(name => (config.has(name) ? trial.collection(name).members : [])))
    const patterns = regex.map(source =>
      IN_WORDS.has(source) || source === NOT_OF_TREES ? compileOwnPattern(source) : compilePattern(source),
    )
    const asked = new Set(names)
    const isMeant = (name: string): boolean =>
      all || members.has(name) || asked.has(name) || patterns.some(pattern => pattern.matches(name))
    selected = trial.tensorNames().filter(name => isMeant(name) && !except?.test(name))
    known.set(key, selected)
  }
  return selected
}

/** Collections that are told of, and how many are looked at for that. */
const MAX_COLLECTIONS_TOLD = 8
const MAX_LOOKED_AT = 100

/** What a trial has, for those who look for something else. */
function describeTrial(trial: Trial, collections: readonly string[], names: readonly string[]): string {
  const all = trial.tensorNames()
  if (all.length === 0) return 'the trial has no tensors'
  const known = trial.collections()
  const listed: string[] = []
  for (const collection of [...known.values()].slice(0, MAX_LOOKED_AT)) {
    const count = collection.name === 'all' || listed.length === MAX_COLLECTIONS_TOLD ? 0 : memberCount(collection)
    if (count > 0) listed.push(`${collection.name} (${count})`)
  }
  const nearest = [
    ...collections.flatMap(name =>
      nearestNames(name, known.keys(), MAX_COLLECTIONS_TOLD)
        .filter(near => memberCount(known.get(near)!) > 0)
        .slice(0, 3),
    ),
    ...names.flatMap(name => nearestNames(name, all)),
  ].filter(name => !collections.includes(name) && !names.includes(name))
  const hint = nearest.length > 0 ? `; did you mean ${nearest.map(name => JSON.stringify(name)).join(' or ')}?` : ''
  const some = all
    .slice(0, 3)
    .map(name => JSON.stringify(name))
    .join(', ')
  const has =
    listed.length > 0
      ? `tensors saved in the collections ${listed.join(', ')}`
      : `${all.length} tensors: ${some}${all.length > 3 ? ', …' : ''}`
  return `the trial has ${has}${hint}`
}

/** Of those that can be had: a pattern can be one that is refused, which is no matter for who does not ask for it. */
function memberCount(collection: Collection): number {
  try {
    return collection.members.length
  } catch (error) {
    if (error instanceof UsageError) return 0
    throw error
  }
}

/** A worker's step, judged in a sequence. */
export function momentOf({ step, worker, mode, modeStep }: WorkerStep | Moment, sequence: Sequence): Moment {
  return { step, worker, mode, modeStep, sequence, key: `${sequence} ${worker}` }
}

/** The number by which steps of a sequence are counted. */
export function stepNumber({ step, modeStep }: WorkerStep | Moment, sequence: Sequence): number {
  return sequence === 'all' ? step : modeStep
}

/** Whether there are steps of TRAIN. */
export function hasTraining(trial: Trial): boolean {
  const { catalog } = stateOf(trial)
  let known = trained.get(catalog)
  if (known === undefined) {
    known = catalog.workerSteps.some(({ mode }) => mode === 'TRAIN')
    trained.set(catalog, known)
  }
  return known
}

const trained = new WeakMap<Catalog, boolean>()

/** Steps of one worker, by the sequences that they are in. */
type StepsOfWorker = ReadonlyMap<Sequence, readonly WorkerStep[]>

/** By the steps at which a tensor was saved: all rules over a trial ask for the same, and tensors that were saved together have one list. */
const stepsBySequence = new WeakMap<readonly WorkerStep[], ReadonlyMap<Worker, StepsOfWorker>>()

/** Those of each worker. */
function stepsOfWorkers(saved: readonly WorkerStep[]): ReadonlyMap<Worker, StepsOfWorker> {
  const known = stepsBySequence.get(saved)
  if (known) return known
  const byWorker = new Map<Worker, Map<Sequence, WorkerStep[]>>()
  for (const workerStep of saved) {
    let own = byWorker.get(workerStep.worker)
    if (own === undefined) {
      own = new Map()
      byWorker.set(workerStep.worker, own)
    }
    for (const sequence of ['all', workerStep.mode] as const) {
      const steps = own.get(sequence)
      if (steps) steps.push(workerStep)
      else own.set(sequence, [workerStep])
    }
  }
  stepsBySequence.set(saved, byWorker)
  return byWorker
}

/** Where a global step is among ascending ones; -1: nowhere. */
export function positionOf(step: number, steps: readonly WorkerStep[]): number {
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (steps[middle]!.step < step) low = middle + 1
    else high = middle
  }
  return steps[low]?.step === step ? low : -1
}

/** A number as findings print it. */
export function figure(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : String(Number(value.toPrecision(4)))
}
