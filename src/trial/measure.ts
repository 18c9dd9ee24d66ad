/**
 * Many questions about many tensors, answered in one pass. Rules state what they need as questions; those of all of them
 * become one plan, in which every record is read once and whatever is asked twice is computed once.
 */

import { dtypeOf } from '../engine/dtype.js'
import { Engine, KNOWN, type Known } from '../engine/engine.js'
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
import { type MeasuredPlace, type PlannedMeasure, planMeasures, type Task } from '../plan.js'
import type { HistogramResult, MeasureReply, RawValue } from '../pool/message.js'
import type { Runner } from '../pool/runner.js'
import type { StoreSpec } from '../store/store.js'
import type { CheckLevel, GlobalStep, Mode, ModeStep, ReductionName, Worker } from '../types.js'
import { checkWorkOptions, type WorkOptions } from './access.js'
import type { SavedTensor, WorkerStep } from './catalog.js'
import { checkLevelNumber, checksumError, noAnswer, recordPlace, runWithRetry, scalarOf } from './scan.js'
import type { Ahead, TrialState } from './state.js'
import { type TensorValue, type Tolerance, tensorValue } from './value.js'

/** Something asked about a tensor. */
export class Question<A> {
  #answer: A | undefined
  #error: TrialscanError | undefined

  /** The answer; undefined before it is there, and where there is none. */
  get answer(): A | undefined {
    return this.#answer
  }

  /** Why there is no answer. */
  get error(): TrialscanError | undefined {
    return this.#error
  }

  /** The answer. @throws why there is none */
  get value(): A {
    if (this.#error) throw this.#error
    if (this.#answer === undefined) throw new EngineError('expected the question to be answered by now')
    return this.#answer
  }

  /** Answers it with what `read` makes of a result, or throws. */
  settle<R>(
    read: (result: R, tensor: TensorAtStep, detail: string) => A,
    result: R,
    tensor: TensorAtStep,
    detail = '',
  ): void {
    try {
      this.#answer = read(result, tensor, detail)
    } catch (error) {
      this.#error = error instanceof TrialscanError ? error : errorFromData(errorToData(error))
    }
  }
}

/** What became of a record. */
type RecordResult =
  | { readonly moments: Moments }
  | { readonly histogram: HistogramResult }
  | { readonly error: TrialscanError }

/** What became of a task. */
type TaskResult =
  | { readonly numbers: readonly number[] }
  | { readonly value: RawValue }
  | { readonly error: TrialscanError }

/** A question, and how its answer is read from a result. There are as many as records and rules: no closures. */
interface Asked<R> {
  readonly question: Question<never>
  readonly tensor: TensorAtStep
  readonly read: (result: R, tensor: TensorAtStep, detail: string) => never
  /** A reduction's name. */
  readonly detail: string
}

/** A record that is asked about. */
interface RecordRef {
  readonly place: MeasuredPlace
  readonly state: TrialState
  readonly asked: Asked<RecordResult>[]
  /** In the order of the plan. */
  number: number
}

interface TaskRef extends Asked<TaskResult>, Pick<Task, 'kind' | 'numbers'> {
  readonly first: RecordRef
  readonly second: RecordRef | null
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
  readonly name: string
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly worker: Worker
  readonly #inquiry: Inquiry
  readonly #state: TrialState
  readonly #workerStep: WorkerStep
  readonly #saved: SavedTensor
  /** What was asked already: a few at the most. */
  #asked:
    | {
        readonly kind: string
        readonly numbers: readonly number[]
        readonly other: TensorAtStep | null
        readonly question: Question<never>
      }[]
    | undefined
  #record: RecordRef | undefined

  /** Use `inquiry.at`. */
  constructor(inquiry: Inquiry, state: TrialState, workerStep: WorkerStep, saved: SavedTensor) {
    this.name = saved.tensor
    this.step = workerStep.step
    this.mode = workerStep.mode
    this.modeStep = workerStep.modeStep
    this.worker = workerStep.worker
    this.#inquiry = inquiry
    this.#state = state
    this.#workerStep = workerStep
    this.#saved = saved
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
    const [question, isNew] = this.#ask<ReductionValue>(name)
    if (!isNew) return question
    const location = this.#saved.reductions.get(name)
    if (location) {
      const record = this.#inquiry.record(this.#state, this.#workerStep, location)
      this.#read(record, question, readSaved, name)
    } else if (this.hasValue) {
      this.#inquiry.know(setFor([name]))
      this.#read(this.#valueRecord(), question, readReduction, name)
    } else question.settle(notSaved, name, this)
    return question
  }

  /** The moments of the value: counts of elements, NaN, infinities and zeros, extremes, and every other reduction. */
  moments(): Question<Moments> {
    this.#inquiry.know(KNOWN.all)
    return this.#moments('moments')
  }

  /** As `moments`, where counts and extremes will do: they cost a fifth of the rest. */
  counts(): Question<Moments> {
    return this.#moments('counts')
  }

  #moments(kind: 'moments' | 'counts'): Question<Moments> {
    const [question, isNew] = this.#ask<Moments>(kind)
    if (!isNew) return question
    if (this.hasValue) this.#read(this.#valueRecord(), question, readMoments)
    else question.settle(notSaved, 'the value', this)
    return question
  }

  /** The value itself: it is handed to the calling thread, and held until the step has been judged. */
  value(): Question<TensorValue> {
    return this.#task('value', NO_NUMBERS, null, readValue)
  }

  /** Whether each element is close to that of another tensor (numpy's allclose(this, other)); shapes that differ: false. */
  allclose(other: TensorAtStep, { rtol = 1e-5, atol = 1e-8, equalNan = false }: Tolerance = {}): Question<boolean> {
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
    const moments = this.#find<Moments>('moments')?.answer
    if (moments === undefined || this.#saved.reductions.has(name) || !isDefined(name, moments.dtype)) return undefined
    return moments.reduction(name)
  }

  #task<A>(
    kind: Task['kind'],
    numbers: readonly number[],
    other: TensorAtStep | null,
    read: (result: TaskResult, tensor: TensorAtStep) => A,
  ): Question<A> {
    const [question, isNew] = this.#ask<A>(kind, numbers, other)
    if (!isNew) return question
    const without = this.hasValue ? (other?.hasValue === false ? other : null) : this
    if (without) question.settle(notSaved, 'the value', without)
    else {
      const first = this.#valueRecord()
      const second = other ? other.#valueRecord() : null
      this.#inquiry.tasks.push({
        question: question as Question<never>,
        tensor: this,
        read: read as () => never,
        detail: '',
        kind,
        numbers,
        first,
        second,
      })
    }
    return question
  }

  #read<A>(
    record: RecordRef,
    question: Question<A>,
    read: (result: RecordResult, tensor: TensorAtStep, detail: ReductionName) => A,
    detail = '',
  ): void {
    record.asked.push({ question: question as Question<never>, tensor: this, read: read as () => never, detail })
  }

  /** @returns the question, and whether it was not asked before */
  #ask<A>(
    kind: string,
    numbers: readonly number[] = NO_NUMBERS,
    other: TensorAtStep | null = null,
  ): [Question<A>, boolean] {
    const asked = this.#find<A>(kind, numbers, other)
    if (asked) return [asked, false]
    const question = new Question<A>()
    this.#inquiry.questionCount++
    this.#asked ??= []
    this.#asked.push({ kind, numbers, other, question: question as Question<never> })
    return [question, true]
  }

  #find<A>(
    kind: string,
    numbers: readonly number[] = NO_NUMBERS,
    other: TensorAtStep | null = null,
  ): Question<A> | undefined {
    return this.#asked?.find(
      known =>
        known.kind === kind &&
        known.other === other &&
        known.numbers.length === numbers.length &&
        known.numbers.every((number, i) => Object.is(number, numbers[i])),
    )?.question as Question<A> | undefined
  }

  #valueRecord(): RecordRef {
    this.#record ??= this.#inquiry.record(this.#state, this.#workerStep, this.#saved.value!)
    return this.#record
  }
}

/** Equal elements, of how many. */
export interface Count {
  readonly equal: number
  readonly elements: number
}

const NO_NUMBERS: readonly number[] = []

function notSaved(what: string, { name, step, savedReductions }: TensorAtStep): never {
  const kept = savedReductions.join(', ')
  const detail = `expected ${what} to be saved, but ${kept === '' ? 'only its shape was' : `only ${kept} were`}`
  throw new TensorUnavailableForStep(name, step, 'GLOBAL', detail)
}

function readMoments(result: RecordResult, { name, step }: TensorAtStep): Moments {
  if ('moments' in result) return result.moments
  if ('error' in result) throw result.error
  throw new QueryError('NoTensor', `${name} at step ${step} is a histogram, not a tensor`, { tensor: name })
}

function readReduction(result: RecordResult, tensor: TensorAtStep, name: ReductionName): ReductionValue {
  if ('histogram' in result) {
    const told = result.histogram.reductions[name]
    if (told !== undefined) return told
    throw new ReductionUndefined(name, 'a histogram', 'it does not tell that of its data')
  }
  const moments = readMoments(result, tensor)
  if (!isDefined(name, moments.dtype)) throw undefinedReduction(name, moments.dtype)
  return moments.reduction(name)
}

function readSaved(result: RecordResult, tensor: TensorAtStep): number {
  return scalarOf(readMoments(result, tensor))
}

function numbersOf(result: TaskResult, tensor: TensorAtStep): readonly number[] {
  if ('numbers' in result) return result.numbers
  throw 'error' in result ? result.error : noNumbers(tensor.name, tensor.step)
}

function readValue(result: TaskResult, tensor: TensorAtStep): TensorValue {
  if ('value' in result) return tensorValue(result.value)
  throw 'error' in result ? result.error : noNumbers(tensor.name, tensor.step)
}

function readAllclose(result: TaskResult, tensor: TensorAtStep): boolean {
  const [notClose, compared] = numbersOf(result, tensor)
  return notClose === 0 && compared! >= 0
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

export interface MeasureOptions extends WorkOptions {
  readonly check?: CheckLevel
  readonly signal?: AbortSignal | undefined
}

/** What answering has cost. */
export interface MeasureStats {
  records: number
  readBytes: number
  reads: number
  jobs: number
  threads: number
}

/** Merges moments of parts; apart from the engine that may be busy with a job. */
let merging: Engine | undefined

/** Questions about tensors of any number of trials, gathered to be answered together. */
export class Inquiry implements Ahead {
  readonly tasks: TaskRef[] = []
  readonly #tensors = new Map<WorkerStep, Map<string, TensorAtStep>>()
  readonly #stores: StoreSpec[] = []
  readonly #storeNumbers = new Map<TrialState, number>()
  readonly #records: RecordRef[] = []
  /** By their places; made where two trials lie at one place, so that a record of both is read once. */
  #places: Map<string, RecordRef> | null = null
  readonly #series = new Map<TrialState, Map<Worker, Map<string, number>>>()
  #seriesCount = 0
  /** Bytes of the values that will be handed out, among the tasks that were counted. */
  #valueBytes = 0
  #counted = 0

  /** A tensor as one worker saved it at a step. */
  at(state: TrialState, workerStep: WorkerStep, saved: SavedTensor): TensorAtStep {
    let tensors = this.#tensors.get(workerStep)
    if (tensors === undefined) {
      tensors = new Map()
      this.#tensors.set(workerStep, tensors)
    }
    let tensor = tensors.get(saved.tensor)
    if (tensor === undefined) {
      tensor = new TensorAtStep(this, state, workerStep, saved)
      tensors.set(saved.tensor, tensor)
    }
    return tensor
  }

  /** How much the rows of moments have to know. */
  known: Known = KNOWN.extremes

  know(known: Known): void {
    if (known > this.known) this.known = known
  }

  /** Questions asked, each once. */
  questionCount = 0

  /** Bytes of values that will be handed to the calling thread. */
  get valueByteLength(): number {
    for (let i = this.#counted; i < this.tasks.length; i++) {
      if (this.tasks[i]!.kind === 'value') this.#valueBytes += this.tasks[i]!.first.place.byteLength
    }
    this.#counted = this.tasks.length
    return this.#valueBytes
  }

  value(workerStep: WorkerStep, tensor: string): TensorValue | undefined {
    return this.#tensors.get(workerStep)?.get(tensor)?.answeredValue
  }

  reduction(workerStep: WorkerStep, tensor: string, name: ReductionName): ReductionValue | undefined {
    return this.#tensors.get(workerStep)?.get(tensor)?.answeredReduction(name)
  }

  /** A record that questions are about. */
  record(state: TrialState, workerStep: WorkerStep, location: TensorLocation): RecordRef {
    const store = this.#numberOf(state)
    const { file, tag, startByte, byteLength, step, tornasole = false } = recordPlace(workerStep, location)
    const series = this.#seriesOf(state, workerStep.worker, tag)
    const place = { file, tag, startByte, byteLength, step, tornasole, store, series }
    const known = this.#places?.get(placeKey(place))
    if (known) return known
    const record = { place, state, asked: [], number: this.#records.length }
    this.#records.push(record)
    this.#places?.set(placeKey(place), record)
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
      else this.#places ??= new Map(this.#records.map(record => [placeKey(record.place), record]))
      this.#storeNumbers.set(state, number)
    }
    return number
  }

  /** Answers all that was asked. A record that can't be read is the answer to the questions about it. */
  async run(options: MeasureOptions, stats: MeasureStats): Promise<void> {
    const { threads, memory } = checkWorkOptions(options)
    const { signal, check = 'minimal' } = options
    const records = this.#records
    const [state] = this.#storeNumbers.keys()
    if (records.length === 0 || state === undefined) return
    const places = records.map(({ place }) => place)
    const tasks = this.tasks.map(
      ({ kind, numbers, first, second }): Task => ({
        kind,
        numbers,
        first: first.number,
        second: second?.number ?? -1,
      }),
    )
    const runner = await state.access.runner(
      threads,
      places.reduce((sum, { byteLength }) => sum + byteLength, 0),
      memory,
    )
    stats.threads = Math.max(stats.threads, runner.threads)
    const checkLevel = checkLevelNumber(check)
    const context = { stores: this.#stores, checkLevel, memory, threads: runner.threads, known: this.known }
    merging ??= new Engine()
    const engine = merging
    let parts: MeasureReply[] = []
    let failure: ErrorData | null = null
    for await (const { planned, reply, error } of runAhead(runner, planMeasures(places, tasks, context), signal)) {
      stats.jobs++
      if (reply) {
        stats.records += reply.stats.records
        stats.readBytes += reply.stats.readBytes
        stats.reads += reply.stats.reads
        parts.push(reply)
      }
      failure ??= error
      if (planned.job.part < planned.job.parts - 1) continue
      this.#settle(planned, parts, failure, records, engine)
      parts = []
      failure = null
    }
  }

  #settle(
    { job, records: own, tasks }: PlannedMeasure,
    parts: readonly MeasureReply[],
    failure: ErrorData | null,
    records: readonly RecordRef[],
    engine: Engine,
  ): void {
    const failures = new Map(
      parts.flatMap(({ failures }) => failures.map(({ record, error }) => [record, error] as const)),
    )
    const histograms = new Map(parts.flatMap(({ histograms }) => histograms.map(one => [one.record, one] as const)))
    const results = own.map((_, i): RecordResult => (failure ? { error: errorFromData(failure) } : resultOf(parts, i)))
    const values = new Map(parts.flatMap(({ values }) => values.map(value => [value.record, value] as const)))
    own.forEach((record, i) => {
      for (const { question, read, tensor, detail } of records[record]!.asked) {
        question.settle(read, results[i]!, tensor, detail)
      }
    })
    tasks.forEach((task, i) => {
      const { question, read, tensor } = this.tasks[task]!
      question.settle(read, taskResult(i), tensor)
    })

    function taskResult(i: number): TaskResult {
      const { first, second } = job.tasks[i]!
      const [a, b] = [results[first]!, second < 0 ? null : results[second]!]
      if ('error' in a) return a
      if (b && 'error' in b) return b
      const value = values.get(i)
      if (value) return { value }
      const numbers = mergeAnswers(parts, i)
      if (numbers) return { numbers }
      const { tag, step } = records[own[first]!]!.place
      return { error: noNumbers(tag, step) }
    }

    function resultOf(replies: readonly MeasureReply[], i: number): RecordResult {
      const [reply] = replies
      const failed = failures.get(i)
      if (failed) return { error: errorFromData(failed) }
      const histogram = histograms.get(i)
      if (histogram) return { histogram }
      const { startByte, byteLength, tag } = job.records
      if (reply!.checksums.length > 0 && job.checkLevel === checkLevelNumber('full')) {
        const place = { url: urlOf(records[own[i]!]!), startByte: startByte[i]!, tensor: job.tags[tag[i]!]! }
        const error = checksumError(
          engine,
          replies.map(({ checksums }) => checksums[i]!),
          byteLength[i]!,
          place,
        )
        if (error) return { error }
      }
      const dtype = dtypeOf(reply!.described.dtypes[i]!)
      if (dtype === undefined) return { error: errorFromData(noAnswer(i)) }
      const { moments: layout } = engine.layout
      const rows = replies.map(({ moments }) => moments.subarray(i * layout.doubles, (i + 1) * layout.doubles))
      return { moments: new Moments(layout, dtype, rows.length === 1 ? rows[0]! : engine.mergeRows(rows)) }
    }
  }
}

interface Ran {
  readonly planned: PlannedMeasure
  readonly reply: MeasureReply | null
  readonly error: ErrorData | null
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
        (runWithRetry(runner, planned.job, signal) as Promise<MeasureReply>).then(
          reply => ({ planned, reply, error: null }),
          (error: unknown) => ({ planned, reply: null, error: errorToData(error) }),
        ),
      )
    }
    const oldest = inFlight.shift()
    if (oldest === undefined) return
    const ran = await oldest
    signal?.throwIfAborted()
    yield ran
  }
}

/** Answers of parts of one record, put together: what they hold are sums. */
function mergeAnswers(parts: readonly MeasureReply[], i: number): readonly number[] | null {
  const first = parts[0]?.answers[i]
  if (parts.length <= 1 || !first) return first ?? null
  let merged = [...first]
  for (const { answers } of parts.slice(1)) {
    const answer = answers[i]
    if (!answer) return null
    if (answer[1]! < 0 || merged[1]! < 0) return [0, -1]
    merged = merged.map((sum, at) => sum + answer[at]!)
  }
  return merged
}

function placeKey({ store, startByte, file, tag }: MeasuredPlace): string {
  return `${store} ${startByte} ${file}\n${tag}`
}

function urlOf({ place, state }: RecordRef): string {
  return state.access.store.url(place.file)
}
