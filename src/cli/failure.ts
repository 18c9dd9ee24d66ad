/** An error as one line for people and a code for programs. */

import {
  EngineError,
  FormatError,
  QueryError,
  RuleEvaluationConditionMet,
  StoreError,
  ThreadError,
  TrialscanError,
  UsageError,
} from '../base/errors.js'
import { EXIT } from './exit.js'
import { colorsFor, safe } from './terminal.js'

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof StoreError || (error instanceof EngineError && error.code === 'NoAddressSpace'))
    return EXIT.store
  if (error instanceof FormatError) return EXIT.format
  if (error instanceof QueryError) return EXIT.query
  if (error instanceof RuleEvaluationConditionMet) return EXIT.findings
  return EXIT.bug
}

/**
 * Reports an error on stderr.
 * @param options the long flags of the command, such as `--num-workers`
 * @returns the exit code
 */
export function reportFailure(error: unknown, command?: string, options: readonly string[] = []): number {
  const colors = colorsFor(process.stderr)
  const isOurs = error instanceof TrialscanError
  const message = isOurs
    ? safe(messageOf(error, options))
    : error instanceof Error
      ? safeLines(error.stack ?? error.message)
      : safeLines(String(error))
  process.stderr.write(`trialscan: ${colors.red(message)}\n`)
  const hint = hintFor(error, command)
  if (hint) process.stderr.write(`${colors.dim(hint)}\n`)
  return exitCodeOf(error)
}

/** The message of an error, which names options as the command line does. */
function messageOf({ message, fields }: TrialscanError, options: readonly string[]): string {
  const { call, option } = fields
  const name = `--${String(option).replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
  if (options.includes(name)) {
    if (option === 'modeSteps')
      return message.replace('expected mode beside modeSteps', `expected --mode beside ${name}`)
    return message.replace(`${call}: expected ${option} `, `expected ${name} `)
  }
  return call === undefined ? message : message.replace(`${call}: `, '')
}

/**
 * Asks on the terminal whether to list everything, if a listing on S3 ended at its limit.
 * @returns the answer; null if nothing was asked, so that the error was not shown
 */
export async function askForAll(error: unknown, signal: AbortSignal): Promise<boolean | null> {
  const isLimit = error instanceof QueryError && error.fields.listed !== undefined
  if (!isLimit || !process.stdin.isTTY || !process.stderr.isTTY) return null
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<string>(resolve => terminal.once('close', () => resolve('')))
  const question = `trialscan: ${safe(error.message)}\nList everything? [y/N] `
  const answer = await Promise.race([terminal.question(question, { signal }), closed]).catch(() => '')
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}

/** The safe lines of a stack trace, which can quote anything. */
function safeLines(text: string): string {
  return text.split('\n').map(safe).join('\n')
}

function hintFor(error: unknown, command: string | undefined): string | undefined {
  if (!(error instanceof TrialscanError) || (error instanceof EngineError && error.code === 'Engine')) {
    const bug = 'This is a bug of trialscan. Please report it, with the command and the trial if you can share it.'
    return process.argv.some(argument => argument.startsWith('--module')) ? `If it is none of your module: ${bug}` : bug
  }
  if (error instanceof ThreadError)
    return 'Threads die of too little memory, or are killed: --threads 0 does without them.'
  if (error instanceof UsageError && command) return `See trialscan ${command} --help.`
  switch (error.code) {
    case 'MissingCollectionFiles':
      return 'A trial is the directory that holds collections/, index/ and events/.'
    case 'TensorUnavailable':
    case 'CollectionUnavailable':
    case 'StepUnavailable':
    case 'NoMoreData':
    case 'StepNotYetAvailable':
      return 'trialscan ls TRIAL tells what the trial holds.'
    default:
      return undefined
  }
}
