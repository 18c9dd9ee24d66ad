/** Settles options that depend on each other or on the machine: format, output and threads. */

import { UsageError } from '../../base/errors.js'
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
