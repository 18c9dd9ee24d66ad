/** Differences of two runs as a table for other programs. */

import { quote, UsageError } from '../base/errors.js'
import { type ColumnData, Lists, Numbers, Texts } from '../table/column.js'
import type { Group } from '../table/group.js'
import type { Field, FieldType } from '../table/schema.js'
import type { TableFormatName } from '../table/table.js'
import type { DifferenceAt } from './records.js'

/** A cell: a text, a number, a list of integers; null if empty. */
type Cell = string | number | readonly number[] | null

/** A column: its name in files, its type, and its value for a difference. */
interface DifferenceColumn {
  readonly name: string
  readonly type: 'text' | 'int64' | 'float64' | 'list'
  readonly of: (difference: DifferenceAt) => Cell
}

/** The columns, in the order in which all formats have them. */
export const DIFFERENCE_COLUMNS: readonly DifferenceColumn[] = [
  { name: 'step', type: 'int64', of: ({ step }) => step },
  { name: 'mode', type: 'text', of: ({ mode }) => mode },
  { name: 'mode_step', type: 'int64', of: ({ modeStep }) => modeStep },
  { name: 'tensor', type: 'text', of: ({ tensor }) => tensor },
  { name: 'worker', type: 'text', of: ({ worker }) => worker },
  { name: 'kind', type: 'text', of: ({ kind }) => kind },
  { name: 'element', type: 'list', of: ({ element }) => element },
  { name: 'largest', type: 'list', of: ({ largest }) => largest },
  { name: 'other_tensor', type: 'text', of: ({ otherTensor }) => otherTensor },
  { name: 'other_worker', type: 'text', of: ({ otherWorker }) => otherWorker },
  { name: 'other_step', type: 'int64', of: ({ otherStep }) => otherStep },
  { name: 'dtype', type: 'text', of: ({ difference }) => difference?.dtype ?? null },
  { name: 'other_dtype', type: 'text', of: ({ difference }) => difference?.otherDtype ?? null },
  { name: 'unequal', type: 'int64', of: ({ difference }) => difference?.unequalCount ?? null },
  { name: 'beyond', type: 'int64', of: ({ difference }) => difference?.beyondCount ?? null },
  { name: 'count', type: 'int64', of: ({ difference }) => difference?.count ?? null },
  { name: 'relative_norm', type: 'float64', of: ({ difference }) => difference?.relativeNorm ?? null },
  { name: 'value', type: 'float64', of: ({ difference }) => difference?.largestPair?.[0] ?? null },
  { name: 'other_value', type: 'float64', of: ({ difference }) => difference?.largestPair?.[1] ?? null },
  {
    name: 'max_abs',
    type: 'float64',
    of: ({ difference, quantised }) => (difference ?? quantised)?.maxAbsolute ?? null,
  },
  { name: 'max_rel', type: 'float64', of: ({ difference }) => difference?.maxRelative ?? null },
  { name: 'mean_abs', type: 'float64', of: ({ difference }) => difference?.meanAbsolute ?? null },
  { name: 'max_ulps', type: 'float64', of: ({ difference }) => difference?.maxUlps ?? null },
  { name: 'ulps_p50', type: 'float64', of: ({ difference }) => difference?.ulps?.p50 ?? null },
  { name: 'ulps_p90', type: 'float64', of: ({ difference }) => difference?.ulps?.p90 ?? null },
  { name: 'ulps_p99', type: 'float64', of: ({ difference }) => difference?.ulps?.p99 ?? null },
  { name: 'cosine', type: 'float64', of: ({ difference, quantised }) => (difference ?? quantised)?.cosine ?? null },
  { name: 'norm_ratio', type: 'float64', of: ({ difference }) => difference?.normRatio ?? null },
  { name: 'nmse', type: 'float64', of: ({ quantised }) => quantised?.normalisedError ?? null },
  { name: 'sqnr', type: 'float64', of: ({ quantised }) => quantised?.sqnr ?? null },
  {
    name: 'worst_block_nmse',
    type: 'float64',
    of: ({ quantised }) => quantised?.worstBlock.normalisedError ?? null,
  },
  { name: 'worst_block', type: 'text', of: ({ quantised }) => quantised?.worstBlock.index.join(' ') ?? null },
  { name: 'saturated', type: 'float64', of: ({ quantised }) => quantised?.saturated ?? null },
  { name: 'not_finite', type: 'text', of: ({ difference }) => difference?.notFinite ?? null },
  { name: 'noise', type: 'float64', of: ({ noise }) => noise },
  { name: 'message', type: 'text', of: ({ message }) => message },
]

const REQUIRED = new Set([
  'step',
  'mode',
  'mode_step',
  'tensor',
  'worker',
  'kind',
  'other_tensor',
  'other_worker',
  'other_step',
  'message',
])
const GROUP_ROWS = 100_000

/** Writes differences to a file while they are found: pass `add` to `diff` as `onDifference`, then call `end`. */
export class DifferenceTable {
  #queue!: ReadableStreamDefaultController<DifferenceGroup>
  readonly #groups = new ReadableStream<DifferenceGroup>({
    start: queue => {
      this.#queue = queue
    },
  })
  #group = new DifferenceGroup()
  #isBegun = false
  #isEnded = false

  add(difference: DifferenceAt): void {
    this.#group.add(difference)
    if (this.#group.length === GROUP_ROWS) this.#close()
  }

  /** Ends the table; a second call does nothing. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    // An empty group, too, if there is no other.
    if (this.#group.length > 0 || !this.#isBegun) this.#close()
    this.#queue.close()
  }

  #close(): void {
    this.#isBegun = true
    this.#queue.enqueue(this.#group)
    this.#group = new DifferenceGroup()
  }

  /** The bytes as they are ready; can be called once. @throws UsageError */
  async *bytes(format: TableFormatName): AsyncGenerator<Uint8Array> {
    if (format !== 'parquet' && format !== 'arrow') {
      throw new UsageError(`differenceTable.bytes: expected parquet or arrow, got ${quote(String(format))}`, { format })
    }
    const fields = DIFFERENCE_COLUMNS.map(({ name, type }): Field => {
      const fieldType: FieldType = type === 'list' ? { list: 'int64' } : type
      return { name, type: fieldType, isNullable: !REQUIRED.has(name) }
    })
    const write = format === 'parquet' ? await import('../table/parquet/parquet.js') : await import('../table/arrow.js')
    // More may be added after a file can't be written to its end.
    yield* write.tableFile(fields, this.#groups.values({ preventCancel: true }), {})
  }
}

class DifferenceGroup implements Group {
  readonly #columns = DIFFERENCE_COLUMNS.map(({ type }) =>
    type === 'text' ? new Texts(GROUP_ROWS) : type === 'list' ? new Lists(GROUP_ROWS) : new Numbers(GROUP_ROWS),
  )
  length = 0

  add(difference: DifferenceAt): void {
    for (const [i, { of }] of DIFFERENCE_COLUMNS.entries()) {
      const [column, cell] = [this.#columns[i], of(difference)]
      if (column instanceof Texts) column.set(this.length, cell === null ? null : String(cell))
      else if (column instanceof Numbers) column.set(this.length, typeof cell === 'number' ? cell : undefined)
      else if (Array.isArray(cell)) column!.set(this.length, cell)
    }
    this.length++
  }

  column(name: string): ColumnData {
    const at = DIFFERENCE_COLUMNS.findIndex(column => column.name === name)
    return this.#columns[at]!.take(this.length)
  }
}
