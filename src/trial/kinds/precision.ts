/** Signs of mixed precision, in which the loss is scaled so that half-precision gradients don't vanish. */

import { stateOf, type Trial } from '../trial.js'

/** A training that saves tensors of this dtype may scale its loss. */
export const HALF = 'float16'

/** Whether the trial has saved a scale of its loss. */
export function scalesLoss(trial: Trial): boolean {
  return stateOf(trial).catalog.names.some(name => /(loss|grad(ient)?)_?scal(e|er|ing)/i.test(name))
}
