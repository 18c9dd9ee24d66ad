/** Commands as they are defined: options as lines of text, from which parsing, help and checks follow. */

import { Argument, type Command, Option } from 'commander'
import { FORMATS, formatNames, type Command as OutputCommand } from '../format/formats.js'
import { helpText, TOPICS_HELP } from '../help-text.js'
import { formatName, readerOf } from './arguments.js'
import { S3_OPTIONS } from './s3.js'

/**
 * Runs a command and sets the exit code.
 * @param graceMs the time to end after a signal, in milliseconds
 */
export type RunCommand = (
  command: string,
  work: (signal: AbortSignal) => Promise<number>,
  graceMs?: number,
) => Promise<void>

export interface CommandDefinition {
  /** The words of the command, such as `fleet plan`. */
  readonly name: string
  readonly description: string
  readonly usage?: string
  /** The arguments, each with its help. */
  readonly arguments?: Readonly<Record<string, string>>
  /**
   * One option a line: its flags, then its help behind two spaces or more. `!` marks one that is required, `*` one that
   * is repeatable. A line of flags alone names shared options. Undefined: the command takes none, not even those of S3, and its help is whole.
   */
  readonly options?: string
  /** Settings of some options, by their long flags. */
  readonly special?: Special
  /** True if unknown options are arguments. */
  readonly takesAnyOption?: boolean
  readonly help: string
  readonly graceMs?: number
  /** Loads the function, which takes the arguments, the options and a signal. Undefined: a group of commands. */
  readonly load?: () => Promise<(...given: never[]) => Promise<number>>
}

type Special = Readonly<Record<string, (option: Option) => Option>>

export const TRIALS = 'trials: directories, patterns, or places in which trials lie; on disk or at s3://bucket/prefix'
export const TRIAL = 'a trial: a directory, a checkpoint, or s3://bucket/prefix'
/** The help of a trial for commands that need event files. */
export const EVENTS_TRIAL =
  'the directory of the trial, which holds collections/, index/ and events/; or s3://bucket/prefix'

/** The options that select tensors, steps and workers. */
export const SELECTION = '--tensor --collection --steps --mode-steps --mode --worker'
/** The options for how values are read. */
export const READING = '--check-level --threads --memory'
/** The options for which files belong to a trial. */
export const PLACES = '--allow-symlinks --abandoned-steps'

/** The options that several commands share. */
const SHARED = new Map(
  linesOf(`
  *--tensor <NAME>        the tensor of that name; any other text is a Python pattern, found anywhere in names; repeatable
  *--collection <NAME>    members of the collection; repeatable
  --steps <STEPS>        global steps, such as 100:200, 0:100:10, -5:, last or 0,10,20 (trialscan help steps)
  --mode-steps <STEPS>   mode steps, written the same way; with --mode where there are several
  --mode <MODE>          only steps of that mode: TRAIN, EVAL or PREDICT
  *--worker <NAME>        only data of that worker; repeatable
  --check-level <LEVEL>  which checksums to verify: none, those of the lengths (the default), or all
  --threads <N>          threads to work on; 0: only the main one (default: what the work is worth)
  --memory <MIB>         how many MiB of file contents a thread may hold (default: 64)
  --out <FILE>           write to this file, which appears when it is whole; - is standard output
  --timeout <SECONDS>    with --follow: how long to wait for a step that does not come (default: 600)
  --poll <SECONDS>       with --follow: how often to look for new steps where there are no file events (default: 2; on S3 5)
  --quiet                print the verdict alone
  --fail-fast            of several trials: end at the first that can't be read
  --where <EXPRESSION>   only rows for which this is true, such as 'nan_count > 0'
  --checksums            give every record the true checksum of its payload; smdebug's own reader can't read them
  !--redis <URL>         the server: redis://[:password@]host[:port][/database], with TLS rediss://
  --queue <NAME>         the queue (default: trialscan- and the version)
  --allow-symlinks       follow symbolic links that lead out of a directory, and to other trials
  --abandoned-steps      of TensorBoard's files: with the steps that a restart of the training has left behind`).map(
    line => [/--[\w-]+/.exec(line)![0], line],
  ),
)

const SPECIAL: Special = { '--check-level': option => option.choices(['none', 'minimal', 'full']) }

/**
 * Adds a command to the program, or to the group that its name begins with.
 * @param run null for a command that is only listed: without arguments and options
 */
export function addCommand(program: Command, definition: CommandDefinition, run: RunCommand | null): void {
  const { name, description, usage, options, special, help, graceMs, load } = definition
  const [group, member] = name.split(' ')
  const parent = member === undefined ? program : program.commands.find(command => command.name() === group)!
  const command = parent.command(member ?? name).description(description)
  if (run === null) return
  if (usage !== undefined) command.usage(usage)
  for (const [flags, text] of Object.entries(definition.arguments ?? {})) {
    const argument = new Argument(flags, text)
    const read = readerOf(flags, false)
    command.addArgument(read ? argument.argParser(read) : argument)
  }
  if (options === undefined) command.addHelpText('after', help)
  else {
    for (const option of optionsIn(options, name, { ...SPECIAL, ...special })) command.addOption(option)
    for (const [flags, text] of Object.values(S3_OPTIONS)) command.addOption(optionOf(flags, text).hideHelp())
    command.allowUnknownOption(definition.takesAnyOption === true).showHelpAfterError(`See trialscan ${name} --help.`)
    command.addHelpText('after', helpText(`\n${help}\n${TOPICS_HELP}`))
  }
  if (load === undefined) return
  command.action((...given: unknown[]) =>
    run(name, async signal => (await load())(...([...given.slice(0, -1), signal] as never[])), graceMs),
  )
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').flatMap(line => line.trim() || [])
}

function* optionsIn(text: string, command: string, special: Special): Generator<Option> {
  for (const line of linesOf(text)) {
    const lines = line.includes('  ') ? [line] : line.split(' ').map(flag => SHARED.get(flag) ?? formatLine(command))
    for (const whole of lines) {
      const [, mark, flags, help] = /^([!*]?)(.*?) {2,}(.*)$/.exec(whole) as unknown as [string, string, string, string]
      const option = optionOf(flags, help, mark === '*').makeOptionMandatory(mark === '!')
      if (option.long === '--format' && isOfFormats(command)) option.argParser(formatName(command))
      yield special[option.long!]?.(option) ?? option
    }
  }
}

function optionOf(flags: string, help: string, isRepeatable = false): Option {
  const option = new Option(flags, help)
  const read = readerOf(flags, isRepeatable)
  return read ? option.argParser(read) : option
}

function isOfFormats(command: string): command is OutputCommand {
  return Object.hasOwn(FORMATS, command)
}

/** `--format`, with the formats that the command has. */
function formatLine(command: string): string {
  const name = command as OutputCommand
  const { names, piped } = FORMATS[name]
  const otherwise = names[0] === piped ? piped : `${names[0]} on a terminal, else ${piped}`
  const isDirectory = name === 'reindex' || name === 'repair'
  return `--format <FORMAT>  ${formatNames(name)} (default: ${isDirectory ? '' : 'what --out ends in, or '}${otherwise})`
}
