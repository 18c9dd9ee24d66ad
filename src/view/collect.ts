/** A trial as a page shows it: its findings, and one scan of all that it holds. */

import { ReductionUndefined } from '../base/errors.js'
import { elementsText } from '../base/number-text.js'
import type { ProblemLines } from '../base/problem-lines.js'
import { inTurns, turnsWhenDue } from '../base/turns.js'
import { MODES, type StatisticName } from '../base/types.js'
import { Distribution } from '../core/statistics/distribution.js'
import { lacksTensors } from '../rules/finding.js'
import type { ScanRow } from '../scan/job/row.js'
import { kindsOf } from '../trial/kinds/kinds.js'
import { damageAmong, type ScanSelection } from '../trial/scan-selection.js'
import type { Trial } from '../trial/trial.js'
import { StatisticTable } from './columns.js'
import { type FindingView, SCANNED_STATISTICS, type SeriesView, type TensorView, type TrialView } from './data.js'
import type { RunDifferences } from './differences.js'
import { type Judging, judged } from './judged.js'
import { Lines } from './overview/lines.js'
import { notFiniteText, remarks } from './overview/remarks.js'
import { packed } from './packing.js'
import { chosenSeries, chosenSteps, ridgeOf } from './ridges.js'
import { classesOf } from './samples/classes.js'
import { elementsOf } from './samples/elements.js'
import { type EmbeddingOptions, embeddingOf } from './samples/embedding.js'
import { treesOf } from './samples/trees.js'
import { unitsOf } from './samples/units.js'
import { Skeleton } from './skeleton.js'

/** The number of findings that a page lists. */
const MAX_FINDINGS = 2000
const MAX_PROBLEMS = 50
/** Rows that are added in one turn. */
const ROWS_AT_ONCE = 1024

export interface CollectOptions extends ScanSelection {
  readonly embedding: EmbeddingOptions | null
  /** The differences from the other run. */
  readonly differences: RunDifferences | null
  readonly onProgress?: ((progress: { readonly doneRows: number; readonly totalRows: number }) => void) | undefined
}

/** Collects the view of a trial for a page; it lists tensors that can't be read. @throws what a scan throws */
export async function collect(trial: Trial, options: CollectOptions): Promise<TrialView> {
  const { onProgress, embedding, differences, ...selection } = options
  const judging = await judged(trial, selection)
  const skeleton = await Skeleton.of(trial, selection)
  return new Collection(trial, judging, skeleton, differences).collect(selection, embedding, onProgress)
}

/** The facts about a trial, collected row by row. */
class Collection {
  readonly #trial: Trial
  readonly #judged: Judging
  readonly #skeleton: Skeleton
  readonly #tensors: { -readonly [K in keyof TensorView]: TensorView[K] }[]
  readonly #table: StatisticTable
  /** The series by importance. */
  readonly #order: readonly number[]
  /** Sketches by the indices of series and of steps, for those that are drawn. */
  readonly #sketches: ReadonlyMap<number, Map<number, Distribution>>
  readonly #differences: RunDifferences | null
  readonly #problems: ProblemLines
  readonly #lines: Lines
  #values = 0

  constructor(trial: Trial, judged: Judging, skeleton: Skeleton, differences: RunDifferences | null) {
    this.#differences = differences
    this.#trial = trial
    this.#judged = judged
    this.#problems = judged.problems
    this.#lines = new Lines(trial)
    this.#skeleton = skeleton
    const { tensors, series, steps } = skeleton
    const kindOf = kindsOf(trial)
    this.#tensors = tensors.map(name => ({ name, kind: kindOf(name), dtype: null, shape: null }))
    this.#table = new StatisticTable(series.length, steps.length)
    this.#order = this.#byImportance()
    this.#sketches = new Map([...chosenSeries(this.#order)].map(series => [series, new Map()]))
  }

  async collect(
    selection: ScanSelection,
    embedding: EmbeddingOptions | null,
    onProgress: CollectOptions['onProgress'],
  ): Promise<TrialView> {
    const trial = this.#trial
    const drawn = chosenSteps(this.#skeleton)
    const reductions: StatisticName[] = [...SCANNED_STATISTICS, 'sketch']
    const scan = trial.scan({ ...selection, reductions, onProgress })
    const due = turnsWhenDue()
    let rows = 0
    for await (const row of scan) {
      this.#add(row, drawn)
      if (++rows % ROWS_AT_ONCE === 0) await due()
    }
    await inTurns(this.#judged.updates, update => {
      const { tensor, worker, step, ratio } = update
      this.#lines.addUpdate(update)
      const series = this.#skeleton.seriesAt(worker, tensor)
      const at = this.#skeleton.stepAt(step)
      if (series !== undefined && at !== undefined) this.#table.set('update_ratio', series, at, ratio)
    })
    for (const error of [...trial.problems, ...damageAmong(scan.problems)]) this.#problems.add(error)
    const skeleton = this.#skeleton
    const classes = await classesOf(trial, selection, skeleton)
    const shown = embedding === null ? null : await embeddingOf(trial, embedding, selection, skeleton)
    const elements = await elementsOf(trial, selection, skeleton, this.#tensors, this.#order)
    const shapes = new Map(this.#tensors.map(({ name, shape }) => [name, shape]))
    const units = await unitsOf(trial, selection, skeleton, tensor => shapes.get(tensor) ?? null)
    return {
      ...(await this.#view(scan.stats.readBytes)),
      elements,
      classes,
      hasClasses: classes !== null,
      embedding: shown,
      units,
      trees: await treesOf(trial, selection, skeleton),
      hasUnits: units.length > 0,
    }
  }

  #add(row: ScanRow, drawn: ReadonlySet<number>): void {
    // A dtype that lacks some of the statistics is no error.
    const error = row.error instanceof ReductionUndefined ? undefined : row.error
    if (error) this.#problems.add(error)
    if (row.tensor === null) return
    const step = this.#skeleton.stepAt(row.step)
    const series = this.#skeleton.seriesAt(row.worker, row.tensor)
    // Steps that were written since the skeleton was read are left out.
    if (step === undefined || series === undefined) return
    this.#lines.add(row)
    if (error) this.#skeleton.fail(series, step)
    const tensor = this.#tensors[this.#skeleton.series[series]!.tensor]!
    tensor.dtype ??= row.dtype
    tensor.shape ??= row.shape
    this.#values++
    this.#table.add(series, step, row)
    const apart = this.#differences?.apartAt(row.worker, row.tensor, row.step)
    const { sketch } = row.reductions
    if (apart?.norm != null) this.#table.set('difference', series, step, apart.norm)
    if (apart?.changed != null) this.#table.set('changed', series, step, apart.changed)
    if (sketch instanceof Distribution && drawn.has(step)) this.#sketches.get(series)?.set(step, sketch)
  }

  async #view(
    readBytes: number,
  ): Promise<Omit<TrialView, 'elements' | 'classes' | 'hasClasses' | 'embedding' | 'units' | 'hasUnits' | 'trees'>> {
    const { steps, mode, modeStep, workers, series, states } = this.#skeleton
    const sketches = [...this.#sketches].sort(([a], [b]) => a - b)
    return {
      ...identityOf(this.#trial),
      steps,
      mode,
      modeStep,
      workers,
      tensors: this.#tensors,
      series,
      states: packed(states),
      columns: await this.#table.pack(),
      ridges: sketches.flatMap(([series, some]) => ridgeOf(series, some) ?? []),
      ...findingsOf(this.#judged, this.#skeleton),
      remarks: this.#remarks(),
      problems: this.#problems.lines.slice(0, MAX_PROBLEMS),
      values: this.#values,
      readBytes,
    }
  }

  #remarks(): readonly string[] {
    const lines = this.#lines
    const notFinite = notFiniteText(lines.notFinite)
    const { fromZero } = this.#judged
    const said = remarks({
      losses: lines.of('losses'),
      gradients: lines.training('gradients'),
      updates: lines.training('updates'),
      fromZero,
    })
    return notFinite === null ? said : [`NaN and infinities: ${notFinite}.`, ...said]
  }

  /** The series by importance: those with findings, then losses, gradients and weights, then the others. */
  #byImportance(): number[] {
    const { series } = this.#skeleton
    const tensorsWithFindings = new Set(this.#judged.findings.map(({ tensor }) => tensor))
    const rank = ({ tensor }: SeriesView): number => {
      const { name, kind } = this.#tensors[tensor]!
      return tensorsWithFindings.has(name) ? 0 : kind === 'gradients' || kind === 'weights' ? 1 : 2
    }
    const ranks = series.map(rank)
    return series.map((_, i) => i).sort((a, b) => ranks[a]! - ranks[b]! || a - b)
  }
}

/** The identity of a trial: its name, and whether it goes on. */
export function identityOf(
  trial: Trial,
): Pick<TrialView, 'name' | 'path' | 'isEnded' | 'checkpoint' | 'modes' | 'collections'> {
  const collections = [...trial.collections().values()].filter(({ members }) => members.length > 0)
  return {
    name: trial.name,
    path: trial.path,
    isEnded: trial.loadedAllSteps,
    checkpoint: trial.checkpoint && checkpointText(trial.checkpoint),
    modes: MODES,
    collections: collections.map(({ name, members }) => ({ name, size: members.length })),
  }
}

function checkpointText(checkpoint: NonNullable<Trial['checkpoint']>): string {
  const { model, formats, dtypes } = checkpoint
  const types = dtypes.slice(0, 3).join(', ') + (dtypes.length > 3 ? ' and others' : '')
  return `${model}: ${elementsText(checkpoint)}, ${[types, ...formats].filter(Boolean).join(', ')}`
}

/** The part of a view that rules make. */
export type JudgedPart = Pick<
  TrialView,
  'findings' | 'findingCount' | 'rules' | 'judged' | 'advice' | 'besides' | 'notJudged' | 'limits'
>

/** The findings about what is shown. */
export function findingsOf(
  { findings, rules, judged, advice, learningRates, notJudged, limits }: Judging,
  skeleton: Skeleton,
): JudgedPart {
  const tensorIndex = new Map(skeleton.tensors.map((name, i) => [name, i]))
  const views = findings.slice(0, MAX_FINDINGS).map(
    ({ name, step, tensor, worker, message, cause }): FindingView => ({
      rule: name,
      step: skeleton.stepAt(step) ?? 0,
      tensor: tensor === null ? null : (tensorIndex.get(tensor) ?? null),
      worker,
      message,
      cause,
    }),
  )
  return {
    findings: views,
    findingCount: findings.length,
    rules,
    judged,
    advice,
    besides: learningRates.map(({ message }) => message),
    notJudged: notJudged.filter(entry => !lacksTensors(entry)),
    limits,
  }
}

/** The part of a view before rules have begun. */
export function unjudged(state: 'waiting' | 'off'): JudgedPart {
  const judged = { state, steps: 0 }
  return { findings: [], findingCount: 0, rules: [], judged, advice: [], besides: [], notJudged: [], limits: [] }
}
