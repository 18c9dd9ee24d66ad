/** Numbers names in the order in which they first appear. */
export class Interner {
  readonly names: string[] = []
  readonly #numbers = new Map<string, number>()

  number(name: string): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.names.length
      this.names.push(name)
      this.#numbers.set(name, number)
    }
    return number
  }

  /** The number of a name; undefined if it has none. */
  find(name: string): number | undefined {
    return this.#numbers.get(name)
  }
}
