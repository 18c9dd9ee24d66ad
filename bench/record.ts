/** The file that `npm run bench -- --record` writes. */
import type { Effort } from '#dist/cli/bench/measure.js'
import type { Result } from './report.js'

/** The directory of records. */
export const RECORDS = new URL('record/', import.meta.url)

export interface Record {
  /** ISO 8601. */
  readonly date: string
  readonly quick: boolean
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memoryBytes: number
    readonly platform: string
    readonly node: string
    readonly v8: string
    /** Null where there is none. */
    readonly compiler: string | null
    readonly numpy: string | null
    readonly packages: Readonly<{ [name: string]: string }>
  }
  readonly effort: Effort
  readonly results: readonly Result[]
}

/** The major version of Node.js that a record was made with. */
export function nodeOf({ machine }: Record): number {
  return Number(/\d+/.exec(machine.node)?.[0])
}
