/** The saved tensors by step and worker without any value, from the index files. */

import { MODES, type Mode } from '../base/types.js'
import { type ScanSelection, selectItems } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { type SeriesView, STATES } from './data.js'

export class Skeleton {
  /** Global steps, ascending. */
  readonly steps: readonly number[]
  /** The mode of each step as an index into MODES, and its number within the mode. */
  readonly mode: readonly number[]
  readonly modeStep: readonly number[]
  readonly workers: readonly string[]
  /** Names, in the order in which they were first saved. */
  readonly tensors: readonly string[]
  readonly series: readonly SeriesView[]
  /** The state of each series and step, as an index into STATES. */
  readonly states: Uint8Array<ArrayBuffer>
  readonly #stepIndex: ReadonlyMap<number, number>
  readonly #seriesOf: ReadonlyMap<string, ReadonlyMap<string, number>>

  /** @throws what a scan of the selection throws */
  constructor(trial: Trial, selection: ScanSelection) {
    const items = selectItems(stateOf(trial), trial.name, selection)
    const found = new Map<number, { mode: number; modeStep: number }>()
    const tensors = new Map<string, number>()
    const workers: string[] = []
    const series: SeriesView[] = []
    const seriesOf = new Map<string, Map<string, number>>()
    for (const { workerStep, saved } of items) {
      const { step, mode, modeStep, worker } = workerStep
      if (!found.has(step)) found.set(step, { mode: MODES.indexOf(mode), modeStep })
      if (saved === null) continue
      const own = seriesOf.get(worker) ?? new Map<string, number>()
      if (own.size === 0) {
        seriesOf.set(worker, own)
        workers.push(worker)
      }
      if (own.has(saved.tensor)) continue
      const tensor = tensors.get(saved.tensor) ?? tensors.size
      tensors.set(saved.tensor, tensor)
      own.set(saved.tensor, series.push({ tensor, worker: workers.indexOf(worker) }) - 1)
    }
    this.steps = [...found.keys()].sort((a, b) => a - b)
    this.mode = this.steps.map(step => found.get(step)!.mode)
    this.modeStep = this.steps.map(step => found.get(step)!.modeStep)
    this.workers = workers
    this.tensors = [...tensors.keys()]
    this.series = series
    this.#stepIndex = new Map(this.steps.map((step, i) => [step, i]))
    this.#seriesOf = seriesOf
    this.states = new Uint8Array(series.length * this.steps.length)
    for (const { workerStep, saved } of items) {
      if (saved === null) continue
      this.states[this.#cell(this.seriesAt(workerStep.worker, saved.tensor)!, this.stepAt(workerStep.step)!)] =
        STATES.indexOf('present')
    }
  }

  /** The index of a step. */
  stepAt(step: number): number | undefined {
    return this.#stepIndex.get(step)
  }

  /** The mode of a step. */
  modeAt(step: number): Mode {
    return MODES[this.mode[this.stepAt(step)!]!]!
  }

  /** The index of a series. */
  seriesAt(worker: string, tensor: string): number | undefined {
    return this.#seriesOf.get(worker)?.get(tensor)
  }

  /** Notes that what was saved can't be read. */
  fail(series: number, step: number): void {
    this.states[this.#cell(series, step)] = STATES.indexOf('failed')
  }

  #cell(series: number, step: number): number {
    return series * this.steps.length + step
  }
}
