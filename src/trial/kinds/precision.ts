/** Signs of mixed precision, in which the loss is scaled so that half-precision gradients don't vanish. */

import { stateOf, type Trial } from '../trial.js'

/** A training that saves tensors of this dtype may scale its loss. */
export const HALF = 'float16'

/** True if the trial has saved the scale of its loss (mixed-precision training). */
export function scalesLoss(trial: Trial): boolean {
  return stateOf(trial).catalog.names.some(name => /(loss|grad(ient)?)_?scal(e|er|ing)/i.test(name))
}
