#!/usr/bin/env node
/**
 * The command line as a process: its streams, signals and exit code. A command's modules are loaded when it runs, so that
 * help appears at once.
 */

import { Command, CommanderError } from 'commander'
import { EXIT, EXIT_HELP } from './exit.js'
import { helpText, TOPICS } from './help-text.js'
import { BENCH_COMMANDS } from './options/bench.js'
import { EXCHANGE_COMMANDS } from './options/exchange.js'
import { FILE_COMMANDS } from './options/files.js'
import { FLEET_COMMANDS } from './options/fleet.js'
import { addCommand } from './options/options.js'
import { RULE_COMMANDS } from './options/rules.js'
import { TABLE_COMMANDS } from './options/tables.js'
import { TENSOR_COMMANDS } from './options/tensors.js'
import { VIEW_COMMANDS } from './options/view.js'
import { Progress } from './progress.js'
import { VERSION } from './version.js'

/** The time that a command has to end after a signal. */
const GRACE_MS = 800

/** The command that is running. */
let running: string | undefined

/** A user's module may end the process or wait for ever, which must not look like success. */
process.on('exit', () => {
  if (running === undefined) return
  process.stderr.write(`trialscan: ${running} was ended before it was done, or waits for what never comes\n`)
  process.exitCode = EXIT.bug
})

function quit(code: number): never {
  running = undefined
  process.exit(code)
}

// EPIPE means that the reader is gone, which is no error; others are those of the failed write.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') quit(EXIT.ok)
  // Nobody awaits the write of a help text.
  process.exitCode ||= EXIT.store
})
process.stderr.on('error', () => {})

/** A user's rule can throw where nothing catches it. Node.js would exit with 1, which means a finding. */
process.once('uncaughtException', error => {
  // Only the first error is reported.
  process.on('uncaughtException', () => {})
  report(error).then(quit)
})

/** Reports an error on stderr. @returns the exit code */
async function report(error: unknown, command?: string): Promise<number> {
  try {
    const options = program.commands
      .find(candidate => candidate.name() === command)
      ?.options.map(({ long }) => long ?? '')
    return (await import('./failure.js')).reportFailure(error, command, options)
  } catch {
    // If no file can be opened any more, neither can that module.
    process.stderr.write(`trialscan: ${error instanceof Error ? error.message : error}\n`)
    return EXIT.bug
  }
}

// The SDK's warning about future versions of Node.js is not for users of trialscan.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

/**
 * Runs a command and sets the exit code.
 * @param graceMs the time after a signal, in milliseconds, before it is ended by force
 */
async function runCommand(
  command: string,
  work: (signal: AbortSignal) => Promise<number>,
  graceMs = GRACE_MS,
): Promise<void> {
  running = command
  const interrupt = new AbortController()
  let signalled: number | undefined
  for (const [signal, code] of [
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
    ['SIGHUP', EXIT.hungUp],
  ] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once.
      if (signalled !== undefined) quit(signalled)
      signalled = code
      interrupt.abort()
      setTimeout(() => quit(code), graceMs).unref()
    })
  }
  try {
    process.exitCode = await work(interrupt.signal).catch(async error => {
      const failures = await import('./failure.js').catch(() => null)
      const isWanted = (await failures?.askForAll(error, interrupt.signal)) ?? null
      // The question has shown the error already.
      if (isWanted === false) return failures!.exitCodeOf(error)
      if (isWanted === null) throw error
      // The command reads this object.
      program.commands.find(candidate => candidate.name() === command)?.setOptionValue('s3ListLimit', 0)
      return work(interrupt.signal)
    })
  } catch (error) {
    Progress.stopAll()
    if (signalled === undefined) process.exitCode = await report(error, command)
  }
  // Threads may still be working on a scan that was given up.
  if (signalled !== undefined) quit(signalled)
  running = undefined
}

/** Words that stand for a command in other programs, or in the library. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  value: 'show TRIAL TENSOR',
  values: 'dump TRIAL',
  reductions: 'scan TRIAL',
  compare: 'diff TRIAL TRIAL',
  capture: 'python > trialscan.py',
  validate: 'verify TRIAL',
}
// An option before the command, such as --help, concerns all commands.
const named = process.argv.slice(2).find(argument => argument !== '--no-color') ?? ''
const hint = Object.hasOwn(OTHER_WORDS, named) ? `What is meant may be trialscan ${OTHER_WORDS[named]}\n` : ''

const program = new Command('trialscan')
  .description(
    'Reads the tensors that a training saved: checkpoints, trials of SageMaker Debugger, runs of TensorBoard.',
  )
  .version(VERSION)
  // Names alone, so that what commands do is told beside them on a terminal of 80 columns, too.
  .configureHelp({ subcommandTerm: command => command.name() })
  .option('--no-color', 'no colours; NO_COLOR in the environment does the same')
  .configureOutput({
    // The text quotes arguments, which may contain escape sequences.
    outputError: (text, write) =>
      write(text.replace(/^error: /, 'trialscan: ').replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, '\ufffd')),
  })
  .showHelpAfterError(`${hint}See trialscan --help.`)
  .exitOverride()
  .addHelpText(
    'after',
    helpText(`
Examples:
  $ trialscan ls ./my-training
  $ trialscan scan ./my-training --collection gradients --reductions abs_mean,abs_max
  $ trialscan top ./my-training --by abs_max --where 'nan_count = 0'
  $ trialscan show ./my-training gradient/fc.weight --step 100
  $ trialscan check ./my-training
  $ trialscan scan s3://my-bucket/my-training --s3-cache ~/.cache/trialscan

Data goes to standard output, everything else to standard error.
${EXIT_HELP}

See also: trialscan help steps, trialscan help s3.`),
  )

/** The commands, in the order of the help. */
const COMMANDS = [
  ...[...TENSOR_COMMANDS, ...RULE_COMMANDS, ...TABLE_COMMANDS, ...VIEW_COMMANDS],
  ...[...FILE_COMMANDS, ...EXCHANGE_COMMANDS, ...FLEET_COMMANDS, ...BENCH_COMMANDS],
]
const namedCommands = COMMANDS.filter(({ name }) => name.split(' ')[0] === named)
// Options take milliseconds to make: only commands that the command line names have theirs.
for (const command of namedCommands.length > 0 ? namedCommands : COMMANDS) {
  addCommand(program, command, process.argv.includes(command.name.split(' ')[0]!) ? runCommand : null)
}

/** Options of `rule-invoker` may have underscores (`--trial_dir`), as in Tornasole's. */
function withDashes(argv: readonly string[]): readonly string[] {
  const command = program.commands.find(candidate => candidate.name() === 'rule-invoker')
  if (command === undefined || argv[2] !== command.name()) return argv
  const known = new Set(command.options.map(({ long }) => long))
  return argv.map(argument => {
    const [name, ...value] = argument.split('=')
    const dashed = name!.replaceAll('_', '-')
    return known.has(dashed) ? [dashed, ...value].join('=') : argument
  })
}

const helpName = named === 'help' ? process.argv.at(-1)! : ''
const topic = Object.hasOwn(TOPICS, helpName) ? TOPICS[helpName] : undefined
const isUnknown =
  helpName !== '' &&
  topic === undefined &&
  !program.commands.some(candidate => candidate.name() === helpName) &&
  helpName !== 'help'
if (process.argv.length <= 2) program.outputHelp()
else if (topic !== undefined) process.stdout.write(`${helpText(topic).trimStart()}\n`)
else if (isUnknown) {
  const topics = Object.keys(TOPICS).join(', ')
  process.stderr.write(`trialscan: help: expected a command, or one of ${topics}, got ${JSON.stringify(helpName)}\n`)
  process.exitCode = EXIT.usage
}
// Not awaited: if a user's module never finished loading, Node.js 24 would print a warning with our code.
else {
  program.parseAsync(withDashes(process.argv)).catch(error => {
    if (!(error instanceof CommanderError)) throw error
    // Requested help is no error.
    if (error.exitCode !== 0) process.exitCode = EXIT.usage
  })
}
