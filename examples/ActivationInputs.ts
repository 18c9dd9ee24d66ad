/** Collects the batch means of the inputs of ReLU layers, and logs the share that is not above zero. */

import { Rule } from 'trialscan'

export class ActivationInputs extends Rule {
  /** By tensor and step: the mean over the batch, element by element. */
  readonly tensors: Record<string, Record<number, Float64Array>> = {}

  override async invokeAtStep(step: number): Promise<boolean> {
    for (const name of this.baseTrial.tensorNames({ regex: '.*relu[0-9]*_input' })) {
      if (name.includes('gradients')) continue
      try {
        const { data, shape } = await this.baseTrial.tensor(name).value(step)
        const values = Array.from(data, Number)
        const percent = (100 * values.filter(value => value <= 0).length) / values.length
        if (percent > 0) this.logger.info(`step ${step}: ${percent} % of the inputs in ${name} are not above zero`)
        const means = new Float64Array(values.length / shape[0]!)
        for (const [i, value] of values.entries()) means[i % means.length]! += value / shape[0]!
        this.tensors[name] = { ...this.tensors[name], [step]: means }
      } catch (error) {
        this.logger.warn(`can't fetch ${name}: ${error}`)
      }
    }
    return false
  }
}
