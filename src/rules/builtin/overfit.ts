/** Overfit: see docs/rules.md. */

import { builtin, type Judgement } from '../base/builtin.js'
import { Losses } from '../base/losses.js'
import { Memory, type Moment } from '../base/moment.js'
import { meanOf } from '../base/scalar.js'
import { aboveText, numberText } from '../base/wording.js'
import { flag, integer, list, number } from '../parameters.js'

/** Losses of the latest run of training steps, and of the current run of validation steps. */
interface LossHistory {
  training: number[]
  validation: number[]
  /** The last step that was judged, or whose losses count. */
  last: Moment | null
  /** The number of judged validation runs, and the length of the latest series of runs that exceeded, without the current one. */
  judged: number
  waited: number
  /** True if the current run exceeds so far. */
  exceeds: boolean
  /** The lowest mean validation loss, and the mean training loss at that time. */
  best: { readonly validation: number; readonly training: number }
}

/**
 * Fires if the mean validation loss exceeds the mean loss of the preceding training by more than `ratio_threshold` of the latter, in
 * `patience` consecutive validation runs. If `rising`, it must also exceed its own lowest value by as much, while the training loss is no
 * higher than it was then; steps separated by unsaved steps are runs of their own, and steps without a loss are not judged. XGBoost's
 * trials have no modes and are judged at every step.
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
      last: null,
      judged: 0,
      waited: 0,
      exceeds: false,
      best: { validation: Number.POSITIVE_INFINITY, training: Number.POSITIVE_INFINITY },
    }),
  )

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { start_step, patience, ratio_threshold, rising } = this.parameters
    const losses = this.#losses.at(moment)
    const { hasModes } = this.#losses
    const { step, mode, worker } = moment
    const isEachRun = rising
    const runs = this.#runs.of(moment)
    yield () => {
      const { training, validation } = losses()
      const isNewRun = !hasModes || runs.last?.mode !== mode || (isEachRun && !isNext(runs.last, moment))
      runs.last = moment
      if (!hasModes || mode === 'TRAIN') {
        if (isNewRun) runs.training = []
        runs.training.push(...training)
      }
      if (!hasModes || mode === 'EVAL') {
        if (isNewRun) {
          runs.waited = runs.exceeds ? runs.waited + 1 : 0
          runs.exceeds = false
          runs.validation = []
        }
        runs.validation.push(...validation)
      }
      if ((hasModes && mode !== 'EVAL') || step < start_step) return undefined
      if (isEachRun && validation.length === 0) return undefined
      const [T, V] = [meanOf(runs.training), meanOf(runs.validation)]
      if (T === null || V === null || T === 0) return undefined
      if (isNewRun) runs.judged++
      const value = (V - T) / Math.abs(T)
      if (V < runs.best.validation) runs.best = { validation: V, training: T }
      const rise = (V - runs.best.validation) / Math.abs(runs.best.validation)
      const hasRisen = !rising || (rise > ratio_threshold && T <= runs.best.training)
      runs.exceeds = value > ratio_threshold && hasRisen
      if (!runs.exceeds) return runs.judged < patience ? undefined : null
      if (runs.waited + 1 < patience) return undefined
      const risen = rising
        ? `, and ${aboveText(V, runs.best.validation)} its lowest, ${numberText(runs.best.validation)}`
        : ''
      const above = aboveText(V, T)
      const limit = above.endsWith('times') ? numberText(1 + ratio_threshold) : `${numberText(100 * ratio_threshold)} %`
      const [validated, trained] = [lossText(V, runs.validation), lossText(T, runs.training)]
      const message = `the validation loss ${validated} is ${above} the training loss ${trained}, more than ${limit}${risen}`
      return { worker, value, threshold: ratio_threshold, message }
    }
  }

  protected override lacking(): readonly string[] {
    const missing = (['training', 'validation'] as const).filter(which => !this.#losses.hasSeen(which))
    return missing.map(which => this.#losses.describe(which))
  }
}

/** True if no steps lie between two steps of a mode: the mode step and the global step grew by the same amount. */
function isNext(last: Moment, { step, modeStep }: Moment): boolean {
  return step - last.step === modeStep - last.modeStep
}

/** A mean, with the number of its losses. */
function lossText(mean: number, losses: readonly number[]): string {
  return losses.length > 1 ? `${numberText(mean)} (the mean of ${losses.length})` : numberText(mean)
}
