/** The replies of an inquiry's jobs, decoded when they are read. */

import { type ErrorData, errorFromData, errorToData, type TrialscanError } from '../../base/errors.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import { Moments } from '../../core/moments.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import type { TensorLocation } from '../../format/index-file.js'
import type { TrialState } from '../../scan/catalog/state.js'
import type { WorkerStep } from '../../scan/catalog/worker-steps.js'
import type { MeasuredPlace, MeasureJob, MeasureReply } from '../../scan/job/measure-job.js'
import type { HistogramResult } from '../../scan/job/reply.js'
import type { RawValue } from '../../scan/job/value-job.js'
import { mergeParts } from '../../scan/rows/record-parts.js'
import { failureOfRecord } from '../../scan/runner/failed-job.js'
import { KeptRows } from './kept-rows.js'

/** The result for a record. */
export type RecordAnswer = Moments | HistogramResult | TrialscanError

/** The result of a task. */
export type TaskAnswer = readonly number[] | RawValue

/** A step of a worker in a trial. */
export interface StepOfTrial {
  readonly state: TrialState
  readonly workerStep: WorkerStep
  /** The number of the trial's store; set with the first record. */
  store: number
}

/** A record with questions. There may be a million, so it has few fields. */
export class RecordRef implements MeasuredPlace {
  readonly #stepOfTrial: StepOfTrial
  readonly #place: TensorLocation | number
  /** The number in the order of the plan. */
  readonly number: number
  /** The answers of its job; null before it has run. */
  answers: JobAnswers | null = null
  at = -1

  /** @param place its place, or the index of its tensor in a very long list */
  constructor(stepOfTrial: StepOfTrial, place: TensorLocation | number, number: number) {
    this.#stepOfTrial = stepOfTrial
    this.#place = place
    this.number = number
  }

  get location(): TensorLocation {
    return typeof this.#place === 'number' ? this.#stepOfTrial.workerStep.tensors.at!(this.#place).value : this.#place
  }

  get state(): TrialState {
    return this.#stepOfTrial.state
  }

  get store(): number {
    return this.#stepOfTrial.store
  }

  get worker(): Worker {
    return this.#stepOfTrial.workerStep.worker
  }

  get file(): string {
    return this.location.eventFile ?? this.#stepOfTrial.workerStep.eventFile
  }

  get tag(): string {
    return this.location.name
  }

  get startByte(): number {
    return this.location.startByte
  }

  get byteLength(): number {
    return this.location.byteLength
  }

  get step(): GlobalStep {
    return this.#stepOfTrial.workerStep.step
  }

  get tornasole(): boolean {
    return this.#stepOfTrial.workerStep.isTornasole
  }

  get isAnswered(): boolean {
    return this.answers !== null
  }

  get answer(): RecordAnswer {
    return this.answers!.record(this)
  }
}

/** Rows of moments. */
type Rows = Pick<KeptRows, 'row'>

function rowsIn(moments: Float64Array): Rows {
  return { row: i => moments.subarray(i * ROW_LENGTH, (i + 1) * ROW_LENGTH) }
}

/** The replies of a job, decoded on demand. */
export class JobAnswers {
  readonly #job: MeasureJob
  /** The replies without their rows. */
  readonly #parts: readonly Omit<MeasureReply, 'moments'>[]
  readonly #rows: readonly Rows[]
  readonly #failure: ErrorData | null
  /** Results other than moments, by record. */
  readonly #special: ReadonlyMap<number, ErrorData | HistogramResult>
  /** Results that are not two numbers, by task. */
  readonly #long: ReadonlyMap<number, Float64Array | RawValue>
  /** The last record and its answer: most are read several times in a row. */
  #lastAt = -1
  #last: RecordAnswer | undefined

  /**
   * @param parts the replies to all parts of the job
   * @param failure the reason why some are missing
   * @param isOneOfMany true if there are so many records that their rows must be compact
   */
  constructor(job: MeasureJob, parts: readonly MeasureReply[], failure: ErrorData | null, isOneOfMany: boolean) {
    this.#job = job
    this.#parts = parts.map(({ moments, ...others }) => others)
    this.#rows = parts.map(({ moments }) => (isOneOfMany ? new KeptRows(moments) : rowsIn(moments)))
    this.#failure = failure
    const special = new Map<number, ErrorData | HistogramResult>()
    const long = new Map<number, Float64Array | RawValue>()
    for (const { failures, histograms, values, lists } of parts) {
      for (const histogram of histograms) special.set(histogram.record, histogram)
      for (const { record, error } of failures) special.set(record, error)
      for (const { task, value } of values) long.set(task, value)
      const { tasks, ends, numbers } = lists
      for (const [i, task] of tasks.entries()) {
        const part = numbers.subarray(ends[i - 1] ?? 0, ends[i])
        const before = long.get(task)
        // The parts answer one after the other.
        long.set(task, before instanceof Float64Array ? Float64Array.of(...before, ...part) : part)
      }
    }
    this.#special = special
    this.#long = long
  }

  /** The number of records that could not be read. */
  get unread(): number {
    if (this.#failure !== null) return this.#job.records.file.length
    return new Set(this.#parts.flatMap(({ failures }) => failures.map(({ record }) => record))).size
  }

  record(ref: RecordRef): RecordAnswer {
    if (this.#last === undefined || this.#lastAt !== ref.at) {
      this.#last = this.#read(ref)
      this.#lastAt = ref.at
    }
    return this.#last
  }

  #read(ref: RecordRef): RecordAnswer {
    if (this.#failure !== null) {
      const urlOf = (path: string) => ref.state.access.store.url(path)
      return atStep(failureOfRecord(this.#failure, this.#job, ref.at, urlOf), ref.step)
    }
    const special = this.#special.get(ref.at)
    if (special) return 'reductions' in special ? special : atStep(errorFromData(special), ref.step)
    const { at } = ref
    const parts = this.#parts
    const moments = mergeParts({
      rows: this.#rows.map(rows => rows.row(at)),
      checksums: parts[0]!.checksums.length === 0 ? [] : parts.map(({ checksums }) => checksums[at]!),
      dtype: parts[0]!.described.dtypes[at]!,
      record: at,
      byteLength: ref.byteLength,
      placeOf: () => ({ url: ref.state.access.store.url(ref.file), startByte: ref.startByte, tensor: ref.tag }),
      checkLevel: this.#job.checkLevel,
    })
    return moments instanceof Moments ? moments : atStep(moments, ref.step)
  }

  /** The answer of a task; null if there is none for these records. Answers of parts are summed. */
  task(at: number): TaskAnswer | null {
    const long = this.#long.get(at)
    if (long) return long instanceof Float64Array ? arrayOf(long) : long
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

/** The numbers as an array. `Array.from` takes ten times as long, since it iterates. */
function arrayOf(numbers: Float64Array): number[] {
  const array = new Array<number>(numbers.length)
  for (let i = 0; i < numbers.length; i++) array[i] = numbers[i]!
  return array
}

/** The error of a record for a given step: questions about another step may share the record. */
function atStep(error: TrialscanError, step: number): TrialscanError {
  const data = errorToData(error)
  return errorFromData({ ...data, fields: { ...data.fields, step } })
}
