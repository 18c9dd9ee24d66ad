/** The values of the options that several commands share, and the library's options that they stand for. */

import type { CheckLevel } from '../../base/types.js'
import type { Command, FormatOf } from '../format/formats.js'

/** The values of `READING`. */
export interface ReadingFlags {
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  /** MiB. */
  readonly memory?: number
}

/** The values of `--format` and `--out`. */
export interface OutputFlags<C extends Command> {
  readonly format?: FormatOf<C>
  readonly out?: string
}

/** The values of `--follow`, `--timeout` and `--poll`, in seconds. */
export interface FollowFlags {
  readonly follow?: boolean
  readonly timeout?: number
  readonly poll?: number
}

type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }
type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields of an object that are not undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

/** The library's options for how values are read, with the memory in bytes. */
export function readingOptions({ checkLevel, threads, memory }: Loose<ReadingFlags>) {
  return defined({ checkLevel, threads, memory: memory === undefined ? undefined : memory * 2 ** 20 })
}

/** The library's options for how long a running job is waited for, in milliseconds. */
export function waitingOptions({ timeout, poll }: Loose<FollowFlags>) {
  const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000)
  return defined({ timeoutMs: milliseconds(timeout), pollMs: milliseconds(poll) })
}
