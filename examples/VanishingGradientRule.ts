/**
 * Fires where the mean of the absolute values of a gradient is below a threshold, which may be given as text.
 * setRequiredTensors asks only for that mean. A step without gradients is skipped.
 */

import { Rule, type RuleOptions, type Trial } from 'trialscan'

export class VanishingGradientRule extends Rule {
  constructor(trial: Trial, { threshold = 1e-7, ...options }: RuleOptions & { threshold?: number | string } = {}) {
    super(trial, options)
    this.report.details = { threshold: Number(threshold) }
  }

  override setRequiredTensors = (step: number): void =>
    this.reqTensors.add('^gradient', [step], { regex: true, reductions: ['abs_mean'] })

  override invokeAtStep(step: number): boolean {
    const means = this.reqTensors.getNames().map(name => this.reqTensors.at(name, step).reduction('abs_mean').value)
    return means.some(mean => Number(mean) < Number(this.report.details.threshold))
  }
}
