/** One rule, step by step, as smdebug's invoke_rule (rules.md §3). */

import {
  RuleEvaluationConditionMet,
  StepUnavailable,
  TensorUnavailable,
  TensorUnavailableForStep,
  UsageError,
} from '../errors.js'
import type { MeasureOptions } from '../trial/measure.js'
import type { WaitOptions } from '../trial/wait.js'
import type { Rule } from './rule.js'
import { runs } from './turns.js'

export interface InvokeOptions extends WaitOptions, MeasureOptions {
  readonly signal?: AbortSignal
  /** Default 0. */
  readonly startStep?: number | null
  /** Exclusive. Default: until the job ends, which is a NoMoreData. */
  readonly endStep?: number | null
  /** Throw RuleEvaluationConditionMet at the first step where the condition is met. Default: log it and go on. */
  readonly raiseEvalCond?: boolean
}

/**
 * Invokes a rule at one step after the other, also at those that were not saved, which are skipped. See `evaluate` for
 * many rules, many steps, and their findings.
 * @throws NoMoreData where the job ends before `endStep`; RuleEvaluationConditionMet if asked to; WaitTimeout; whatever
 *   the rule throws, but for a tensor or a step that is not available
 */
export async function invokeRule(rule: Rule, options: InvokeOptions = {}): Promise<void> {
  const startStep = options.startStep ?? 0
  const endStep = options.endStep ?? Number.POSITIVE_INFINITY
  for (const [name, value] of Object.entries({ startStep, endStep })) {
    if (!(value >= 0)) throw new UsageError(`expected ${name} to be a step, got ${value}`)
  }
  await runs.take([rule], options.signal, () => invokeSteps(rule, startStep, endStep, options))
}

async function invokeSteps(rule: Rule, startStep: number, endStep: number, options: InvokeOptions): Promise<void> {
  const { raiseEvalCond = false, ...reading } = options
  for (let step = startStep; step < endStep; step++) {
    options.signal?.throwIfAborted()
    try {
      await rule.invoke(step, reading)
    } catch (error) {
      if (error instanceof RuleEvaluationConditionMet) {
        if (raiseEvalCond) throw error
        rule.logger.info(error.message)
        if (error.endOfRule) return
      } else if (
        error instanceof TensorUnavailableForStep ||
        error instanceof StepUnavailable ||
        error instanceof TensorUnavailable
      ) {
        rule.logger.debug(`${rule.name}: ${error.message}`)
      } else throw error
    }
  }
}
