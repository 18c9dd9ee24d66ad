/** Questions about a tensor at a step, with answers that are decoded on demand. */

import {
  EngineError,
  errorFromData,
  errorToData,
  QueryError,
  quote,
  ReductionUndefined,
  TensorUnavailableForStep,
  TrialscanError,
} from '../../base/errors.js'
import type { DType, GlobalStep, MomentName, ReductionName } from '../../base/types.js'
import { isDefined, Moments, type ReductionValue, undefinedReduction } from '../../core/moments.js'
import type { ElementHistogram } from '../../core/statistics/distribution.js'
import { histogramFrom, isReductionName } from '../../core/statistics/statistic.js'
import type { Task } from '../../scan/job/measure-job.js'
import { type TensorValue, tensorValue } from '../../scan/job/tensor-value.js'
import { savedNumber } from '../../scan/rows/saved-number.js'
import type { RecordAnswer, RecordRef, TaskAnswer } from './answers.js'

/** The tensor or tensors of a question. */
export interface QuestionSubject {
  readonly name: string
  readonly step: GlobalStep
  /** The reductions that the hook saved. */
  readonly savedReductions: readonly ReductionName[]
  /** The record of its saved value. */
  readonly valueRecord: RecordRef
}

/** Something asked about a tensor. */
export interface Question<A> {
  /** True if the question is answered, or can't be. */
  readonly isAnswered: boolean
  /** The answer; undefined while it is unknown, and if there is none. */
  readonly answer: A | undefined
  /** The reason why there is no answer; undefined while it is unknown, and if there is one. */
  readonly error: TrialscanError | undefined
  /** The answer. @throws the reason why there is none */
  readonly value: A
}

/** A question whose answer is decoded on first use: there are as many as records times rules. */
export abstract class AnyQuestion<A> implements Question<A> {
  readonly kind: string
  readonly tensor: QuestionSubject
  /** Another question about the same tensor. */
  next: AnyQuestion<unknown> | null = null

  constructor(kind: string, tensor: QuestionSubject) {
    this.kind = kind
    this.tensor = tensor
  }

  abstract get isAnswered(): boolean
  /** @throws the reason why there is no answer */
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

/** A question about the moments of a record. */
export class RecordQuestion<A> extends AnyQuestion<A> {
  readonly #record: RecordRef
  readonly #read: (answer: RecordAnswer, tensor: QuestionSubject, kind: never) => A

  constructor(
    kind: string,
    tensor: QuestionSubject,
    record: RecordRef,
    read: (answer: RecordAnswer, tensor: QuestionSubject, kind: never) => A,
  ) {
    super(kind, tensor)
    this.#record = record
    this.#read = read
  }

  get isAnswered(): boolean {
    return this.#record.isAnswered
  }

  protected read(): A {
    return this.#read(this.#record.answer, this.tensor, this.kind as never)
  }
}

/** A question about the elements of one or two records. */
export class TaskQuestion<A> extends AnyQuestion<A> implements Task {
  declare readonly kind: Task['kind']
  readonly numbers: readonly number[]
  readonly other: QuestionSubject | null
  readonly first: number
  readonly second: number
  readonly #read: (result: TaskAnswer, tensor: QuestionSubject) => A
  #answer: A | undefined
  /** The index of its answer in its job. */
  at = -1

  constructor(
    kind: Task['kind'],
    tensor: QuestionSubject,
    numbers: readonly number[],
    other: QuestionSubject | null,
    read: (result: TaskAnswer, tensor: QuestionSubject) => A,
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
    for (const { answer } of this.other ? [record, this.other.valueRecord] : [record]) {
      if (answer instanceof TrialscanError) throw answer
    }
    const result = record.answers!.task(this.at)
    if (result === null) throw noNumbers(record.tag, record.step)
    this.#answer = this.#read(result, this.tensor)
    return this.#answer
  }
}

/** A question about something that was not saved. */
export class Unanswerable extends AnyQuestion<never> {
  readonly #what: string
  readonly #without: QuestionSubject

  constructor(kind: string, tensor: QuestionSubject, what: string, without = tensor) {
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

/** The number of nodes in a layer, and the number of inactive ones. */
export interface Activity {
  readonly nodes: number
  readonly inactive: number
}

/** Sums along an axis. */
export interface ChannelSums {
  readonly sums: readonly number[]
  /** The number of elements in each sum. */
  readonly count: number
  /** The length of the first axis; 1 if there is none. */
  readonly samples: number
}

/** The difference between two tensors of one shape. NaN equals NaN. */
export interface TensorDifference {
  /** The dtypes of the first and the second tensor. */
  readonly dtype: DType
  readonly otherDtype: DType
  /** The number of elements of each. */
  readonly count: number
  /** The moments of each tensor; null if they are equal bit by bit. */
  readonly shape: readonly number[] | null
  /** True if the tensors are equal bit by bit; false if their dtypes differ. */
  readonly hasEqualBits: boolean
  /** The first element that differs, as an index in C order; null if none does. */
  readonly first: number | null
  readonly unequalCount: number
  /** The number of elements that are not close: |a − b| > atol + rtol·|b|. */
  readonly beyondCount: number
  /** The largest |a − b| and |a − b| / |b|; NaN if an element is NaN in only one of the tensors. */
  readonly maxAbsolute: number
  readonly maxRelative: number
  /** The mean |a − b|; null if it is not finite. */
  readonly meanAbsolute: number | null
  /** The index (in C order) of the element where |a − b| is largest; null if there is none. */
  readonly largest: number | null
  /** The two elements at that index, as float64; null if there are none, or they are complex. */
  readonly largestPair: readonly [a: number, b: number] | null
  /** ‖a − b‖ / ‖a‖; Infinity if a is all zeros, null if NaN or infinities leave none. */
  readonly relativeNorm: number | null
  /** The largest distance in units of the last place; null unless both are of one float type. */
  readonly maxUlps: number | null
  /** Percentiles of the distance in units of the last place, rounded up to 0, 1, 3, 7, … or to the largest distance. */
  readonly ulps: { readonly p50: number; readonly p90: number; readonly p99: number } | null
  /** Σab / √(Σa²·Σb²); null if one is all zeros, or not finite. */
  readonly cosine: number | null
  /** √Σa² / √Σb²; null if it is not finite. */
  readonly normRatio: number | null
  /** The tensors that have NaN or infinities. */
  readonly notFinite: 'neither' | 'a' | 'b' | 'both'
}

/** The number of elements that equal a given number, and the number of all elements. */
export interface Count {
  readonly equal: number
  readonly elements: number
}

export function readMoments(answer: RecordAnswer, { name, step }: QuestionSubject): Moments {
  if (answer instanceof Moments) return answer
  if (answer instanceof TrialscanError) throw answer
  throw new QueryError('NoTensor', `${name} at step ${step} is a histogram, not a tensor`, { tensor: name })
}

export function readReduction(answer: RecordAnswer, tensor: QuestionSubject, name: MomentName): ReductionValue {
  if (!(answer instanceof Moments || answer instanceof TrialscanError)) {
    const reduction = isReductionName(name) ? answer.reductions[name] : undefined
    if (reduction !== undefined) return reduction
    throw new ReductionUndefined(name, 'a histogram', 'a histogram does not record that')
  }
  const moments = readMoments(answer, tensor)
  if (!isDefined(name, moments.dtype)) throw undefinedReduction(name, moments.dtype)
  return moments.reduction(name)
}

export function readSaved(answer: RecordAnswer, tensor: QuestionSubject, name: ReductionName): ReductionValue {
  const value = savedNumber(readMoments(answer, tensor), name)
  if (value instanceof ReductionUndefined) throw value
  return value
}

export function numbersOf(result: TaskAnswer, tensor: QuestionSubject): readonly number[] {
  if ('bytes' in result) throw noNumbers(tensor.name, tensor.step)
  return result
}

export function readPercentile(result: TaskAnswer, tensor: QuestionSubject): number {
  const [percentile] = numbersOf(result, tensor)
  if (percentile === undefined) throw undefinedReduction('percentile', 'complex128')
  return percentile
}

export function readElementHistogram(result: TaskAnswer, tensor: QuestionSubject): ElementHistogram {
  const numbers = numbersOf(result, tensor)
  if (numbers.length === 0) throw undefinedReduction('histogram', 'complex128')
  return histogramFrom(numbers)
}

export function readValue(result: TaskAnswer, tensor: QuestionSubject): TensorValue {
  if ('bytes' in result) return tensorValue(result)
  throw noNumbers(tensor.name, tensor.step)
}

export function readAllclose(result: TaskAnswer, tensor: QuestionSubject): boolean {
  const [apart, compared] = numbersOf(result, tensor)
  return apart === 0 && compared! >= 0
}

export function readChange(result: TaskAnswer, tensor: QuestionSubject): number | null {
  const [sum, compared] = numbersOf(result, tensor)
  return compared! < 0 ? null : sum! / compared!
}

export function readDistance(result: TaskAnswer, tensor: QuestionSubject): number | null {
  const [squares, compared] = numbersOf(result, tensor)
  return compared! < 0 ? null : Math.sqrt(squares!)
}

/** The digests of rows; those of a row that was read in parts are combined. */
export function readRowDigests(result: TaskAnswer, tensor: QuestionSubject): Uint32Array {
  const numbers = numbersOf(result, tensor)
  let rows = 0
  for (let at = 0; at < numbers.length; at += 2 + numbers[at + 1]!) rows = numbers[at]! + numbers[at + 1]!
  const digests = new Uint32Array(rows)
  for (let at = 0; at < numbers.length; ) {
    const [row, count] = [numbers[at]!, numbers[at + 1]!]
    for (let i = 0; i < count; i++) {
      // The digest of zeros stays 0.
      digests[row + i] = Math.imul(digests[row + i]!, 0x9e37_79b1) + numbers[at + 2 + i]!
    }
    at += 2 + count
  }
  return digests
}

export function readActivity(result: TaskAnswer, tensor: QuestionSubject): Activity {
  const [nodes, inactive] = numbersOf(result, tensor)
  return { nodes: nodes!, inactive: inactive! }
}

export function readCount(result: TaskAnswer, tensor: QuestionSubject): Count {
  const [equal, elements] = numbersOf(result, tensor)
  return { equal: equal!, elements: elements! }
}

export function readChannelSums(result: TaskAnswer, tensor: QuestionSubject): ChannelSums {
  const numbers = numbersOf(result, tensor)
  const [count, samples] = numbers
  return { sums: numbers.slice(2), count: count!, samples: samples! }
}

function noNumbers(tensor: string, step: number): QueryError {
  return new QueryError('NotNumeric', `expected numbers in ${quote(tensor)} at step ${step}`, { tensor, step })
}
