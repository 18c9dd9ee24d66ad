/** StalledTrainingRule: see docs/rules.md. */

import { RuleEvaluationConditionMet } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { type WaitOptions, waitFor, waitingOf } from '../../scan/catalog/wait.js'
import type { MeasureOptions } from '../../trial/measure/measure.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Action } from '../action/action.js'
import { parseActions } from '../action/action-json.js'
import { builtin, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { numberText } from '../base/wording.js'
import type { Finding } from '../finding.js'
import { type Arguments, flag, integer, text } from '../parameters.js'
import { READ_OPTIONS } from '../required.js'
import type { RuleOptions } from '../rule.js'

const parameters = {
  threshold: integer(1800, { min: 1 }),
  stop_training_on_fire: flag(false),
  training_job_name_prefix: text(null),
}

/** A clock, in milliseconds. */
export interface TimeSource {
  readonly now?: () => number
}

/** Fires once if a running job saves no new step for `threshold` seconds. */
export class StalledTrainingRule extends builtin({
  meaning: 'The training stands still: nothing new was saved for too long.',
  advice: 'Check whether the job is still running, and what it is waiting for: data, a lock, another worker.',
  parameters,
}) {
  readonly #now: () => number
  readonly #stop: readonly Action[]
  #lastStep = -1
  #changedAt: number
  #hasWaited = false

  constructor(
    baseTrial: Trial,
    { now = () => performance.now(), ...options }: RuleOptions & Arguments<typeof parameters> & TimeSource = {},
  ) {
    super(baseTrial, options)
    const withClock: RuleOptions & TimeSource = { ...options, now }
    this.options = withClock
    this.#now = now
    this.#changedAt = now()
    const { stop_training_on_fire, training_job_name_prefix } = this.parameters
    const stop = { name: 'stoptraining', training_job_prefix: training_job_name_prefix ?? baseTrial.name }
    this.#stop = stop_training_on_fire ? parseActions(JSON.stringify(stop)) : []
  }

  /** With `stop_training_on_fire`, also runs SageMaker's action that stops the training. */
  override async fire(step: number, findings: readonly Finding[]): Promise<void> {
    await super.fire(step, findings)
    await this.act(this.#stop, step, findings)
  }

  /** The rule judges time, not steps. */
  protected override *examine(_moment: Moment): Iterable<Judgement> {}

  /** True if it has measured a pause, or the end of the job shows that this one does not stand still. */
  override get hasJudged(): boolean {
    return this.#hasWaited || (this.baseTrial.loadedAllSteps && this.report.datapoints > 0)
  }

  override missing(): readonly string[] {
    return this.hasJudged
      ? []
      : ['a wait for steps of the running job, as with --follow: it measures how long none comes']
  }

  override get patienceMs(): number {
    return this.parameters.threshold * 1000
  }

  override whileWaiting(): readonly Finding[] {
    const { threshold } = this.parameters
    const { catalog, ended } = stateOf(this.baseTrial)
    this.#hasWaited = true
    const last = catalog.steps.numberAt(catalog.steps.length - 1) ?? -1
    if (last > this.#lastStep) {
      this.#lastStep = last
      this.#changedAt = this.#now()
    }
    const value = (this.#now() - this.#changedAt) / 1000
    if (ended || !(value > threshold)) return []
    const after = last < 0 ? 'there was no step yet' : `the last step was ${last}`
    const message = `nothing was saved for ${numberText(value)} s, more than ${threshold} s; ${after}`
    return [this.finding(this.#lastStep, { value, threshold, message })]
  }

  /**
   * Waits for a stall or the end of the job, whatever the step.
   * @throws RuleEvaluationConditionMet with `endOfRule`, NoMoreData when the job has ended, WaitTimeout
   */
  override async invoke(step: number, options?: WaitOptions & MeasureOptions): Promise<void> {
    const { timeoutMs = this.patienceMs + 60_000, ...waiting } = waitingOf(
      checkOptions('rule.invoke', READ_OPTIONS, options),
    )
    const state = stateOf(this.baseTrial)
    const findings = await waitFor(
      state.access.store,
      async () => {
        await this.baseTrial.refresh()
        if (this.baseTrial.loadedAllSteps) throw state.unavailable(Number.POSITIVE_INFINITY, 'GLOBAL')
        const findings = this.whileWaiting()
        return findings.length > 0
          ? { answer: findings }
          : { missing: 'a stall', present: state.describeSteps('GLOBAL') }
      },
      { ...waiting, timeoutMs },
    )
    await this.fire(findings[0]!.step, findings)
    throw new RuleEvaluationConditionMet(this.ruleName, step, true)
  }
}
