/** The tensors of a trial at a step, as subjects of questions. */

import { UsageError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { checkOptions } from '../../base/options.js'
import type {
  GlobalStep,
  HistogramName,
  Mode,
  ModeStep,
  MomentName,
  PercentileName,
  ReductionName,
  StatisticName,
  Worker,
} from '../../base/types.js'
import { KnownMoments } from '../../core/border/abi.js'
import { isDefined, type Moments, type ReductionValue, setFor } from '../../core/moments.js'
import type { ElementHistogram } from '../../core/statistics/distribution.js'
import {
  elementStatistic,
  expectStatistic,
  isDigestName,
  isMomentName,
  isReductionName,
  type StatisticValue,
} from '../../core/statistics/statistic.js'
import type { TensorLocation } from '../../format/index-file.js'
import { isSameStep } from '../../scan/catalog/columns/saved-rows.js'
import type { SavedTensor } from '../../scan/catalog/columns/tensor-lists.js'
import type { TrialState } from '../../scan/catalog/state.js'
import type { WorkerStep } from '../../scan/catalog/worker-steps.js'
import type { Task } from '../../scan/job/measure-job.js'
import { TOLERANCE, type Tolerance } from '../../scan/job/tensor/allclose.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { OF_SCALAR } from '../../scan/rows/saved-number.js'
import type { RecordRef, StepOfTrial, TaskAnswer } from './answers.js'
import { DIFFERENCE_TOLERANCE, type DifferenceTolerance, readDifference, toleranceNumbers } from './difference.js'
import {
  type Activity,
  type AnyQuestion,
  type ChannelSums,
  type Count,
  numbersOf,
  type Question,
  type QuestionSubject,
  RecordQuestion,
  readActivity,
  readAllclose,
  readChange,
  readChannelSums,
  readCount,
  readDistance,
  readElementHistogram,
  readMoments,
  readPercentile,
  readReduction,
  readRowDigests,
  readSaved,
  readValue,
  TaskQuestion,
  type TensorDifference,
  Unanswerable,
} from './question.js'

/** A collector of questions. */
export interface Gatherer {
  /** A record with questions. @param place its place, or the index of its tensor in a very long list */
  record(stepOfTrial: StepOfTrial, place: TensorLocation | number): RecordRef
  /** Makes sure that rows have at least these moments. */
  know(known: KnownMoments): void
  /** Returns the same array for equal numbers. */
  sameNumbers(numbers: readonly number[]): readonly number[]
  readonly tasks: TaskQuestion<unknown>[]
  /** The number of distinct questions. */
  questionCount: number
}

const NO_NUMBERS: readonly number[] = []
let checkedTolerance: Tolerance | undefined

/** A tensor at a step, with methods that ask about it. Equal questions are one question. */
export class TensorAtStep {
  readonly #workerTensors: WorkerTensors
  /** The saved tensor, or its index in a list: a step with a million tensors keeps no objects. */
  readonly #place: SavedTensor | number
  /** The last question; it links to the few before it. */
  #questions: AnyQuestion<unknown> | null = null
  #record: RecordRef | undefined

  /** Use `inquiry.atStep`. @internal */
  constructor(workerTensors: WorkerTensors, place: SavedTensor | number) {
    this.#workerTensors = workerTensors
    this.#place = place
  }

  get #saved(): SavedTensor {
    return typeof this.#place === 'number' ? this.#workerTensors.workerStep.tensors.at!(this.#place) : this.#place
  }

  get name(): string {
    return this.#saved.tensor
  }

  get step(): GlobalStep {
    return this.#workerTensors.workerStep.step
  }

  get mode(): Mode {
    return this.#workerTensors.workerStep.mode
  }

  get modeStep(): ModeStep {
    return this.#workerTensors.workerStep.modeStep
  }

  get worker(): Worker {
    return this.#workerTensors.workerStep.worker
  }

  /** The byte at which its value begins, which orders tensors by execution; Infinity without a value. */
  get place(): number {
    return this.#saved.value?.startByte ?? Number.POSITIVE_INFINITY
  }

  /** True if the value was saved, not only reductions. */
  get hasValue(): boolean {
    return this.#saved.value !== null
  }

  /** True if the length of its record shows that the tensor has at most a few elements. */
  get isSmall(): boolean {
    const { value, tensor } = this.#saved
    return value === null || value.byteLength < 512 + tensor.length
  }

  /** The shape, if it was saved separately. */
  get savedShape(): readonly number[] | null {
    return this.#saved.shape?.shape ?? null
  }

  /** The reductions that the hook saved. */
  get savedReductions(): readonly ReductionName[] {
    return [...this.#saved.reductions.keys()]
  }

  /** Asks for a reduction: the saved one, or else the one computed from the value, like counts, percentiles and histograms. */
  reduction(name: MomentName): Question<ReductionValue>
  reduction(name: PercentileName): Question<number>
  reduction(name: HistogramName): Question<ElementHistogram>
  reduction(name: StatisticName): Question<StatisticValue>
  reduction(name: StatisticName): Question<StatisticValue> {
    if (isMomentName(name)) return this.#ofMoments(name)
    const { kind, numbers } = expectStatistic(name)
    if (isDigestName(kind)) {
      throw new UsageError(
        `expected a reduction that a rule can ask for, got ${name}: trial.scan and tensor.reductionValue have digests`,
      )
    }
    return kind === 'histogram'
      ? this.#task(kind, numbers, null, readElementHistogram)
      : this.#task(kind, numbers, null, readPercentile)
  }

  #ofMoments(name: MomentName): Question<ReductionValue> {
    const known = this.#find<ReductionValue>(name)
    if (known) return known
    const location = isReductionName(name) ? this.#saved.reductions.get(name) : undefined
    if (location) {
      const record = this.#workerTensors.inquiry.record(this.#workerTensors, location)
      this.#workerTensors.inquiry.know(OF_SCALAR)
      return this.#ask(new RecordQuestion(name, this, record, readSaved))
    }
    if (!this.hasValue) return this.#ask(new Unanswerable(name, this, name))
    this.#workerTensors.inquiry.know(setFor([name]))
    return this.#ask(new RecordQuestion(name, this, this.valueRecord, readReduction))
  }

  /**
   * Asks for the moments of the value: the number of elements, NaN, infinities and zeros, the extremes, and what these reductions need.
   * Without arguments: all reductions.
   */
  moments(...reductions: readonly MomentName[]): Question<Moments> {
    this.#workerTensors.inquiry.know(reductions.length === 0 ? KnownMoments.all : setFor(reductions))
    return this.counts()
  }

  /** Like `moments`, but only counts and extremes, which cost a fifth. */
  counts(): Question<Moments> {
    this.#workerTensors.inquiry.know(KnownMoments.extremes)
    const known = this.#find<Moments>('moments')
    if (known) return known
    if (!this.hasValue) return this.#ask(new Unanswerable('moments', this, 'the value'))
    return this.#ask(new RecordQuestion('moments', this, this.valueRecord, readMoments))
  }

  /** Asks for the value itself. The calling thread gets it, and holds it until the step has been judged. */
  value(): Question<TensorValue> {
    return this.#task('value', NO_NUMBERS, null, readValue)
  }

  /**
   * Asks whether each element is close to that of another tensor, as numpy's allclose(this, other); false if the shapes differ.
   */
  allclose(other: TensorAtStep, options?: Tolerance): Question<boolean> {
    // Rules use the same tolerance again and again.
    if (options !== checkedTolerance) checkedTolerance = checkOptions('tensorAtStep.allclose', TOLERANCE, options)
    const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options ?? {}
    return this.#task('allclose', [rtol, atol, equalNan ? 1 : 0], other, readAllclose)
  }

  /** Asks for the difference from another tensor; null if the shapes differ. */
  difference(other: TensorAtStep, options?: DifferenceTolerance): Question<TensorDifference | null> {
    const tolerance = toleranceNumbers(checkOptions('tensorAtStep.difference', DIFFERENCE_TOLERANCE, options))
    return this.#task('difference', tolerance, other, readDifference)
  }

  /** The mean of |this − older|; null if the shapes differ. */
  meanAbsChange(older: TensorAtStep): Question<number | null> {
    return this.#task('change', NO_NUMBERS, older, readChange)
  }

  /** ‖this − older‖, the L2 norm; null if the shapes differ. */
  distance(older: TensorAtStep): Question<number | null> {
    return this.#task('squares', NO_NUMBERS, older, readDistance)
  }

  /**
   * Asks for a digest of the bits of each row, which is all elements with one index of the first axis; 0 for zeros. Empty for tensors
   * with fewer than two axes.
   */
  rowDigests(): Question<Uint32Array> {
    return this.#task('rows', NO_NUMBERS, null, readRowDigests)
  }

  /**
   * Asks for the number of nodes (positions over all axes but the first, that of the samples) that have an element in (lo, hi) in less
   * than `percent` of the samples. A `hi` of NaN is no upper bound.
   */
  activity(lo: number, hi: number, percent: number): Question<Activity> {
    return this.#task('activity', [lo, hi, percent], null, readActivity)
  }

  /** Asks for the number of elements that equal a number. */
  count(number: number): Question<Count> {
    return this.#task('count', [number], null, readCount)
  }

  /**
   * Asks for sums along an axis; for one sum of all elements if the tensor has too few axes.
   * @param axis the axis of channels; with `ChannelLayout.first` or `last`, the axis that the shape suggests or, if it is ambiguous, this
   *   one
   */
  channelSums(axis: number): Question<ChannelSums> {
    return this.#task('channels', [axis], null, readChannelSums)
  }

  /** Asks for percentiles (0 to 100) of the elements, interpolated as numpy does. */
  percentiles(...percents: readonly number[]): Question<readonly number[]> {
    return this.#task('percentiles', percents, null, numbersOf)
  }

  /** The value, if it was requested and has been read. */
  get answeredValue(): TensorValue | undefined {
    return this.#find<TensorValue>('value')?.answer
  }

  /** A reduction, if it was requested and is known, or follows from what is known. */
  answeredReduction(name: StatisticName): StatisticValue | undefined {
    if (!isMomentName(name)) {
      const statistic = elementStatistic(name)
      if (statistic === null) return undefined
      const { kind, numbers } = statistic
      if (isDigestName(kind)) return undefined
      return this.#findTask<StatisticValue>(kind, this.#workerTensors.inquiry.sameNumbers(numbers), null)?.answer
    }
    const posedQuestion = this.#find<ReductionValue>(name)
    if (posedQuestion) return posedQuestion.answer
    if (isReductionName(name) && this.#saved.reductions.has(name)) return undefined
    const moments = this.#find<Moments>('moments')?.answer
    return moments?.knows(name) && isDefined(name, moments.dtype) ? moments.reduction(name) : undefined
  }

  /** True if the tensor was saved by this worker at this step. */
  isOf(workerStep: WorkerStep): boolean {
    return isSameStep(this.#workerTensors.workerStep, workerStep)
  }

  /** The record of its saved value. @internal */
  get valueRecord(): RecordRef {
    this.#record ??= this.#workerTensors.inquiry.record(
      this.#workerTensors,
      typeof this.#place === 'number' ? this.#place : this.#place.value!,
    )
    return this.#record
  }

  #task<A>(
    kind: Task['kind'],
    given: readonly number[],
    other: TensorAtStep | null,
    read: (result: TaskAnswer, tensor: QuestionSubject) => A,
  ): Question<A> {
    const numbers = this.#workerTensors.inquiry.sameNumbers(given)
    const known = this.#findTask<A>(kind, numbers, other)
    if (known) return known
    const without = this.hasValue ? (other?.hasValue === false ? other : null) : this
    if (without) return this.#ask(new Unanswerable(kind, this, 'the value', without))
    const question = new TaskQuestion(kind, this, numbers, other, read)
    this.#workerTensors.inquiry.tasks.push(question)
    return this.#ask(question)
  }

  #findTask<A>(
    kind: Task['kind'],
    numbers: readonly number[],
    other: TensorAtStep | null,
  ): TaskQuestion<A> | undefined {
    for (let question = this.#questions; question !== null; question = question.next) {
      if (question.kind !== kind) continue
      const task = question as TaskQuestion<A>
      if (task.numbers === numbers && task.other === other) return task
    }
    return undefined
  }

  #ask<A>(question: AnyQuestion<A>): Question<A> {
    this.#workerTensors.inquiry.questionCount++
    question.next = this.#questions
    this.#questions = question
    return question
  }

  #find<A>(kind: string): Question<A> | undefined {
    let question = this.#questions
    while (question !== null && question.kind !== kind) question = question.next
    return (question as AnyQuestion<A> | null) ?? undefined
  }
}

/** The tensors that one worker saved at a step. */
export class WorkerTensors implements StepOfTrial {
  readonly inquiry: Gatherer
  readonly state: TrialState
  readonly workerStep: WorkerStep
  store = -1
  readonly #known = new Map<string, TensorAtStep>()
  /** The tensors by their index in a long list: a map of names would take as much memory as the list. */
  readonly #byPlace: (TensorAtStep | undefined)[] = []
  readonly #selected = new Map<readonly string[], readonly TensorAtStep[]>()

  /** Use `inquiry.atStep`. */
  constructor(inquiry: Gatherer, state: TrialState, workerStep: WorkerStep) {
    this.inquiry = inquiry
    this.state = state
    this.workerStep = workerStep
  }

  get(name: string): TensorAtStep | undefined {
    const { tensors } = this.workerStep
    const place = tensors.placeOf?.(name)
    if (place !== undefined) {
      this.#byPlace[place] ??= new TensorAtStep(this, place)
      return this.#byPlace[place]
    }
    const known = this.#known.get(name)
    if (known) return known
    const saved = tensors.get(name)
    if (saved === undefined) return undefined
    const tensor = new TensorAtStep(this, saved)
    this.#known.set(name, tensor)
    return tensor
  }

  /** The existing tensors with these names. Equal lists of names give the same list. */
  select(names: readonly string[]): readonly TensorAtStep[] {
    return entryOf(this.#selected, names, () =>
      names.map(name => this.get(name)).filter(tensor => tensor !== undefined),
    )
  }

  /** A tensor that has been asked about. */
  asked(name: string): TensorAtStep | undefined {
    const place = this.workerStep.tensors.placeOf?.(name)
    return place === undefined ? this.#known.get(name) : this.#byPlace[place]
  }
}

/** The tensors of a trial at a step. */
export class StepTensors {
  /** The workers' tensors, in the order of the workers' names. */
  readonly #workers: ReadonlyMap<string, WorkerTensors>

  /** Use `inquiry.atStep`. */
  constructor(inquiry: Gatherer, state: TrialState, workerSteps: readonly WorkerStep[]) {
    this.#workers = new Map(
      workerSteps.map(workerStep => [workerStep.worker, new WorkerTensors(inquiry, state, workerStep)]),
    )
  }

  /** The tensors that a worker saved; undefined if it saved nothing at the step. */
  of(worker: string): WorkerTensors | undefined {
    return this.#workers.get(worker)
  }

  /** The tensor from the first worker that saved it. @param among the workers to search; null for all */
  get(name: string, among: ReadonlySet<string> | null = null): TensorAtStep | undefined {
    for (const [worker, tensors] of this.#workers) {
      const tensor = among === null || among.has(worker) ? tensors.get(name) : undefined
      if (tensor) return tensor
    }
    return undefined
  }

  /** The existing tensors with these names, each found as by `get`. */
  select(names: readonly string[], among: ReadonlySet<string> | null = null): readonly TensorAtStep[] {
    return names.map(name => this.get(name, among)).filter(tensor => tensor !== undefined)
  }
}
