/** The saved tensors by step and worker, from the index files, without values. */

import { turnsWhenDue } from '../base/turns.js'
import { MODES, type Mode } from '../base/types.js'
import { type ScanSelection, selectItems } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { type SeriesView, STATES } from './data.js'

/** The number of items between two looks at the clock. */
const AT_ONCE = 4096

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

  private constructor(
    modes: ReadonlyMap<number, { readonly mode: number; readonly modeStep: number }>,
    workers: readonly string[],
    tensors: readonly string[],
    series: readonly SeriesView[],
    seriesOf: ReadonlyMap<string, ReadonlyMap<string, number>>,
  ) {
    this.steps = [...modes.keys()].sort((a, b) => a - b)
    this.mode = this.steps.map(step => modes.get(step)!.mode)
    this.modeStep = this.steps.map(step => modes.get(step)!.modeStep)
    this.workers = workers
    this.tensors = tensors
    this.series = series
    this.#stepIndex = new Map(this.steps.map((step, i) => [step, i]))
    this.#seriesOf = seriesOf
    this.states = new Uint8Array(series.length * this.steps.length)
  }

  /** Reads the index of a trial. @throws what a scan of the selection throws */
  static async of(trial: Trial, selection: ScanSelection): Promise<Skeleton> {
    const due = turnsWhenDue()
    const modes = new Map<number, { mode: number; modeStep: number }>()
    const tensors = new Map<string, number>()
    const workers: string[] = []
    const series: SeriesView[] = []
    const seriesOf = new Map<string, Map<string, number>>()
    const present: { readonly step: number; readonly series: number }[] = []
    let seen = 0
    for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
      if (++seen % AT_ONCE === 0) await due()
      const { step, mode, modeStep, worker } = workerStep
      if (!modes.has(step)) modes.set(step, { mode: MODES.indexOf(mode), modeStep })
      if (saved === null) continue
      let ofWorker = seriesOf.get(worker)
      if (ofWorker === undefined) {
        ofWorker = new Map()
        seriesOf.set(worker, ofWorker)
        workers.push(worker)
      }
      let at = ofWorker.get(saved.tensor)
      if (at === undefined) {
        const tensor = tensors.get(saved.tensor) ?? tensors.size
        tensors.set(saved.tensor, tensor)
        at = series.push({ tensor, worker: workers.indexOf(worker) }) - 1
        ofWorker.set(saved.tensor, at)
      }
      present.push({ step, series: at })
    }
    const skeleton = new Skeleton(modes, workers, [...tensors.keys()], series, seriesOf)
    for (const { step, series } of present) {
      skeleton.states[skeleton.#cell(series, skeleton.stepAt(step)!)] = STATES.indexOf('present')
    }
    return skeleton
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

  /** Marks a value as unreadable. */
  fail(series: number, step: number): void {
    this.states[this.#cell(series, step)] = STATES.indexOf('failed')
  }

  #cell(series: number, step: number): number {
    return series * this.steps.length + step
  }
}
