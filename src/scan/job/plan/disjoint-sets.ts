/** Disjoint sets of numbers, each represented by one of its members. */
export class DisjointSets {
  readonly #parent: Int32Array

  /** @param count the number of sets, each with one member */
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

  /** Joins two sets; the representative of `a` becomes that of both. */
  join(a: number, b: number): void {
    this.#parent[this.rootOf(b)] = this.rootOf(a)
  }
}
