/** Collects the gradients of every layer, and logs their ranges. */

import { Rule, type TensorValue } from 'trialscan'

export class GradientsLayer extends Rule {
  /** By tensor and step: the value. */
  readonly tensors: Record<string, Record<number, TensorValue>> = {}

  override async invokeAtStep(step: number): Promise<boolean> {
    for (const tensor of this.baseTrial.tensorNames({ regex: '.*gradient' }).map(name => this.baseTrial.tensor(name))) {
      try {
        const range = await Promise.all([tensor.reductionValue(step, 'min'), tensor.reductionValue(step, 'max')])
        this.logger.info(`step ${step}: ${tensor.name} has gradients from ${range.join(' to ')}`)
        this.tensors[tensor.name] = { ...this.tensors[tensor.name], [step]: await tensor.value(step) }
      } catch (error) {
        this.logger.warn(`can't fetch ${tensor.name}: ${error}`)
      }
    }
    return false
  }
}
