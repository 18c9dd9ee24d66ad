/**
 * Answers many questions about many tensors in one pass. Rules state what they need as questions. These become one plan, in which every
 * record is read once and every answer is computed once.
 */

import { type ErrorData, errorToData } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { type Kinds, kinds } from '../../base/options.js'
import { countInTurns } from '../../base/turns.js'
import type { StatisticName, Worker } from '../../base/types.js'
import type { KnownMoments } from '../../core/border/abi.js'
import type { StatisticValue } from '../../core/statistics/statistic.js'
import type { TensorLocation } from '../../format/index-file.js'
import type { Ahead } from '../../scan/catalog/hold.js'
import type { TrialState } from '../../scan/catalog/state.js'
import type { WorkerStep } from '../../scan/catalog/worker-steps.js'
import type { MeasuredPlace, MeasureReply } from '../../scan/job/measure-job.js'
import { checkLevelNumber } from '../../scan/job/plan/coalesce.js'
import { type PlannedMeasure, planMeasures, readingOrders } from '../../scan/job/plan/measure-plan.js'
import { DEFAULT_MEMORY } from '../../scan/job/plan/memory.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { READ_KINDS, type ReadOptions } from '../../scan/runner/access.js'
import { pump } from '../../scan/runner/pump.js'
import { runTwice } from '../../scan/runner/runner.js'
import type { StoreSpec } from '../../storage/store.js'
import { JobAnswers, RecordRef, type StepOfTrial } from './answers.js'
import type { TaskQuestion } from './question.js'
import { type Gatherer, StepTensors, type TensorAtStep } from './tensor-at-step.js'

export interface MeasureOptions extends ReadOptions {
  /**
   * True if the calling thread is one of `threads`, as in a scan: it then works for some milliseconds at a time until everything is
   * answered. Only for local trials. Default: false.
   */
  readonly callerWorks?: boolean
  readonly signal?: AbortSignal | undefined
}

export const MEASURE_OPTIONS: Kinds<MeasureOptions> = {
  ...READ_KINDS,
  callerWorks: kinds.flag,
  signal: kinds.signal,
}

/** The cost of answering questions. */
export interface MeasureStats {
  records: number
  /** The number of these records that could not be read. */
  unread: number
  readBytes: number
  reads: number
  jobs: number
  threads: number
}

/**
 * The number of records beyond which rows are kept compact, although reading one then takes longer. More than a window has, unless a
 * single step has more.
 */
const MANY_RECORDS = 1 << 18

/**
 * The average length below which records are read by the calling thread, unless threads are requested: its other work per record takes
 * several times as long as reading. `check` of 1,000,000 records of 100 bytes took 24 s both without threads and with two, which need 230
 * MB more (two cores, Node.js 20).
 */
const SHORT_RECORD_BYTES = 1024

/** Questions about the tensors of any number of trials, collected to be answered together. */
export class Inquiry implements Ahead, Gatherer {
  readonly tasks: TaskQuestion<unknown>[] = []
  readonly #steps = new Map<TrialState, Map<number, StepTensors>>()
  readonly #stores: StoreSpec[] = []
  readonly #storeNumbers = new Map<TrialState, number>()
  readonly #records: RecordRef[] = []
  /** Records by place. Made only if two trials lie at one place, so that a record of both is read once. */
  #places: Map<string, RecordRef> | null = null
  readonly #numbers: (readonly number[])[] = []
  /** The bytes of requested values, for the tasks counted so far. */
  #valueBytes = 0
  #compares = false
  #counted = 0

  /** The tensors of a trial at a step. The trial's state at the first question is kept, so that the answers match. */
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

  /** The moments that rows must have. */
  known: KnownMoments = 0

  know(known: KnownMoments): void {
    this.known |= known
  }

  /** Returns the same array for equal numbers, so that equal questions are recognized. */
  sameNumbers(numbers: readonly number[]): readonly number[] {
    for (const known of this.#numbers) if (isSame(known, numbers)) return known
    this.#numbers.push(numbers)
    return numbers
  }

  /** The number of distinct questions. */
  questionCount = 0

  /** True if records are compared with others, among those that `valueByteLength` has counted. */
  get compares(): boolean {
    return this.#compares
  }

  /** The number of bytes of values for the calling thread. */
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

  reduction(workerStep: WorkerStep, tensor: string, name: StatisticName): StatisticValue | undefined {
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
  record(stepOfTrial: StepOfTrial, place: TensorLocation | number): RecordRef {
    stepOfTrial.store = this.#numberOf(stepOfTrial.state)
    const record = new RecordRef(stepOfTrial, place, this.#records.length)
    if (this.#places) {
      const known = this.#places.get(placeKey(record))
      if (known) return known
      this.#places.set(placeKey(record), record)
    }
    this.#records.push(record)
    return record
  }

  /** The number of a trial's store. Trials at the same place share it. */
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

  /** Answers all questions. If a record can't be read, its error answers the questions about it. */
  async run(options: MeasureOptions, stats: MeasureStats): Promise<void> {
    for await (const _ of this.answers(options, stats));
  }

  /** Answers the questions, and yields whenever more of them are answered: those about earlier steps first, unless steps are compared. */
  async *answers(options: MeasureOptions, stats: MeasureStats): AsyncGenerator<void> {
    const { threads, memory = DEFAULT_MEMORY, signal, checkLevel = 'minimal', callerWorks } = options
    const records = this.#records
    const [state] = this.#storeNumbers.keys()
    if (records.length === 0 || state === undefined) return
    const totalBytes = records.reduce((sum, { byteLength }) => sum + byteLength, 0)
    const isShort = totalBytes < records.length * SHORT_RECORD_BYTES
    const runner = await state.access.runner(threads, isShort ? 0 : totalBytes, memory, callerWorks)
    stats.threads = Math.max(stats.threads, runner.threads)
    const context = {
      stores: this.#stores,
      checkLevel: checkLevelNumber(checkLevel),
      memory,
      threads: runner.threads,
      known: this.known,
    }
    const series = await seriesOf(records, this.tasks)
    const plans = planMeasures(records, series, this.tasks, await readingOrders(records), context)
    const work = ({ job }: PlannedMeasure) => runTwice(runner, job, signal)
    let parts: MeasureReply[] = []
    let failure: ErrorData | null = null
    for await (const { plan, reply, error } of pump(plans, work, { ahead: runner.ahead, signal })) {
      stats.jobs++
      if (reply) {
        stats.records += reply.stats.records
        stats.readBytes += reply.stats.readBytes
        stats.reads += reply.stats.reads
        parts.push(reply)
      } else {
        if (plan.job.part === 0) stats.records += plan.job.records.file.length
        failure ??= errorToData(error)
      }
      if (plan.job.part < plan.job.parts - 1) continue
      const answers = new JobAnswers(plan.job, parts, failure, records.length > MANY_RECORDS)
      stats.unread += answers.unread
      plan.records.forEach((record, at) => {
        records[record]!.answers = answers
        records[record]!.at = at
      })
      plan.tasks.forEach((task, at) => {
        this.tasks[task]!.at = at
      })
      parts = []
      failure = null
      yield
    }
  }
}

/**
 * For each record the number of its series: the records of its tensor over the steps of one worker; or, if none of these is compared with
 * another step, the record alone. Null if none are compared.
 */
async function seriesOf(
  records: readonly RecordRef[],
  tasks: readonly TaskQuestion<unknown>[],
): Promise<Int32Array | null> {
  const pairs = tasks.filter(({ second }) => second >= 0)
  if (pairs.length === 0) return null
  if (pairs.every(({ first, second }) => records[first]!.step === records[second]!.step))
    return Int32Array.from(records.keys())
  const tags = new Map<TrialState, Map<Worker, Map<string, number>>>()
  let count = 0
  const series = new Int32Array(records.length)
  await countInTurns(records.length, i => {
    const { state, worker, tag } = records[i]!
    const ofWorker = entryOf(
      entryOf(tags, state, () => new Map()),
      worker,
      () => new Map(),
    )
    series[i] = entryOf(ofWorker, tag, () => count++)
  })
  return series
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false
  return true
}

function placeKey({ store, startByte, file, tag }: MeasuredPlace): string {
  return `${store} ${startByte} ${file}\n${tag}`
}
