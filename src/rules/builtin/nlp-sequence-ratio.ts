/** NLPSequenceRatio: see docs/rules.md. */

import { UsageError } from '../../base/errors.js'
import { builtin, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { TOKENS } from '../base/names.js'
import { numberText } from '../base/wording.js'
import { list, numbers } from '../parameters.js'

/** Fires if one of `token_values` is more than `token_thresholds_percent` of the tokens in the input sequences. */
export class NLPSequenceRatio extends builtin({
  meaning: 'The sequences are mostly one token, usually padding: time is spent on nothing.',
  advice: 'Put sequences of similar lengths into one batch, or cut them shorter.',
  parameters: {
    tensor_regex: list('.*embedding0_input_0'),
    token_values: numbers(0),
    token_thresholds_percent: numbers(50),
  },
  suggested: { tensor_regex: [TOKENS, 'the names that the hooks of PyTorch, TensorFlow and MXNet write'] },
}) {
  readonly #sequences = this.select({ regex: this.parameters.tensor_regex, value: true })

  protected override check(): void {
    const { token_values, token_thresholds_percent } = this.parameters
    const [values, thresholds] = [token_values.length, token_thresholds_percent.length]
    if (thresholds === values || thresholds === 1) return
    throw new UsageError(
      `rule ${this.ruleName}: expected one threshold, or one for each of ${values} tokens, got ${thresholds}`,
    )
  }

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const { token_values, token_thresholds_percent } = this.parameters
    for (const tensor of this.#sequences.at(moment)) {
      const { name, worker } = tensor
      for (const [i, token] of token_values.entries()) {
        const threshold = token_thresholds_percent[i] ?? token_thresholds_percent[0]!
        const count = tensor.count(token)
        yield () => {
          const value = (100 * count.value.equal) / count.value.elements
          if (!(value > threshold)) return null
          const message = `${numberText(value)} % of ${name} are the token ${token}, more than ${numberText(threshold)} %`
          return { tensor: name, worker, value, threshold, message }
        }
      }
    }
  }
}
