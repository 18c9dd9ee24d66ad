/** TreeDepth: see docs/rules.md. */

import { builtin, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import { number } from '../parameters.js'

/** Fires if a tree is deeper than `depth`: ⌊log₂(largest node id + 1)⌋, the least depth of a binary tree with such ids. */
export class TreeDepth extends builtin({
  meaning: 'Trees grow deep: they fit single samples.',
  advice: 'Lower max_depth, or raise min_child_weight or gamma.',
  parameters: { depth: number(4) },
  suggested: { depth: ['10', "XGBoost's own default lets trees grow 6 deep, and sound trainings use up to 10"] },
}) {
  readonly #nodes = this.select({ names: ['trees/Node'] })

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { depth } = this.parameters
    for (const tensor of this.#nodes.at(moment)) {
      const largest = tensor.reduction('max')
      yield () => {
        const value = Math.floor(Math.log2((largest.value as number) + 1))
        if (!(value > depth)) return null
        const message = `the tree is at least ${value} deep, more than ${numberText(depth)}`
        return { tensor: tensor.name, worker: tensor.worker, value, threshold: depth, message }
      }
    }
  }
}
