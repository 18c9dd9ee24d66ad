/** The options that several commands share, with their help. */

import { type Command, Option } from 'commander'
import { type Command as CommandName, FORMATS, formatNames } from '../format/formats.js'
import { helpText, TOPICS_HELP } from '../help-text.js'
import {
  collect,
  formatName,
  memoryArgument,
  pathText,
  seconds,
  stepsText,
  upperCase,
  wholeNumberArgument,
} from './arguments.js'
import { S3_OPTIONS, type S3Option } from './s3.js'

/**
 * Runs a command and sets the exit code.
 * @param graceMs the time to end after a signal, in milliseconds
 */
export type RunCommand = (
  command: string,
  work: (signal: AbortSignal) => Promise<number>,
  graceMs?: number,
) => Promise<void>

export const TRIALS = 'trials: directories, patterns, or places in which trials lie; on disk or at s3://bucket/prefix'
export const TRIAL = 'the directory of the trial, which holds collections/, index/ and events/; or s3://bucket/prefix'

export const TENSOR = option(
  '--tensor <NAME>',
  'the tensor of that name; any other text is a Python pattern, found anywhere in names; repeatable',
  collect,
)

export const COLLECTION = option('--collection <NAME>', 'members of the collection; repeatable', collect)

export const STEPS = option(
  '--steps <STEPS>',
  'global steps, such as 100:200, 0:100:10, -5:, last or 0,10,20 (trialscan help steps)',
  stepsText,
)
export const MODE_STEPS = option(
  '--mode-steps <STEPS>',
  'mode steps, written the same way; with --mode where there are several',
  stepsText,
)

export const MODE = option('--mode <MODE>', 'only steps of that mode: TRAIN, EVAL or PREDICT', upperCase)

export const WORKER = option('--worker <NAME>', 'only data of that worker; repeatable', collect)

export const CHECK_LEVEL = new Option(
  '--check-level <LEVEL>',
  'which checksums to verify: none, those of the lengths (the default), or all',
).choices(['none', 'minimal', 'full'])

export const THREADS = option(
  '--threads <N>',
  'threads to work on; 0: only the main one (default: what the work is worth)',
  wholeNumberArgument,
)

export const MEMORY = option(
  '--memory <MIB>',
  'how many MiB of file contents a thread may hold (default: 64)',
  memoryArgument,
)

/** The group of options that select tensors, steps and workers. */
export const SELECTION: readonly Option[] = [TENSOR, COLLECTION, STEPS, MODE_STEPS, MODE, WORKER]
/** The group of options for how values are read. */
export const READING: readonly Option[] = [CHECK_LEVEL, THREADS, MEMORY]

export const OUT = option(
  '--out <FILE>',
  'write to this file, which appears when it is whole; - is standard output',
  pathText,
)

export const TIMEOUT = option(
  '--timeout <SECONDS>',
  'with --follow: how long to wait for a step that does not come (default: 600)',
  seconds,
)
export const POLL = option(
  '--poll <SECONDS>',
  'with --follow: how often to look for new steps where there are no file events (default: 2; on S3 5)',
  seconds,
)

export const QUIET = new Option('--quiet', 'print the verdict alone')

export const FAIL_FAST = new Option('--fail-fast', "of several trials: end at the first that can't be read")

export const WHERE = new Option('--where <EXPRESSION>', "only rows for which this is true, such as 'nan_count > 0'")

/** `--format`, with the formats that the command has. */
export function formatOption(name: CommandName): Option {
  const { names, piped } = FORMATS[name]
  const otherwise = names[0] === piped ? piped : `${names[0]} on a terminal, else ${piped}`
  const isDirectory = name === 'reindex' || name === 'repair'
  const text = `${formatNames(name)} (default: ${isDirectory ? '' : 'what --out ends in, or '}${otherwise})`
  return option('--format <FORMAT>', text, formatName(name))
}

/**
 * Makes an option with a parser.
 * @param read also receives the option's previous value
 */
function option<T>(flags: string, description: string, read: (text: string, previous: T) => T): Option {
  return new Option(flags, description).argParser(read)
}

/** Commands that read files of trials as they are. */
const OF_FILES: readonly string[] = ['verify', 'reindex', 'copy', 'repair']
/** Commands that open trials. */
const OF_TRIALS: readonly string[] =
  'ls scan show top dump summary report diff nan check sql export import serve plan'.split(' ')

function withTrialOptions(command: Command): Command {
  const isOfTrials = OF_TRIALS.includes(command.name())
  if (!isOfTrials && !OF_FILES.includes(command.name())) return command
  command.option('--allow-symlinks', 'follow symbolic links that lead out of a directory, and to other trials')
  if (!isOfTrials) return command
  return command.option(
    '--abandoned-steps',
    "of TensorBoard's files: with the steps that a restart of the training has left behind",
  )
}

/** Adds the given options to a command, then those of S3 and of trials, and its help. */
export function completed(command: Command, options: readonly Option[], help: string): Command {
  for (const option of options) command.addOption(option)
  const { parent } = command
  const name = parent?.parent ? `${parent.name()} ${command.name()}` : command.name()
  return withS3Options(withTrialOptions(command))
    .showHelpAfterError(`See trialscan ${name} --help.`)
    .addHelpText('after', helpText(`\n${help}\n${TOPICS_HELP}`))
}

function withS3Options(command: Command): Command {
  for (const { flags, read } of Object.values<S3Option>(S3_OPTIONS)) {
    const hidden = new Option(flags).hideHelp()
    command.addOption(read ? hidden.argParser(read) : hidden)
  }
  return command
}
