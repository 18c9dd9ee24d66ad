/** Parsers of command line arguments. */

import { InvalidArgumentError } from 'commander'
import type { StepSlice } from '../../scan/catalog/step-selection.js'
import { parseSteps } from '../../scan/catalog/step-text.js'
import { type Command, FORMATS, type FormatName, formatNames } from '../format/formats.js'

/** Gathers the values of a repeatable option. */
export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

/** Parses a path. Blanks around it, as copying leaves them, are dropped. */
export function pathText(text: string): string {
  const path = text.trim()
  if (path === '') throw new InvalidArgumentError('Expected a path, got an empty text.')
  return path
}

export function paths(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, pathText(text)]
}

export function wholeNumberArgument(text: string): number {
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError('Expected a whole number below 2^53.')
  }
  return Number(text)
}

/** Parses the library's `memory`, in MiB. */
export function memoryArgument(text: string): number {
  const mebibytes = Number(text)
  if (/^\d+$/.test(text) && mebibytes >= 4 && mebibytes <= 2048) return mebibytes
  throw new InvalidArgumentError('Expected a whole number of MiB from 4 to 2048.')
}

/** Parses the memory limit of a query, in MiB. */
export function queryMemory(text: string): number {
  const mebibytes = Number(text)
  if (/^\d+$/.test(text) && mebibytes >= 64 && mebibytes <= 2 ** 20) return mebibytes
  throw new InvalidArgumentError('Expected a whole number of MiB from 64 to 1048576.')
}

/** Steps as they were written, and their selection. */
export interface StepsText {
  readonly text: string
  readonly selection: readonly (number | StepSlice)[]
}

/** Parses steps as `parseSteps` does. */
export function stepsText(text: string): StepsText {
  const selection = parseSteps(text)
  if (selection === null) {
    throw new InvalidArgumentError(
      'Expected A:B (from A up to, but not including, B, which comes later), A:, :B, A:B:N (every N), A or last; negative numbers count from the end, commas separate several.',
    )
  }
  return { text, selection }
}

/** Parses one step: its number, `last`, or a negative number that counts from the end. */
export function oneStep(text: string): number {
  const step = text.trim() === 'last' ? -1 : /^-?\d+$/.test(text.trim()) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(step)) {
    throw new InvalidArgumentError('Expected a whole number, one below 0 to count from the end, or last.')
  }
  return step
}

/** @returns a parser for the formats of a command */
export function formatName(command: Command): (text: string) => FormatName {
  return text => {
    // Tornasole's name for it.
    const name = command === 'rule-invoker' && text === 'text' ? 'table' : text
    const known = FORMATS[command].names.find(known => known === name)
    if (known === undefined) throw new InvalidArgumentError(`Expected ${formatNames(command)}.`)
    return known
  }
}

/** Parses names of reductions: `mean,abs_max`, `mean abs_max`, `all` or `all,sketch`. */
export function reductionList(text: string): readonly string[] {
  return text.trim().split(/\s*,\s*|\s+/)
}

/** Parses a mode, which may be written in any case. */
export function upperCase(text: string): string {
  return text.toUpperCase()
}

/** Parses `a,b`: paths or other words without commas. */
export function commaSeparated(text: string): readonly string[] {
  const words = text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
  if (words.length === 0) throw new InvalidArgumentError('Expected at least one, several separated by commas.')
  return words
}

/** Parses a rate in GB/s. */
export function rate(text: string): number {
  const number = Number(text)
  if (!/^\d*\.?\d+$/.test(text) || number === 0) throw new InvalidArgumentError('Expected a number of GB/s above 0.')
  return number
}

/** Parses a number from 0 on. */
export function tolerance(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !(number >= 0)) throw new InvalidArgumentError('Expected a number from 0 on.')
  return number
}

export function seconds(text: string): number {
  const number = Number(text)
  if (!/^\d*\.?\d+$/.test(text) || number > 1e6) {
    throw new InvalidArgumentError('Expected a number of seconds, up to a million.')
  }
  return number
}

/** A rule that `--rule` names. */
export interface RuleText {
  /** The whole argument. */
  readonly text: string
  readonly rule: string
  readonly parameters: Readonly<Record<string, string>>
}

/**
 * Parses `NAME,k=v,k=v`, repeatable. A piece without `k=` continues the value before it, so that values may contain
 * commas.
 */
export function ruleTexts(text: string, previous: readonly RuleText[] = []): readonly RuleText[] {
  const [name = '', ...pieces] = text.split(',')
  const rule = name.trim()
  if (rule === '') throw new InvalidArgumentError('Expected the name of a rule.')
  if (rule.includes('=')) throw new InvalidArgumentError('Expected NAME,parameter=value,…: the name of the rule first.')
  const parameters = new Map<string, string>()
  let last: string | undefined
  for (const piece of pieces) {
    const [, parameter, value] = /^\s*([A-Za-z_][\w-]*)=(.*)$/s.exec(piece) ?? []
    if (parameter !== undefined) {
      if (parameters.has(parameter)) throw new InvalidArgumentError(`Parameter ${parameter} is given twice.`)
      parameters.set(parameter, value!)
      last = parameter
    } else if (last !== undefined) parameters.set(last, `${parameters.get(last)},${piece}`)
    else throw new InvalidArgumentError(`Expected parameter=value after the comma, got ${JSON.stringify(piece)}.`)
  }
  return [...previous, { text, rule, parameters: Object.fromEntries(parameters) }]
}
