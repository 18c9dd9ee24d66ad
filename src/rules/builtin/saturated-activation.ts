/** SaturatedActivation: see docs/rules.md. */

import type { Moments } from '../../core/moments.js'
import type { Activity } from '../../trial/measure/question.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { SQUASHING_INPUTS, SQUASHING_OUTPUTS } from '../base/names.js'
import { FLAT_FROM, functionBy, functionOf, type Squashing, sigmoid } from '../base/squashing.js'
import { numberText } from '../base/wording.js'
import { list, number } from '../parameters.js'
import type { Found } from '../rule.js'

/** AWS's bounds are where float32 rounds to the limit. Gradients have all but vanished long before that. */
const FLAT = 'there the slope is less than a hundredth of what it is at 0'

/**
 * Fires if more than `threshold_layer` percent of a layer's nodes are saturated: their input lies within the bounds of tanh (or of
 * sigmoid, according to the name) for less than `threshold_inactivity` percent of the samples. Without the input, the output is judged,
 * by the function's values at these bounds.
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
    output_regex: list(),
  },
  suggested: {
    tensor_regex: [SQUASHING_INPUTS, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'],
    output_regex: [
      SQUASHING_OUTPUTS,
      'if the inputs were not saved, or their names do not show the function, the outputs do',
    ],
    threshold_tanh_min: [`-${FLAT_FROM.tanh}`, FLAT],
    threshold_tanh_max: [`${FLAT_FROM.tanh}`, FLAT],
    threshold_sigmoid_min: [`-${FLAT_FROM.sigmoid}`, FLAT],
    threshold_sigmoid_max: [`${FLAT_FROM.sigmoid}`, FLAT],
    threshold_inactivity: ['10', 'a node that is flat for nine samples in ten hardly learns'],
  },
}) {
  readonly #inputs = this.select({
    optional: this.parameters.output_regex.length > 0,
    collections: this.parameters.collection_names,
    regex: this.parameters.tensor_regex,
    except: /gradient/,
    value: true,
  })

  readonly #outputs = this.select({
    regex: this.parameters.output_regex,
    except: /gradient/,
    value: true,
    optional: true,
    quiet: true,
  })

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { threshold_inactivity } = this.parameters
    const bounds = this.#bounds
    const inputs = this.#inputs.at(moment)
    yield each(
      inputs,
      tensor => tensor.activity(...bounds[functionOf(tensor.name) ?? 'tanh'], threshold_inactivity),
      ({ value }, tensor) => this.#judge(value, tensor),
    )
    const judged = new Set(inputs.map(({ name }) => name))
    yield each(
      this.#outputs.at(moment).filter(({ name }) => !judged.has(name) && !judged.has(inputOf(name))),
      tensor => ({
        counts: tensor.counts(),
        tanh: tensor.activity(Math.tanh(bounds.tanh[0]), Math.tanh(bounds.tanh[1]), threshold_inactivity),
        sigmoid: tensor.activity(sigmoid(bounds.sigmoid[0]), sigmoid(bounds.sigmoid[1]), threshold_inactivity),
      }),
      ({ counts, tanh, sigmoid: squashed }, tensor) => {
        const squashing = functionOf(tensor.name) ?? functionIn(counts.value)
        if (squashing === null) {
          return this.needs(
            `outputs of tanh or sigmoid; the values of ${tensor.name} at step ${tensor.step} are of neither`,
          )
        }
        return this.#judge((squashing === 'tanh' ? tanh : squashed).value, tensor)
      },
    )
  }

  get #bounds() {
    const { threshold_tanh_min, threshold_tanh_max, threshold_sigmoid_min, threshold_sigmoid_max } = this.parameters
    return {
      tanh: [threshold_tanh_min, threshold_tanh_max],
      sigmoid: [threshold_sigmoid_min, threshold_sigmoid_max],
    } as const
  }

  #judge({ nodes, inactive }: Activity, { name, worker }: TensorAtStep): Found | null {
    const { threshold_layer } = this.parameters
    const value = (100 * inactive) / nodes
    if (!(value > threshold_layer)) return null
    const message = `${numberText(value)} % of the ${nodes} nodes of ${name} are saturated, more than ${numberText(threshold_layer)} %`
    return { tensor: name, worker, value, threshold: threshold_layer, message }
  }
}

/** The name of the same layer's input. */
function inputOf(output: string): string {
  return output.replace('_output', '_input').replace('/outputs', '/inputs')
}

function functionIn(moments: Moments): Squashing | null {
  if (moments.count === 0) return null
  return functionBy(moments.reduction('min') as number, moments.reduction('max') as number, moments.zeroCount)
}
