/** The largest or smallest of any number of rows, of which only a few are held. */

interface Ranked<T> {
  readonly value: number | bigint
  /** The number of rows before it. */
  readonly order: number
  readonly item: T
}

/**
 * A heap of bounded size, whose root is the next row to drop. NaN counts as larger than Infinity; of equal rows the
 * first stay.
 */
export class TopRows<T> {
  readonly #limit: number
  readonly #isDescending: boolean
  readonly #heap: Ranked<T>[] = []
  #count = 0

  constructor(limit: number, order: 'descending' | 'ascending') {
    this.#limit = limit
    this.#isDescending = order === 'descending'
  }

  /** The number of held rows. */
  get size(): number {
    return this.#heap.length
  }

  /** @param item called only if the row is among the best so far */
  add(value: number | bigint, item: () => T): void {
    const order = this.#count++
    const heap = this.#heap
    if (heap.length < this.#limit) {
      heap.push({ value, order, item: item() })
      this.#rise(heap.length - 1)
    } else if (heap.length > 0 && this.#isBefore({ value, order }, heap[0]!)) {
      heap[0] = { value, order, item: item() }
      this.#sink()
    }
  }

  /** The rows, the best first. */
  sorted(): readonly T[] {
    return [...this.#heap].sort((a, b) => (this.#isBefore(a, b) ? -1 : 1)).map(({ item }) => item)
  }

  #isBefore(a: Omit<Ranked<T>, 'item'>, b: Omit<Ranked<T>, 'item'>): boolean {
    const isLarger = isAbove(a.value, b.value)
    if (isLarger || isAbove(b.value, a.value)) return isLarger === this.#isDescending
    return a.order < b.order
  }

  #rise(from: number): void {
    const heap = this.#heap
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(heap[parent]!, heap[at]!)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #sink(): void {
    const heap = this.#heap
    for (let at = 0; ; ) {
      let last = at
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && this.#isBefore(heap[last]!, heap[child]!)) last = child
      }
      if (last === at) return
      this.#swap(at, last)
      at = last
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const item = heap[a]!
    heap[a] = heap[b]!
    heap[b] = item
  }
}

function isAbove(a: number | bigint, b: number | bigint): boolean {
  return a > b || (Number.isNaN(a) && !Number.isNaN(b))
}
