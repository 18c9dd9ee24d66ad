/** DeadRelu: see docs/rules.md. */

import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { RELU_OUTPUTS } from '../base/names.js'
import { numberText } from '../base/wording.js'
import { list, number } from '../parameters.js'

/**
 * Fires if more than `threshold_layer` percent of a layer's ReLUs are dead: their output is above zero for less than
 * `threshold_inactivity` percent of the samples. Healthy ReLUs are active in `expected_activity` percent of the samples; the share of
 * them that is silent by chance is not counted as dead. If less than 100 is expected, layers with NaN are skipped.
 */
export class DeadRelu extends builtin({
  meaning: 'Many ReLUs output nothing but zeros: they get no gradient, and will not recover.',
  advice: 'Lower the learning rate, initialise biases at or above zero, or use a leaky ReLU.',
  parameters: {
    tensor_regex: list('.*relu_output'),
    collection_names: list(),
    threshold_inactivity: number(1),
    threshold_layer: number(50),
    expected_activity: number(100, { above: 0, max: 100 }),
  },
  suggested: {
    tensor_regex: [RELU_OUTPUTS, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'],
    collection_names: ['relu_output', "the collection that SageMaker's configuration of the rule saves"],
    expected_activity: [
      '10',
      'with few samples many healthy ReLUs are silent by chance; that share does not mean that they are dead',
    ],
  },
}) {
  readonly #outputs = this.select({
    regex: this.parameters.tensor_regex,
    collections: this.parameters.collection_names,
    except: /gradient/,
    value: true,
  })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold_inactivity, threshold_layer, expected_activity } = this.parameters
    yield each(
      this.#outputs.at(moment),
      // NaN as upper bound means none, since an output of Infinity is active, too.
      tensor => ({ activity: tensor.activity(0, Number.NaN, threshold_inactivity), counts: tensor.counts() }),
      ({ activity, counts }, { name, step, worker }) => {
        // NaN does not count as active, but is no sign of a dead ReLU.
        if (expected_activity < 100 && counts.value.nanCount > 0)
          return this.needs(`outputs without NaN; ${name} has some at step ${step}`)
        const { nodes, inactive } = activity.value
        const value = (100 * inactive) / nodes
        // The share of healthy ReLUs that are silent in so few samples.
        const byChance = (1 - expected_activity / 100) ** (counts.value.count / nodes)
        if (!(value > 100 * byChance + threshold_layer * (1 - byChance))) return null
        const message = `${numberText(value)} % of the ${nodes} ReLUs of ${name} are dead, more than ${numberText(threshold_layer)} %`
        return { tensor: name, worker, value, threshold: threshold_layer, message }
      },
    )
  }
}
