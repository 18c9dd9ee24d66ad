/** What the options of a command come to, where that is more than what each says by itself. */

import { type CheckLevel, maxThreads, UsageError } from '../../index.js'
import { type Command, FORMATS, type FormatName, type FormatOf, formatNames, formatOfName } from '../format/formats.js'
import { note } from '../terminal.js'

interface GivenFlags {
  /** Short for a format of JSON. */
  readonly json?: boolean
  readonly format?: FormatName
  readonly out?: string
  readonly threads?: number
  readonly checkLevel?: CheckLevel
  readonly s3Cache?: string
}

/** What every command knows before it begins. */
interface Settled<C extends Command> {
  readonly format: FormatOf<C>
  /** Whether what is printed is seen there, and not by a program. */
  readonly onTerminal: boolean
}

/**
 * The options with a format, no file where standard output is meant, and no more threads than can help.
 * @throws UsageError for what contradicts itself: a format and a file name
 */
export function settle<C extends Command, O extends GivenFlags>(command: C, trial: string, options: O): O & Settled<C> {
  // For these it is a directory.
  const isFile = command !== 'repair' && command !== 'reindex'
  const out = isFile && options.out === '-' ? undefined : options.out
  const file = isFile ? out : undefined
  const asked = options.format ?? (options.json ? (command === 'ls' ? 'json' : 'jsonl') : undefined)
  const format = formatFor(command, asked, file) as FormatOf<C>
  const onTerminal = file === undefined && process.stdout.isTTY === true
  return { ...options, out, format, onTerminal, ...threadsOf(trial, options) }
}

function formatFor(command: Command, asked: FormatName | undefined, out: string | undefined): FormatName {
  const { names, piped } = FORMATS[command]
  const named = out === undefined ? undefined : formatOfName(out)
  if (asked !== undefined && named !== undefined && named !== 'table' && asked !== named) {
    throw new UsageError(`expected --format and the name of the file to agree, got --format ${asked} and --out ${out}`)
  }
  const format = asked ?? named
  if (format === undefined) return out === undefined && process.stdout.isTTY === true ? names[0] : piped
  if (!(names as readonly FormatName[]).includes(format)) {
    throw new UsageError(
      `expected a file name for ${formatNames(command)}, the only formats that ${command} writes, got ${out}`,
    )
  }
  return format
}

/** Says so where fewer are started than were asked for; what makes no sense at all is left for the library to refuse. */
function threadsOf(trial: string, { threads: asked }: GivenFlags): { readonly threads?: number } {
  if (asked === undefined) return {}
  const threads = maxThreads(trial)
  if (asked <= threads || asked > 1024) return { threads: asked }
  note(`--threads ${asked}: ${threads} are started: more would not help on this machine, or there is no room for them`)
  return { threads }
}
