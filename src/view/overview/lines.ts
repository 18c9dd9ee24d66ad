/** Numbers of tensors over the steps of a training, from the rows of a scan. */

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
  /** Ascending. */
  readonly steps: readonly GlobalStep[]
  /** One for each of the steps. */
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

/** Numbers by kind, tensor and mode. Rows come in the order of steps. */
export class Lines {
  readonly #kindOf: (name: string) => Kind
  readonly #lines = new Map<string, { tensor: string; mode: Mode; steps: GlobalStep[]; values: number[] }>()
  readonly #counts = new Map<string, number>()
  readonly #modes = new Map<number, Mode>()
  readonly #tensors = new Set<string>()
  readonly #notFinite = new Map<string, NotFinite>()

  constructor(trial: Trial) {
    this.#kindOf = kindsOf(trial)
  }

  /** @param row with LINE_STATISTICS */
  add({ tensor, step, mode, worker, reductions }: ScanRow): void {
    if (tensor === null) return
    this.#modes.set(step, mode)
    this.#tensors.add(tensor)
    const kind = this.#kindOf(tensor)
    const { mean, abs_mean, nan_count: nan = 0, inf_count: infinite = 0 } = reductions
    const number = kind === 'losses' || kind === 'metrics' ? mean : abs_mean
    if (KINDS_OF_LINES.has(kind) && typeof number === 'number') this.#add(kind, tensor, mode, step, number)
    if (typeof nan !== 'number' || typeof infinite !== 'number' || nan + infinite === 0) return
    // Trees of XGBoost have NaN for whatever a leaf lacks.
    if (!this.#notFinite.has(tensor) && !tensor.startsWith('trees/')) {
      this.#notFinite.set(tensor, { tensor, step, worker, nan, infinite })
    }
  }

  /** Adds an update of a tensor at a step of which rows were added. */
  addUpdate({ tensor, step, ratio }: Update): void {
    const mode = this.#modes.get(step)
    if (mode !== undefined && this.#tensors.has(tensor)) this.#add('updates', tensor, mode, step as GlobalStep, ratio)
  }

  #add(kind: Kind | 'updates', tensor: string, mode: Mode, step: GlobalStep, number: number): void {
    const key = `${kind}\n${mode}\n${tensor}`
    const line = this.#lines.get(key) ?? { tensor, mode, steps: [], values: [] }
    this.#lines.set(key, line)
    if (line.steps.at(-1) !== step) {
      line.steps.push(step)
      line.values.push(number)
      this.#counts.set(key, 1)
      return
    }
    // Another worker's.
    const count = this.#counts.get(key)! + 1
    this.#counts.set(key, count)
    const at = line.values.length - 1
    line.values[at]! += (number - line.values[at]!) / count
  }

  /** In the order in which the tensors were saved. */
  of(kind: Kind | 'updates'): OverviewLine[] {
    return [...this.#lines].filter(([key]) => key.startsWith(`${kind}\n`)).map(([, line]) => line)
  }

  /** Lines of the training steps: a job that set no mode saved all its steps as GLOBAL ones. */
  training(kind: Kind | 'updates'): OverviewLine[] {
    const isTrained = [...this.#modes.values()].includes('TRAIN')
    return this.of(kind).filter(({ mode }) => mode === (isTrained ? 'TRAIN' : 'GLOBAL'))
  }

  /** In the order of steps: where each tensor first had NaN or infinities. */
  get notFinite(): readonly NotFinite[] {
    return [...this.#notFinite.values()]
  }
}
