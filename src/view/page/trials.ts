/** The trials of the page, unpacked on demand, from the page's file or from a server. */

import type { Kind } from '../../trial/kinds/kinds.js'
import {
  type ClassesView,
  type EmbeddingView,
  type Numbers,
  type PackedColumn,
  type PackedNumbers,
  type ReportData,
  type RidgeView,
  SERVED_STATISTICS,
  type ServedComparison,
  type ShownStatistic,
  type TreeView,
  type TrialView,
  type UnitsView,
} from '../data.js'
import { executionOrder } from './order.js'

/** The tensors of some numbers. */
export type Scope = { readonly kind: Kind | 'all' } | { readonly tensor: string }

/** A statistic of all series or, where they are named, of some. */
export type ScopedColumn = PackedColumn & {
  readonly series?: readonly number[]
  /** The number of steps in the columns; absent: as in the view. */
  readonly steps?: number
}

/** A source of numbers. */
export interface Source {
  readonly statistics: readonly ShownStatistic[]
  /** A statistic of at least the series in the scope. Null: there is none. */
  column(name: ShownStatistic, scope: Scope): Promise<ScopedColumn | null>
  /** The distributions of a tensor's series. */
  ridges(tensor: string): Promise<readonly RidgeView[]>
  classes(): Promise<ClassesView | null>
  units(): Promise<readonly UnitsView[]>
  trees(): Promise<readonly TreeView[]>
  /** True if any tensor can be embedded, not only the one that was chosen before. */
  readonly embedsAny: boolean
  /** The embedding of a tensor. @param tensor used if any tensor can be embedded */
  embedding(tensor: string): Promise<EmbeddingView | null>
  /** The steps at which a series' elements can be read. */
  elementSteps(series: number): readonly number[]
  /** The elements of a series at a step. Null: they are too many. */
  elements(series: number, step: number): Promise<Elements | null>
}

/** All elements of a tensor, in C order. */
export interface Elements {
  readonly shape: readonly number[]
  readonly numbers: ArrayLike<number>
}

/** The numbers in the page's own file. */
export function fileSource(view: TrialView): Source {
  return {
    statistics: view.columns.map(({ name }) => name),
    column: async name => view.columns.find(column => column.name === name) ?? null,
    ridges: async tensor =>
      view.ridges.filter(({ series }) => view.tensors[view.series[series]!.tensor]!.name === tensor),
    classes: async () => view.classes,
    units: async () => view.units ?? [],
    trees: async () => view.trees ?? [],
    embedsAny: false,
    embedding: async () => view.embedding,
    elementSteps: series => view.elements.filter(value => value.series === series).map(({ step }) => step),
    elements: async (series, step) => {
      const value = view.elements.find(candidate => candidate.series === series && candidate.step === step)
      return value ? { shape: value.shape, numbers: await unpack(value.numbers) } : null
    },
  }
}

/** The largest number of elements that a page asks for. */
const MAX_ELEMENTS = 65_536

/** The numbers of a server. @param base the trial's address on the server */
export function liveSource(base: string, view: TrialView): Source {
  const get = async (path: string) => {
    const response = await fetch(base + path)
    if (!response.ok) throw new Error(await response.text())
    return response.json()
  }
  return upTo(view, {
    statistics: SERVED_STATISTICS,
    column: async (name, scope) => {
      if (!(SERVED_STATISTICS as readonly string[]).includes(name)) return null
      const [[key, value]] = Object.entries(scope) as [[string, string]]
      return get(`/view/column?statistic=${name}&${key}=${encodeURIComponent(value)}`)
    },
    ridges: tensor => get(`/view/ridges?tensor=${encodeURIComponent(tensor)}`),
    classes: () => get('/view/classes'),
    units: () => get('/view/units'),
    trees: () => get('/view/trees'),
    embedsAny: true,
    embedding: tensor => get(`/view/embedding?tensor=${encodeURIComponent(tensor)}`),
    elementSteps: elementStepsOf(view),
    elements: async (series, step) => {
      const { tensor, worker } = view.series[series]!
      const [name, workerName] = [view.tensors[tensor]!.name, view.workers[worker]!]
      const query = `tensor=${encodeURIComponent(name)}&step=${view.steps[step]}&worker=${encodeURIComponent(workerName)}`
      const { shape, values } = await get(`/value?${query}`)
      const flat = (shape.length === 0 ? [values] : values.flat(shape.length)) as readonly (number | string | boolean)[]
      // NaN and the infinities are texts.
      return { shape, numbers: Float64Array.from(flat, Number) }
    },
  })
}

/** A source cut to the steps and series of the view: the server may know more by now. */
export function upTo(view: TrialView, source: Source): Source {
  const isKnown = (step: number) => step < view.steps.length
  const known = <T extends ClassesView | EmbeddingView>(all: T | null): T | null =>
    all && {
      ...all,
      steps: (all.steps as readonly { readonly step: number }[]).filter(({ step }) => isKnown(step)),
    }
  return {
    ...source,
    ridges: async tensor =>
      (await source.ridges(tensor)).filter(({ series, steps }) => series < view.series.length && steps.every(isKnown)),
    classes: async () => known(await source.classes()),
    trees: async () => (await source.trees()).filter(({ step }) => isKnown(step)),
    units: async () => (await source.units()).map(unit => ({ ...unit, steps: unit.steps.filter(isKnown) })),
    embedding: async tensor => known(await source.embedding(tensor)),
  }
}

/** The steps at which a series' elements can be read: all, if the tensor is small. */
export function elementStepsOf(view: TrialView): Source['elementSteps'] {
  return series => {
    const { shape, dtype } = view.tensors[view.series[series]!.tensor]!
    const size = shape?.reduce((product, size) => product * size, 1) ?? Number.POSITIVE_INFINITY
    const isTooMuch = size > MAX_ELEMENTS || dtype === null || dtype === 'string' || dtype.startsWith('complex')
    return isTooMuch ? [] : [...view.steps.keys()]
  }
}

/** A source that also has the differences from another trial. */
export function withDifferences(source: Source, { columns, steps }: ServedComparison): Source {
  return {
    ...source,
    statistics: [...source.statistics, ...columns.map(({ name }) => name)],
    column: async (name, scope) => {
      const compared = columns.find(column => column.name === name)
      return compared ? { ...compared, steps } : source.column(name, scope)
    },
  }
}

export async function unpack(packed: PackedNumbers): Promise<Numbers> {
  if (ArrayBuffer.isView(packed)) return packed
  const { type, length, base64 } = packed
  const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))
  const split = new Uint8Array(await new Response(inflated).arrayBuffer())
  const width = split.length / Math.max(1, length)
  const joined = new Uint8Array(split.length)
  for (let byte = 0; byte < width; byte++) {
    for (let i = 0; i < length; i++) joined[i * width + byte] = split[byte * length + i]!
  }
  if (type === 'uint8') return joined
  return type === 'float64' ? new Float64Array(joined.buffer) : new Float32Array(joined.buffer)
}

/** A statistic of every series. */
export class Column {
  readonly #steps: number
  readonly #numbers: Numbers
  /** The row of each series; null if they are in order. */
  readonly #rows: ReadonlyMap<number, number> | null
  readonly #words: Uint32Array
  readonly #stride: number

  constructor(
    readonly packed: ScopedColumn,
    numbers: Numbers,
    steps: number,
  ) {
    this.#numbers = numbers
    this.#words = new Uint32Array(numbers.buffer)
    this.#stride = numbers.BYTES_PER_ELEMENT / 4
    this.#steps = Math.ceil(steps / packed.every)
    this.#rows = packed.series ? new Map(packed.series.map((series, row) => [series, row])) : null
  }

  /** The number of a series at one of the column's steps; NaN if there is none. */
  at(series: number, step: number): number {
    return this.#numbers[this.#place(series, step)] ?? Number.NaN
  }

  /** True if the series has a number at the step, be it NaN. */
  isThere(series: number, step: number): boolean {
    const at = this.#place(series, step)
    if (at < 0) return false
    return !Number.isNaN(this.#numbers[at]) || (this.#words[at * this.#stride]! & 1) === 1
  }

  #place(series: number, step: number): number {
    // The step is newer than the column.
    if (step >= this.#steps * this.packed.every) return -1
    const row = this.#rows === null ? series : this.#rows.get(series)
    return row === undefined ? -1 : row * this.#steps + Math.floor(step / this.packed.every)
  }

  /** True if the column includes the step. */
  has(step: number): boolean {
    return step % this.packed.every === 0
  }
}

/** The distribution of a tensor's elements at some of its steps. */
export interface Ridge {
  readonly view: RidgeView
  readonly shares: Uint8Array
}

export class ShownTrial {
  readonly source: Source
  readonly #columns = new Map<string, Promise<Column | null>>()
  #states: Promise<Uint8Array> | undefined
  /** The index of each tensor. */
  readonly tensorOf: ReadonlyMap<string, number>
  /** The series of each tensor. */
  readonly seriesOf: readonly (readonly number[])[]
  /** The tensors in the order of execution, by kind. */
  readonly inOrder: readonly number[]

  constructor(
    readonly view: TrialView,
    source: Source,
  ) {
    this.source = source
    this.tensorOf = new Map(view.tensors.map(({ name }, i) => [name, i]))
    const seriesOf: number[][] = view.tensors.map(() => [])
    for (const [series, { tensor }] of view.series.entries()) seriesOf[tensor]!.push(series)
    this.seriesOf = seriesOf
    this.inOrder = executionOrder(view, this.tensorOf)
  }

  get statistics(): readonly ShownStatistic[] {
    return this.source.statistics
  }

  /** A statistic of at least the tensors in the scope. Null: there is none. */
  column(name: ShownStatistic, scope: Scope): Promise<Column | null> {
    const key = JSON.stringify([name, scope])
    const known =
      this.#columns.get(key) ??
      this.source
        .column(name, scope)
        .then(async packed =>
          packed === null
            ? null
            : new Column(packed, await unpack(packed.numbers), packed.steps ?? this.view.steps.length),
        )
    this.#columns.set(key, known)
    return known
  }

  /** The state of each series and step, as an index into STATES. */
  states(): Promise<Uint8Array> {
    this.#states ??= unpack(this.view.states) as Promise<Uint8Array>
    return this.#states
  }

  /** The distributions of a tensor, for each series that has one. */
  async ridges(tensor: string): Promise<readonly Ridge[]> {
    const views = await this.source.ridges(tensor)
    return Promise.all(views.map(async view => ({ view, shares: (await unpack(view.shares)) as Uint8Array })))
  }

  /** A step as `12 (TRAIN 8)`. @param step the index of a step */
  stepText(step: number): string {
    const { steps, modes, mode, modeStep } = this.view
    const name = modes[mode[step]!]
    return name === undefined || name === 'GLOBAL' ? `${steps[step]}` : `${steps[step]} (${name} ${modeStep[step]})`
  }
}

/** Some steps of a trial: their indices, ascending. */
interface StepsOf {
  readonly trial: ShownTrial
  readonly steps: readonly number[]
}

/**
 * The indices of the steps at which tensors are first shown: their last ones. Two trials are compared at the last step that both have, unless
 * it is the first of both; else at the last steps of the same mode.
 */
export function firstSteps(all: readonly StepsOf[]): readonly number[] {
  const lastAlike = (keyOf: (view: TrialView, step: number) => string) => {
    const keys = all.map(({ trial, steps }) => steps.map(step => keyOf(trial.view, step)))
    const shared = keys[0]?.findLast(
      key => keys.every(some => some.includes(key)) && keys.some(some => some.lastIndexOf(key) > 0),
    )
    return shared === undefined ? null : all.map(({ steps }, i) => steps[keys[i]!.lastIndexOf(shared)]!)
  }
  const mode = ({ modes, mode }: TrialView, step: number) => modes[mode[step]!]!
  const alike =
    new Set(all.map(({ trial }) => trial)).size < 2
      ? null
      : (lastAlike((view, step) => `${view.steps[step]} ${mode(view, step)}`) ?? lastAlike(mode))
  return alike ?? all.map(({ steps }) => steps.at(-1)!)
}

/** The data of a server's page: the trials that it shows; none on the list of all trials. */
export interface LiveData {
  readonly live: readonly string[]
  readonly version: string
  readonly title: string
  /** True if the server has no other trial. */
  readonly isOnly: boolean
}

export function readData(): ReportData | LiveData {
  return JSON.parse(document.getElementById('data')!.textContent!) as ReportData | LiveData
}
