/** Collects the weights of every layer, and logs their variances. */

import { Rule, type TensorValue } from 'trialscan'

export class WeightRatio extends Rule {
  /** By tensor and step: the value. */
  readonly tensors: Record<string, Record<number, TensorValue>> = {}

  override async invokeAtStep(step: number): Promise<boolean> {
    for (const name of this.baseTrial.tensorNames({ regex: '.*weight' })) {
      if (name.includes('gradient')) continue
      try {
        const variance = await this.baseTrial.tensor(name).reductionValue(step, 'variance')
        this.logger.info(`step ${step}: ${name} has weights with variance ${variance}`)
        this.tensors[name] = { ...this.tensors[name], [step]: await this.baseTrial.tensor(name).value(step) }
      } catch (error) {
        this.logger.warn(`can't fetch ${name}: ${error}`)
      }
    }
    return false
  }
}
