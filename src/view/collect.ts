/** A trial as a page shows it: its findings, and one scan of all that it holds. */

import { Distribution } from '../engine/statistics/distribution.js'
import { ReductionUndefined } from '../errors.js'
import type { ScanRow } from '../job/row.js'
import { diagnose } from '../rule/diagnosis.js'
import { evaluate } from '../rule/evaluate.js'
import type { Finding } from '../rule/finding.js'
import { RuleRegistry } from '../rule/registry.js'
import { type ScanSelection, selectItems } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { MODES, type StatisticName } from '../types.js'
import { StatisticTable } from './columns.js'
import { type FindingView, type SeriesView, SHOWN_STATISTICS, STATES, type TensorView, type TrialView } from './data.js'
import { kindsOf } from './kinds.js'
import { packed } from './packing.js'
import { chosenSeries, chosenSteps, ridgeOf } from './ridges.js'

/** What a page lists. */
const MAX_FINDINGS = 2000
const MAX_PROBLEMS = 50

export interface CollectOptions extends ScanSelection {
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
}

/** @throws what a scan throws; tensors that can't be read are told in the view */
export async function collect(trial: Trial, options: CollectOptions): Promise<TrialView> {
  const { findings, rules } = await judged(trial, options)
  const { onProgress, ...selection } = options
  return new Collection(trial, findings, rules, selection).collect(selection, onProgress)
}

async function judged(trial: Trial, { threads, signal }: CollectOptions) {
  const { rules } = new RuleRegistry().all(trial, { logger: SILENT })
  const { findings } = await evaluate(rules, {
    follow: false,
    ...(threads !== undefined && { threads }),
    ...(signal && { signal }),
  })
  return { findings, rules: rules.map(({ ruleName }) => ruleName) }
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** The steps that rows will be of, and of how many tensors of workers. */
function extentOf(trial: Trial, selection: ScanSelection): { steps: readonly number[]; seriesCount: number } {
  const steps = new Set<number>()
  const series = new Set<string>()
  for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
    steps.add(workerStep.step)
    if (saved !== null) series.add(`${workerStep.worker}\n${saved.tensor}`)
  }
  return { steps: [...steps].sort((a, b) => a - b), seriesCount: series.size }
}

/** What is learned of a trial, row by row. */
class Collection {
  readonly #trial: Trial
  readonly #findings: readonly Finding[]
  readonly #rules: readonly string[]
  readonly #steps: readonly number[]
  readonly #stepIndex: ReadonlyMap<number, number>
  readonly #mode: number[]
  readonly #modeStep: number[]
  readonly #workers: string[] = []
  readonly #tensors: TensorView[] = []
  readonly #tensorIndex = new Map<string, number>()
  readonly #series: SeriesView[] = []
  readonly #seriesIndex = new Map<string, number>()
  readonly #table: StatisticTable
  /** By series, of the steps that are drawn. */
  readonly #sketches: Map<number, Distribution>[] = []
  readonly #states: number[][] = []
  readonly #problems = new Set<string>()
  #values = 0

  constructor(trial: Trial, findings: readonly Finding[], rules: readonly string[], selection: ScanSelection) {
    this.#trial = trial
    this.#findings = findings
    this.#rules = rules
    const { steps, seriesCount } = extentOf(trial, selection)
    this.#steps = steps
    this.#stepIndex = new Map(this.#steps.map((step, i) => [step, i]))
    this.#mode = this.#steps.map(() => 0)
    this.#modeStep = [...this.#steps]
    this.#table = new StatisticTable(seriesCount, steps.length)
  }

  async collect(selection: ScanSelection, onProgress: CollectOptions['onProgress']): Promise<TrialView> {
    const trial = this.#trial
    const kindOf = kindsOf(trial)
    const drawn = chosenSteps(this.#steps.length)
    const reductions: StatisticName[] = [...SHOWN_STATISTICS, 'sketch']
    const scan = trial.scan({ ...selection, reductions, ...(onProgress && { onProgress }) })
    for await (const row of scan) {
      if (row.tensor === null) continue
      this.#add(row, drawn, name => ({ name, kind: kindOf(name), dtype: row.dtype, shape: row.shape }))
    }
    for (const { message } of [...trial.problems, ...scan.problems]) this.#problems.add(message)
    return this.#view(scan.stats.readBytes)
  }

  #add(row: ScanRow, drawn: ReadonlySet<number>, tensorOf: (name: string) => TensorView): void {
    const step = this.#stepIndex.get(row.step)
    if (step === undefined || row.tensor === null) return
    this.#mode[step] = MODES.indexOf(row.mode)
    this.#modeStep[step] = row.modeStep
    const series = this.#seriesOf(row, tensorOf)
    // Nothing is wrong with a dtype that lacks some of what is shown.
    const error = row.error instanceof ReductionUndefined ? undefined : row.error
    this.#states[series]![step] = STATES.indexOf(error ? 'failed' : 'present')
    if (error) this.#problems.add(error.message)
    this.#values++
    this.#table.add(series, step, row)
    const { sketch } = row.reductions
    if (sketch instanceof Distribution && drawn.has(step)) this.#sketches[series]!.set(step, sketch)
  }

  #seriesOf({ tensor, worker }: ScanRow, tensorOf: (name: string) => TensorView): number {
    const key = `${worker}\n${tensor}`
    const known = this.#seriesIndex.get(key)
    if (known !== undefined) return known
    const name = tensor!
    const tensorIndex = this.#tensorIndex.get(name) ?? this.#tensors.push(tensorOf(name)) - 1
    this.#tensorIndex.set(name, tensorIndex)
    const at = this.#workers.indexOf(worker)
    const workerIndex = at < 0 ? this.#workers.push(worker) - 1 : at
    const series = this.#series.push({ tensor: tensorIndex, worker: workerIndex }) - 1
    this.#seriesIndex.set(key, series)
    this.#sketches[series] = new Map()
    this.#states[series] = []
    return series
  }

  #view(readBytes: number): TrialView {
    const trial = this.#trial
    const states = new Uint8Array(this.#series.length * this.#steps.length)
    for (const [series, of] of this.#states.entries()) {
      for (const [step, state] of of.entries()) states[series * this.#steps.length + step] = state ?? 0
    }
    const chosen = chosenSeries(this.#byImportance())
    const collections = [...trial.collections().values()].filter(({ members }) => members.length > 0)
    const diagnosed = diagnose(trial, this.#findings)
    return {
      name: trial.name,
      path: trial.path,
      isEnded: trial.loadedAllSteps,
      steps: this.#steps,
      modes: MODES,
      mode: this.#mode,
      modeStep: this.#modeStep,
      workers: this.#workers,
      collections: collections.map(({ name, members }) => ({ name, size: members.length })),
      tensors: this.#tensors,
      series: this.#series,
      states: packed(states),
      columns: this.#table.pack(this.#series.length),
      ridges: [...chosen].sort((a, b) => a - b).flatMap(series => ridgeOf(series, this.#sketches[series]!) ?? []),
      findings: this.#findingViews(diagnosed.slice(0, MAX_FINDINGS)),
      findingCount: diagnosed.length,
      rules: this.#rules,
      problems: [...this.#problems].slice(0, MAX_PROBLEMS),
      values: this.#values,
      readBytes,
    }
  }

  #findingViews(diagnosed: ReturnType<typeof diagnose>): FindingView[] {
    return diagnosed.map(({ name, step, tensor, worker, message, cause }) => ({
      rule: name,
      step: this.#stepIndex.get(step) ?? 0,
      tensor: tensor === null ? null : (this.#tensorIndex.get(tensor) ?? null),
      worker,
      message,
      cause,
    }))
  }

  /** Those that rules found something about, then losses, gradients and weights, then the others. */
  #byImportance(): number[] {
    const found = new Set(this.#findings.map(({ tensor }) => tensor))
    const rank = ({ tensor }: SeriesView): number => {
      const { name, kind } = this.#tensors[tensor]!
      return found.has(name) ? 0 : kind === 'gradients' || kind === 'weights' ? 1 : 2
    }
    const ranks = this.#series.map(rank)
    return this.#series.map((_, i) => i).sort((a, b) => ranks[a]! - ranks[b]! || a - b)
  }
}
