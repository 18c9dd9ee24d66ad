/** Collects the outputs of every layer except activations, and logs their variances. */

import { Rule, type TensorValue } from 'trialscan'

export class Outputs extends Rule {
  /** By tensor and step: the value. */
  readonly tensors: Record<string, Record<number, TensorValue>> = {}

  override async invokeAtStep(step: number): Promise<boolean> {
    for (const name of this.baseTrial.tensorNames({ regex: '.*output' })) {
      if (name.includes('relu')) continue
      try {
        const variance = await this.baseTrial.tensor(name).reductionValue(step, 'variance')
        this.logger.info(`step ${step}: ${name} has outputs with variance ${variance}`)
        this.tensors[name] = { ...this.tensors[name], [step]: await this.baseTrial.tensor(name).value(step) }
      } catch (error) {
        this.logger.warn(`can't fetch ${name}: ${error}`)
      }
    }
    return false
  }
}
