/**
 * Many questions about many tensors, answered in one pass. Rules state what they need as questions; those of all of them
 * become one plan, in which every record is read once and whatever is asked twice is computed once.
 */

import { dtypeOf } from '../engine/dtype.js'
import { Engine } from '../engine/engine.js'
import {
  EngineError,
  type ErrorData,
  errorFromData,
  errorToData,
  QueryError,
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
import { isDefined, Moments, type ReductionValue, undefinedReduction } from './reduction.js'
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

  /** Answers it with what `answer` gives, or throws. */
  settle(answer: () => A): void {
    try {
      this.#answer = answer()
    } catch (error) {
      this.#error = error instanceof TrialscanError ? error : errorFromData(errorToData(error))
    }
  }
}

/** A record that is asked about. */
interface RecordRef {
  readonly place: MeasuredPlace
  readonly url: string
  readonly settle: ((record: RecordResult) => void)[]
}

type RecordResult =
  | { readonly moments: Moments }
  | { readonly histogram: HistogramResult }
  | { readonly error: TrialscanError }

interface TaskRef extends Pick<Task, 'kind' | 'numbers'> {
  readonly first: RecordRef
  readonly second: RecordRef | null
  readonly settle: (answer: TaskResult) => void
}

type TaskResult =
  | { readonly numbers: readonly number[] }
  | { readonly value: RawValue }
  | { readonly error: TrialscanError }

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
  readonly #questions = new Map<string, Question<never>>()
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

  /** The reductions that the hook saved. */
  get savedReductions(): readonly ReductionName[] {
    return [...this.#saved.reductions.keys()]
  }

  /** A reduction: as the hook saved it, else computed from the value. */
  reduction(name: ReductionName): Question<ReductionValue> {
    return this.#ask(name, question => {
      const location = this.#saved.reductions.get(name)
      if (location === undefined && !this.hasValue) return question.settle(() => this.#unavailable(name))
      const record = location ? this.#inquiry.record(this.#state, this.#workerStep, location) : this.#valueRecord()
      record.settle.push(result =>
        question.settle(() => {
          if ('error' in result) throw result.error
          if ('moments' in result) return location ? scalarOf(result.moments) : reduce(result.moments, name)
          const told = result.histogram.reductions[name]
          if (told !== undefined) return told
          throw new ReductionUndefined(name, 'a histogram', 'it does not tell that of its data')
        }),
      )
    })
  }

  /** The moments of the value: counts of elements, NaN, infinities, zeros, and every reduction. */
  moments(): Question<Moments> {
    return this.#ask('moments', question => {
      if (!this.hasValue) return question.settle(() => this.#unavailable('the value'))
      this.#valueRecord().settle.push(result =>
        question.settle(() => {
          if ('error' in result) throw result.error
          if ('moments' in result) return result.moments
          throw new QueryError('NoTensor', `${this.name} at step ${this.step} is a histogram, not a tensor`)
        }),
      )
    })
  }

  /** The value itself: it is handed to the calling thread, and held until the step has been judged. */
  value(): Question<TensorValue> {
    return this.#task('value', [], null, result => {
      if ('value' in result) return tensorValue(result.value)
      throw noNumbers(this)
    })
  }

  /** Whether each element is close to that of another tensor (numpy's allclose(this, other)); shapes that differ: false. */
  allclose(other: TensorAtStep, { rtol = 1e-5, atol = 1e-8, equalNan = false }: Tolerance = {}): Question<boolean> {
    return this.#task('allclose', [rtol, atol, equalNan ? 1 : 0], other, result => {
      const [notClose, compared] = numbersOf(result, this)
      return notClose === 0 && compared! >= 0
    })
  }

  /** The mean of |this − older|; null where shapes differ. */
  meanAbsChange(older: TensorAtStep): Question<number | null> {
    return this.#task('change', [], older, result => {
      const [sum, compared] = numbersOf(result, this)
      return compared! < 0 ? null : sum! / compared!
    })
  }

  /**
   * How many nodes (positions over all axes but the first, which is that of the samples) have an element in (lo, hi), `hi` NaN for no bound, in
   * less than `percent` of the samples.
   */
  activity(lo: number, hi: number, percent: number): Question<Activity> {
    return this.#task('activity', [lo, hi, percent], null, result => {
      const [nodes, inactive] = numbersOf(result, this)
      return { nodes: nodes!, inactive: inactive! }
    })
  }

  /** How many elements are equal to a number, of how many. */
  count(of: number): Question<{ readonly equal: number; readonly elements: number }> {
    return this.#task('count', [of], null, result => {
      const [equal, elements] = numbersOf(result, this)
      return { equal: equal!, elements: elements! }
    })
  }

  /** Sums along an axis; one sum of all where the tensor has too few axes. */
  channelSums(axis: number): Question<ChannelSums> {
    return this.#task('channels', [axis], null, result => {
      const [count, samples, ...sums] = numbersOf(result, this)
      return { sums, count: count!, samples: samples! }
    })
  }

  /** Percentiles of the elements, interpolated as numpy does. */
  percentiles(...percents: readonly number[]): Question<readonly number[]> {
    return this.#task('percentiles', percents, null, result => numbersOf(result, this))
  }

  /** The value, if it was asked for and is there. */
  get answeredValue(): TensorValue | undefined {
    return (this.#questions.get('value') as Question<TensorValue> | undefined)?.answer
  }

  /** A reduction, if it was asked for and is there, or follows from what is. */
  answeredReduction(name: ReductionName): ReductionValue | undefined {
    const asked = this.#questions.get(name) as Question<ReductionValue> | undefined
    if (asked) return asked.answer
    const moments = (this.#questions.get('moments') as Question<Moments> | undefined)?.answer
    if (moments === undefined || this.#saved.reductions.has(name) || !isDefined(name, moments.dtype)) return undefined
    return moments.reduction(name)
  }

  #task<A>(
    kind: Task['kind'],
    numbers: readonly number[],
    other: TensorAtStep | null,
    read: (result: TaskResult) => A,
  ): Question<A> {
    const key = other
      ? `${kind} ${numbers.join()} ${other.step} ${other.worker} ${other.#inquiry.numberOf(other.#state)}`
      : numbers.length > 0
        ? `${kind} ${numbers.join()}`
        : kind
    return this.#ask(key, question => {
      const without = [this, other].find(tensor => tensor !== null && !tensor.hasValue)
      if (without) return question.settle(() => without.#unavailable('the value'))
      this.#inquiry.tasks.push({
        kind,
        numbers,
        first: this.#valueRecord(),
        second: other ? other.#valueRecord() : null,
        settle: result =>
          question.settle(() => {
            if ('error' in result) throw result.error
            return read(result)
          }),
      })
    })
  }

  #ask<A>(key: string, pose: (question: Question<A>) => void): Question<A> {
    const asked = this.#questions.get(key) as Question<A> | undefined
    if (asked) return asked
    const question = new Question<A>()
    this.#questions.set(key, question as Question<never>)
    pose(question)
    return question
  }

  #valueRecord(): RecordRef {
    this.#record ??= this.#inquiry.record(this.#state, this.#workerStep, this.#saved.value!)
    return this.#record
  }

  #unavailable(what: string): never {
    const kept = this.savedReductions.join(', ')
    const detail = `expected ${what} to be saved, but ${kept === '' ? 'only its shape was' : `only ${kept} were`}`
    throw new TensorUnavailableForStep(this.name, this.step, 'GLOBAL', detail)
  }
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

/** Questions about tensors of any number of trials, gathered to be answered together. */
export class Inquiry implements Ahead {
  readonly tasks: TaskRef[] = []
  readonly #tensors = new Map<WorkerStep, Map<string, TensorAtStep>>()
  readonly #stores: StoreSpec[] = []
  readonly #storeNumbers = new Map<TrialState, number>()
  readonly #records = new Map<string, RecordRef>()
  readonly #series = new Map<string, number>()
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

  get recordCount(): number {
    return this.#records.size
  }

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
    const place = recordPlace(workerStep, location)
    const store = this.numberOf(state)
    const key = `${store} ${place.startByte} ${place.file}\n${place.tag}`
    let record = this.#records.get(key)
    if (record === undefined) {
      const name = `${store} ${workerStep.worker}\n${location.name}`
      let series = this.#series.get(name)
      if (series === undefined) {
        series = this.#series.size
        this.#series.set(name, series)
      }
      record = { place: { ...place, store, series }, url: state.access.store.url(place.file), settle: [] }
      this.#records.set(key, record)
    }
    return record
  }

  /** The number of a trial's store. Two trials of one place share it. */
  numberOf(state: TrialState): number {
    let number = this.#storeNumbers.get(state)
    if (number === undefined) {
      const spec = JSON.stringify(state.access.spec)
      number = this.#stores.findIndex(store => JSON.stringify(store) === spec)
      if (number < 0) number = this.#stores.push(state.access.spec) - 1
      this.#storeNumbers.set(state, number)
    }
    return number
  }

  /** Answers all that was asked. A record that can't be read is the answer to the questions about it. */
  async run(options: MeasureOptions, stats: MeasureStats): Promise<void> {
    const { threads, memory } = checkWorkOptions(options)
    const { signal, check = 'minimal' } = options
    const records = [...this.#records.values()]
    const [state] = this.#storeNumbers.keys()
    if (records.length === 0 || state === undefined) return
    const numberOf = new Map(records.map((record, i) => [record, i]))
    const places = records.map(({ place }) => place)
    const tasks = this.tasks.map(
      ({ kind, numbers, first, second }): Task => ({
        kind,
        numbers,
        first: numberOf.get(first)!,
        second: second ? numberOf.get(second)! : -1,
      }),
    )
    const runner = await state.access.runner(
      threads,
      places.reduce((sum, { byteLength }) => sum + byteLength, 0),
    )
    stats.threads = Math.max(stats.threads, runner.threads)
    const checkLevel = checkLevelNumber(check)
    const context = { stores: this.#stores, checkLevel, memory, threads: runner.threads }
    const engine = new Engine()
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
      for (const settle of records[record]!.settle) settle(results[i]!)
    })
    tasks.forEach((task, i) => {
      const { first, second } = job.tasks[i]!
      const failed = [first, second].map(record => (record < 0 ? null : results[record]!))
      const error = failed.find(result => result !== null && 'error' in result) as { error: TrialscanError } | undefined
      const value = values.get(i)
      const numbers = mergeAnswers(parts.map(({ answers }) => answers[i]!))
      const answer: TaskResult =
        error ?? (value ? { value } : numbers ? { numbers } : { error: noNumbersIn(records[own[first]!]!) })
      this.tasks[task]!.settle(answer)
    })

    function resultOf(replies: readonly MeasureReply[], i: number): RecordResult {
      const [reply] = replies
      const failed = failures.get(i)
      if (failed) return { error: errorFromData(failed) }
      const histogram = histograms.get(i)
      if (histogram) return { histogram }
      const { startByte, byteLength, tag } = job.records
      if (reply!.checksums.length > 0 && job.checkLevel === checkLevelNumber('full')) {
        const place = { url: records[own[i]!]!.url, startByte: startByte[i]!, tensor: job.tags[tag[i]!]! }
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
  const ahead = runner.threads === 0 ? 1 : runner.threads * 2 + 1
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
function mergeAnswers(answers: readonly (readonly number[] | null)[]): readonly number[] | null {
  const [first] = answers
  if (answers.length <= 1 || !first) return first ?? null
  let merged = [...first]
  for (const answer of answers.slice(1)) {
    if (answer === null) return null
    if (answer[1]! < 0 || merged[1]! < 0) return [0, -1]
    merged = merged.map((sum, i) => sum + answer[i]!)
  }
  return merged
}

function reduce(moments: Moments, name: ReductionName): ReductionValue {
  if (!isDefined(name, moments.dtype)) throw undefinedReduction(name, moments.dtype)
  return moments.reduction(name)
}

function numbersOf(result: TaskResult, tensor: TensorAtStep): readonly number[] {
  if ('numbers' in result) return result.numbers
  throw noNumbers(tensor)
}

function noNumbers({ name, step }: TensorAtStep): QueryError {
  return new QueryError('NotNumeric', `expected numbers in ${JSON.stringify(name)} at step ${step}`, {
    tensor: name,
    step,
  })
}

function noNumbersIn({ place: { tag, step } }: RecordRef): QueryError {
  return new QueryError('NotNumeric', `expected numbers in ${JSON.stringify(tag)} at step ${step}`, {
    tensor: tag,
    step,
  })
}
