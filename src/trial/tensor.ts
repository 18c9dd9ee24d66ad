/** One tensor of a trial, over all its steps. */

import {
  errorFromData,
  InvalidWorker,
  StepNotYetAvailable,
  StepUnavailable,
  TensorUnavailableForStep,
  UsageError,
} from '../errors.js'
import { columnsOf, windowByteLength } from '../plan.js'
import type { RawValue } from '../pool/message.js'
import type { CheckLevel, Mode, ReductionBase, ReductionName, Worker } from '../types.js'
import { type Access, checkWorkOptions, type WorkOptions } from './access.js'
import type { Catalog, SavedTensor, WorkerStep } from './catalog.js'
import { parseReductions, type ReductionValue } from './reduction.js'
import { checkLevelNumber, recordPlace, Scan, scalarOf } from './scan.js'
import { type TensorValue, tensorValue } from './value.js'

/** Which of a tensor's values is meant. */
export interface ValueOptions extends WorkOptions {
  /** What the step counts in: global steps (GLOBAL, the default, whatever mode they were saved in) or mode steps. */
  readonly mode?: Mode
  /** Default: the first in sorted order that has data. */
  readonly worker?: Worker
  /** Default `minimal`. */
  readonly check?: CheckLevel
}

/** What a tensor asks of its trial: the catalog as it is now, and the way to the bytes. */
export interface TensorSource {
  readonly catalog: Catalog
  readonly access: Access
  readonly ended: boolean
}

export class Tensor {
  readonly name: string
  readonly #source: () => TensorSource

  /** Use `trial.tensor(name)`. */
  constructor(name: string, source: () => TensorSource) {
    this.name = name
    this.#source = source
  }

  /**
   * Steps at which the tensor was saved, ascending: global steps for GLOBAL (the default), else steps of the mode.
   * Steps that not all workers have written yet are left out, unless asked for.
   */
  steps({
    mode = 'GLOBAL',
    showIncompleteSteps = false,
  }: {
    mode?: Mode
    showIncompleteSteps?: boolean
  } = {}): number[] {
    const { catalog } = this.#source()
    const own = new Set(catalog.byTensor.get(this.name)?.map(({ step }) => step))
    const steps = catalog.steps.all.filter(
      step =>
        own.has(step.globalStep) &&
        (mode === 'GLOBAL' || step.mode === mode) &&
        (showIncompleteSteps || catalog.steps.isComplete(step)),
    )
    return [...new Set(steps.map(step => (mode === 'GLOBAL' ? step.globalStep : step.modeStep) as number))].sort(
      (a, b) => a - b,
    )
  }

  /** Workers that saved the tensor at a step, sorted. Without a step: at any. */
  workers(step?: number, { mode = 'GLOBAL' }: { mode?: Mode } = {}): Worker[] {
    const { catalog } = this.#source()
    const all = catalog.byTensor.get(this.name) ?? []
    const found = step === undefined ? all : this.#at(step, mode).map(({ workerStep }) => workerStep)
    return [...new Set(found.map(({ worker }) => worker))].sort()
  }

  /**
   * The value at a step.
   * @throws StepUnavailable, StepNotYetAvailable, TensorUnavailableForStep (also where only reductions were saved),
   *   InvalidWorker; FormatError if the record is corrupt, StoreError if it can't be read
   */
  async value(step: number, options: ValueOptions = {}): Promise<TensorValue> {
    const { mode = 'GLOBAL', worker, check = 'minimal' } = options
    const { threads, memory } = checkWorkOptions(options)
    const { workerStep, saved } = this.#one(step, mode, worker)
    if (saved.value === null) {
      const kept =
        saved.reductions.size > 0 ? `only its reductions ${[...saved.reductions.keys()].join(', ')}` : 'only its shape'
      throw new TensorUnavailableForStep(this.name, step, mode, `expected a saved value, but ${kept} were saved`)
    }
    const { access } = this.#source()
    const place = recordPlace(workerStep, saved.value)
    const runner = await access.runner(threads ?? 0, place.byteLength)
    const reply = await runner.run({
      kind: 'value',
      store: access.spec,
      checkLevel: checkLevelNumber(check),
      windowByteLength: windowByteLength(memory),
      ...columnsOf([place]),
    })
    const failure = reply.failures[0]
    if (failure) throw errorFromData(failure.error)
    return tensorValue(reply.values[0] as RawValue)
  }

  /**
   * A reduction at a step: as the hook saved it, else computed from the value.
   * @param name one of min, max, mean, std, variance, sum, prod, l1, l2
   * @param options `abs`: of the absolute values
   * @throws as `value`; TensorUnavailableForStep if neither the reduction nor the value was saved
   */
  async reductionValue(
    step: number,
    name: ReductionBase,
    options: ValueOptions & { readonly abs?: boolean } = {},
  ): Promise<ReductionValue> {
    const { mode = 'GLOBAL', worker, abs = false } = options
    if (name.startsWith('abs_')) throw new UsageError(`expected abs: true beside ${name.slice(4)}, got ${name}`)
    const [reduction] = parseReductions([abs ? `abs_${name}` : name]) as [ReductionName]
    const one = this.#one(step, mode, worker)
    const location = one.saved.reductions.get(reduction)
    if (!location && one.saved.value === null) {
      const kept = [...one.saved.reductions.keys()].join(', ') || 'none'
      throw new TensorUnavailableForStep(
        this.name,
        step,
        mode,
        `${reduction} was not saved (saved are: ${kept}), and neither was the value to compute it from`,
      )
    }
    // A saved reduction is read as the tensor of one element that it is.
    const asked: SavedTensor = location ? { ...one.saved, value: location } : one.saved
    for await (const row of this.#scan({ workerStep: one.workerStep, saved: asked }, [reduction], options)) {
      if (row.error) throw row.error
      return location ? scalarOf(row.moments!) : row.reductions[reduction]!
    }
    throw new UsageError('a scan of one tensor gave no row')
  }

  #scan(
    item: { readonly workerStep: WorkerStep; readonly saved: SavedTensor },
    reductions: readonly ReductionName[],
    options: ValueOptions,
  ): Scan {
    const { access } = this.#source()
    const { threads, memory } = checkWorkOptions(options)
    return new Scan({
      items: [item],
      reductions,
      strict: true,
      context: { store: access.spec, checkLevel: checkLevelNumber(options.check ?? 'minimal'), memory },
      runner: totalBytes => access.runner(threads, totalBytes),
      url: path => access.store.url(path),
      signal: undefined,
      onProgress: undefined,
    })
  }

  #one(step: number, mode: Mode, worker: Worker | undefined): { workerStep: WorkerStep; saved: SavedTensor } {
    const found = this.#at(step, mode)
    if (worker === undefined) return found[0]!
    const own = found.find(({ workerStep }) => workerStep.worker === worker)
    if (own === undefined) {
      throw new InvalidWorker(
        worker,
        found.map(({ workerStep }) => workerStep.worker),
      )
    }
    return own
  }

  /** What the workers saved of this tensor at a step: at least one. */
  #at(step: number, mode: Mode): { workerStep: WorkerStep; saved: SavedTensor }[] {
    const { catalog, ended } = this.#source()
    const known = catalog.steps.find(step, mode)
    if (known === undefined) {
      const numbers = catalog.steps.numbers(mode, true)
      const last = numbers.at(-1)
      const there =
        last === undefined ? 'the trial has none' : `the trial has ${numbers.length}, from ${numbers[0]} to ${last}`
      if (!ended && (last === undefined || step > last)) throw new StepNotYetAvailable(step, mode, there)
      throw new StepUnavailable(step, mode, `${there}; it was not saved`)
    }
    const found = catalog.atStep(known.globalStep).flatMap(workerStep => {
      const saved = workerStep.tensors.get(this.name)
      return saved ? [{ workerStep, saved }] : []
    })
    if (found.length > 0) return found
    const broken = catalog.atStep(known.globalStep).find(({ error }) => error !== null)
    if (broken?.error) throw broken.error
    const own = this.steps({ mode, showIncompleteSteps: true })
    const others =
      own.length > 8 ? `${own.slice(0, 8).join(', ')} and ${own.length - 8} more` : own.join(', ') || 'none'
    throw new TensorUnavailableForStep(this.name, step, mode, `it was not saved then; steps that have it: ${others}`)
  }
}
