/** The common part of `check` and `rule-invoker`: runs rules over a trial, writes the findings, chooses the exit code. */

import { InvalidWorker, UsageError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import type { BuiltinClass } from '../../rules/base/builtin.js'
import { LearningRates } from '../../rules/base/learning-rates.js'
import { type DiagnosedFinding, Diagnosis } from '../../rules/diagnosis.js'
import { type Evaluation, evaluate } from '../../rules/evaluate.js'
import type { Finding, Logger, Missing } from '../../rules/finding.js'
import type { Rule } from '../../rules/rule.js'
import type { TrialOptions } from '../../trial/open.js'
import { absentParts } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { EXIT } from '../exit.js'
import { type Verdict, verdictOf } from '../format/ci/report.js'
import {
  type ChosenParameter,
  configurationKey,
  type FindingFormat,
  isFindingOf,
  type JudgingError,
  type JudgingReport,
  type JudgingRule,
  readText,
} from '../format/finding/format.js'
import { verdictText } from '../format/finding/table.js'
import { collectionsToSave } from '../format/finding/to-save.js'
import { counted, countText, shortList } from '../format/number.js'
import { defined, type FollowFlags, waitingOptions } from '../options/given.js'
import { expectS3 } from '../options/s3.js'
import { type LineSink, Lines } from '../output.js'
import { Progress } from '../progress.js'
import { type SelectionFlags, selectionOf } from '../scan/selection.js'
import { type OpenFlags, openTrial } from '../scan/trials.js'
import { modeSpans, spanText } from '../step-texts.js'
import { note } from '../terminal.js'

/** The trials of a command, each opened once, however often it is named. */
export class Trials {
  readonly #flags: OpenFlags
  readonly #options: TrialOptions
  readonly #opened = new Map<string, Promise<Trial>>()

  constructor(flags: OpenFlags, options: TrialOptions = {}) {
    this.#flags = flags
    this.#options = options
  }

  readonly open = (path: string): Promise<Trial> => {
    const opened = this.#opened.get(path) ?? openTrial(path, this.#flags, this.#options)
    this.#opened.set(path, opened)
    return opened
  }

  /**
   * @param others trials that were opened elsewhere
   * @throws UsageError for S3 options if none of all trials is on S3
   */
  expectFlagsUsed(others: readonly string[] = []): void {
    expectS3(this.#flags, [...others, ...this.#opened.keys()])
  }

  /** Opens trials one after another, so that the error is about the first that can't be opened. */
  async openAll(paths: readonly string[]): Promise<readonly Trial[]> {
    const trials: Trial[] = []
    for (const path of paths) trials.push(await this.open(path))
    return trials
  }

  async close(): Promise<void> {
    for (const trial of await Promise.allSettled(this.#opened.values())) {
      if (trial.status === 'fulfilled') await trial.value.close()
    }
  }
}

/** The logger of rules, which writes to stderr. */
export const logger: Logger = { debug: () => {}, info: note, warn: note, error: note }

/** The constructor options of rules that are no parameters. */
const NO_PARAMETERS: readonly string[] = ['actions', 'otherTrials', 'startStep', 'endStep', 'logger']

export function expectParameters(rule: string, parameters: Readonly<Record<string, string>>): void {
  const wrong = Object.keys(parameters).find(parameter => NO_PARAMETERS.includes(parameter))
  if (wrong !== undefined) throw new UsageError(`rule ${rule} has no parameter ${JSON.stringify(wrong)}`)
}

/** @throws InvalidWorker */
export function expectWorkers(trial: Trial, workers: readonly string[]): void {
  const known = trial.workers()
  const unknown = workers.find(worker => !known.some(name => name === worker))
  if (unknown !== undefined) throw new InvalidWorker(unknown, known)
}

/** The rules for a trial. */
export interface TrialRules {
  readonly rules: readonly Rule[]
  /** The rules that were requested by name. */
  readonly requestedRules: ReadonlySet<Rule>
  /** The data that other rules lack, which therefore don't judge. */
  readonly leftOut: readonly Missing[]
  /** The rules that run only on request, and were not requested. */
  readonly onlyByName: JudgingReport['onlyByName']
}

/** The options of a judgement; undefined steps, modes and workers are all. */
export interface JudgingFlags extends FollowFlags, Pick<SelectionFlags, 'steps' | 'modeSteps' | 'mode' | 'worker'> {
  readonly threads?: number
  /** The seconds between two notes on the progress, while a job is followed; 0 for none. */
  readonly heartbeat?: number
  /** False: findings do not count for the exit code. */
  readonly failOnFinding?: boolean
}

export interface Judging extends TrialRules, JudgingFlags {
  readonly trial: Trial
  readonly format: FindingFormat
  readonly output: LineSink
  /** True to stop at the first step with a finding. */
  readonly stopAtFirst?: boolean
  /** The names of the rules whose findings count; undefined for all. */
  readonly failOn?: readonly string[] | undefined
  /** The options that restrict what is judged, as they were written. */
  readonly selection?: string | null
  /** True if other trials are judged, too: everything about this one is then in the output. */
  readonly isOneOfSeveral?: boolean
  readonly signal: AbortSignal
}

export interface Judged {
  readonly code: number
  readonly judged: JudgingReport
  readonly verdict: Verdict
}

/** Runs the rules and writes the outcome. */
export async function judge(judging: Judging): Promise<Judged> {
  const { format, output, signal } = judging
  const { findings, evaluation, rates, longestPauseMs } = await judgeAll(judging)
  const judged = judgedOf(judging, findings, evaluation, rates)
  const code = codeOf(judging, judged)
  const verdict = verdictOf(code, verdictText(judged))
  await output.write(format.end(judged, verdict))
  if (signal.aborted) return { code, judged, verdict }
  if (!judging.isOneOfSeveral) {
    await output.flush()
    noteUnusual(judging, judged, longestPauseMs)
  }
  return { code, judged, verdict }
}

function codeOf(judging: Judging, judged: JudgingReport): number {
  if (judging.signal.aborted) return EXIT.interrupted
  if (judged.problems.length > 0) return EXIT.format
  const counting = judged.rules.filter(({ counts }) => counts)
  if (judged.findings.some(finding => counting.some(rule => isFindingOf(rule)(finding)))) return EXIT.findings
  return judged.isUnjudged || notJudged(judging, judged).length > 0 ? EXIT.query : EXIT.ok
}

/** True if a rule is named, by its class or by its configuration. */
function isNamed(names: readonly string[], { ruleName, name }: Pick<Rule, 'ruleName' | 'name'>): boolean {
  return names.includes(ruleName) || names.includes(name)
}

const HEARTBEAT_S = 60

/** The reason for an evaluation that is aborted on purpose. */
const HIT = Symbol('the first finding')

/**
 * Evaluates the rules.
 * @returns the findings of the report; `evaluation` is null if it was aborted on purpose
 */
async function judgeAll(judging: Judging): Promise<{
  readonly findings: readonly DiagnosedFinding[]
  readonly evaluation: Evaluation | null
  readonly rates: LearningRates
  /** The longest time without a step to judge. */
  readonly longestPauseMs: number
}> {
  const { trial, format, output, steps, modeSteps, follow = false, timeout, poll, threads, signal } = judging
  const diagnosis = new Diagnosis(trial)
  const rates = new LearningRates(trial)
  const findings: DiagnosedFinding[] = []
  /** The place in `findings` of the first finding of each configuration that has fired. */
  const fired = new Map<string, number>()
  /** The place of each finding of a live format, which keeps only the first of each configuration. */
  const placeOf: number[] = []
  /** Findings of the current step. They are diagnosed together, when all rules have judged the step. */
  let ofStep: Finding[] = []
  const stop = new AbortController()
  const lines = new Lines(output, follow)
  const rowsOnTerminal = (format.isLive && process.stdout.isTTY) || judging.isOneOfSeveral === true
  const progress = new Progress(rowsOnTerminal, 'steps', follow)
  const announce = announcer(progress)
  let lastStepAt = performance.now()
  let longestPauseMs = 0
  let judgedSteps = 0
  const beat = (): void => {
    const last = trial.steps().at(-1)
    const seconds = Math.round((performance.now() - lastStepAt) / 1000)
    note(
      `following: ${counted(judgedSteps, 'step')} judged, ${last === undefined ? 'none is complete yet' : `the last complete one is ${last}`}; ` +
        `${counted(fired.size, 'rule')} fired; no new step for ${seconds} s`,
    )
  }
  const heartbeatMs = follow && !process.stderr.isTTY ? (judging.heartbeat ?? HEARTBEAT_S) * 1000 : 0
  const heart = heartbeatMs > 0 ? setInterval(beat, heartbeatMs).unref() : undefined
  const pauseEnds = (): void => {
    const now = performance.now()
    longestPauseMs = Math.max(longestPauseMs, now - lastStepAt)
    lastStepAt = now
  }
  const diagnoseStep = (): void => {
    for (const finding of diagnosis.add(ofStep)) {
      const key = configurationKey(finding.rule, finding.name)
      if (!fired.has(key)) fired.set(key, findings.length)
      const place = fired.get(key)!
      if (!format.isLive) findings.push(finding)
      else if (place === findings.length) {
        findings.push({ ...finding, cause: finding.cause === null ? null : placeOf[finding.cause]! })
      }
      if (format.isLive) placeOf.push(place)
      if (format.isLive) lines.write(format.line(finding)).catch(error => stop.abort(error))
      else if (!trial.loadedAllSteps && follow && !judging.stopAtFirst) announce(finding)
    }
    ofStep = []
  }
  const onFinding = (finding: Finding): void => {
    if (ofStep[0] && ofStep[0].step !== finding.step) {
      if (judging.stopAtFirst) return
      diagnoseStep()
    }
    ofStep.push(finding)
    if (judging.stopAtFirst) stop.abort(HIT)
  }
  try {
    const evaluation = await evaluate(judging.rules.length > 0 ? [...judging.rules, rates] : [], {
      ...defined({ steps: steps?.selection, modeSteps: modeSteps?.selection, mode: judging.mode, threads }),
      follow,
      ...waitingOptions({ timeout, poll }),
      callerWorks: true,
      signal: AbortSignal.any([signal, stop.signal]),
      onProgress: ({ doneSteps, totalSteps }) => {
        diagnoseStep()
        pauseEnds()
        judgedSteps = doneSteps
        progress.update({ doneRows: doneSteps, totalRows: totalSteps })
      },
      onFinding,
      keepFindings: false,
    })
    diagnoseStep()
    await lines.done()
    pauseEnds()
    return { findings, evaluation, rates, longestPauseMs }
  } catch (error) {
    diagnoseStep()
    await lines.done()
    // The findings so far are reported all the same.
    if (signal.aborted || stop.signal.reason === HIT) return { findings, evaluation: null, rates, longestPauseMs }
    throw error
  } finally {
    clearInterval(heart)
    progress.stop()
  }
}

/** Announces, while a job is followed, each rule's first finding: the table comes only at the end. */
function announcer(progress: Progress): (finding: Finding) => void {
  const announced = new Set<string>()
  return ({ rule, name, step, message }) => {
    const key = configurationKey(rule, name)
    if (announced.has(key)) return
    announced.add(key)
    progress.makeWay()
    note(`${name} fires at step ${step}: ${message}`)
  }
}

function judgedOf(
  judging: Judging,
  findings: readonly DiagnosedFinding[],
  evaluation: Evaluation | null,
  rates: LearningRates,
): JudgingReport {
  const { trial, rules, leftOut, signal } = judging
  const hasEnded = evaluation === null ? trial.loadedAllSteps : evaluation.complete
  const missing = [...leftOut, ...(evaluation?.missing ?? [])]
  return {
    trial: trial.name,
    workers: trial.workers().length,
    onlyWorkers: judging.worker ?? null,
    rules: rules.map(rule => judgingRule(rule, judging)),
    findings,
    learningRates: rates.besides(findings.filter(({ cause }) => cause === null)),
    onlyByName: judging.onlyByName,
    missing,
    selection: judging.selection ?? null,
    toSave: collectionsToSave(judging.requestedRules, missing, trial),
    problems: problemsOf(rules, evaluation),
    values: evaluation?.stats.records ?? 0,
    unread: evaluation?.stats.unread ?? 0,
    steps: evaluation?.stats.judged ?? null,
    isOutOfRange: isOutOfRange(judging, evaluation),
    isUnjudged: isUnjudged(judging, evaluation),
    state: signal.aborted ? 'interrupted' : hasEnded ? 'ended' : judging.follow ? 'left' : 'running',
  }
}

function judgingRule(rule: Rule, { requestedRules: requested, failOnFinding = true, failOn }: Judging): JudgingRule {
  const { ruleName, name } = rule
  const { meaning, advice } = rule.constructor as Partial<BuiltinClass>
  const isAsked = requested.has(rule)
  const counts = failOnFinding && (failOn === undefined || isNamed(failOn, rule))
  return { ruleName, name, meaning, advice, isAsked, counts, parameters: chosenOf(rule, isAsked) }
}

/** The parameters other than the defaults; none for a user's rule that declares no parameters. */
function chosenOf(rule: Rule, isAsked: boolean): readonly ChosenParameter[] {
  const { parameters = {}, suggested = {}, reasons = {} } = rule.constructor as Partial<BuiltinClass>
  if (!isAsked) {
    return Object.entries(suggested).map(([parameter, value]) => ({ parameter, value, reason: reasons[parameter]! }))
  }
  const values = JSON.parse(rule.report.ruleParameters) as Readonly<Record<string, unknown>>
  return Object.entries(parameters).flatMap(([parameter, { default: byDefault }]) => {
    const value = values[parameter]
    if (JSON.stringify(value) === JSON.stringify(byDefault)) return []
    const suggestion = suggested[parameter]
    const isSuggested =
      suggestion !== undefined &&
      JSON.stringify(parameters[parameter]!.read(suggestion as never)) === JSON.stringify(value)
    return { parameter, value: String(value), reason: isSuggested ? reasons[parameter]! : 'as it was asked for' }
  })
}

/** The problems of the trials as a whole, then those of judged data, without duplicates. */
function problemsOf(rules: readonly Rule[], evaluation: Evaluation | null): readonly JudgingError[] {
  const trials = new Set(rules.flatMap(rule => rule.trials))
  const ofTrials = [...trials].flatMap(trial => trial.problems).map(error => ({ step: null, tensor: null, error }))
  const distinct = new Map<string, JudgingError>()
  for (const { step, tensor, error } of [...ofTrials, ...(evaluation?.problems ?? [])]) {
    if (!distinct.has(error.message)) distinct.set(error.message, { step, tensor, error })
  }
  return [...distinct.values()]
}

/** True if none of the requested steps exists. */
function isOutOfRange({ steps, modeSteps, mode, rules }: Judging, evaluation: Evaluation | null): boolean {
  return evaluation?.stats.steps === 0 && rules.length > 0 && (steps ?? modeSteps ?? mode) !== undefined
}

/** True if the selection left nothing to judge, which must not look like success. */
function isUnjudged(judging: Judging, evaluation: Evaluation | null): boolean {
  const { rules, selection, follow } = judging
  const isNothing = evaluation?.stats.judged === 0 && rules.length > 0 && selection != null && !follow
  return isNothing || isOutOfRange(judging, evaluation)
}

/**
 * The missing data of requested rules that judged nothing, and of those in `failOn`. If no rule was requested: of all
 * rules, provided that none judged anything.
 */
function notJudged(
  { rules, requestedRules: requested, failOn }: Judging,
  { missing, findings }: JudgingReport,
): readonly Missing[] {
  const isIdle = (rule: Rule): boolean =>
    missing.some(lack => !lack.partial && isFindingOf(rule)(lack)) && !findings.some(isFindingOf(rule))
  if (requested.size === 0 && rules.every(isIdle)) return missing
  const idle = rules.filter(rule => requested.has(rule) && isIdle(rule))
  const isWanted = (lack: Missing): boolean =>
    failOn !== undefined && !lack.partial && isNamed(failOn, { ruleName: lack.rule, name: lack.name })
  return missing.filter(lack => isWanted(lack) || idle.some(rule => isFindingOf(rule)(lack)))
}

/** Writes notes on facts that the output lacks, or that some readers would miss. */
function noteUnusual(judging: Judging, judged: JudgingReport, longestPauseMs: number): void {
  const { trial, steps, modeSteps, mode, format } = judging
  const { problems, state } = judged
  const numbers = trial.steps({ showIncompleteSteps: true })
  const last = numbers.at(-1)
  if (state === 'left' && judged.steps !== null) {
    const lastStep = last === undefined ? 'there is none yet' : `the last is ${last}`
    note(`no new step came for ${Math.round(longestPauseMs / 1000)} s, and the job has not ended: gave up; ${lastStep}`)
  }
  if (judged.isOutOfRange) {
    const flags = [
      ...(steps ? [`--steps ${steps.text}`] : []),
      ...(modeSteps ? [`--mode-steps ${modeSteps.text}`] : []),
      ...(mode ? [`--mode ${mode}`] : []),
    ]
    const saved = numbers.length > 0 ? [`global steps ${spanText(numbers)}`, ...modeSpans(trial)].join('; ') : 'none'
    note(`no step is in ${flags.join(' and ')}; the trial has ${saved}`)
  } else if (judged.steps !== null)
    for (const { message } of absentParts(stateOf(trial), selectionOf(defined({ steps, modeSteps, mode }))))
      note(message)
  for (const { name, missing } of notJudged(judging, judged)) note(`${name} had nothing to judge: expected ${missing}`)
  const lacking = [...new Set(format.tellsMissing ? [] : judged.missing.map(({ name }) => name))]
  if (lacking.length > 0)
    note(`csv has no rows for missing data: ${shortList(lacking)} lacked some; --format jsonl says which`)
  if (problems.length > 0 && format.isLive) {
    const [first, ...others] = problemLines(problems.map(({ error }) => error))
    const more = others.length > 0 ? ` (and ${countText(others.length)} more)` : ''
    note(`${readText(judged) ?? 'not everything could be read'}, so the findings are incomplete: ${first}${more}`)
  }
}
