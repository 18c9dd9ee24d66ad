/** Overtraining: see docs/rules.md. */

import { builtin, type Judgement } from '../base/builtin.js'
import { Losses } from '../base/losses.js'
import { Memory, type Moment } from '../base/moment.js'
import { meanOf } from '../base/scalar.js'
import { numberText } from '../base/wording.js'
import { integer, number } from '../parameters.js'

/** The best loss so far, and the number of steps without an improvement. */
class Best {
  loss = Number.POSITIVE_INFINITY
  waited = 0
  seen = 0

  /** @param loss the loss; null if this step has none */
  see(loss: number | null, delta: number): void {
    if (loss === null) return
    this.seen++
    if (loss < this.loss - delta || (this.loss === Number.POSITIVE_INFINITY && loss < this.loss)) {
      this.loss = loss
      this.waited = 0
    } else this.waited++
  }
}

/**
 * Fires if the training loss has not improved by `delta` for `patience_train` training steps, or the validation loss for
 * `patience_validation` validation steps.
 */
export class Overtraining extends builtin({
  meaning: 'The training goes on although the losses no longer get better.',
  advice: 'Stop here: keep the weights of the best step, and save the remaining time.',
  parameters: {
    patience_train: integer(5, { min: 1 }),
    patience_validation: integer(10, { min: 1 }),
    delta: number(0.01, { min: 0 }),
  },
  onlyByName:
    'a loss that has converged is no fault; not everybody wants to know that a training could have ended earlier',
}) {
  readonly #losses = new Losses(this, choice => this.select(choice))
  readonly #best = new Memory(() => ({ training: new Best(), validation: new Best() }))

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { patience_train, patience_validation, delta } = this.parameters
    const losses = this.#losses.at(moment)
    const best = this.#best.of(moment)
    yield () => {
      const [training, validation] = [meanOf(losses().training), meanOf(losses().validation)]
      if (training === null && validation === null) return undefined
      best.training.see(training, delta)
      best.validation.see(validation, delta)
      const kinds = [
        ['training', best.training, patience_train] as const,
        ['validation', best.validation, patience_validation] as const,
      ]
      const stuck = kinds.filter(([, { waited }, patience]) => waited >= patience)
      // The first loss is what the others are compared with.
      if (stuck.length === 0 && kinds.every(([, { seen }, patience]) => seen <= patience)) return undefined
      return stuck.map(([which, { loss, waited }, patience]) => ({
        worker: moment.worker,
        value: waited,
        threshold: patience,
        message: `the ${which} loss has not got better than ${numberText(loss)} for ${waited} steps`,
      }))
    }
  }

  protected override lacking(): readonly string[] {
    const which = ['training', 'validation'] as const
    return which.some(loss => this.#losses.hasSeen(loss)) ? [] : which.map(loss => this.#losses.describe(loss))
  }
}
