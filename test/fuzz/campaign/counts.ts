/** The counters of a run, and which of them were never seen so high: what makes an input worth keeping. */

export const MAX_COUNTERS = 1 << 14

/** Counts of 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127 and more are as many different things. */
const BUCKETS = Uint8Array.from({ length: 256 }, (_, count) => {
  const limits = [1, 2, 3, 4, 8, 16, 32, 128]
  return count === 0 ? 0 : 1 << limits.findLastIndex(limit => count >= limit)
})

declare global {
  var fuzzCounts: Uint8Array
}

globalThis.fuzzCounts ??= new Uint8Array(MAX_COUNTERS)

/** Counters that lie in the memory of instances of the core. */
const cores: { readonly memory: WebAssembly.Memory; readonly at: number }[] = []

/** Makes every instance of a WebAssembly module from now on one whose counters are looked at, if it has some. */
export function watchInstances(): void {
  globalThis.WebAssembly.Instance = class extends WebAssembly.Instance {
    constructor(module: WebAssembly.Module, imports?: WebAssembly.Imports) {
      super(module, imports)
      const { COUNTS, memory } = this.exports
      if (COUNTS instanceof WebAssembly.Global && memory instanceof WebAssembly.Memory) {
        cores.push({ memory, at: Number(COUNTS.value) })
      }
    }
  }
}

export class Coverage {
  readonly #seen: readonly [Uint8Array, Uint8Array] = [new Uint8Array(MAX_COUNTERS), new Uint8Array(MAX_COUNTERS)]
  readonly #script: Uint8Array
  readonly #coreCounters: number

  constructor(scriptCounters: number, coreCounters: number) {
    this.#script = globalThis.fuzzCounts.subarray(0, scriptCounters)
    this.#coreCounters = coreCounters
  }

  /** Sets all counters to 0. */
  reset(): void {
    this.#script.fill(0)
    for (const { memory, at } of cores) new Uint8Array(memory.buffer, at, this.#coreCounters).fill(0)
  }

  /** Whether a counter was as high as never before since the last reset. */
  hasNews(): boolean {
    let news = note(this.#script, this.#seen[0])
    for (const { memory, at } of cores) {
      news = note(new Uint8Array(memory.buffer, at, this.#coreCounters), this.#seen[1]) || news
    }
    return news
  }

  /** Counters that ever counted: in src, and in the core. */
  get seen(): readonly [number, number] {
    const count = (seen: Uint8Array) => seen.reduce((sum, bits) => sum + (bits === 0 ? 0 : 1), 0)
    return [count(this.#seen[0]), count(this.#seen[1])]
  }
}

function note(counts: Uint8Array, seen: Uint8Array): boolean {
  let news = false
  for (let i = 0; i < counts.length; i++) {
    if (counts[i] === 0) continue
    const bucket = BUCKETS[counts[i]!]!
    if ((seen[i]! & bucket) === 0) {
      seen[i]! |= bucket
      news = true
    }
  }
  return news
}
