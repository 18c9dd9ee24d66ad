#!/usr/bin/env node
/**
 * The command line as a process: its streams, signals and exit code. What a command needs is loaded when it runs, so that
 * help is there at once.
 */

import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { EXIT, EXIT_HELP } from './exit.js'
import { addFileCommands } from './options/files.js'
import { addRuleCommands } from './options/rules.js'
import { addTensorCommands } from './options/tensors.js'

/** After a signal this long is left to end in good order. */
const GRACE_MS = 800

/** The command that has not come to its end. */
let running: string | undefined

/** A module of somebody's own may end the process, or wait for what never comes: this must not look as if all were well. */
process.on('exit', () => {
  if (running === undefined) return
  process.stderr.write(`trialscan: ${running} was ended before it was done, or waits for what never comes\n`)
  process.exitCode = EXIT.bug
})

function quit(code: number): never {
  running = undefined
  process.exit(code)
}

/** The reader is gone: nothing is left to do, and nothing is wrong. Other errors come with the write that failed. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') quit(EXIT.ok)
  // Of help nobody waits for the write.
  process.exitCode ||= EXIT.store
})
process.stderr.on('error', () => {})

/** What a rule of somebody's own throws outside of our sight must not look like a finding: Node.js would exit with 1. */
process.once('uncaughtException', error => {
  // The first is told of; what is thrown from here on changes nothing.
  process.on('uncaughtException', () => {})
  report(error).then(quit)
})

/** Says what went wrong. @returns the exit code */
async function report(error: unknown, command?: string): Promise<number> {
  try {
    return (await import('./failure.js')).reportFailure(error, command)
  } catch {
    // Where no file can be opened any more, nor can be that one.
    process.stderr.write(`trialscan: ${error instanceof Error ? error.message : error}\n`)
    return EXIT.bug
  }
}

// A word about versions to come is nothing for somebody who wants to see tensors.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Runs a command and sets the exit code. @param graceMs after a signal, before it is ended by force */
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
      // Who asks twice does not want to wait.
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
      // The question has told of the error already.
      if (isWanted === false) return failures!.exitCodeOf(error)
      if (isWanted === null) throw error
      // These are the options that the command was given.
      program.commands.find(one => one.name() === command)?.setOptionValue('s3ListLimit', 0)
      return work(interrupt.signal)
    })
  } catch (error) {
    if (signalled === undefined) process.exitCode = await report(error, command)
  }
  // Threads may still be at work for a scan that was given up.
  if (signalled !== undefined) quit(signalled)
  running = undefined
}

const program = new Command('trialscan')
  .description('Reads the tensors that a training job saved with SageMaker Debugger (smdebug).')
  .version(version)
  .option('--no-color', 'no colours; NO_COLOR in the environment does the same')
  .configureOutput({
    // What stands there are arguments: a file name with escape sequences, perhaps.
    outputError: (text, write) =>
      write(text.replace(/^error: /, 'trialscan: ').replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, '\ufffd')),
  })
  .showHelpAfterError('See trialscan --help.')
  .exitOverride()
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan ls ./my-training
  $ trialscan scan ./my-training --collection gradients --reductions abs_mean,abs_max
  $ trialscan show ./my-training gradient/fc.weight --step 100
  $ trialscan check ./my-training
  $ trialscan scan s3://my-bucket/my-training --s3-cache ~/.cache/trialscan

Data goes to standard output, everything else to standard error.
${EXIT_HELP}`,
  )

addTensorCommands(program, runCommand)
const invoker = addRuleCommands(program, runCommand)
addFileCommands(program, runCommand)

/** Options of the command are found under `--trial_dir` too: Python's argparse left no difference. */
function withDashes(argv: readonly string[], command: Command): readonly string[] {
  if (argv[2] !== command.name()) return argv
  const own = new Set(command.options.map(({ long }) => long))
  return argv.map(argument => {
    const [name, ...value] = argument.split('=')
    const dashed = name!.replaceAll('_', '-')
    return own.has(dashed) ? [dashed, ...value].join('=') : argument
  })
}

if (process.argv.length <= 2) program.outputHelp()
// Not awaited here: of a module that never finishes loading, Node.js 24 would warn with a piece of our code.
else {
  program.parseAsync(withDashes(process.argv, invoker)).catch(error => {
    if (!(error instanceof CommanderError)) throw error
    // Help that was asked for is no error.
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
  })
}
