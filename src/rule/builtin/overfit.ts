/** Overfit (rules.md §2.10). */

import type { Mode } from '../../types.js'
import { builtin, type Judgement } from '../base/builtin.js'
import { Losses } from '../base/losses.js'
import { Memory, type Moment } from '../base/moment.js'
import { meanOf } from '../base/scalar.js'
import { numberText } from '../base/wording.js'
import { flag, integer, list, number } from '../parameters.js'

/** Losses of the latest run of training steps, and of the current run of validation steps. */
interface LossHistory {
  training: number[]
  validation: number[]
  lastMode: Mode | null
  waited: number
  /** The lowest mean validation loss, and the mean training loss at that time. */
  best: { readonly validation: number; readonly training: number }
}

/**
 * Fires where the mean validation loss exceeds the mean loss of the training before it by more than `ratio_threshold` of the
 * latter, at `patience` consecutive validation steps. If `rising`, it must also exceed its own lowest value by as much, while
 * the training loss is no higher than it was then. XGBoost's trials, which have no modes, are judged at every step.
 */
export class Overfit extends builtin({
  meaning: 'The model does better on its training data than on other data: it memorises them.',
  advice: 'Regularise (weight decay, dropout), augment the data or get more of them, or stop earlier.',
  parameters: {
    tensor_regex: list(),
    start_step: integer(0, { min: 0 }),
    patience: integer(1, { min: 1 }),
    ratio_threshold: number(0.1),
    rising: flag(false),
  },
  suggested: {
    patience: ['2', 'a single evaluation may be an outlier'],
    rising: ['true', 'a gap alone is normal: a model has memorised its data when the validation loss goes up again'],
  },
}) {
  readonly #losses = new Losses(this, choice => this.select(choice), this.parameters.tensor_regex)
  readonly #runs = new Memory(
    (): LossHistory => ({
      training: [],
      validation: [],
      lastMode: null,
      waited: 0,
      best: { validation: Number.POSITIVE_INFINITY, training: Number.POSITIVE_INFINITY },
    }),
  )

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { start_step, patience, ratio_threshold, rising } = this.parameters
    const losses = this.#losses.at(moment)
    const { hasModes } = this.#losses
    const { step, mode, worker } = moment
    const runs = this.#runs.of(moment)
    yield () => {
      const { training, validation } = losses()
      const isNewRun = !hasModes || mode !== runs.lastMode
      runs.lastMode = mode
      if (!hasModes || mode === 'TRAIN') {
        if (isNewRun) runs.training = []
        runs.training.push(...training)
      }
      if (!hasModes || mode === 'EVAL') {
        if (isNewRun) runs.validation = []
        runs.validation.push(...validation)
      }
      if ((hasModes && mode !== 'EVAL') || step < start_step) return null
      const [T, V] = [meanOf(runs.training), meanOf(runs.validation)]
      if (T === null || V === null || T === 0) return null
      const value = (V - T) / Math.abs(T)
      if (V < runs.best.validation) runs.best = { validation: V, training: T }
      const rise = (V - runs.best.validation) / Math.abs(runs.best.validation)
      const hasRisen = !rising || (rise > ratio_threshold && T <= runs.best.training)
      runs.waited = value > ratio_threshold && hasRisen ? runs.waited + 1 : 0
      if (runs.waited < patience) return null
      const risen = rising
        ? `, and ${numberText(100 * rise)} % above its lowest, ${numberText(runs.best.validation)}`
        : ''
      const message = `the validation loss ${numberText(V)} is ${numberText(100 * value)} % above the training loss ${numberText(T)}, more than ${numberText(100 * ratio_threshold)} %${risen}`
      return { worker, value, threshold: ratio_threshold, message }
    }
  }

  protected override lacking(): readonly string[] {
    const missing = (['training', 'validation'] as const).filter(which => !this.#losses.hasSeen(which))
    return missing.map(which => this.#losses.describe(which))
  }
}
