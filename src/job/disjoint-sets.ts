/** Numbers in sets that are joined, each known by one of its numbers. */
export class DisjointSets {
  readonly #parent: Int32Array

  /** @param count of numbers, each in a set of its own */
  constructor(count: number) {
    this.#parent = new Int32Array(count).map((_, i) => i)
  }

  rootOf(number: number): number {
    const parent = this.#parent
    let at = number
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!
      at = parent[at]!
    }
    return at
  }

  /** The first one's root is that of both. */
  join(a: number, b: number): void {
    this.#parent[this.rootOf(b)] = this.rootOf(a)
  }
}
