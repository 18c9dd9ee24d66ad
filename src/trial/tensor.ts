/** One tensor of a trial, over all its steps. */

import { expectStep, expectText } from '../base/arguments.js'
import {
  errorFromData,
  FormatError,
  pathOfUrl,
  QueryError,
  ShapeUnavailableForStep,
  StepNotYetAvailable,
  StoreError,
  TensorUnavailableForStep,
  TrialscanError,
  UsageError,
} from '../base/errors.js'
import { checkOptions, type Kinds, kinds, optionsOf } from '../base/options.js'
import type { AxisReductionName, Mode, ReductionName, StatisticName, Worker } from '../base/types.js'
import { type ReductionValue, undefinedReduction } from '../core/moments.js'
import { isReductionName, type StatisticOf, type StatisticValue } from '../core/statistics/statistic.js'
import { UNFOLD_LIMIT } from '../core/values.js'
import { reduceAlong } from '../kernels/along.js'
import { elementsOf } from '../kernels/elements.js'
import type { SavedTensor } from '../scan/catalog/columns/tensor-lists.js'
import { currentHold } from '../scan/catalog/hold.js'
import type { TrialState } from '../scan/catalog/state.js'
import { checkMode, STEP_OPTIONS, type StepOptions } from '../scan/catalog/steps.js'
import { recordPlace, workersOf } from '../scan/catalog/worker-steps.js'
import type { RecordPlace } from '../scan/job/plan/coalesce.js'
import { shapesOf } from '../scan/job/reply.js'
import { type TensorValue, tensorValue } from '../scan/job/tensor-value.js'
import { readOneReduction } from '../scan/rows/one-by-one.js'
import { describeRecords, readOneValue, readRecordValues } from '../scan/rows/record-values.js'
import { READ_KINDS, type ReadOptions } from '../scan/runner/access.js'
import { parseReductions } from './reduction.js'
import { type SavedAtStep, SavedSteps } from './saved-steps.js'

/** The selection of one saved tensor, and how it is read. */
export interface SavedOptions extends ReadOptions {
  /** The meaning of the step number: a global step (GLOBAL, the default, whatever the mode) or a step of the mode. */
  readonly mode?: Mode
  /** Default: the first worker, in sorted order, that has data. */
  readonly worker?: Worker
}

export interface ValueOptions extends SavedOptions {
  /**
   * The most bytes that values may unfold to. TensorFlow repeats the last of a few saved values for all missing ones,
   * so a record of a hundred bytes can stand for a tensor of any size. A larger one is refused as `ValueTooLarge`.
   * Default: 256 MiB.
   */
  readonly unfoldLimit?: number
}

export interface ReductionOptions extends SavedOptions {
  /** True to reduce the absolute values. */
  readonly abs?: boolean
}

const SAVED_KINDS: Kinds<SavedOptions> = { ...READ_KINDS, mode: kinds.mode, worker: kinds.text }
const SAVED_OPTIONS = optionsOf<SavedOptions>(SAVED_KINDS)
const VALUE_OPTIONS = optionsOf<ValueOptions>({
  ...SAVED_KINDS,
  unfoldLimit: kinds.wholeNumber(0, undefined, 'a number of bytes'),
})
const REDUCTION_OPTIONS = optionsOf<ReductionOptions>({ ...SAVED_KINDS, abs: kinds.flag })
const WORKERS_OPTIONS = optionsOf<Pick<SavedOptions, 'mode'>>({ mode: kinds.mode })

const hasValue = ({ value }: SavedTensor): boolean => value !== null
const hasShape = ({ shape, value }: SavedTensor): boolean => shape !== null || value !== null

export class Tensor {
  readonly name: string
  readonly #state: TrialState
  readonly #saved: SavedSteps

  /** Use `trial.tensor(name)`. @internal */
  constructor(name: string, state: TrialState) {
    this.name = name
    this.#state = state
    this.#saved = new SavedSteps(name, state)
  }

  /**
   * The steps at which the tensor was saved, ascending: global steps for GLOBAL (the default), else steps of the mode.
   * Steps that not all workers have written yet are left out by default.
   */
  steps(options?: StepOptions): number[] {
    const { mode = 'GLOBAL', showIncompleteSteps = false } = checkOptions('tensor.steps', STEP_OPTIONS, options)
    return this.#saved.numbers(mode, showIncompleteSteps)
  }

  /** The workers that saved the tensor at a step, or at any step if none is given; sorted. @throws as `value` */
  workers(step?: number, options?: Pick<SavedOptions, 'mode'>): Worker[] {
    const { mode = 'GLOBAL' } = checkOptions('tensor.workers', WORKERS_OPTIONS, options)
    if (step === undefined) return workersOf(this.#saved.workerSteps)
    this.#state.knownSteps(step, mode)
    const savedStep = this.#saved.at(step, mode)
    if (savedStep.length === 0) throw this.#saved.noneAt(step, mode)
    return workersOf(savedStep.map(({ workerStep }) => workerStep))
  }

  /**
   * The last `n` steps at which the tensor was saved, up to and including `step`, ascending.
   * @param n default: all of them
   * @param mode what `step` and the result count; default: GLOBAL
   */
  prevSteps(step: number, n: number = Number.POSITIVE_INFINITY, mode: Mode = 'GLOBAL'): number[] {
    expectStep(step)
    checkMode(mode)
    if (!(n >= 0 && (Number.isInteger(n) || n === Number.POSITIVE_INFINITY))) {
      throw new UsageError(`expected a number of steps, got ${n}`)
    }
    const before = this.steps({ mode }).filter(number => number <= step)
    return n === 0 ? [] : before.slice(-n)
  }

  /**
   * The value at a step. Calls made together are read together.
   * @throws StepUnavailable, StepNotYetAvailable, TensorUnavailableForStep (also if only reductions were saved),
   *   InvalidWorker; FormatError if the record is corrupt, StoreError if it can't be read
   */
  async value(step: number, options?: ValueOptions): Promise<TensorValue> {
    const settings = checkOptions('tensor.value', VALUE_OPTIONS, options)
    const { mode = 'GLOBAL', worker } = settings
    const savedStep = await this.#saved.find(step, mode, worker, hasValue)
    const ahead = settings.checkLevel === undefined && currentHold()?.ahead?.value(savedStep.workerStep, this.name)
    if (ahead) return ahead
    const place = this.#valuePlace(savedStep, step, mode)
    return this.#reading(readOneValue(this.#state, place, settings), savedStep, step, mode)
  }

  /**
   * The values at all complete steps of a mode at which the tensor's value was saved, in one planned read: step →
   * value. If a worker is given, steps at which it has no data are left out.
   */
  async values(options?: ValueOptions): Promise<Map<number, TensorValue>> {
    const settings = checkOptions('tensor.values', VALUE_OPTIONS, options)
    const { mode = 'GLOBAL', worker } = settings
    const numbers: number[] = []
    const places: RecordPlace[] = []
    for (const [number, savedStep] of this.#saved.all(mode, worker, hasValue)) {
      if (savedStep.saved.value === null) continue
      numbers.push(number)
      places.push(recordPlace(savedStep.workerStep, savedStep.saved.value))
    }
    const values = new Map<number, TensorValue>()
    for await (const read of readRecordValues(this.#state, places, settings)) {
      for (const value of read) {
        if (value instanceof TrialscanError) throw value
        values.set(numbers[values.size]!, value)
      }
    }
    return values
  }

  /**
   * A reduction at a step: as the hook saved it, or else computed from the value. Calls made together are read
   * together.
   * @param name one of min, max, mean, std, variance, sum, prod, l1, l2; or a count, a percentile (`p50`), a histogram, a digest (`sha256`)
   * @param options `abs`: of the absolute values
   * @returns of complex numbers a `Complex` for mean and sum: `reductionValue<Complex>(step, 'mean')`
   * @throws as `value`; TensorUnavailableForStep if neither the reduction nor the value was saved
   */
  reductionValue<V extends ReductionValue = number>(
    step: number,
    name: ReductionName,
    options?: ReductionOptions,
  ): Promise<V>
  reductionValue<N extends StatisticName>(step: number, name: N, options?: SavedOptions): Promise<StatisticOf<N>>
  async reductionValue(step: number, name: StatisticName, options?: ReductionOptions): Promise<StatisticValue> {
    const settings = checkOptions('tensor.reductionValue', REDUCTION_OPTIONS, options)
    const { mode = 'GLOBAL', worker, abs = false } = settings
    expectStep(step)
    expectText('tensor.reductionValue', 'name', name, 'the name of a reduction')
    const [reduction = name] = parseReductions([abs && !name.startsWith('abs_') ? `abs_${name}` : name])
    const isSavedIn = ({ reductions }: SavedTensor) => isReductionName(reduction) && reductions.has(reduction)
    const savedStep = await this.#saved.find(step, mode, worker, saved => hasValue(saved) || isSavedIn(saved))
    const { workerStep, saved } = savedStep
    const ahead = settings.checkLevel === undefined && currentHold()?.ahead?.reduction(workerStep, this.name, reduction)
    if (ahead !== undefined && ahead !== false) return ahead
    if (saved.value === null && !isSavedIn(saved)) {
      const kept = [...saved.reductions.keys()].join(', ') || 'none'
      const detail = `${reduction} was not saved (saved are: ${kept}), and neither was the value to compute it from`
      throw new TensorUnavailableForStep(this.name, step, mode, detail)
    }
    return this.#reading(readOneReduction(this.#state, workerStep, saved, reduction, settings), savedStep, step, mode)
  }

  /**
   * A reduction of each line along an axis of the value, as `numpy.mean(value, axis=0)` and its like compute it: see `along` of
   * trialscan/kernels. The value is read as a whole, and reduced on the calling thread.
   * @param name any reduction but `prod` and `abs_prod`
   * @param axis from 0 on, or from -1 backwards
   * @throws as `value`; ReductionUndefined for a reduction that is not defined for the dtype; QueryError `ValueTooLarge` if a tensor
   *   without elements has more lines than `unfoldLimit` allows
   */
  async along(
    step: number,
    name: AxisReductionName,
    axis: number,
    options?: ValueOptions,
  ): Promise<TensorValue<'float64' | 'complex128'>> {
    const settings = checkOptions('tensor.along', VALUE_OPTIONS, options)
    const value = await this.value(step, settings)
    if (value.dtype === 'string') throw undefinedReduction(name, value.dtype)
    if (value.shape.includes(0)) checkResults(value.shape, axis, settings.unfoldLimit)
    const reduced = tensorValue(reduceAlong('tensor.along', elementsOf('tensor.along', value), name, axis))
    return reduced as TensorValue<'float64' | 'complex128'>
  }

  /** The reductions that the hook saved at a step, as it saved them. None are computed. @throws as `value` */
  async reductionValues(step: number, options?: SavedOptions): Promise<Map<ReductionName, ReductionValue>> {
    const settings = checkOptions('tensor.reductionValues', SAVED_OPTIONS, options)
    const { mode = 'GLOBAL', worker } = settings
    const withReductions = this.#saved.at(step, mode).find(({ workerStep, saved }) => {
      return saved.reductions.size > 0 && (worker ?? workerStep.worker) === workerStep.worker
    })
    // A value without reductions has none, also where other workers have yet to write the step.
    const savedSteps =
      withReductions ??
      (await this.#saved.find(step, mode, worker, saved => hasValue(saved) || saved.reductions.size > 0))
    const { workerStep, saved } = savedSteps
    const names = [...saved.reductions.keys()]
    const read = Promise.all(names.map(name => readOneReduction(this.#state, workerStep, saved, name, settings)))
    const values = await this.#reading(read, savedSteps, step, mode)
    return new Map(names.map((name, i) => [name, values[i] as ReductionValue]))
  }

  /**
   * The shape at a step: the one in the index file, or else that of the value's record. If the two differ,
   * `verifyTrial` reports it (`SavedShapeMismatch`), and the value has the record's.
   * @throws as `value`; ShapeUnavailableForStep if neither was saved
   */
  async shape(step: number, options?: SavedOptions): Promise<readonly number[]> {
    const settings = checkOptions('tensor.shape', SAVED_OPTIONS, options)
    const { mode = 'GLOBAL', worker } = settings
    const savedStep = await this.#saved.find(step, mode, worker, hasShape)
    const [shape] = await this.#reading(this.#shapes([savedStep], settings), savedStep, step, mode)
    if (shape) return shape
    const kept = [...savedStep.saved.reductions.keys()].join(', ')
    throw new ShapeUnavailableForStep(this.name, step, mode, `only its reductions ${kept} were saved`)
  }

  /** The shapes at all complete steps of a mode at which they are known: step → shape. */
  async shapes(options?: SavedOptions): Promise<Map<number, readonly number[]>> {
    const settings = checkOptions('tensor.shapes', SAVED_OPTIONS, options)
    const { mode = 'GLOBAL', worker } = settings
    const all = this.#saved.all(mode, worker, hasShape)
    const shapes = await this.#shapes(
      all.map(([, savedStep]) => savedStep),
      settings,
    )
    return new Map(all.flatMap(([number], i) => (shapes[i] ? [[number, shapes[i]] as const] : [])))
  }

  /** The tensor's name in the framework, if the hook saved it with a shape: `fc/kernel` for `fc.weight`. */
  get originalName(): string | undefined {
    for (const { tensors } of this.#saved.workerSteps) {
      const name = tensors.get(this.name)?.shape?.originalName
      if (name !== undefined) return name
    }
    return undefined
  }

  #valuePlace({ workerStep, saved }: SavedAtStep, step: number, mode: Mode): RecordPlace {
    if (saved.value !== null) return recordPlace(workerStep, saved.value)
    const kept =
      saved.reductions.size > 0
        ? `only its reductions ${[...saved.reductions.keys()].join(', ')} were`
        : 'only its shape was'
    throw new TensorUnavailableForStep(this.name, step, mode, `expected a saved value, but ${kept} saved`)
  }

  /** Waits for a read. If the event file is missing, the error says whether it may still come. */
  #reading<T>(read: Promise<T>, { workerStep }: SavedAtStep, step: number, mode: Mode): Promise<T> {
    return read.catch((error: unknown) => {
      // An object on S3 that is another by now: what others told is as old.
      if (error instanceof FormatError && error.code === 'ObjectChanged') this.#state.remembered.clear()
      if (!(error instanceof StoreError && error.code === 'NotFound')) throw error
      const { catalog, ended } = this.#state
      const { worker } = workerStep
      const isLost = ended || catalog.workerSteps.some(other => other.worker === worker && other.step > workerStep.step)
      const file = pathOfUrl(this.#state.access.store.url(workerStep.eventFile))
      if (!isLost) throw new StepNotYetAvailable(step, mode, `the index is there, the event file ${file} is not`)
      const reason = ended ? 'the job has ended' : `${worker} has gone on to later steps`
      throw new TensorUnavailableForStep(this.name, step, mode, `its event file ${file} is missing, and ${reason}`)
    })
  }

  /** Shapes as saved, else read from the heads of the records; null where there is neither. */
  async #shapes(savedSteps: readonly SavedAtStep[], options: SavedOptions): Promise<(readonly number[] | null)[]> {
    const unsaved = savedSteps.filter(({ saved }) => saved.shape === null && saved.value !== null)
    const read = new Map<SavedAtStep, readonly number[]>()
    if (unsaved.length > 0) {
      const places = unsaved.map(({ workerStep, saved }) => recordPlace(workerStep, saved.value!))
      const { described, failures } = await describeRecords(this.#state, places, options)
      if (failures[0]) throw errorFromData(failures[0].error)
      const shapes = shapesOf(described)
      for (const [i, savedStep] of unsaved.entries()) read.set(savedStep, shapes[i]!)
    }
    return savedSteps.map(savedStep => savedStep.saved.shape?.shape ?? read.get(savedStep) ?? null)
  }
}

/** Refuses what the shape of a tensor without elements asks for along an axis, if it is more than values may unfold to. */
function checkResults(shape: readonly number[], axis: number, unfoldLimit = UNFOLD_LIMIT): void {
  const lines = shape.filter((_, i) => i !== axis && i !== axis + shape.length)
  // Complex numbers take 16 bytes.
  const byteLength = lines.reduce((product, size) => product * size, 16)
  if (byteLength <= unfoldLimit) return
  const message = `tensor.along: expected results of at most ${unfoldLimit} bytes for a tensor without elements, got up to ${byteLength}`
  throw new QueryError('ValueTooLarge', message, { byteLength, unfoldLimit })
}
