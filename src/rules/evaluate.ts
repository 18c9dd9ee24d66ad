/**
 * Runs many rules over many trials in one pass. For a window of steps every rule says what it needs; this is read as one plan; then every
 * rule judges every step, in order.
 */

import { RuleEvaluationConditionMet, StoreError, UsageError, WaitTimeout } from '../base/errors.js'
import { entryOf } from '../base/maps.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { turnsWhenDue } from '../base/turns.js'
import type { Mode } from '../base/types.js'
import { withHold } from '../scan/catalog/hold.js'
import {
  countsFromEnd,
  endOf,
  isStepSelection,
  STEP_SELECTION,
  type StepSelection,
} from '../scan/catalog/step-selection.js'
import { WAIT_OPTIONS, type WaitOptions, waitFor, waitingOf } from '../scan/catalog/wait.js'
import { DEFAULT_MEMORY } from '../scan/job/plan/memory.js'
import { Inquiry, MEASURE_OPTIONS, type MeasureOptions, type MeasureStats } from '../trial/measure/measure.js'
import { absentParts, unmatchedAmong } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { drawFrom, type Finding, type Missing, type Problem, type WasJudged } from './finding.js'
import { firstOf, judgedBy, meantSteps, type Queue, type RulesOfTrial } from './meant-steps.js'
import { Outcome } from './outcome.js'
import type { RequiredTensors } from './required.js'
import { expectRule, type Rule } from './rule.js'
import { judgements, runs } from './turns.js'

export interface EvaluateOptions extends Omit<MeasureOptions, 'signal'>, Omit<WaitOptions, 'onWait'> {
  /** The first global step to judge. Default: the first step of the trial. */
  readonly startStep?: number | null
  /** The global step before which judging ends. Default: none. */
  readonly endStep?: number | null
  /**
   * The global steps to judge, within `startStep` and `endStep`. Rules can still look back at other steps. Steps counted from the end
   * need a finished job if `follow` is set.
   */
  readonly steps?: StepSelection | undefined
  /** The steps to judge of each mode, by their numbers within it; like `steps` if there are no modes. */
  readonly modeSteps?: StepSelection | undefined
  /** Judge only steps of this mode. Default: of any. */
  readonly mode?: Mode | undefined
  /**
   * True to continue with the steps of a running job until it ends or none comes for `timeoutMs`; false (default) to judge the present
   * steps. At the end, steps that some workers have not written are judged, too.
   */
  readonly follow?: boolean
  /** Called after every window of steps, and when a rule has fired because no step came. */
  readonly onProgress?: (progress: EvaluateProgress) => void
  /** Called with each finding, in order, as soon as it is made. */
  readonly onFinding?: (finding: Finding) => void
  /** True (default) to list all findings in the result: a rule that fires at a million steps makes a million. */
  readonly keepFindings?: boolean
}

const EVALUATE_OPTIONS = optionsOf<EvaluateOptions>({
  ...MEASURE_OPTIONS,
  timeoutMs: WAIT_OPTIONS.timeoutMs,
  pollMs: WAIT_OPTIONS.pollMs,
  signal: WAIT_OPTIONS.signal,
  startStep: kinds.orNull(kinds.step),
  endStep: kinds.orNull(kinds.step),
  steps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  modeSteps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  mode: kinds.mode,
  follow: kinds.flag,
  onProgress: kinds.callback(),
  onFinding: kinds.callback(),
  keepFindings: kinds.flag,
})

export interface EvaluateProgress {
  readonly doneSteps: number
  /** The number of known complete steps, counted per trial. */
  readonly totalSteps: number
  readonly readBytes: number
  readonly findings: number
}

export interface EvaluateStats {
  /** The number of steps that were processed, counted per trial. */
  readonly steps: number
  /** The number of these steps at which a rule had something to judge. */
  readonly judged: number
  readonly records: number
  /** The number of records that could not be read. */
  readonly unread: number
  readonly readBytes: number
  readonly reads: number
  readonly jobs: number
  /** The number of threads; 0 if the calling thread did the work. */
  readonly threads: number
  readonly elapsedMs: number
}

export interface Evaluation {
  /** The findings by step, then rule; empty with `keepFindings: false`. */
  readonly findings: readonly Finding[]
  readonly missing: readonly Missing[]
  readonly problems: readonly Problem[]
  /** The steps of `steps` and `modeSteps` that a trial does not have, in a sentence for each trial, with the nearest that it has. */
  readonly unmatched: readonly string[]
  /** False if steps that were asked for may still come: the evaluation ended without `follow`, or because no step came for too long. */
  readonly complete: boolean
  readonly stats: EvaluateStats
}

/** The number of questions in a window. Each takes about 500 bytes, including its share of a record's moments. */
const WINDOW_QUESTIONS = 1 << 17
/**
 * The number of judgements in a window: at steps with few tensors these take more memory (3 kB each) than questions. Short windows are
 * cheap to free: over 200,000 steps, windows 32 times as long took 1.2 times the time and memory.
 */
const WINDOW_JUDGEMENTS = 1 << 10
/** The number of judgements in a window for trials whose reads are requests. */
const REMOTE_JUDGEMENTS = 1 << 15
/**
 * The bytes of values in a window, per thread. A larger window is slower, since every value then lies in new memory: 60 steps of 1.3 MB
 * took 80 ms of a core with 64 MiB and 52 ms with 8 MiB (Node.js 20).
 */
const WINDOW_VALUE_BYTES = 8 << 20
/** The margin by which the default timeout exceeds that of a rule which itself waits. */
const WAIT_MARGIN_MS = 60_000

/**
 * Runs rules over their trials, each step once, until the data end.
 * @throws UsageError, the signal's reason; an error of a rule ends that rule, and is one of the `problems`
 */
export async function evaluate(rules: Rule | readonly Rule[], options?: EvaluateOptions): Promise<Evaluation> {
  const all = Array.isArray(rules) ? (rules as readonly Rule[]) : [rules as Rule]
  for (const rule of all) expectRule('evaluate', rule)
  const settings = checkOptions('evaluate', EVALUATE_OPTIONS, options)
  const idle = (['timeoutMs', 'pollMs'] as const).find(option => settings[option] !== undefined)
  if (!settings.follow && idle !== undefined) {
    throw new UsageError(`evaluate: expected follow: true beside ${idle}: nothing else waits`, { option: idle })
  }
  return new Evaluator(all, settings).run()
}

/** A rule, a step, and what the rule needs at it, or the error that it threw instead. */
type Prepared = { readonly rule: Rule; readonly step: number } & (
  | { readonly required: RequiredTensors }
  | { readonly error: unknown }
)

class Evaluator {
  readonly #options: EvaluateOptions
  /** The rules that judge in this evaluation. */
  readonly #rules: readonly Rule[]
  /** The rules among them that other evaluations may use at the same time. */
  readonly #shared: readonly Rule[]
  readonly #groups: readonly RulesOfTrial[]
  readonly #trials: readonly Trial[]
  readonly #queues = new Map<RulesOfTrial, Queue>()
  readonly #wasJudged = new Map<Rule, WasJudged>()
  readonly #outcome: Outcome
  readonly #stats: MeasureStats = { records: 0, unread: 0, readBytes: 0, reads: 0, jobs: 0, threads: 0 }
  readonly #startedAt = performance.now()
  #doneSteps = 0
  /** True once waiting has ended: the present steps are judged as they are. */
  #hasGivenUp = false

  constructor(rules: readonly Rule[], options: EvaluateOptions) {
    this.#rules = rules.map(rule => rule.forEvaluation())
    this.#shared = this.#rules.filter((rule, i) => rule === rules[i])
    this.#options = options
    this.#outcome = new Outcome(options)
    const groups = new Map<Trial, Rule[]>()
    for (const rule of this.#rules) {
      entryOf(groups, rule.baseTrial, () => []).push(rule)
    }
    this.#groups = [...groups].map(([trial, rules]) => ({
      trial,
      rules,
      isMeant: meantSteps(trial, options),
      done: new Set(),
    }))
    for (const { rules, done } of this.#groups) {
      for (const rule of rules) this.#wasJudged.set(rule, judgedBy(rule, done))
    }
    this.#trials = [...new Set(rules.flatMap(({ trials }) => trials))]
  }

  run(): Promise<Evaluation> {
    const { follow = false, signal } = this.#options
    return runs.take(this.#shared, signal, () => {
      // The present steps, not those that arrive while they are judged.
      return follow ? this.#run() : withHold(this.#trials.map(stateOf), {}, () => this.#run())
    })
  }

  async #run(): Promise<Evaluation> {
    const { follow = false, signal } = this.#options
    for (;;) {
      signal?.throwIfAborted()
      if (await judgements.take(this.#shared, signal, () => this.#judgeNext())) {
        this.#progress()
        continue
      }
      if (!this.#isWaiting() || this.#hasGivenUp) break
      this.#hasGivenUp = !follow || !(await this.#wait())
    }
    await this.#holding(undefined, () => this.#outcome.tell(true))
    this.#outcome.addProblemsOf(this.#trials, this.#rules)
    return {
      findings: this.#outcome.findings,
      missing: this.#outcome.missing(this.#rules),
      problems: this.#outcome.problems,
      unmatched: this.#groups.flatMap(({ trial }) => unmatchedAmong(absentParts(stateOf(trial), this.#options))),
      complete: !this.#hasGivenUp,
      stats: {
        steps: this.#doneSteps,
        judged: this.#outcome.judgedSteps,
        ...this.#stats,
        elapsedMs: performance.now() - this.#startedAt,
      },
    }
  }

  /** Judges the next steps, if there are any. The rules see an unchanging trial meanwhile. @returns true if there were any */
  #judgeNext(): Promise<boolean> {
    const inquiry = new Inquiry()
    return this.#holding(inquiry, async () => {
      const prepared = await this.#gather(inquiry)
      if (prepared.length === 0) return false
      await inquiry.run(this.#options, this.#stats)
      await this.#judge(prepared)
      return true
    })
  }

  #holding<T>(ahead: Inquiry | undefined, work: () => Promise<T>): Promise<T> {
    return withHold(this.#trials.map(stateOf), { ...(ahead && { ahead }), owners: this.#shared }, work)
  }

  /** The next steps, in order, as many as fit in a window, and what the rules need at them. */
  async #gather(inquiry: Inquiry): Promise<readonly Prepared[]> {
    const prepared: Prepared[] = []
    const turn = turnsWhenDue()
    const queues = this.#groups.map(group => this.#queueOf(group))
    const { signal } = this.#options
    const maxJudgements = this.#isRemote ? REMOTE_JUDGEMENTS : WINDOW_JUDGEMENTS
    let before = 0
    for (let queue = firstOf(queues); queue; queue = firstOf(queues)) {
      const { group } = queue
      const step = queue.steps[queue.at]!
      // The next step is assumed to need as much as the last one.
      const valueBytes = inquiry.valueByteLength
      const isFull = inquiry.questionCount >= WINDOW_QUESTIONS || prepared.length >= maxJudgements
      if (isFull || 2 * valueBytes - before > this.#valueLimit(inquiry)) break
      before = valueBytes
      queue.at++
      group.done.add(step)
      this.#doneSteps++
      for (const rule of group.rules) {
        if (this.#outcome.ended.has(rule) || (rule.startStep > 0 && step < rule.startStep) || step >= rule.endStep)
          continue
        prepared.push(prepare(rule, step, inquiry))
        const isDue = turn()
        if (isDue) await isDue
        signal?.throwIfAborted()
      }
    }
    return prepared
  }

  get #isRemote(): boolean {
    return this.#trials.some(trial => stateOf(trial).access.isRemote)
  }

  /** The bytes of values that a window may have: more where each window costs requests or rereads older tensors. */
  #valueLimit(inquiry: Inquiry): number {
    const { memory = DEFAULT_MEMORY, threads = 0 } = this.#options
    return this.#isRemote || inquiry.compares ? memory : Math.min(memory, WINDOW_VALUE_BYTES * Math.max(1, threads))
  }

  /** The steps left to judge: only complete ones, as long as others may become complete. */
  #steps({ trial, rules, isMeant, done }: RulesOfTrial): number[] {
    if (this.#haveEnded(rules)) return []
    return trial.steps({ showIncompleteSteps: this.#hasGivenUp }).filter(step => !done.has(step) && isMeant(step))
  }

  /**
   * The steps that can be judged now: it is known whether other trials have them. The list is kept as long as the trials don't change,
   * since there may be a million steps.
   */
  #queueOf(group: RulesOfTrial): Queue {
    const { trial, rules } = group
    const others = [...new Set(rules.flatMap(({ otherTrials }) => otherTrials))].map(stateOf)
    const known = [this.#hasGivenUp, stateOf(trial).contents, ...others.map(({ contents }) => contents)]
    let queue = this.#queues.get(group)
    if (queue === undefined || known.some((contents, i) => contents !== queue!.known[i])) {
      const isKnown = (step: number): boolean =>
        this.#hasGivenUp || others.every(other => other.stepState(step, 'GLOBAL') !== 'NOT_YET_AVAILABLE')
      queue = { group, known, steps: this.#steps(group).filter(isKnown), at: 0 }
      this.#queues.set(group, queue)
    }
    return this.#haveEnded(rules) ? { ...queue, steps: [], at: 0 } : queue
  }

  /** True if no rule runs any more. Observers don't count beside others. */
  #haveEnded(rules: readonly Rule[]): boolean {
    const judging = rules.filter(({ isObserver }) => !isObserver)
    return (judging.length > 0 ? judging : rules).every(rule => this.#outcome.ended.has(rule))
  }

  async #judge(prepared: readonly Prepared[]): Promise<void> {
    const { signal } = this.#options
    const turn = turnsWhenDue()
    for (const preparedRule of prepared) {
      const { rule, step } = preparedRule
      if (this.#outcome.ended.has(rule)) continue
      const isDue = turn()
      if (isDue) await isDue
      signal?.throwIfAborted()
      let findings: readonly Finding[] = []
      try {
        if ('error' in preparedRule) throw preparedRule.error
        if (preparedRule.required.error) throw preparedRule.required.error
        const judged = rule.judge(step, preparedRule.required)
        findings = judged instanceof Promise ? await judged : judged
        this.#outcome.judged(rule, step)
      } catch (thrown) {
        if (thrown instanceof RuleEvaluationConditionMet) {
          if (thrown.endOfRule) this.#outcome.ended.add(rule)
          findings = [rule.findingOf(step, thrown.message)]
          this.#outcome.judged(rule, step)
        } else this.#outcome.failed(rule, step, thrown)
      }
      for (const finding of findings) drawFrom(finding, this.#wasJudged.get(rule)!)
      if (findings.length > 0) await this.#outcome.fired(rule, step, findings)
    }
    await this.#outcome.tell()
  }

  /** True if more steps may come. */
  #isWaiting(): boolean {
    const { endStep, steps } = this.#options
    const lastStep = Math.min(
      endStep ?? Number.POSITIVE_INFINITY,
      steps === undefined || countsFromEnd(steps) ? Number.POSITIVE_INFINITY : endOf(steps),
    )
    return this.#groups.some(group => {
      const { trial, rules } = group
      // Steps that another trial may still get hold back the evaluation.
      if (this.#steps(group).length > 0) return true
      const end = Math.min(lastStep, Math.max(...rules.map(rule => rule.endStep)))
      const last = stateOf(trial).catalog.steps.lastComplete
      return !trial.loadedAllSteps && last < end - 1 && !this.#haveEnded(rules)
    })
  }

  /** Waits until there is a step to judge. @returns false if none came in time */
  async #wait(): Promise<boolean> {
    const patience = Math.max(
      0,
      ...this.#rules.filter(rule => !this.#outcome.ended.has(rule)).map(rule => rule.patienceMs),
    )
    const timeoutMs = this.#options.timeoutMs ?? Math.max(600_000, patience === 0 ? 0 : patience + WAIT_MARGIN_MS)
    const running = this.#trials.filter(trial => !trial.loadedAllSteps)
    let outage: StoreError | null = null
    const look = async () => {
      try {
        for (const trial of running) await trial.refresh()
        outage = null
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        // The network may come back.
        if (outage === null) this.#rules[0]?.logger.warn(`${error.message}; looking again`)
        outage = error
      }
      await this.#ask()
      const isDone = !this.#isWaiting() || firstOf(this.#groups.map(group => this.#queueOf(group))) !== undefined
      if (isDone) return { answer: true }
      return {
        missing: 'a complete step, or the end of the job',
        present: running.map(trial => stateOf(trial).describeSteps('GLOBAL')).join('; '),
      }
    }
    const wait: WaitOptions = { ...waitingOf(this.#options), timeoutMs }
    try {
      return await waitFor(stateOf(running[0]!).access.store, look, wait)
    } catch (error) {
      if (!(error instanceof WaitTimeout)) throw error
      if (outage !== null) throw outage
      return false
    }
  }

  /** Asks the rules whether they fire because no step comes. */
  async #ask(): Promise<void> {
    for (const rule of this.#rules) {
      if (this.#outcome.ended.has(rule)) continue
      const findings = rule.whileWaiting()
      if (findings.length === 0) continue
      this.#outcome.ended.add(rule)
      await this.#holding(undefined, () => this.#outcome.fired(rule, findings[0]!.step, findings))
      this.#progress()
    }
  }

  #progress(): void {
    this.#options.onProgress?.({
      doneSteps: this.#doneSteps,
      totalSteps: this.#groups.reduce((sum, { trial }) => sum + stateOf(trial).catalog.steps.completeCount, 0),
      readBytes: this.#stats.readBytes,
      findings: this.#outcome.findingCount,
    })
  }
}

function prepare(rule: Rule, step: number, inquiry: Inquiry): Prepared {
  try {
    const required = rule.require(step, inquiry)
    required.pose()
    return { rule, step, required }
  } catch (error) {
    return { rule, step, error }
  }
}
