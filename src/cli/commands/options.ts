/** What several commands have in common: their options, and what these say of themselves. */

import type { Command } from 'commander'
import { formatName, pathText, wholeNumberArgument } from '../arguments.js'
import { FORMATS, formatNames } from '../format/formats.js'

/** Runs the work of a command and sets the exit code. @param graceMs after a signal, before it is ended by force */
export type RunCommand = (
  command: string,
  work: (signal: AbortSignal) => Promise<number>,
  graceMs?: number,
) => Promise<void>

/** `--format`, with the formats that the command has, and a file for what it prints. */
export function withFormat(command: Command, name: keyof typeof FORMATS): Command {
  command.option('--format <FORMAT>', formatText(name), formatName(name))
  return command.options.some(({ long }) => long === '--out') ? command : command.option('--out <FILE>', OUT, pathText)
}

export function formatText(name: keyof typeof FORMATS): string {
  const { names, piped } = FORMATS[name]
  const otherwise = names[0] === piped ? piped : `${names[0]} on a terminal, else ${piped}`
  const isDirectory = name === 'reindex' || name === 'repair'
  return `${formatNames(name)} (default: ${isDirectory ? '' : 'what --out ends in, or '}${otherwise})`
}

export const OUT = 'write to this file, which appears when it is whole; - is standard output'

export function withThreads(command: Command): Command {
  return command.option(
    '--threads <N>',
    'threads to work on; 0: only the main one (default: what the work is worth)',
    wholeNumberArgument,
  )
}

export const TRIAL = 'the directory of the trial, which holds collections/, index/ and events/; or s3://bucket/prefix'

export const STEPS = 'global steps, such as 100:200, 0:100:10, -5:, last or 0,10,20 (see below)'
export const STEPS_HELP = `
Steps: global steps count on over all modes; mode steps are counted within each mode. trialscan ls shows both. Write
  100         that step              last       the last one
  100:200     from 100 up to, but not including, 200; 100: and :200 are open at one end
  0:100:10    0, 10, 20 and so on, below 100
  -5:         the last five: negative numbers count from the end of what the other options leave; -1 is the last
  0,10,20:30  several of these`
