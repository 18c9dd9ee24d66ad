/** The values of options that several commands share, what they stand for, and how they are settled. */

import { UsageError } from '../../base/errors.js'
import type { CheckLevel } from '../../base/types.js'
import { maxThreads } from '../../scan/runner/access.js'
import {
  type Command,
  compressionOf,
  FORMATS,
  type FormatName,
  type FormatOf,
  formatNames,
  formatOfName,
  isForeignName,
  isText,
} from '../format/formats.js'
import { note } from '../terminal.js'

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

interface GivenFlags {
  /** Short for `--format json` (ls) or `--format jsonl`. */
  readonly json?: boolean
  readonly format?: FormatName
  readonly out?: string
  readonly threads?: number
}

/** The settings that are fixed before a command begins. */
interface Settled<C extends Command> {
  readonly format: FormatOf<C>
  /** True if the output is a terminal. */
  readonly onTerminal: boolean
}

/**
 * Settles the format, drops `--out -` (standard output), and caps the threads at a useful number.
 * @throws UsageError if the format contradicts the name of the file
 */
export function settle<C extends Command, O extends GivenFlags>(command: C, trial: string, options: O): O & Settled<C> {
  // Their --out is a directory.
  const isFile = command !== 'repair' && command !== 'reindex'
  const out = isFile && options.out === '-' ? undefined : options.out
  const file = isFile ? out : undefined
  const formatOption = options.format ?? (options.json ? (command === 'ls' ? 'json' : 'jsonl') : undefined)
  const format = formatFor(command, formatOption, file) as FormatOf<C>
  const onTerminal = file === undefined && process.stdout.isTTY === true
  return { ...options, out, format, onTerminal, ...threadsOf(trial, options) }
}

function formatFor(command: Command, option: FormatName | undefined, out: string | undefined): FormatName {
  const { names, piped } = FORMATS[command]
  const named = out === undefined ? undefined : formatOfName(out)
  if (option !== undefined && named !== undefined && named !== 'table' && option !== named) {
    throw new UsageError(`expected --format and the name of the file to agree, got --format ${option} and --out ${out}`)
  }
  const format = option ?? named
  if (format === undefined && out !== undefined && isForeignName(out)) {
    throw new UsageError(
      `expected a file name for ${formatNames(command)}, the formats that ${command} writes (texts also as .gz or .zst, such as x.csv.gz), got ${out}; --format says which if the name is to stay`,
    )
  }
  if (format === undefined) return out === undefined && process.stdout.isTTY === true ? names[0] : piped
  if (!(names as readonly FormatName[]).includes(format)) {
    throw new UsageError(
      `expected a file name for ${formatNames(command)}, the only formats that ${command} writes, got ${out}`,
    )
  }
  if (out !== undefined && compressionOf(out) !== undefined && !isText(format)) {
    const ending = `.${compressionOf(out)}`
    throw new UsageError(
      `expected --out without ${ending} for ${format}, which is compressed as it is or read in parts, got ${out}`,
    )
  }
  return format
}

/** Caps the threads, with a note. The library itself refuses absurd numbers. */
function threadsOf(trial: string, { threads: wanted }: GivenFlags): { readonly threads?: number } {
  if (wanted === undefined) return {}
  const threads = maxThreads(trial)
  if (wanted <= threads || wanted > 1024) return { threads: wanted }
  note(`--threads ${wanted}: ${threads} are started: more would not help on this machine, or there is no room for them`)
  return { threads }
}
