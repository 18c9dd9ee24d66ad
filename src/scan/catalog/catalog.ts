/** The content of a trial and where it lies, according to its index files. Immutable. */

import type { GlobalStep, Mode, Worker } from '../../base/types.js'
import { type IndexRows, SavedRows } from './columns/saved-rows.js'
import { type Completeness, type Step, Steps } from './steps.js'
import { TensorSteps } from './tensor-steps.js'
import { inOrderOfWorkers, type WorkerStep, WorkerSteps } from './worker-steps.js'

export interface CatalogOptions extends Omit<Completeness, 'numWorkers'> {
  /** The number of workers; null for as many as are found. */
  readonly numWorkers: number | null
  /** True if Tornasole wrote the trial. */
  readonly isTornasole: boolean
}

export class Catalog {
  /** The steps of workers, by global step, then worker. */
  readonly workerSteps: WorkerSteps
  /** The names of the workers, sorted. */
  readonly workers: readonly Worker[]
  readonly steps: Steps
  readonly #rows: SavedRows
  #byTensor: TensorSteps | undefined
  /** The last result of `atStep`. */
  #latest: { readonly globalStep: number; readonly found: readonly WorkerStep[] } | undefined
  #names: readonly string[] | undefined

  static async of(index: IndexRows, options: CatalogOptions): Promise<Catalog> {
    const { numWorkers, isTornasole, ...completeness } = options
    const rows = new SavedRows(index, isTornasole)
    const workers = rows.workers()
    const steps = await Steps.of(rows, { ...completeness, numWorkers: numWorkers ?? workers.length })
    return new Catalog(rows, workers, steps)
  }

  private constructor(rows: SavedRows, workers: readonly Worker[], steps: Steps) {
    this.#rows = rows
    this.workers = workers
    this.steps = steps
    const stepOf = (globalStep: GlobalStep): Step => steps.get(globalStep)!
    this.workerSteps = new WorkerSteps({
      length: rows.length,
      stepAt: place => rows.stepAt(place),
      workerStepAt: place => rows.workerStepAt(place, stepOf),
    })
  }

  /** The steps of each tensor, by step and worker. Names are in the order of their first appearance. */
  get byTensor(): TensorSteps {
    this.#byTensor ??= new TensorSteps(this.#rows, this.workerSteps)
    return this.#byTensor
  }

  /** The names of all saved tensors, sorted. */
  get names(): readonly string[] {
    this.#names ??= [...this.byTensor.keys()].sort()
    return this.#names
  }

  /** The steps of workers at a global step, in the order of the workers' names. */
  atStep(globalStep: number): readonly WorkerStep[] {
    // Many rules ask about the same step in a row.
    if (this.#latest?.globalStep === globalStep) return this.#latest.found
    const workerSteps: WorkerStep[] = []
    for (let i = this.workerSteps.before(globalStep); this.workerSteps.stepAt(i) === globalStep; i++) {
      workerSteps.push(this.workerSteps.at(i)!)
    }
    this.#latest = { globalStep, found: workerSteps }
    return workerSteps
  }

  /**
   * The steps of workers with that number: a global step for GLOBAL, else a step of the mode. In the order of the workers' names; if a
   * worker wrote several global steps under that number, the last one first.
   */
  at(number: number, mode: Mode): readonly WorkerStep[] {
    if (mode === 'GLOBAL') return this.atStep(number)
    const steps = this.steps.at(number, mode)
    const found = steps.flatMap(({ globalStep }) =>
      this.atStep(globalStep).filter(saved => saved.mode === mode && saved.modeStep === number),
    )
    return steps.length > 1 ? inOrderOfWorkers(found) : found
  }
}
