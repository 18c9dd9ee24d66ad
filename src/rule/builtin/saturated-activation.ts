/** SaturatedActivation (rules.md §2.4). */

import { list, number } from '../parameters.js'
import { builtin, each, figure, type Judgements, type Moment } from './builtin.js'

/**
 * Fires where more than `threshold_layer` percent of a layer's nodes are saturated: their input lies within the bounds
 * of tanh (or of sigmoid, where the name says so) for less than `threshold_inactivity` percent of the samples.
 */
export class SaturatedActivation extends builtin({
  meaning: 'Activations are driven into their flat ends, where gradients vanish.',
  advice:
    'Normalise the inputs of the layer, initialise with a smaller variance, or use ReLU in place of tanh and sigmoid.',
  parameters: {
    collection_names: list(),
    tensor_regex: list('.*tanh_input|.*sigmoid_input'),
    threshold_tanh_min: number(-9.4999),
    threshold_tanh_max: number(9.4999),
    threshold_sigmoid_min: number(-23),
    threshold_sigmoid_max: number(16.99999),
    threshold_inactivity: number(1),
    threshold_layer: number(50),
  },
}) {
  readonly #inputs = this.select({
    collections: this.parameters.collection_names,
    regex: this.parameters.tensor_regex,
    except: /gradient/,
    value: true,
  })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold_inactivity, threshold_layer, ...bounds } = this.parameters
    yield each(
      this.#inputs.at(moment),
      tensor =>
        tensor.name.toLowerCase().includes('sigmoid')
          ? tensor.activity(bounds.threshold_sigmoid_min, bounds.threshold_sigmoid_max, threshold_inactivity)
          : tensor.activity(bounds.threshold_tanh_min, bounds.threshold_tanh_max, threshold_inactivity),
      ({ value: { nodes, inactive } }, { name, worker }) => {
        const value = (100 * inactive) / nodes
        if (!(value > threshold_layer)) return null
        const message = `${figure(value)} % of the ${nodes} nodes of ${name} are saturated, more than ${figure(threshold_layer)} %`
        return { tensor: name, worker, value, threshold: threshold_layer, message }
      },
    )
  }
}
