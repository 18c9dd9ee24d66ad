/** Invokes one rule step by step, like smdebug's invoke_rule. */

import { RuleEvaluationConditionMet } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { WAIT_OPTIONS, type WaitOptions } from '../scan/catalog/wait.js'
import { MEASURE_OPTIONS, type MeasureOptions } from '../trial/measure/measure.js'
import { isUnavailable } from './finding.js'
import { expectRule, type Rule } from './rule.js'
import { runs } from './turns.js'

export interface InvokeOptions extends WaitOptions, MeasureOptions {
  readonly signal?: AbortSignal
  /** The first step. Default: 0. */
  readonly startStep?: number | null
  /** The step after the last one. Default: none; the end of the job throws NoMoreData. */
  readonly endStep?: number | null
  /** Throw RuleEvaluationConditionMet at the first step that meets the condition. Default: log it and go on. */
  readonly raiseEvalCond?: boolean
}

const INVOKE_OPTIONS = optionsOf<InvokeOptions>({
  ...WAIT_OPTIONS,
  ...MEASURE_OPTIONS,
  startStep: kinds.orNull(kinds.step),
  endStep: kinds.orNull(kinds.step),
  raiseEvalCond: kinds.flag,
})

/**
 * Invokes a rule at every step number, and skips steps that were not saved. `evaluate` runs many rules in one pass and
 * returns their findings.
 * @throws NoMoreData if the job ends before `endStep`; RuleEvaluationConditionMet with `raiseEvalCond`; WaitTimeout; what
 *   the rule throws, except for an unavailable tensor or step
 */
export async function invokeRule(rule: Rule, options?: InvokeOptions): Promise<void> {
  expectRule('invokeRule', rule)
  const checked = checkOptions('invokeRule', INVOKE_OPTIONS, options)
  await runs.take([rule], checked.signal, () => invokeSteps(rule, checked))
}

async function invokeSteps(rule: Rule, options: InvokeOptions): Promise<void> {
  const { raiseEvalCond = false, startStep, endStep, ...reading } = options
  for (let step = startStep ?? 0; step < (endStep ?? Number.POSITIVE_INFINITY); step++) {
    reading.signal?.throwIfAborted()
    try {
      await rule.invoke(step, reading)
    } catch (error) {
      if (error instanceof RuleEvaluationConditionMet) {
        if (raiseEvalCond) throw error
        rule.logger.info(error.message)
        if (error.endOfRule) return
      } else if (isUnavailable(error)) rule.logger.debug(`${rule.name}: ${error.message}`)
      else throw error
    }
  }
}
