/** A column of numbers that grows. */

type Numbers = Float64Array | Int32Array | Uint8Array

const FIRST_LENGTH = 64

export class Column<T extends Numbers> {
  #numbers: T
  readonly #make: (length: number) => T
  length = 0

  /** @param make makes an array of a given length */
  constructor(make: (length: number) => T) {
    this.#make = make
    this.#numbers = make(FIRST_LENGTH)
  }

  push(number: number): void {
    if (this.length === this.#numbers.length) this.#grow(1)
    this.#numbers[this.length++] = number
  }

  append(numbers: ArrayLike<number>): void {
    if (this.length + numbers.length > this.#numbers.length) this.#grow(numbers.length)
    this.#numbers.set(numbers, this.length)
    this.length += numbers.length
  }

  #grow(more: number): void {
    const grown = this.#make(Math.max(2 * this.length, this.length + more))
    grown.set(this.#numbers)
    this.#numbers = grown
  }

  /** The numbers so far. */
  get numbers(): T {
    return this.#numbers.slice(0, this.length) as T
  }

  /** A view of the bytes, valid until the next number is added. */
  get bytes(): Uint8Array {
    const { buffer, BYTES_PER_ELEMENT } = this.#numbers
    return new Uint8Array(buffer, 0, this.length * BYTES_PER_ELEMENT)
  }

  at(i: number): number {
    return this.#numbers[i]!
  }
}

export function float64Column(): Column<Float64Array> {
  return new Column(length => new Float64Array(length))
}

export function int32Column(): Column<Int32Array> {
  return new Column(length => new Int32Array(length))
}

export function uint8Column(): Column<Uint8Array> {
  return new Column(length => new Uint8Array(length))
}
