/** A training at a glance: its losses, its layers, its updates, and what is wrong with it. */

import { entryOf } from '../../base/maps.js'
import { checkOptions, optionsOf } from '../../base/options.js'
import { inTurns } from '../../base/turns.js'
import type { GlobalStep, Mode, Worker } from '../../base/types.js'
import type { UnusualRate } from '../../rules/base/learning-rates.js'
import type { DiagnosedFinding } from '../../rules/diagnosis.js'
import { faultOf } from '../../scan/job/row.js'
import { damageAmong, type ScanSelection, SELECTION_KINDS } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { judged, type NotJudged } from '../judged.js'
import { LINE_STATISTICS, Lines, type NotFinite, type OverviewLine } from './lines.js'

export type { NotFinite, OverviewLine }

export interface TrialOverview {
  readonly name: string
  readonly path: string
  /** True if the job has said that it ended. */
  readonly isEnded: boolean
  /** The facts about checkpoints; null for any other trial. */
  readonly checkpoint: Trial['checkpoint']
  /** Global steps that were looked at, ascending. */
  readonly steps: readonly GlobalStep[]
  /** The modes, and how many of the steps each has. */
  readonly modes: readonly { readonly mode: Mode; readonly steps: number }[]
  readonly workers: readonly Worker[]
  readonly collections: readonly { readonly name: string; readonly size: number }[]
  /** The number of tensors that were examined. */
  readonly tensors: number
  /** Mean losses, by mode. */
  readonly losses: readonly OverviewLine[]
  readonly metrics: readonly OverviewLine[]
  /** Mean magnitudes of gradients (`abs_mean`), in training. */
  readonly gradients: readonly OverviewLine[]
  readonly weights: readonly OverviewLine[]
  /** ‖W − W₀‖ / ‖W₀‖ of each weight, where W₀ is the weight at the step before, in training. */
  readonly updates: readonly OverviewLine[]
  /** Weights that were zero at a step and not at the next: such an update has no norm to divide by. */
  readonly fromZero: readonly string[]
  /** The first step of each tensor with NaN or infinities, in the order of steps. */
  readonly notFinite: readonly NotFinite[]
  /** The findings of the rules, each with its cause, in the order of steps. */
  readonly findings: readonly DiagnosedFinding[]
  /** The rules that judged. */
  readonly rules: readonly string[]
  /** Unusual learning rates. */
  readonly learningRates: readonly UnusualRate[]
  /** Rules that judged nothing although their tensors were saved, and what they lacked. */
  readonly notJudged: readonly NotJudged[]
  /** Steps at which a rule had anything to judge. */
  readonly judgedSteps: number
  /** A line for each file with read errors. */
  readonly problems: readonly string[]
  /** Values of tensors that were read, and their bytes. */
  readonly values: number
  /** Values of tensors that could not be read. */
  readonly unread: number
  readonly readBytes: number
  readonly elapsedMs: number
}

const OVERVIEW_OPTIONS = optionsOf<ScanSelection>(SELECTION_KINDS)

/**
 * A training at a glance, from one scan and one evaluation of the rules.
 * @param options the tensors and steps to look at. Default: all
 * @throws what a scan throws; `problems` lists what can't be read
 */
export async function trialOverview(trial: Trial, options?: ScanSelection): Promise<TrialOverview> {
  const startedAt = performance.now()
  const selection = checkOptions('trialOverview', OVERVIEW_OPTIONS, options)
  const { findings, rules, notJudged, judgedSteps, learningRates, updates, fromZero, problems } = await judged(
    trial,
    selection,
  )
  const lines = new Lines(trial)
  const steps = new Set<GlobalStep>()
  // Workers may be in different modes at a step.
  const modes = new Map<Mode, Set<GlobalStep>>()
  const tensors = new Set<string>()
  let values = 0
  let unread = 0
  const scan = trial.scan({ ...selection, reductions: LINE_STATISTICS })
  for await (const row of scan) {
    const { tensor, step, mode, reductions } = row
    const fault = faultOf(row)
    if (fault) problems.add(fault)
    if (tensor === null) continue
    steps.add(step)
    entryOf(modes, mode, () => new Set()).add(step)
    tensors.add(tensor)
    if (fault && Object.keys(reductions).length === 0) unread++
    else values++
    lines.add(row)
  }
  await inTurns(updates, update => lines.addUpdate(update))
  for (const error of [...trial.problems, ...damageAmong(scan.problems)]) problems.add(error)
  return {
    name: trial.name,
    path: trial.path,
    isEnded: trial.loadedAllSteps,
    checkpoint: trial.checkpoint,
    steps: [...steps],
    modes: [...modes].map(([mode, { size }]) => ({ mode, steps: size })),
    workers: trial.workers(),
    collections: [...trial.collections().values()]
      .filter(({ members }) => members.length > 0)
      .map(({ name, members }) => ({ name, size: members.length })),
    tensors: tensors.size,
    losses: lines.of('losses'),
    metrics: lines.of('metrics'),
    gradients: lines.training('gradients'),
    weights: lines.training('weights'),
    updates: lines.training('updates'),
    fromZero,
    notFinite: lines.notFinite,
    findings,
    rules,
    notJudged,
    judgedSteps,
    learningRates,
    problems: problems.lines,
    values,
    unread,
    readBytes: scan.stats.readBytes,
    elapsedMs: performance.now() - startedAt,
  }
}
