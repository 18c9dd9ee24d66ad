/** What the page was given, unpacked as it is needed. */

import type { PackedColumn, PackedNumbers, ReportData, ShownStatistic, TrialView } from '../view/data.js'

type Numbers = Float64Array | Float32Array | Uint8Array

async function unpack({ type, length, base64 }: PackedNumbers): Promise<Numbers> {
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
  readonly #words: Uint32Array
  readonly #stride: number

  constructor(
    readonly packed: PackedColumn,
    numbers: Numbers,
    steps: number,
  ) {
    this.#numbers = numbers
    this.#words = new Uint32Array(numbers.buffer)
    this.#stride = numbers.BYTES_PER_ELEMENT / 4
    this.#steps = Math.ceil(steps / packed.every)
  }

  /** At a step that it has. NaN where there is none. */
  at(series: number, step: number): number {
    return this.#numbers[series * this.#steps + Math.floor(step / this.packed.every)] ?? Number.NaN
  }

  /** Whether the series has a number there, be it NaN. */
  isThere(series: number, step: number): boolean {
    const at = series * this.#steps + Math.floor(step / this.packed.every)
    return !Number.isNaN(this.#numbers[at]) || (this.#words[at * this.#stride]! & 1) === 1
  }

  /** Whether it has this very step. */
  has(step: number): boolean {
    return step % this.packed.every === 0
  }
}

export class ShownTrial {
  readonly #columns = new Map<ShownStatistic, Promise<Column>>()
  readonly #ridges = new Map<number, Promise<Uint8Array>>()
  #states: Promise<Uint8Array> | undefined
  /** The index of each tensor. */
  readonly tensorOf: ReadonlyMap<string, number>
  /** The series of each tensor. */
  readonly seriesOf: readonly (readonly number[])[]

  constructor(readonly view: TrialView) {
    this.tensorOf = new Map(view.tensors.map(({ name }, i) => [name, i]))
    const seriesOf: number[][] = view.tensors.map(() => [])
    for (const [series, { tensor }] of view.series.entries()) seriesOf[tensor]!.push(series)
    this.seriesOf = seriesOf
  }

  get statistics(): readonly ShownStatistic[] {
    return this.view.columns.map(({ name }) => name)
  }

  column(name: ShownStatistic): Promise<Column> | null {
    const packed = this.view.columns.find(column => column.name === name)
    if (packed === undefined) return null
    const known =
      this.#columns.get(name) ??
      unpack(packed.numbers).then(numbers => new Column(packed, numbers, this.view.steps.length))
    this.#columns.set(name, known)
    return known
  }

  /** For each series and step an index into STATES. */
  states(): Promise<Uint8Array> {
    this.#states ??= unpack(this.view.states) as Promise<Uint8Array>
    return this.#states
  }

  /** The shares of a ridge, by its index. */
  shares(ridge: number): Promise<Uint8Array> {
    const known = this.#ridges.get(ridge) ?? (unpack(this.view.ridges[ridge]!.shares) as Promise<Uint8Array>)
    this.#ridges.set(ridge, known)
    return known
  }

  /** `12 (TRAIN 8)`. @param step the index of a step */
  stepText(step: number): string {
    const { steps, modes, mode, modeStep } = this.view
    const name = modes[mode[step]!]
    return name === undefined || name === 'GLOBAL' ? `${steps[step]}` : `${steps[step]} (${name} ${modeStep[step]})`
  }
}

export function readData(): { readonly data: ReportData; readonly trials: readonly ShownTrial[] } {
  const data = JSON.parse(document.getElementById('data')!.textContent!) as ReportData
  return { data, trials: data.trials.map(view => new ShownTrial(view)) }
}
