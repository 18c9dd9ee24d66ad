/** Numbers of tensors over the steps of a training, from the rows of a scan. */

import { entryOf } from '../../base/maps.js'
import type { GlobalStep, Mode, StatisticName, Worker } from '../../base/types.js'
import type { ScanRow } from '../../scan/job/row.js'
import { type Kind, kindsOf } from '../../trial/kinds/kinds.js'
import type { Trial } from '../../trial/trial.js'
import type { Update } from '../judged.js'

/** The statistics that lines are made of. */
export const LINE_STATISTICS = [
  'mean',
  'abs_mean',
  'nan_count',
  'inf_count',
] as const satisfies readonly StatisticName[]

const KINDS_OF_LINES: ReadonlySet<Kind> = new Set(['losses', 'metrics', 'gradients', 'weights'])

/** One number of a tensor over the steps of a mode; of several workers their mean. */
export interface OverviewLine {
  readonly tensor: string
  readonly mode: Mode
  /** Global steps, ascending. */
  readonly steps: readonly GlobalStep[]
  /** A value for each step. */
  readonly values: readonly number[]
}

/** The place at which a tensor first had non-finite elements. */
export interface NotFinite {
  readonly tensor: string
  readonly step: GlobalStep
  readonly worker: Worker
  readonly nan: number
  readonly infinite: number
}

interface Line extends OverviewLine {
  readonly steps: GlobalStep[]
  readonly values: number[]
  /** The number of workers in the last value. */
  workers: number
}

/** Numbers by kind, tensor and mode. Rows come in the order of steps. */
export class Lines {
  readonly #kindOf: (name: string) => Kind
  /** Lines by kind, then by mode and tensor. */
  readonly #lines = new Map<string, Map<string, Line>>()
  readonly #modes = new Map<number, Mode>()
  readonly #tensors = new Set<string>()
  readonly #notFinite = new Map<string, NotFinite>()

  constructor(trial: Trial) {
    this.#kindOf = kindsOf(trial)
  }

  /** Adds a row. @param row a scan's row with LINE_STATISTICS */
  add({ tensor, step, mode, worker, reductions }: ScanRow): void {
    if (tensor === null) return
    this.#modes.set(step, mode)
    this.#tensors.add(tensor)
    const kind = this.#kindOf(tensor)
    const { mean, abs_mean, nan_count: nan = 0, inf_count: infinite = 0 } = reductions
    const number = kind === 'losses' || kind === 'metrics' ? mean : abs_mean
    if (KINDS_OF_LINES.has(kind) && typeof number === 'number') this.#add(kind, tensor, mode, step, number)
    if (typeof nan !== 'number' || typeof infinite !== 'number' || nan + infinite === 0) return
    // XGBoost's tree tables have NaN for whatever a leaf lacks.
    if (!this.#notFinite.has(tensor) && !tensor.startsWith('trees/')) {
      this.#notFinite.set(tensor, { tensor, step, worker, nan, infinite })
    }
  }

  /** Adds an update of a tensor. Rows of its step were added before. */
  addUpdate({ tensor, step, ratio }: Update): void {
    const mode = this.#modes.get(step)
    if (mode !== undefined && this.#tensors.has(tensor)) this.#add('updates', tensor, mode, step as GlobalStep, ratio)
  }

  #add(kind: Kind | 'updates', tensor: string, mode: Mode, step: GlobalStep, number: number): void {
    const ofKind = entryOf(this.#lines, kind, () => new Map<string, Line>())
    const key = `${mode}\n${tensor}`
    const line = entryOf(ofKind, key, () => ({ tensor, mode, steps: [], values: [], workers: 0 }))
    if (line.steps.at(-1) !== step) {
      line.steps.push(step)
      line.values.push(number)
      line.workers = 1
      return
    }
    // The step has another worker's value already.
    line.workers++
    const at = line.values.length - 1
    line.values[at]! += (number - line.values[at]!) / line.workers
  }

  /** The lines of a kind, in the order in which their tensors were saved. */
  of(kind: Kind | 'updates'): OverviewLine[] {
    return Array.from(this.#lines.get(kind)?.values() ?? [], ({ tensor, mode, steps, values }) => {
      return { tensor, mode, steps, values }
    })
  }

  /** Lines of the training steps: a job that set no mode saved all its steps as GLOBAL ones. */
  training(kind: Kind | 'updates'): OverviewLine[] {
    const isTrained = [...this.#modes.values()].includes('TRAIN')
    return this.of(kind).filter(({ mode }) => mode === (isTrained ? 'TRAIN' : 'GLOBAL'))
  }

  /** The first step of each tensor with NaN or infinities, in the order of steps. */
  get notFinite(): readonly NotFinite[] {
    return [...this.#notFinite.values()]
  }
}
