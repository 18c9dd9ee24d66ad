/** Statistics of a trial that clients look at. They are kept, so that only new steps have to be read. */

import { ReductionUndefined } from '../../base/errors.js'
import type { Kind } from '../../trial/kinds/kinds.js'
import type { ScanOptions } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { MAX_EXACT, packedColumn } from '../columns.js'
import type { PackedColumn, ServedStatistic } from '../data.js'
import type { Update } from '../judged.js'
import type { Skeleton } from '../skeleton.js'

/** The tensors of a column. */
export type Scope = { readonly kind: Kind | 'all' } | { readonly tensor: string }

/** A statistic of some series, in the order of the view's series. */
export type ScopedColumn = Pick<PackedColumn, 'name' | 'every' | 'isExact' | 'numbers'> & {
  /** The indices of its series. */
  readonly series: readonly number[]
  readonly version: number
}

/** The facts about the trial at the time of a request. */
export interface Known {
  readonly trial: Trial
  readonly skeleton: Skeleton
  /** The kind of each tensor. */
  readonly kinds: readonly Kind[]
  readonly version: number
  readonly updates: readonly Update[]
}

/** The most bytes of numbers that are kept of a trial. */
const MAX_KEPT_BYTES = 256 << 20
/** The numbers of series at steps that have been read, by the indices of both. */
interface KeptColumn {
  /** The last of the steps that are whole and have been read; -1: none. */
  upTo: number
  readonly numbers: (number[] | undefined)[]
  cells: number
}

export class KeptColumns {
  readonly #reading: Pick<ScanOptions, 'signal' | 'threads' | 'memory'>
  readonly #columns = new Map<string, KeptColumn>()
  /** The steps of the columns. */
  #stepsOf: readonly number[] = []
  /** The reads in progress, by column. */
  readonly #turns = new Map<string, Promise<void>>()

  constructor(reading: Pick<ScanOptions, 'signal' | 'threads' | 'memory'>) {
    this.#reading = reading
  }

  /** A statistic of the tensors in a scope at all steps. Only steps that were not read before are read. */
  column(name: ServedStatistic, scope: Scope, known: () => Promise<Known>): Promise<ScopedColumn> {
    const key = JSON.stringify([name, scope])
    // Requests for a column take turns: each reads only what the one before did not.
    const column = (this.#turns.get(key) ?? Promise.resolve()).then(async () =>
      this.#column(key, name, scope, await known()),
    )
    const turn = column.then(
      () => {},
      () => {},
    )
    this.#turns.set(key, turn)
    void turn.then(() => this.#turns.get(key) === turn && this.#turns.delete(key))
    return column
  }

  async #column(
    key: string,
    name: ServedStatistic,
    scope: Scope,
    { trial, skeleton, kinds, version, updates }: Known,
  ): Promise<ScopedColumn> {
    const isMeant = (tensor: number): boolean =>
      'tensor' in scope
        ? skeleton.tensors[tensor] === scope.tensor
        : scope.kind === 'all' || kinds[tensor] === scope.kind
    const series = [...skeleton.series.keys()].filter(i => isMeant(skeleton.series[i]!.tensor))
    const tensors = [...new Set(series.map(i => skeleton.tensors[skeleton.series[i]!.tensor]!))]
    const kept = this.#keptFor(key, skeleton)
    if (name === 'update_ratio') {
      for (const { tensor, worker, step, ratio } of updates) {
        const [at, index] = [skeleton.seriesAt(worker, tensor), skeleton.stepAt(step)]
        if (at !== undefined && index !== undefined) put(kept, at, index, ratio)
      }
    } else if (tensors.length > 0) await this.#read(trial, name, tensors, kept, skeleton)
    const count = skeleton.steps.length
    const numbers = new Float64Array(series.length * count).fill(Number.NaN)
    for (const [row, at] of series.entries()) {
      for (const [step, value] of kept.numbers[at]?.entries() ?? []) numbers[row * count + step] = value ?? Number.NaN
    }
    const plan = { name, every: 1, isExact: numbers.length <= MAX_EXACT }
    const isNumber = (i: number) => kept.numbers[series[Math.floor(i / count)]!]?.[i % count] !== undefined
    return { ...packedColumn(plan, numbers, isNumber), series, version }
  }

  /** The kept part of a column. All columns are dropped if the trial changed other than by new steps, the least recently used beyond MAX_KEPT_BYTES. */
  #keptFor(key: string, { steps }: Skeleton): KeptColumn {
    if (this.#stepsOf.some((step, i) => steps[i] !== step)) this.#columns.clear()
    this.#stepsOf = steps
    const kept = this.#columns.get(key) ?? { upTo: -1, numbers: [], cells: 0 }
    this.#columns.delete(key)
    this.#columns.set(key, kept)
    let bytes = 0
    for (const [other, { cells }] of [...this.#columns].reverse()) {
      bytes += cells * 8
      if (bytes > MAX_KEPT_BYTES && other !== key) this.#columns.delete(other)
    }
    return kept
  }

  async #read(
    trial: Trial,
    name: Exclude<ServedStatistic, 'update_ratio'>,
    tensors: readonly string[],
    kept: KeptColumn,
    skeleton: Skeleton,
  ): Promise<void> {
    const complete = new Set<number>(trial.steps())
    const from = kept.upTo + 1
    if ((skeleton.steps.at(-1) ?? -1) < from) return
    const scan = trial.scan({
      tensors,
      reductions: [name],
      steps: { from: from > 0 ? from : null },
      ...this.#reading,
    })
    for await (const { tensor, worker, step, reductions, error } of scan) {
      if (tensor === null) continue
      const [at, index] = [skeleton.seriesAt(worker, tensor), skeleton.stepAt(step)]
      if (at === undefined || index === undefined) continue
      if (error && !(error instanceof ReductionUndefined)) skeleton.fail(at, index)
      const value = reductions[name]
      if (typeof value !== 'number') continue
      put(kept, at, index, value)
    }
    const open = skeleton.steps.find(step => step >= from && !complete.has(step))
    kept.upTo = open === undefined ? skeleton.steps.at(-1)! : open - 1
  }
}

function put(kept: KeptColumn, series: number, step: number, value: number): void {
  kept.numbers[series] ??= []
  kept.numbers[series][step] = value
  kept.cells++
}
