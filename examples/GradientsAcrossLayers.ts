/**
 * Collects the smallest and the largest variance of gradients across layers, and logs them. setRequiredTensors asks
 * only for variances: `evaluate` reads them together with what other rules need, and provides no values.
 */

import { Rule } from 'trialscan'

export class GradientsAcrossLayers extends Rule {
  /** By step: the smallest variance and the largest. */
  readonly tensors: Record<number, readonly [min: number, max: number]> = {}

  override setRequiredTensors(step: number): void {
    const names = this.baseTrial.tensorNames({ regex: '.*gradient', step })
    for (const name of names) this.reqTensors.at(name, step).reduction('variance')
  }

  override invokeAtStep(step: number): boolean {
    for (const name of this.baseTrial.tensorNames({ regex: '.*gradient' })) {
      try {
        const seen = [...(this.tensors[step] ?? []), Number(this.reqTensors.at(name, step).reduction('variance').value)]
        this.tensors[step] = [Math.min(...seen), Math.max(...seen)]
        this.logger.info(`step ${step}: with ${name}, variances from ${this.tensors[step].join(' to ')}`)
      } catch (error) {
        this.logger.warn(`can't fetch ${name}: ${error}`)
      }
    }
    return false
  }
}
