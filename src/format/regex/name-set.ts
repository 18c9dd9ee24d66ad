/** A subset of a sorted list of names, with a bit for each. There may be a million. */

import { countBelow } from '../../base/sorted.js'

export class NameSet {
  readonly #names: readonly string[]
  readonly #bits: Uint8Array

  /** An empty set. @param names sorted, each once */
  constructor(names: readonly string[]) {
    this.#names = names
    this.#bits = new Uint8Array((names.length + 7) >> 3)
  }

  get byteLength(): number {
    return this.#bits.length
  }

  has(i: number): boolean {
    return ((this.#bits[i >> 3]! >> (i & 7)) & 1) === 1
  }

  /** Adds the name at that index. */
  add(i: number): void {
    this.#bits[i >> 3]! |= 1 << (i & 7)
  }

  /** Adds a name if it is in the list. */
  addName(name: string): void {
    const i = countBelow(this.#names.length, i => this.#names[i]! < name)
    if (this.#names[i] === name) this.add(i)
  }

  /** Adds all names for which the test is true. */
  addMatching(matches: (name: string) => boolean): void {
    for (const [i, name] of this.#names.entries()) if (!this.has(i) && matches(name)) this.add(i)
  }

  /** Adds the names of another set over the same list. */
  addAll(other: NameSet): void {
    for (const [i, byte] of other.#bits.entries()) this.#bits[i]! |= byte
  }

  get size(): number {
    let size = 0
    for (let byte of this.#bits) for (; byte !== 0; byte &= byte - 1) size++
    return size
  }

  /** The names, sorted. */
  toArray(): string[] {
    return this.#names.filter((_, i) => this.has(i))
  }
}
