/** The rows of index files by path. There may be a million; the map is made at the first lookup. */

export class RowsByPath {
  /** The paths, in the order in which they were added. */
  #paths: string[] = []
  #rows: number[] = []
  /** The map; null before the first lookup. */
  #byPath: Map<string, number> | null = null

  get size(): number {
    return this.#byPath?.size ?? this.#paths.length
  }

  /** Adds a file that is new, or any file after the first lookup. */
  add(path: string, row: number): void {
    if (this.#byPath !== null) this.#byPath.set(path, row)
    else {
      this.#paths.push(path)
      this.#rows.push(row)
    }
  }

  get(path: string): number | undefined {
    return this.size === 0 ? undefined : this.#map.get(path)
  }

  delete(path: string): void {
    if (this.size > 0) this.#map.delete(path)
  }

  clear(): void {
    this.#paths = []
    this.#rows = []
    this.#byPath = null
  }

  /** The rows, in the order in which they were added. */
  get rows(): Int32Array {
    return Int32Array.from(this.#byPath?.values() ?? this.#rows)
  }

  *[Symbol.iterator](): Generator<readonly [string, number]> {
    if (this.#byPath !== null) yield* this.#byPath
    else for (const [i, path] of this.#paths.entries()) yield [path, this.#rows[i]!]
  }

  get #map(): Map<string, number> {
    if (this.#byPath === null) {
      this.#byPath = new Map(this)
      this.#paths = []
      this.#rows = []
    }
    return this.#byPath
  }
}
