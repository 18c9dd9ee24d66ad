/** The largest or smallest of any number of rows, of which only a few are held. */

interface Ranked<T> {
  readonly value: number | bigint
  /** The number of rows before it. */
  readonly order: number
  readonly item: T
}

/** The best rows, and at most as many others. NaN counts as larger than Infinity; of equal rows the first stay. */
export class TopRows<T> {
  readonly #limit: number
  readonly #isDescending: boolean
  readonly #rows: Ranked<T>[] = []
  /** The last of the best rows; undefined while there are too few. */
  #last: Ranked<T> | undefined
  #count = 0

  constructor(limit: number, order: 'descending' | 'ascending') {
    this.#limit = limit
    this.#isDescending = order === 'descending'
  }

  /** @param item called only if the row may be among the best */
  add(value: number | bigint, item: () => T): void {
    const order = this.#count++
    if (this.#last !== undefined && this.#compare({ value, order }, this.#last) > 0) return
    this.#rows.push({ value, order, item: item() })
    if (this.#rows.length >= (this.#last === undefined ? 1 : 2) * this.#limit) this.sorted()
  }

  /** The rows, the best first. */
  sorted(): readonly T[] {
    this.#rows.sort((a, b) => this.#compare(a, b)).splice(this.#limit)
    this.#last = this.#rows[this.#limit - 1]
    return this.#rows.map(({ item }) => item)
  }

  #compare(a: Omit<Ranked<T>, 'item'>, b: Omit<Ranked<T>, 'item'>): number {
    const isLarger = isAbove(a.value, b.value)
    if (isLarger || isAbove(b.value, a.value)) return isLarger === this.#isDescending ? -1 : 1
    return a.order - b.order
  }
}

function isAbove(a: number | bigint, b: number | bigint): boolean {
  return a > b || (Number.isNaN(a) && !Number.isNaN(b))
}
