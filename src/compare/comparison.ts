/** Steps of two runs compared, in the order of execution. */

import { QueryError, TrialscanError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import type { DifferenceTolerance } from '../trial/measure/difference.js'
import type { MeasureOptions } from '../trial/measure/measure.js'
import type { TensorDifference } from '../trial/measure/question.js'
import type { ScanSelection } from '../trial/scan-selection.js'
import type { Tensor } from '../trial/tensor.js'
import { stateOf } from '../trial/trial.js'
import { differenceOfWhole, joined, type Whole } from './joined.js'
import { embeddingsAmong, type TiedTensor } from './names/aliases.js'
import type { NoiseFloor } from './noise.js'
import { loggedNames, type Paired, type Pairing, type WantedTensors } from './pairing.js'
import { judgeQuantised, type QuantisedOutcome, type QuantisedPair, quantisedAmong } from './quantised/pairs.js'
import type { DifferenceAt, DifferenceKind, RecordPlaceInTime } from './records.js'
import { reductionsApart, relative } from './reductions.js'
import { Trend } from './trend.js'
import { type Asked, isAnswered, Window } from './window.js'
import { dtypesApart, messageOf, NOISE_UNKNOWN, shown } from './wording.js'

/** The options of a comparison that calls take. */
export interface ComparingOptions extends ScanSelection, DifferenceTolerance, Pick<MeasureOptions, 'callerWorks'> {
  /** Called with each difference, in the order of execution. */
  readonly onDifference?: (difference: DifferenceAt) => void
  /**
   * Called with each tensor of a worker that could not be compared at a step that both have: its kind is `missing` where only one of the runs has it,
   * and `unreadable` where it can't be read.
   */
  readonly onNotCompared?: (notCompared: DifferenceAt) => void
  /** True (default) to list all differences in the result: there may be millions. */
  readonly keepDifferences?: boolean
}

export interface ComparisonOptions extends ComparingOptions {
  readonly noise?: NoiseFloor
  /** Called with how far each pair of tensors of numbers is apart, equal ones included. Of saved reductions there is no `difference`. */
  readonly onApart?: (place: RecordPlaceInTime, meanAbsolute: number, difference?: TensorDifference) => void
  /** True if only the first difference is wanted. */
  readonly isFirstAll?: boolean
  /** True if tensors that only the second run has count as missing. */
  readonly countsAll?: boolean
}

/** Bytes of records that are asked about at once: fewer where the first difference is all that is wanted, so that it is known soon. */
const WINDOW_BYTES = 2 ** 32
const FIRST_BYTES = 256 << 20

/** The change that inexact arithmetic may cause, in units of the last place. */
const LAST_ULPS = 4

const MAX_PROBLEMS = 10_000
/** Names of equal tensors that are kept. */
const MAX_EQUAL = 100

const NO_DETAILS = { difference: null, quantised: null, element: null, largest: null, noise: null }
type Details = Partial<Pick<DifferenceAt, keyof typeof NO_DETAILS>>

/** Two dtypes that the runs have of one tensor. */
export interface DtypePair {
  readonly dtype: DType
  readonly otherDtype: DType
  /** The number of compared pairs, as float64. */
  readonly count: number
}

export class Comparison {
  readonly #pairing: Pairing
  readonly #options: ComparisonOptions
  readonly #trend = new Trend()
  /** The numbers that the second run logged, if they are not compared. */
  readonly #logged: ReadonlySet<string>
  readonly stats = { records: 0, unread: 0, readBytes: 0, reads: 0, jobs: 0, threads: 0 }
  readonly differences: DifferenceAt[] = []
  divergence: DifferenceAt | null = null
  /** The number of pairs with two dtypes, by these. */
  readonly dtypes = new Map<string, DtypePair>()
  /** The numbers that `TrialDiff` describes. */
  readonly counts = { compared: 0, equal: 0, close: 0, noisy: 0, reduced: 0, missing: 0, stored: 0 }
  /** Names in the first run of tensors that are equal bit for bit, at most 100. */
  readonly equalTensors = new Set<string>()
  /** Heads that one run lacks, and that equal embeddings, by their names. */
  readonly #tied = new Map<string, TiedTensor>()
  /** The read errors, in a sentence each. */
  readonly problems = new Map<string, Error>()
  /** The steps at which anything was compared, and those at which something could not be read. */
  readonly #stepsCompared = new Set<number>()
  readonly #stepsUnread = new Set<number>()

  constructor(pairing: Pairing, options: ComparisonOptions) {
    this.#pairing = pairing
    this.#options = options
    this.#logged = new Set(pairing.checkpointStep === null ? [] : loggedNames(pairing.b))
  }

  /** Adds what another has counted. */
  count(other: Comparison): void {
    const { counts, problems, equalTensors, dtypes, stats } = other
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) this.counts[name] += counts[name]
    for (const problem of problems.values()) this.#hasProblem(problem)
    for (const name of equalTensors) this.equalTensors.add(name)
    for (const tied of other.tied) this.#addTied(tied)
    for (const pair of dtypes.values()) countDtypes(this.dtypes, pair)
    for (const step of other.#stepsCompared) this.#stepsCompared.add(step)
    for (const step of other.#stepsUnread) this.#stepsUnread.add(step)
    this.stats.readBytes += stats.readBytes
  }

  /** True if something was compared at a step, and nothing of it was unreadable. */
  wasComparedAt(step: number): boolean {
    return this.#stepsCompared.has(step) && !this.#stepsUnread.has(step)
  }

  get tied(): readonly TiedTensor[] {
    return [...this.#tied.values()]
  }

  #addTied(tied: TiedTensor): void {
    this.#tied.set(tied.tensor, { ...tied, count: tied.count + (this.#tied.get(tied.tensor)?.count ?? 0) })
  }

  /** The place where differences leave the trend of the steps before. */
  get departure() {
    return this.#trend.departure
  }

  /**
   * Compares steps, ascending.
   * @param isEnough asked after some steps, whether those that are left can be left out
   */
  async steps(
    steps: readonly number[],
    wanted: ReadonlyMap<number, WantedTensors>,
    isEnough: (done: number) => boolean,
  ): Promise<void> {
    const windowBytes = this.#options.isFirstAll ? FIRST_BYTES : WINDOW_BYTES
    for (let at = 0; at < steps.length; ) {
      this.#options.signal?.throwIfAborted()
      let window = new Window(this.#pairing, this.#options)
      const weights: QuantisedPair[] = []
      while (at < steps.length && !window.isFull(windowBytes)) {
        const step = steps[at++]!
        const all = await this.#pairing.pairsAt(step, wanted.get(step)!)
        const onlyInB = this.#options.countsAll ? this.#pairing.onlyInB(step, all) : []
        const { quantised, others, stored, isPart } = quantisedAmong(this.#pairing, step, all)
        this.counts.stored += stored
        for (const pair of quantised) weights.push(pair)
        const alone = onlyInB.filter(({ otherTensor: name }) => !isPart(name) && !this.#logged.has(name))
        for (const pair of [...alone, ...others]) {
          // A step may have very many.
          if (window.isFull(windowBytes)) {
            await this.#judgeAll(window)
            window = new Window(this.#pairing, this.#options)
          }
          window.add(pair)
        }
      }
      await this.#judgeAll(window)
      let index = 0
      for await (const outcome of judgeQuantised(this.#pairing, weights, this.#options, this.stats)) {
        this.#tellQuantised(weights[index++]!, outcome)
      }
      if (isEnough(at)) return
    }
  }

  /** Judges the pairs of a window, while threads work on what is next. */
  async #judgeAll({ inquiry, questions }: Window): Promise<void> {
    let judged = 0
    for await (const _ of inquiry.answers(this.#options, this.stats)) {
      while (judged < questions.length && isAnswered(questions[judged]!)) await this.#judge(questions[judged++]!)
    }
    while (judged < questions.length) await this.#judge(questions[judged++]!)
  }

  async #judge(pair: Asked): Promise<void> {
    if (this.#options.isFirstAll && pair.place.step > (this.divergence?.step ?? Number.POSITIVE_INFINITY)) return
    const { values, wholes, reductions } = pair
    if (pair.a === undefined || pair.b === undefined) return this.#lacking(pair)
    if (values === null && wholes.length + reductions.length === 0) {
      return this.#missing(pair.place, 'values and reductions of the two have nothing in common')
    }
    this.counts.compared++
    try {
      await this.#compare(pair)
    } catch (error) {
      if (!(error instanceof QueryError && error.code === 'NotComparable')) {
        this.counts.compared--
        return this.#failed(pair.place, error)
      }
      this.#found(pair, 'shape', error.message)
    }
    this.#stepsCompared.add(pair.place.step)
  }

  #tellQuantised(pair: QuantisedPair, { is, message, quantised }: QuantisedOutcome): void {
    if (is === 'missing') this.counts.missing++
    else if (is === 'unreadable') this.#hasProblem(new Error(message))
    else {
      this.counts.compared++
      this.#stepsCompared.add(pair.place.step)
    }
    if (is === 'equal') this.counts.equal++
    else if (is === 'missing' || is === 'unreadable') this.#notCompared(pair.place, is, message)
    else this.#found(pair, is, message, { quantised })
  }

  async #compare(pair: Asked): Promise<void> {
    const { values, reductions } = pair
    if (values === null && reductions.length > 0) return this.#reductions(pair)
    if (values === null) {
      const [a, b] = wholesOf(pair)
      return this.#values(pair, differenceOfWhole(a, b, this.#options), [a.shape, b.shape])
    }
    let difference: TensorDifference | null
    try {
      difference = values.value
    } catch (error) {
      // Texts are no numbers: they are the same or they are not.
      if (error instanceof QueryError && error.code === 'NotNumeric') return this.#texts(pair)
      throw error
    }
    await this.#values(pair, difference)
  }

  /** @param known their shapes, if these are known */
  async #values(
    pair: Asked,
    difference: TensorDifference | null,
    known?: readonly (readonly number[])[],
  ): Promise<void> {
    const { rtol = 0, atol = 0, tolerance = 'exact', noise, onApart } = this.#options
    if (difference === null) {
      // A shape that is not known is shown as [].
      const shapeOf = (tensor: Tensor, step: number, of: Pick<RecordPlaceInTime, 'worker'>) =>
        tensor.shape(step, of).catch(() => [])
      const [shapeOfA, other] = known ?? (await this.#ofBoth(pair, shapeOf))
      this.#found(pair, 'shape', `its shape is [${shapeOfA}] in ${this.#runs[0]} and [${other}] in ${this.#runs[1]}`)
      return
    }
    const dtypes = dtypesApart(difference, this.#runs)
    if (dtypes !== null) return this.#found(pair, 'dtype', dtypes)
    const { beyondCount, count, first, largest, meanAbsolute, maxUlps } = difference
    if (difference.dtype !== difference.otherDtype) countDtypes(this.dtypes, { ...difference, count: 1 })
    const areEqual = isEqual(difference)
    onApart?.(pair.place, areEqual ? 0 : (meanAbsolute ?? Number.POSITIVE_INFINITY), difference)
    if (areEqual) {
      this.counts.equal++
      if (this.equalTensors.size < MAX_EQUAL) this.equalTensors.add(pair.place.tensor)
      return
    }
    const isExact = rtol === 0 && atol === 0 && tolerance === 'exact'
    if (!isExact && beyondCount === 0) {
      this.counts.close++
      return
    }
    const limit = noise?.limit(pair.place, count)
    const isLastBits = noise?.isNoisy === true && (maxUlps ?? Number.POSITIVE_INFINITY) <= LAST_ULPS
    if (isLastBits || (typeof limit === 'number' && meanAbsolute !== null && meanAbsolute <= limit)) {
      this.counts.noisy++
      return
    }
    if (meanAbsolute !== null) this.#trend.add(pair.place, pair.rank, meanAbsolute)
    const shape = difference.shape ?? []
    const at = (place: number | null) => (place === null || shape.length === 0 ? null : unravelled(place, shape))
    this.#found(pair, 'values', messageOf(difference, isExact, limit), {
      difference,
      element: at(first),
      largest: at(largest),
      noise: limit ?? null,
    })
  }

  #reductions(pair: Asked): void {
    // A value on either side: what is computed of it is held against what was saved.
    const apart = reductionsApart(pair.reductions, pair.hasValue, this.#options)
    const { noise, onApart } = this.#options
    const mean = apart.reduce((sum, [, x, y]) => sum + relative(x.value, y.value), 0) / pair.reductions.length
    onApart?.(pair.place, mean)
    const limit = noise?.limit(pair.place, 1)
    if (apart.length === 0) this.counts.reduced++
    else if (typeof limit === 'number' && mean <= limit) this.counts.noisy++
    else {
      const sentences = apart.map(([name, x, y]) => `${name} is ${shown(x.value)} and ${shown(y.value)}`)
      const saved = pair.hasValue ? 'of one only reductions were saved' : 'only reductions were saved'
      this.#found(pair, 'reductions', `${saved}: ${sentences.join(', ')}${limit === null ? NOISE_UNKNOWN : ''}`)
    }
  }

  async #texts(pair: Asked): Promise<void> {
    const [x, y] = await this.#ofBoth(pair, (tensor, step, of) => tensor.value(step, of))
    const [p, q] = [x.data as ArrayLike<unknown>, y.data as ArrayLike<unknown>]
    const first = Array.from(p).findIndex((value, i) => value !== q[i])
    if (first < 0 && p.length === q.length) this.counts.equal++
    else {
      const element = first < 0 || x.shape.length === 0 ? null : unravelled(first, x.shape)
      this.#found(pair, 'values', 'its texts differ', { element })
    }
  }

  /** Asks the trials about the tensors of a pair. */
  #ofBoth<T>(
    { place: { tensor, step, worker }, otherTensor, otherWorker }: Paired,
    ask: (tensor: Tensor, step: number, of: Pick<RecordPlaceInTime, 'worker'>) => Promise<T>,
  ): Promise<[T, T]> {
    const { a, b } = this.#pairing
    return Promise.all([
      ask(a.tensor(tensor), step, { worker }),
      ask(b.tensor(otherTensor), this.#pairing.stepInB(step), { worker: otherWorker }),
    ])
  }

  #differenceAt(
    { place, otherTensor, otherWorker }: Pick<Paired, 'place' | 'otherTensor' | 'otherWorker'>,
    kind: DifferenceKind,
    message: string,
    details: Details = {},
  ): DifferenceAt {
    const otherStep = this.#pairing.stepInB(place.step)
    return { ...place, kind, otherTensor, otherWorker, otherStep, ...NO_DETAILS, ...details, message }
  }

  #found(pair: Paired, kind: DifferenceKind, message: string, details?: Details): void {
    const at = this.#differenceAt(pair, kind, message, details)
    this.divergence ??= at
    this.#options.onDifference?.(at)
    if (this.#options.keepDifferences !== false) this.differences.push(at)
  }

  /** Tells of what only one run has, unless it is a head that equals the embeddings of its run. */
  #lacking(pair: Asked): void {
    const { place, a, tied } = pair
    try {
      const untied = tied === null ? '' : this.#untied(pair)
      if (untied === null) this.#addTied(tied!)
      else this.#missing(place, `only in the ${a ? 'first' : 'second'} run${untied}`)
    } catch (error) {
      this.#failed(place, error)
    }
  }

  /** The way in which a head is apart from the embeddings of its run; null: it equals them. */
  #untied(pair: Asked): string | null {
    const { a, values, wholes } = pair
    if (values === null && wholes.length === 0) return ', where it could not be compared with embeddings'
    const difference = values ? values.value : differenceOfWhole(...wholesOf(pair), this.#options)
    if (difference && isEqual(difference)) return null
    const embeddings = embeddingsAmong(stateOf(this.#pairing[a ? 'a' : 'b']).catalog.names)
    return difference?.unequalCount === 0
      ? `, where its numbers equal those of ${embeddings}, but for the sign of a zero`
      : `, where it differs from ${embeddings} and is not tied`
  }

  #failed(place: RecordPlaceInTime, error: unknown): void {
    if (!(error instanceof TrialscanError)) throw error
    if (error instanceof QueryError) this.#missing(place, error.message)
    else {
      this.#hasProblem(error)
      this.#notCompared(place, 'unreadable', error.message)
    }
  }

  #missing(place: RecordPlaceInTime, message: string): void {
    this.counts.missing++
    this.#notCompared(place, 'missing', message)
  }

  #notCompared(place: RecordPlaceInTime, kind: 'missing' | 'unreadable', message: string): void {
    if (kind === 'unreadable') this.#stepsUnread.add(place.step)
    const { tensor: otherTensor, worker: otherWorker } = place
    this.#options.onNotCompared?.(this.#differenceAt({ place, otherTensor, otherWorker }, kind, message))
  }

  #hasProblem(error: Error): void {
    if (this.problems.size < MAX_PROBLEMS) this.problems.set(error.message, error)
  }

  /** The names of the two sides in messages. */
  get #runs(): readonly [string, string] {
    return this.#pairing.a === this.#pairing.b ? ['this worker', 'the other'] : ['the first run', 'the second']
  }
}

/** Equal bit for bit, or where two dtypes are compared in all numbers. */
function isEqual({ hasEqualBits, unequalCount, first }: TensorDifference): boolean {
  return hasEqualBits || (unequalCount === 0 && first === null)
}

/** The two that shards make up. */
function wholesOf({ a, b, wholes }: Asked): [Whole, Whole] {
  const whole = (shards: Asked['wholes'][number]) =>
    joined(
      shards.map(({ value }) => value),
      (a ?? b)!.axis,
    )
  return [whole(wholes[0]!), whole(wholes[1]!)]
}

function countDtypes(known: Map<string, DtypePair>, { dtype, otherDtype, count }: DtypePair): void {
  const key = `${dtype} ${otherDtype}`
  known.set(key, { dtype, otherDtype, count: count + (known.get(key)?.count ?? 0) })
}

function unravelled(at: number, shape: readonly number[]): readonly number[] {
  const index: number[] = []
  let rest = at
  for (const length of [...shape].reverse()) {
    index.unshift(rest % length)
    rest = Math.floor(rest / length)
  }
  return index
}
