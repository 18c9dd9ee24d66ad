/** `trialscan rule-invoker`: one rule over one trial, with the options of Tornasole's command. */

import { RuleEvaluationConditionMet, UsageError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import { makeRules } from '../../rules/config.js'
import type { Finding } from '../../rules/finding.js'
import { RuleRegistry } from '../../rules/registry.js'
import { AT_END, type FindingFormat, type JudgingReport, stepsOfFindings } from '../format/finding/format.js'
import { findingCsv, findingJsonl } from '../format/finding/lines.js'
import { worstText } from '../format/finding/table.js'
import { counted, countText } from '../format/number.js'
import { defined, type OutputFlags, settle } from '../options/given.js'
import type { S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectReplaceableIn } from '../real-path.js'
import { note, safe } from '../terminal.js'
import { expectParameters, expectWorkers, judge, logger, Trials } from './judge.js'

export interface InvokerFlags extends S3Flags, OutputFlags<'rule-invoker'> {
  readonly trialDir: string
  readonly ruleName: string
  readonly otherTrials?: readonly string[]
  readonly worker?: readonly string[]
  readonly startStep?: number
  readonly endStep?: number
  readonly raiseRuleEvalCondException?: boolean
  readonly json?: boolean
  readonly timeout?: number
}

const MAX_STEPS = 20

/**
 * @param rest unknown options: the rule's parameters
 * @returns the exit code
 */
export async function ruleInvoker(rest: readonly string[], given: InvokerFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('rule-invoker', given.trialDir, given)
  const { startStep = null, endStep = null, raiseRuleEvalCondException = false } = flags
  const registry = new RuleRegistry()
  const RuleClass = registry.get(flags.ruleName)
  const parameters = parametersOf(rest)
  expectParameters(RuleClass.name, parameters)
  if (startStep !== null && endStep !== null && startStep >= endStep) {
    throw new UsageError(`expected --end-step to be after --start-step ${startStep}, got ${endStep}`)
  }
  const { out } = flags
  if (out !== undefined) await expectReplaceableIn([flags.trialDir, ...(flags.otherTrials ?? [])], out)
  const isRanged = startStep !== null || endStep !== null
  const trials = new Trials(flags, isRanged ? { rangeSteps: [startStep, endStep] } : {})
  try {
    const trial = await trials.open(flags.trialDir)
    const otherTrials = await trials.openAll(flags.otherTrials ?? [])
    trials.expectFlagsUsed()
    const { worker } = flags
    expectWorkers(trial, worker ?? [])
    const { name = RuleClass.name, ...ruleParameters } = parameters
    const [rule] = await makeRules([{ name, rule: flags.ruleName, parameters: ruleParameters }], {
      baseTrial: trial,
      registry,
      openTrial: trials.open,
      logger,
      otherTrials,
      ...defined({ workers: worker }),
    })
    const { format, onTerminal } = flags
    const judging = {
      trial,
      rules: [rule!],
      requestedRules: new Set([rule!]),
      leftOut: [],
      onlyByName: [],
      ...defined({ worker, timeout: flags.timeout }),
      format: format === 'jsonl' ? findingJsonl(onTerminal) : format === 'csv' ? findingCsv(onTerminal) : invokerText,
      ...(isRanged && {
        steps: { text: `${startStep ?? ''}:${endStep ?? ''}`, selection: [{ from: startStep, to: endStep }] },
      }),
      follow: true,
      stopAtFirst: raiseRuleEvalCondException,
      signal,
    }
    const { code, judged } = await writeTo(out, output => judge({ ...judging, output }), { signal })
    const [first] = judged.findings
    if (raiseRuleEvalCondException && first && !signal.aborted) {
      note(new RuleEvaluationConditionMet(rule!.ruleName, first.step).message)
    }
    return code
  } finally {
    await trials.close()
  }
}

/** Parses `--NAME VALUE` and `--NAME=VALUE`. Dashes stand for underscores. Of equal names the last counts. */
function parametersOf(rest: readonly string[]): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {}
  for (let i = 0; i < rest.length; i++) {
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(rest[i]!) ?? []
    if (name === undefined) throw new UsageError(`expected an option of the form --NAME VALUE, got ${rest[i]}`)
    const value = inline ?? rest[++i]
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      throw new UsageError(`expected a value after --${name}`)
    }
    parameters[name.replaceAll('-', '_')] = value
  }
  return parameters
}

/** The format of the answer: one or two lines, then missing and unreadable data. */
const invokerText: FindingFormat = {
  ...AT_END,
  end: judged => `${lines(judged).map(safe).join('\n')}\n`,
}

function lines(judged: JudgingReport): readonly string[] {
  const { trial, rules, findings, missing, problems, steps } = judged
  const judgedText = steps === null ? '' : ` (${counted(steps, 'step')} judged)`
  const rule = rules[0]!.ruleName
  const gaps = [
    ...missing.map(({ missing }) => `missing: ${missing}`),
    ...problemLines(problems.map(({ error }) => error)),
  ]
  if (findings.length === 0) return [`${rule} did not fire on ${trial}${judgedText}`, ...gaps]
  return [
    `${rule} fired on ${trial}${judgedText} at ${stepListText(findings)}`,
    `worst ${worstText(findings, judged)}`,
    ...gaps,
  ]
}

function stepListText(findings: readonly Finding[]): string {
  const steps = stepsOfFindings(findings)
  const more = steps.length - MAX_STEPS
  return `${steps.length === 1 ? 'step' : 'steps'} ${steps.slice(0, MAX_STEPS).join(', ')}${more > 0 ? ` and ${countText(more)} more` : ''}`
}
