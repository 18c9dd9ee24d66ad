/** The files of a step: an event file with its records, and then an index file with their places. */

import { shown } from '../base/arguments.js'
import { UsageError } from '../base/errors.js'
import { isObject } from '../base/options.js'
import { type Mode, REDUCTIONS, type ReductionName, type Worker } from '../base/types.js'
import { isDefined } from '../core/moments.js'
import { type IndexFile, indexFileText, type TensorLocation } from '../format/index-file.js'
import { eventFilePath, indexFilePath } from '../format/paths.js'
import { reductionTensorName } from '../format/reduction-name.js'
import { moments } from '../kernels/moments.js'
import type { Destination } from '../storage/destination.js'
import { framedRecord, type TensorRecord } from './event.js'
import { seal } from './frame.js'
import { Pipe } from './pipe.js'
import { ANY_REDUCTION, type Saved } from './save-config.js'
import type { TakenValue } from './values.js'

/** The size of a step of short tensors up to which it is written at once when it ends. */
const SHORT_STEP_BYTES = 2 << 20

export interface StepFilesOptions {
  readonly worker: Worker
  readonly checksums: boolean
  /** True to flush each file to disk before the next is written, to survive a power failure. */
  readonly isDurable: boolean
  /** The number of bytes that may wait for the store. */
  readonly queueByteLength: number
}

/** A step of a training. */
export interface StepOfTraining {
  readonly step: number
  readonly mode: Mode
  readonly modeStep: number
}

/** Further facts about a saved tensor. */
export interface TensorNote {
  readonly originalName: string
  /** The time in seconds since 1970. */
  readonly wallTime: number
}

export type ReductionEntries = readonly (readonly [ReductionName, number])[]

export class StepFiles {
  readonly at: StepOfTraining
  readonly #destination: Destination
  readonly #options: StepFilesOptions
  readonly #pipe: Pipe
  readonly #tensors: TensorLocation[] = []
  readonly #shapes: IndexFile['shapes'][number][] = []
  #eventFile: Promise<unknown> | null = null
  #byteLength = 0

  constructor(destination: Destination, at: StepOfTraining, options: StepFilesOptions) {
    this.#destination = destination
    this.at = at
    this.#options = options
    this.#pipe = new Pipe(options.queueByteLength)
  }

  /** True if nothing was added. */
  get isEmpty(): boolean {
    return this.#tensors.length + this.#shapes.length === 0
  }

  /** Adds a record. @returns a promise until which its bytes must not change; null if they were copied @throws the store's error */
  add({ wallTime, tag, shape, value }: Omit<TensorRecord, keyof StepOfTraining>): Promise<void> | null {
    const { step, mode, modeStep } = this.at
    const { isDurable, queueByteLength, checksums } = this.#options
    const pieces = framedRecord({ wallTime, step, mode, modeStep, tag, shape, value })
    const byteLength = pieces.reduce((sum, { length }) => sum + length, 0)
    this.#tensors.push({ name: tag, startByte: this.#byteLength, byteLength })
    this.#byteLength += byteLength
    const written = this.#pipe.write(pieces, checksums ? seal : undefined)
    if (written !== null || isDurable || this.#byteLength > Math.min(SHORT_STEP_BYTES, queueByteLength)) this.#begin()
    return written
  }

  /** Adds the saved parts of a tensor, in the order in which smdebug's hook writes them. @throws the store's error */
  addTensor(name: string, taken: TakenValue, saved: readonly Saved[], note: TensorNote): Promise<unknown> | null {
    const { originalName, wallTime } = note
    if (saved.some(({ saveShape }) => saveShape)) this.#shapes.push({ name, originalName, shape: taken.shape })
    let reduced: Promise<unknown> | null = null
    if ('bytes' in taken && taken.count > 0 && saved.some(({ names }) => names.length > 0)) {
      const names = new Set(saved.flatMap(parts => parts.names))
      reduced = this.addReductions(name, reductionsOf(taken, [...names]), wallTime)
    }
    if (!saved.some(({ saveRawTensor }) => saveRawTensor)) return reduced
    const value = 'bytes' in taken ? taken : taken.texts
    const written = this.add({ wallTime, tag: name, shape: taken.shape, value })
    return reduced === null ? written : Promise.all([reduced, written])
  }

  /** Adds reductions of a tensor. @throws the store's error */
  addReductions(name: string, reductions: ReductionEntries, wallTime: number): Promise<unknown> | null {
    const writes = reductions.map(([reduction, number]) => {
      const bytes = new Uint8Array(Float64Array.of(number).buffer)
      const tag = reductionTensorName(reduction, name)
      return this.add({ wallTime, tag, shape: [], value: { dtype: 'float64', bytes } })
    })
    return writes.every(write => write === null) ? null : Promise.all(writes)
  }

  /** Writes the remaining records, and then the index file. @returns the paths of the files @throws StoreError */
  async finish(): Promise<readonly string[]> {
    if (this.isEmpty) return []
    const { step, mode, modeStep } = this.at
    const { worker, isDurable } = this.#options
    const [events, index] = [eventFilePath(step, worker), indexFilePath(step, worker)]
    const hasEvents = this.#tensors.length > 0
    const atOnce = this.#eventFile === null && !isDurable
    const destination = this.#destination
    const isWritten = hasEvents && atOnce && this.#pipe.takeAll(chunks => destination.writeAtOnce(events, chunks))
    if (hasEvents && !isWritten) this.#begin()
    this.#pipe.end()
    await this.#eventFile
    const eventFile = hasEvents ? events : null
    const text = indexFileText({ mode, modeStep, eventFile, tensors: this.#tensors, shapes: this.#shapes })
    try {
      if (!atOnce || !destination.writeAtOnce(index, [Buffer.from(text)])) {
        await destination.create(index, [text], { isDurable })
      }
    } catch (error) {
      // Records without an index file are no step.
      if (eventFile !== null) destination.takeBack(events)
      throw error
    }
    return eventFile === null ? [index] : [events, index]
  }

  /** Removes the step's files. Other errors have been reported. */
  async abandon(): Promise<void> {
    this.#pipe.fail(new UsageError(`step ${this.at.step} was given up`))
    await this.#eventFile?.catch(() => {})
  }

  #begin(): void {
    if (this.#eventFile !== null) return
    const { worker, isDurable } = this.#options
    const path = eventFilePath(this.at.step, worker)
    this.#eventFile = this.#destination.create(path, this.#pipe, { isDurable }).catch(error => {
      this.#pipe.fail(error)
      throw error
    })
    // The error is reported when the step is finished.
    this.#eventFile.catch(() => {})
  }
}

/** The defined reductions that are numbers: some reductions of complex elements are complex, others undefined. */
export function reductionsOf(
  taken: Extract<TakenValue, { readonly bytes: Uint8Array }>,
  names: readonly ReductionName[],
): ReductionEntries {
  const { dtype, shape, bytes } = taken
  const defined = names.filter(name => isDefined(name, dtype))
  const row = moments({ data: bytes, dtype, shape }, defined)
  return defined.flatMap(name => {
    const value = row.reduction(name)
    return typeof value === 'number' || typeof value === 'bigint' ? [[name, Number(value)] as const] : []
  })
}

/** Reductions that were computed elsewhere. @throws UsageError for an unknown one */
export function givenReductions(reductions: Readonly<Partial<Record<ReductionName, number>>>): ReductionEntries {
  const call = 'writer.saveReductions'
  const wrong = (expected: string, got: unknown): UsageError =>
    new UsageError(`${call}: expected ${expected}, got ${shown(got)}`, { call })
  const given: readonly (readonly [string, unknown])[] = isObject(reductions) ? Object.entries(reductions) : []
  if (given.length === 0) throw wrong('numbers by the names of reductions', reductions)
  for (const [name, value] of given) {
    if (!REDUCTIONS.some(known => known === name)) throw wrong(ANY_REDUCTION, name)
    if (typeof value !== 'number') throw wrong(`${name} to be a number`, value)
  }
  return REDUCTIONS.flatMap(name => (reductions[name] === undefined ? [] : [[name, reductions[name]] as const]))
}
