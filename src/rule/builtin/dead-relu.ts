/** DeadRelu (rules.md §2.5). */

import { list, number } from '../parameters.js'
import { builtin, each, figure, type Judgements, type Moment } from './builtin.js'

/**
 * Fires where more than `threshold_layer` percent of a layer's ReLUs are dead: their output is above zero for less than
 * `threshold_inactivity` percent of the samples.
 */
export class DeadRelu extends builtin({
  meaning: 'Many ReLUs put out nothing but zeros: they get no gradient, and will not come back.',
  advice: 'Lower the learning rate, initialise biases at or above zero, or use a ReLU that leaks.',
  parameters: { tensor_regex: list('.*relu_output'), threshold_inactivity: number(1), threshold_layer: number(50) },
}) {
  readonly #outputs = this.select({ regex: this.parameters.tensor_regex, except: /gradient/, value: true })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold_inactivity, threshold_layer } = this.parameters
    yield each(
      this.#outputs.at(moment),
      // Without an upper bound: an output of Infinity is active, too.
      tensor => tensor.activity(0, Number.NaN, threshold_inactivity),
      ({ value: { nodes, inactive } }, { name, worker }) => {
        const value = (100 * inactive) / nodes
        if (!(value > threshold_layer)) return null
        const message = `${figure(value)} % of the ${nodes} ReLUs of ${name} are dead, more than ${figure(threshold_layer)} %`
        return { tensor: name, worker, value, threshold: threshold_layer, message }
      },
    )
  }
}
