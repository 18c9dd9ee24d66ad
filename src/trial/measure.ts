/**
 * Many questions about many tensors, answered in one pass. Rules state what they need as questions; those of all of them
 * become one plan, in which every record is read once and whatever is asked twice is computed once.
 */

import { dtypeOf } from '../engine/dtype.js'
import { asideEngine, coreLayout, KNOWN, type Known } from '../engine/engine.js'
import { isDefined, Moments, type ReductionValue, setFor, undefinedReduction } from '../engine/moments.js'
import {
  EngineError,
  type ErrorData,
  errorFromData,
  errorToData,
  QueryError,
  quote,
  ReductionUndefined,
  TensorUnavailableForStep,
  TrialscanError,
} from '../errors.js'
import type { TensorLocation } from '../format/index-file.js'
import type { MeasuredPlace, MeasureJob, MeasureReply, Task } from '../job/measure.js'
import { type PlannedMeasure, planMeasures } from '../job/measure-plan.js'
import { DEFAULT_MEMORY } from '../job/memory.js'
import type { HistogramResult } from '../job/reply.js'
import type { RawValue } from '../job/value.js'
import { checkOptions, type Kinds, kinds } from '../options.js'
import { isLackOfMeans, type Runner, runTwice } from '../pool/runner.js'
import type { StoreSpec } from '../store/store.js'
import type { GlobalStep, Mode, ModeStep, ReductionName, Worker } from '../types.js'
import { READ_KINDS, type ReadOptions } from './access.js'
import type { SavedTensor, WorkerStep } from './catalog.js'
import { failureOfRecord } from './failed-job.js'
import type { Ahead } from './hold.js'
import { checkLevelNumber, checksumError, noAnswer, OF_SCALAR, savedNumber } from './scan.js'
import type { TrialState } from './state.js'
import { type TensorValue, TOLERANCE, type Tolerance, tensorValue } from './value.js'

/** Something asked about a tensor. */
export interface Question<A> {
  /** The answer; undefined before it is there, and where there is none. */
  readonly answer: A | undefined
  /** Why there is no answer. */
  readonly error: TrialscanError | undefined
  /** The answer. @throws why there is none */
  readonly value: A
}

/** A question, read from what became of a record when it is first looked at: there are as many as records and rules. */
abstract class Asked<A> implements Question<A> {
  readonly kind: string
  readonly tensor: TensorAtStep
  /** Another question about the same tensor. */
  next: Asked<unknown> | null = null

  constructor(kind: string, tensor: TensorAtStep) {
    this.kind = kind
    this.tensor = tensor
  }

  abstract get isAnswered(): boolean
  /** @throws why there is no answer */
  protected abstract read(): A

  get answer(): A | undefined {
    return this.isAnswered && this.error === undefined ? this.value : undefined
  }

  get error(): TrialscanError | undefined {
    if (!this.isAnswered) return undefined
    try {
      this.value
      return undefined
    } catch (error) {
      return error instanceof TrialscanError ? error : errorFromData(errorToData(error))
    }
  }

  get value(): A {
    if (!this.isAnswered) throw new EngineError('expected the question to be answered by now')
    return this.read()
  }
}

/** A question that the moments of a record answer. */
class RecordQuestion<A> extends Asked<A> {
  readonly #record: RecordRef
  readonly #read: (told: Told, tensor: TensorAtStep, kind: never) => A

  constructor(
    kind: string,
    tensor: TensorAtStep,
    record: RecordRef,
    read: (told: Told, tensor: TensorAtStep, kind: never) => A,
  ) {
    super(kind, tensor)
    this.#record = record
    this.#read = read
  }

  get isAnswered(): boolean {
    return this.#record.isAnswered
  }

  protected read(): A {
    return this.#read(this.#record.told, this.tensor, this.kind as never)
  }
}

/** A question about the elements of a record, or of two. */
class TaskQuestion<A> extends Asked<A> implements Task {
  declare readonly kind: Task['kind']
  readonly numbers: readonly number[]
  readonly other: TensorAtStep | null
  readonly first: number
  readonly second: number
  readonly #read: (result: TaskResult, tensor: TensorAtStep) => A
  #answer: A | undefined
  /** Its place in the answers of its job. */
  at = -1

  constructor(
    kind: Task['kind'],
    tensor: TensorAtStep,
    numbers: readonly number[],
    other: TensorAtStep | null,
    read: (result: TaskResult, tensor: TensorAtStep) => A,
  ) {
    super(kind, tensor)
    this.numbers = numbers
    this.other = other
    this.first = tensor.valueRecord.number
    this.second = other ? other.valueRecord.number : -1
    this.#read = read
  }

  get isAnswered(): boolean {
    return this.at >= 0
  }

  protected read(): A {
    if (this.#answer !== undefined) return this.#answer
    const record = this.tensor.valueRecord
    for (const { told } of this.other ? [record, this.other.valueRecord] : [record]) {
      if (told instanceof TrialscanError) throw told
    }
    const result = record.answers!.task(this.at)
    if (result === null) throw noNumbers(record.tag, record.step)
    this.#answer = this.#read(result, this.tensor)
    return this.#answer
  }
}

/** A question about what was not saved. */
class Unanswerable extends Asked<never> {
  readonly #what: string
  readonly #without: TensorAtStep

  constructor(kind: string, tensor: TensorAtStep, what: string, without = tensor) {
    super(kind, tensor)
    this.#what = what
    this.#without = without
  }

  get isAnswered(): boolean {
    return true
  }

  protected read(): never {
    const { name, step, savedReductions } = this.#without
    const kept = savedReductions.join(', ')
    const detail = `expected ${this.#what} to be saved, but ${kept === '' ? 'only its shape was' : `only ${kept} were`}`
    throw new TensorUnavailableForStep(name, step, 'GLOBAL', detail)
  }
}

/** What became of a record. */
type Told = Moments | HistogramResult | TrialscanError

/** What became of a task. */
type TaskResult = readonly number[] | RawValue

/** A record that is asked about. */
class RecordRef implements MeasuredPlace {
  readonly state: TrialState
  readonly #workerStep: WorkerStep
  readonly #location: TensorLocation
  readonly store: number
  readonly series: number
  /** In the order of the plan. */
  readonly number: number
  /** The answers of its job, and its place among them. */
  answers: JobAnswers | null = null
  at = -1
  #told: Told | undefined

  constructor(
    state: TrialState,
    workerStep: WorkerStep,
    location: TensorLocation,
    { store, series, number }: { readonly store: number; readonly series: number; readonly number: number },
  ) {
    this.state = state
    this.#workerStep = workerStep
    this.#location = location
    this.store = store
    this.series = series
    this.number = number
  }

  get file(): string {
    return this.#location.eventFile ?? this.#workerStep.eventFile
  }

  get tag(): string {
    return this.#location.name
  }

  get startByte(): number {
    return this.#location.startByte
  }

  get byteLength(): number {
    return this.#location.byteLength
  }

  get step(): GlobalStep {
    return this.#workerStep.step
  }

  get tornasole(): boolean {
    return this.#workerStep.isTornasole
  }

  get isAnswered(): boolean {
    return this.answers !== null
  }

  get told(): Told {
    this.#told ??= this.answers!.record(this)
    return this.#told
  }
}

/** How many nodes a layer has, and how many of them were inactive. */
export interface Activity {
  readonly nodes: number
  readonly inactive: number
}

/** Sums along an axis. */
export interface ChannelSums {
  readonly sums: readonly number[]
  /** Elements in each of them. */
  readonly count: number
  /** Length of the first axis; 1 where there is none. */
  readonly samples: number
}

/** A tensor at a step, to be asked about. What is asked twice is the same question. */
export class TensorAtStep {
  readonly #inquiry: Inquiry
  readonly #state: TrialState
  readonly #workerStep: WorkerStep
  readonly #saved: SavedTensor
  /** The last of what was asked: a few questions at the most. */
  #asked: Asked<unknown> | null = null
  #record: RecordRef | undefined

  /** Use `inquiry.atStep`. */
  constructor(inquiry: Inquiry, state: TrialState, workerStep: WorkerStep, saved: SavedTensor) {
    this.#inquiry = inquiry
    this.#state = state
    this.#workerStep = workerStep
    this.#saved = saved
  }

  get name(): string {
    return this.#saved.tensor
  }

  get step(): GlobalStep {
    return this.#workerStep.step
  }

  get mode(): Mode {
    return this.#workerStep.mode
  }

  get modeStep(): ModeStep {
    return this.#workerStep.modeStep
  }

  get worker(): Worker {
    return this.#workerStep.worker
  }

  /** Where it lies among what its worker saved at the step: tensors are saved in the order in which they are computed. */
  get place(): number {
    return this.#saved.value?.startByte ?? Number.POSITIVE_INFINITY
  }

  /** Whether its value was saved. */
  get hasValue(): boolean {
    return this.#saved.value !== null
  }

  /** Whether it can't have more than a few elements, as its record tells without being read. */
  get isSmall(): boolean {
    const { value, tensor } = this.#saved
    return value === null || value.byteLength < 512 + tensor.length
  }

  /** The shape, where it was saved for itself. */
  get savedShape(): readonly number[] | null {
    return this.#saved.shape?.shape ?? null
  }

  /** The reductions that the hook saved. */
  get savedReductions(): readonly ReductionName[] {
    return [...this.#saved.reductions.keys()]
  }

  /** A reduction: as the hook saved it, else computed from the value. */
  reduction(name: ReductionName): Question<ReductionValue> {
    const known = this.#find<ReductionValue>(name)
    if (known) return known
    const location = this.#saved.reductions.get(name)
    if (location) {
      const record = this.#inquiry.record(this.#state, this.#workerStep, location)
      this.#inquiry.know(OF_SCALAR)
      return this.#ask(new RecordQuestion(name, this, record, readSaved))
    }
    if (!this.hasValue) return this.#ask(new Unanswerable(name, this, name))
    this.#inquiry.know(setFor([name]))
    return this.#ask(new RecordQuestion(name, this, this.valueRecord, readReduction))
  }

  /**
   * The moments of the value: counts of elements, NaN, infinities and zeros, extremes, and these reductions; none stands
   * for all.
   */
  moments(...reductions: readonly ReductionName[]): Question<Moments> {
    this.#inquiry.know(reductions.length === 0 ? KNOWN.all : setFor(reductions))
    return this.counts()
  }

  /** As `moments`, where counts and extremes will do: they cost a fifth of the rest. */
  counts(): Question<Moments> {
    this.#inquiry.know(KNOWN.extremes)
    const known = this.#find<Moments>('moments')
    if (known) return known
    if (!this.hasValue) return this.#ask(new Unanswerable('moments', this, 'the value'))
    return this.#ask(new RecordQuestion('moments', this, this.valueRecord, readMoments))
  }

  /** The value itself: it is handed to the calling thread, and held until the step has been judged. */
  value(): Question<TensorValue> {
    return this.#task('value', NO_NUMBERS, null, readValue)
  }

  /** Whether each element is close to that of another tensor (numpy's allclose(this, other)); shapes that differ: false. */
  allclose(other: TensorAtStep, options?: Tolerance): Question<boolean> {
    // Rules ask with the same tolerance again and again.
    if (options !== checkedTolerance) checkedTolerance = checkOptions('tensorAtStep.allclose', TOLERANCE, options)
    const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options ?? {}
    return this.#task('allclose', [rtol, atol, equalNan ? 1 : 0], other, readAllclose)
  }

  /** The mean of |this − older|; null where shapes differ. */
  meanAbsChange(older: TensorAtStep): Question<number | null> {
    return this.#task('change', NO_NUMBERS, older, readChange)
  }

  /**
   * How many nodes (positions over all axes but the first, which is that of the samples) have an element in (lo, hi), `hi`
   * NaN for no bound, in less than `percent` of the samples.
   */
  activity(lo: number, hi: number, percent: number): Question<Activity> {
    return this.#task('activity', [lo, hi, percent], null, readActivity)
  }

  /** How many elements are equal to a number, of how many. */
  count(of: number): Question<Count> {
    return this.#task('count', [of], null, readCount)
  }

  /** Sums along an axis; one sum of all where the tensor has too few axes. */
  channelSums(axis: number): Question<ChannelSums> {
    return this.#task('channels', [axis], null, readChannelSums)
  }

  /** Percentiles of the elements, interpolated as numpy does. */
  percentiles(...percents: readonly number[]): Question<readonly number[]> {
    return this.#task('percentiles', percents, null, numbersOf)
  }

  /** The value, if it was asked for and is there. */
  get answeredValue(): TensorValue | undefined {
    return this.#find<TensorValue>('value')?.answer
  }

  /** A reduction, if it was asked for and is there, or follows from what is. */
  answeredReduction(name: ReductionName): ReductionValue | undefined {
    const asked = this.#find<ReductionValue>(name)
    if (asked) return asked.answer
    if (this.#saved.reductions.has(name)) return undefined
    const moments = this.#find<Moments>('moments')?.answer
    return moments?.knows(name) && isDefined(name, moments.dtype) ? moments.reduction(name) : undefined
  }

  /** Whether it is of a worker's step. */
  isOf(workerStep: WorkerStep): boolean {
    return this.#workerStep === workerStep
  }

  /** The record of its value, which was saved. */
  get valueRecord(): RecordRef {
    this.#record ??= this.#inquiry.record(this.#state, this.#workerStep, this.#saved.value!)
    return this.#record
  }

  #task<A>(
    kind: Task['kind'],
    given: readonly number[],
    other: TensorAtStep | null,
    read: (result: TaskResult, tensor: TensorAtStep) => A,
  ): Question<A> {
    const numbers = this.#inquiry.sameNumbers(given)
    for (let asked = this.#asked; asked !== null; asked = asked.next) {
      if (asked.kind !== kind) continue
      const task = asked as TaskQuestion<A>
      if (task.numbers === numbers && task.other === other) return task
    }
    const without = this.hasValue ? (other?.hasValue === false ? other : null) : this
    if (without) return this.#ask(new Unanswerable(kind, this, 'the value', without))
    const question = new TaskQuestion(kind, this, numbers, other, read)
    this.#inquiry.tasks.push(question)
    return this.#ask(question)
  }

  #ask<A>(question: Asked<A>): Question<A> {
    this.#inquiry.questionCount++
    question.next = this.#asked
    this.#asked = question
    return question
  }

  #find<A>(kind: string): Question<A> | undefined {
    let asked = this.#asked
    while (asked !== null && asked.kind !== kind) asked = asked.next
    return (asked as Asked<A> | null) ?? undefined
  }
}

/** Equal elements, of how many. */
export interface Count {
  readonly equal: number
  readonly elements: number
}

const NO_NUMBERS: readonly number[] = []
let checkedTolerance: Tolerance | undefined

function readMoments(told: Told, { name, step }: TensorAtStep): Moments {
  if (told instanceof Moments) return told
  if (told instanceof TrialscanError) throw told
  throw new QueryError('NoTensor', `${name} at step ${step} is a histogram, not a tensor`, { tensor: name })
}

function readReduction(told: Told, tensor: TensorAtStep, name: ReductionName): ReductionValue {
  if (!(told instanceof Moments || told instanceof TrialscanError)) {
    const reduction = told.reductions[name]
    if (reduction !== undefined) return reduction
    throw new ReductionUndefined(name, 'a histogram', 'it does not tell that of its data')
  }
  const moments = readMoments(told, tensor)
  if (!isDefined(name, moments.dtype)) throw undefinedReduction(name, moments.dtype)
  return moments.reduction(name)
}

function readSaved(told: Told, tensor: TensorAtStep, name: ReductionName): ReductionValue {
  const value = savedNumber(readMoments(told, tensor), name)
  if (value instanceof ReductionUndefined) throw value
  return value
}

function numbersOf(result: TaskResult, tensor: TensorAtStep): readonly number[] {
  if ('bytes' in result) throw noNumbers(tensor.name, tensor.step)
  return result
}

function readValue(result: TaskResult, tensor: TensorAtStep): TensorValue {
  if ('bytes' in result) return tensorValue(result)
  throw noNumbers(tensor.name, tensor.step)
}

function readAllclose(result: TaskResult, tensor: TensorAtStep): boolean {
  const [apart, compared] = numbersOf(result, tensor)
  return apart === 0 && compared! >= 0
}

function readChange(result: TaskResult, tensor: TensorAtStep): number | null {
  const [sum, compared] = numbersOf(result, tensor)
  return compared! < 0 ? null : sum! / compared!
}

function readActivity(result: TaskResult, tensor: TensorAtStep): Activity {
  const [nodes, inactive] = numbersOf(result, tensor)
  return { nodes: nodes!, inactive: inactive! }
}

function readCount(result: TaskResult, tensor: TensorAtStep): Count {
  const [equal, elements] = numbersOf(result, tensor)
  return { equal: equal!, elements: elements! }
}

function readChannelSums(result: TaskResult, tensor: TensorAtStep): ChannelSums {
  const [count, samples, ...sums] = numbersOf(result, tensor)
  return { sums, count: count!, samples: samples! }
}

function noNumbers(tensor: string, step: number): QueryError {
  return new QueryError('NotNumeric', `expected numbers in ${quote(tensor)} at step ${step}`, { tensor, step })
}

export interface MeasureOptions extends ReadOptions {
  readonly signal?: AbortSignal | undefined
}

export const MEASURE_OPTIONS: Kinds<MeasureOptions> = { ...READ_KINDS, signal: kinds.signal }

/** What answering has cost. */
export interface MeasureStats {
  records: number
  readBytes: number
  reads: number
  jobs: number
  threads: number
}

/** What one worker saved at a step. */
export class WorkerTensors {
  readonly #inquiry: Inquiry
  readonly #state: TrialState
  readonly #known = new Map<string, TensorAtStep>()
  readonly #selected = new Map<readonly string[], readonly TensorAtStep[]>()
  readonly #workerStep: WorkerStep

  /** Use `inquiry.atStep`. */
  constructor(inquiry: Inquiry, state: TrialState, workerStep: WorkerStep) {
    this.#inquiry = inquiry
    this.#state = state
    this.#workerStep = workerStep
  }

  get(name: string): TensorAtStep | undefined {
    const known = this.#known.get(name)
    if (known) return known
    const saved = this.#workerStep.tensors.get(name)
    if (saved === undefined) return undefined
    const tensor = new TensorAtStep(this.#inquiry, this.#state, this.#workerStep, saved)
    this.#known.set(name, tensor)
    return tensor
  }

  /** Those of some names that there are; the same list for the same list of names. */
  select(names: readonly string[]): readonly TensorAtStep[] {
    let selected = this.#selected.get(names)
    if (selected === undefined) {
      selected = names.map(name => this.get(name)).filter(tensor => tensor !== undefined)
      this.#selected.set(names, selected)
    }
    return selected
  }

  /** One that was asked about. */
  asked(name: string): TensorAtStep | undefined {
    return this.#known.get(name)
  }
}

/** The tensors of a trial at a step. */
export class StepTensors {
  /** In the order of the workers' names. */
  readonly #workers: ReadonlyMap<string, WorkerTensors>

  /** Use `inquiry.atStep`. */
  constructor(inquiry: Inquiry, state: TrialState, workerSteps: readonly WorkerStep[]) {
    this.#workers = new Map(
      workerSteps.map(workerStep => [workerStep.worker, new WorkerTensors(inquiry, state, workerStep)]),
    )
  }

  /** What a worker saved; undefined: it saved nothing then. */
  of(worker: string): WorkerTensors | undefined {
    return this.#workers.get(worker)
  }

  /** Of several workers, the first that has it. @param among of these only; null: of all */
  get(name: string, among: ReadonlySet<string> | null = null): TensorAtStep | undefined {
    for (const [worker, tensors] of this.#workers) {
      const tensor = among === null || among.has(worker) ? tensors.get(name) : undefined
      if (tensor) return tensor
    }
    return undefined
  }

  /** Those of some names that there are, each as `get` finds it. */
  select(names: readonly string[], among: ReadonlySet<string> | null = null): readonly TensorAtStep[] {
    return names.map(name => this.get(name, among)).filter(tensor => tensor !== undefined)
  }
}

/** Questions about tensors of any number of trials, gathered to be answered together. */
export class Inquiry implements Ahead {
  readonly tasks: TaskQuestion<unknown>[] = []
  readonly #steps = new Map<TrialState, Map<number, StepTensors>>()
  readonly #stores: StoreSpec[] = []
  readonly #storeNumbers = new Map<TrialState, number>()
  readonly #records: RecordRef[] = []
  /** By their places; made where two trials lie at one place, so that a record of both is read once. */
  #places: Map<string, RecordRef> | null = null
  readonly #series = new Map<TrialState, Map<Worker, Map<string, number>>>()
  #seriesCount = 0
  readonly #numbers: (readonly number[])[] = []
  /** Bytes of the values that will be handed out, among the tasks that were counted. */
  #valueBytes = 0
  #compares = false
  #counted = 0

  /** The tensors of a trial at a step: as it was known when it was first asked about, so that its answers are found. */
  atStep(state: TrialState, step: number): StepTensors {
    let steps = this.#steps.get(state)
    if (steps === undefined) {
      steps = new Map()
      this.#steps.set(state, steps)
    }
    let tensors = steps.get(step)
    if (tensors === undefined) {
      const workerSteps = state.catalog.atStep(step)
      tensors = new StepTensors(this, state, workerSteps)
      if (workerSteps.length > 0) steps.set(step, tensors)
    }
    return tensors
  }

  /** How much the rows of moments have to know. */
  known: Known = 0

  know(known: Known): void {
    this.known |= known
  }

  /** The same array for the same numbers: what is asked with them can be told to be the same. */
  sameNumbers(numbers: readonly number[]): readonly number[] {
    for (const known of this.#numbers) if (isSame(known, numbers)) return known
    this.#numbers.push(numbers)
    return numbers
  }

  /** Questions asked, each once. */
  questionCount = 0

  /** Whether records are held against others, as far as `valueByteLength` has seen. */
  get compares(): boolean {
    return this.#compares
  }

  /** Bytes of values that will be handed to the calling thread. */
  get valueByteLength(): number {
    for (let i = this.#counted; i < this.tasks.length; i++) {
      const { kind, tensor, second } = this.tasks[i]!
      if (kind === 'value') this.#valueBytes += tensor.valueRecord.byteLength
      this.#compares ||= second >= 0
    }
    this.#counted = this.tasks.length
    return this.#valueBytes
  }

  value(workerStep: WorkerStep, tensor: string): TensorValue | undefined {
    return this.#tensor(workerStep, tensor)?.answeredValue
  }

  reduction(workerStep: WorkerStep, tensor: string, name: ReductionName): ReductionValue | undefined {
    return this.#tensor(workerStep, tensor)?.answeredReduction(name)
  }

  #tensor(workerStep: WorkerStep, name: string): TensorAtStep | undefined {
    for (const steps of this.#steps.values()) {
      const tensor = steps.get(workerStep.step)?.of(workerStep.worker)?.asked(name)
      if (tensor?.isOf(workerStep)) return tensor
    }
    return undefined
  }

  /** A record that questions are about. */
  record(state: TrialState, workerStep: WorkerStep, location: TensorLocation): RecordRef {
    const store = this.#numberOf(state)
    const series = this.#seriesOf(state, workerStep.worker, location.name)
    const record = new RecordRef(state, workerStep, location, { store, series, number: this.#records.length })
    if (this.#places) {
      const known = this.#places.get(placeKey(record))
      if (known) return known
      this.#places.set(placeKey(record), record)
    }
    this.#records.push(record)
    return record
  }

  #seriesOf(state: TrialState, worker: Worker, tag: string): number {
    let ofState = this.#series.get(state)
    if (ofState === undefined) {
      ofState = new Map()
      this.#series.set(state, ofState)
    }
    let ofWorker = ofState.get(worker)
    if (ofWorker === undefined) {
      ofWorker = new Map()
      ofState.set(worker, ofWorker)
    }
    let series = ofWorker.get(tag)
    if (series === undefined) {
      series = this.#seriesCount++
      ofWorker.set(tag, series)
    }
    return series
  }

  /** The number of a trial's store. Two trials of one place share it. */
  #numberOf(state: TrialState): number {
    let number = this.#storeNumbers.get(state)
    if (number === undefined) {
      const spec = JSON.stringify(state.access.spec)
      number = this.#stores.findIndex(store => JSON.stringify(store) === spec)
      if (number < 0) number = this.#stores.push(state.access.spec) - 1
      else this.#places ??= new Map(this.#records.map(record => [placeKey(record), record]))
      this.#storeNumbers.set(state, number)
    }
    return number
  }

  /** Answers all that was asked. A record that can't be read is the answer to the questions about it. */
  async run(options: MeasureOptions, stats: MeasureStats): Promise<void> {
    const { threads, memory = DEFAULT_MEMORY, signal, checkLevel = 'minimal' } = options
    const records = this.#records
    const [state] = this.#storeNumbers.keys()
    if (records.length === 0 || state === undefined) return
    const runner = await state.access.runner(
      threads,
      records.reduce((sum, { byteLength }) => sum + byteLength, 0),
      memory,
    )
    stats.threads = Math.max(stats.threads, runner.threads)
    const context = {
      stores: this.#stores,
      checkLevel: checkLevelNumber(checkLevel),
      memory,
      threads: runner.threads,
      known: this.known,
    }
    let parts: MeasureReply[] = []
    let failure: ErrorData | null = null
    for await (const { planned, reply, error } of runAhead(
      runner,
      planMeasures(records, this.tasks, context),
      signal,
    )) {
      stats.jobs++
      if (reply) {
        stats.records += reply.stats.records
        stats.readBytes += reply.stats.readBytes
        stats.reads += reply.stats.reads
        parts.push(reply)
      }
      if (reply === null) failure ??= errorToData(error)
      if (planned.job.part < planned.job.parts - 1) continue
      const answers = new JobAnswers(planned.job, parts, failure)
      planned.records.forEach((record, at) => {
        records[record]!.answers = answers
        records[record]!.at = at
      })
      planned.tasks.forEach((task, at) => {
        this.tasks[task]!.at = at
      })
      parts = []
      failure = null
    }
  }
}

/** What became of a job, read when it is asked for. */
class JobAnswers {
  readonly #job: MeasureJob
  readonly #parts: readonly MeasureReply[]
  readonly #failure: ErrorData | null
  /** By record, in place of moments. */
  readonly #special: ReadonlyMap<number, ErrorData | HistogramResult>
  /** By task, in place of two numbers. */
  readonly #long: ReadonlyMap<number, TaskResult>

  /** @param parts the replies to all parts of the job @param failure why there are not as many */
  constructor(job: MeasureJob, parts: readonly MeasureReply[], failure: ErrorData | null) {
    this.#job = job
    this.#parts = parts
    this.#failure = failure
    const special = new Map<number, ErrorData | HistogramResult>()
    const long = new Map<number, TaskResult>()
    for (const { failures, histograms, values, lists } of parts) {
      for (const histogram of histograms) special.set(histogram.record, histogram)
      for (const { record, error } of failures) special.set(record, error)
      for (const { task, value } of values) long.set(task, value)
      for (const { task, numbers } of lists) long.set(task, numbers)
    }
    this.#special = special
    this.#long = long
  }

  record(ref: RecordRef): Told {
    if (this.#failure !== null) {
      const urlOf = (path: string) => ref.state.access.store.url(path)
      return atStep(failureOfRecord(this.#failure, this.#job, ref.at, urlOf), ref.step)
    }
    const special = this.#special.get(ref.at)
    if (special) return 'reductions' in special ? special : atStep(errorFromData(special), ref.step)
    const { at } = ref
    const [{ checksums, described }] = this.#parts as [MeasureReply]
    if (checksums.length > 0 && this.#job.checkLevel === checkLevelNumber('full')) {
      const place = { url: ref.state.access.store.url(ref.file), startByte: ref.startByte, tensor: ref.tag }
      const sums = this.#parts.map(({ checksums }) => checksums[at]!)
      const error = checksumError(sums, ref.byteLength, place)
      if (error) return atStep(error, ref.step)
    }
    const dtype = dtypeOf(described.dtypes[at]!)
    if (dtype === undefined) return atStep(errorFromData(noAnswer(at)), ref.step)
    const { moments: layout } = coreLayout()
    const rowOf = ({ moments }: MeasureReply) => moments.subarray(at * layout.doubles, (at + 1) * layout.doubles)
    const row = this.#parts.length === 1 ? rowOf(this.#parts[0]!) : asideEngine().mergeRows(this.#parts.map(rowOf))
    return new Moments(layout, dtype, row)
  }

  /** Null where the records have no such answer. Answers of parts are sums. */
  task(at: number): TaskResult | null {
    const long = this.#long.get(at)
    if (long) return long
    let [a, b] = [0, 0]
    for (const { answers } of this.#parts) {
      const [more, compared] = [answers[2 * at]!, answers[2 * at + 1]!]
      if (Number.isNaN(compared)) return null
      if (compared < 0) return [0, -1]
      a += more
      b += compared
    }
    return [a, b]
  }
}

/** The error of a record, which tells the record's step: what is asked about it may be asked for another one. */
function atStep(error: TrialscanError, step: number): TrialscanError {
  const data = errorToData(error)
  return errorFromData({ ...data, fields: { ...data.fields, step } })
}

interface Ran {
  readonly planned: PlannedMeasure
  readonly reply: MeasureReply | null
  /** Why there is none. */
  readonly error: unknown
}

/** Runs jobs, enough at a time that a thread finds its next one waiting; their replies in order. */
async function* runAhead(
  runner: Runner,
  jobs: Iterator<PlannedMeasure>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Ran> {
  const { ahead } = runner
  const inFlight: Promise<Ran>[] = []
  for (;;) {
    while (inFlight.length < ahead) {
      const next = jobs.next()
      if (next.done) break
      const planned = next.value
      inFlight.push(
        runTwice(runner, planned.job, signal).then(
          reply => ({ planned, reply, error: null }),
          (error: unknown) => ({ planned, reply: null, error }),
        ),
      )
    }
    const oldest = inFlight.shift()
    if (oldest === undefined) return
    const ran = await oldest
    signal?.throwIfAborted()
    if (isLackOfMeans(ran.error)) throw ran.error
    yield ran
  }
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false
  return true
}

function placeKey({ store, startByte, file, tag }: MeasuredPlace): string {
  return `${store} ${startByte} ${file}\n${tag}`
}
