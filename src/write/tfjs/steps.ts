/** The steps of a training: tensors are kept when they are computed, and written while the training goes on. */

import { setImmediate as turnOfLoop } from 'node:timers/promises'
import { UsageError } from '../../base/errors.js'
import type { Mode } from '../../base/types.js'
import type { TrialWriter } from '../writer.js'
import type { TensorFlow, TfTensor } from './tensorflow.js'

/** The number of steps that may wait to be written before the training waits for them. */
const MAX_WAITING = 2

interface Kept {
  readonly value: TfTensor | number
  readonly collection: string
}

/** A step of a mode, from its beginning until it is written. */
export class Step {
  readonly mode: Mode
  readonly modeStep: number
  readonly #writer: TrialWriter
  readonly #tf: TensorFlow
  readonly #kept = new Map<string, Kept>()
  readonly #scalars = new Map<string, number>()
  /** The number of times that each name was numbered. */
  readonly #numbers = new Map<string, number>()

  constructor(writer: TrialWriter, tf: TensorFlow, mode: Mode, modeStep: number) {
    this.#writer = writer
    this.#tf = tf
    this.mode = mode
    this.modeStep = modeStep
  }

  /** True if there is something to write. */
  get hasTensors(): boolean {
    return this.#kept.size + this.#scalars.size > 0
  }

  has(name: string): boolean {
    return this.#kept.has(name)
  }

  wants(name: string, collection: string): boolean {
    return this.#writer.wants(name, [collection], this)
  }

  /** Keeps a tensor with its present value, if it is to be saved. The copy shares the elements: nothing is computed or fetched. */
  take(name: string, collection: string, tensor: TfTensor | number): void {
    if (!this.wants(name, collection)) return
    if (this.#kept.has(name)) {
      throw new UsageError(`${name}: expected one value a step, got another at step ${this.modeStep} of ${this.mode}`, {
        tensor: name,
      })
    }
    this.#kept.set(name, { collection, value: typeof tensor === 'number' ? tensor : kept(this.#tf, tensor) })
  }

  /** Keeps a tensor whose name can occur more than once: `name`, then `name_1`, `name_2`, … */
  takeNext(name: string, collection: string, tensor: TfTensor): void {
    const number = this.#numbers.get(name) ?? 0
    this.#numbers.set(name, number + 1)
    this.take(number === 0 ? name : `${name}_${number}`, collection, tensor)
  }

  addScalar(name: string, value: number): void {
    this.#scalars.set(name, value)
  }

  /** Fetches all kept tensors, and passes them to the writer. */
  async write(): Promise<void> {
    const saved = [...this.#kept].map(([name, { value, collection }]) => this.#writer.save(name, value, { collection }))
    const scalars = [...this.#scalars].map(([name, value]) => this.#writer.saveScalar(name, value))
    await Promise.all([...saved, ...scalars])
  }

  /** Disposes of the kept tensors. */
  dispose(): void {
    for (const { value } of this.#kept.values()) if (typeof value !== 'number') value.dispose()
    this.#kept.clear()
    this.#scalars.clear()
  }
}

function kept(tf: TensorFlow, tensor: TfTensor): TfTensor {
  const copy = tensor.clone()
  tf.keep(copy as never)
  return copy
}

/** The steps of a trial, in the order in which they begin. */
export class Steps {
  readonly #writer: TrialWriter
  readonly #tf: TensorFlow
  readonly #modeSteps = new Map<Mode, number>()
  /** The functions that end the steps that have not ended. */
  readonly #ends = new Map<Step, () => void>()
  /** A promise for the writing of all steps so far. */
  #written: Promise<void> = Promise.resolve()
  #waiting = 0
  #failure: unknown = null
  /** Called as soon as the tensors of a step can be read. The training waits for it. */
  onWritten: (() => Promise<void>) | null = null

  constructor(writer: TrialWriter, tf: TensorFlow) {
    this.#writer = writer
    this.#tf = tf
  }

  begin(mode: Mode): Step {
    const modeStep = this.#modeSteps.get(mode) ?? 0
    this.#modeSteps.set(mode, modeStep + 1)
    const step = new Step(this.#writer, this.#tf, mode, modeStep)
    const ended = new Promise<void>(resolve => this.#ends.set(step, resolve))
    this.#written = this.#written.then(() => ended).then(() => this.#write(step))
    return step
  }

  end(step: Step): void {
    if (step.hasTensors) this.#waiting++
    this.#ends.get(step)?.()
    this.#ends.delete(step)
  }

  /** Waits until the training may go on. @throws an error of writing */
  async room(): Promise<void> {
    if (this.#waiting > 0) {
      if (this.onWritten !== null) await this.#written
      else {
        // A training that never waits for anything else would leave no turn for files.
        do await turnOfLoop()
        while (this.#waiting > MAX_WAITING)
      }
    }
    this.#expectNoFailure()
  }

  /** Waits until all steps that have ended are written. @throws an error of writing */
  async flush(): Promise<void> {
    // A step that never ended has failed.
    for (const step of [...this.#ends.keys()]) {
      step.dispose()
      this.end(step)
    }
    await this.#written
    this.#expectNoFailure()
  }

  async #write(step: Step): Promise<void> {
    const isWaiting = step.hasTensors
    try {
      if (this.#failure !== null) return
      this.#writer.setMode(step.mode)
      await this.#writer.step()
      await step.write()
      if (isWaiting && this.onWritten !== null) {
        step.dispose()
        await this.#writer.flush()
        await this.onWritten()
      }
    } catch (error) {
      this.#failure ??= error
    } finally {
      step.dispose()
      if (isWaiting) this.#waiting--
    }
  }

  #expectNoFailure(): void {
    if (this.#failure !== null) throw this.#failure
  }
}
