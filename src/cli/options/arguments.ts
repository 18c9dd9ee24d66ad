/** Parsers of command line arguments. */

import { InvalidArgumentError } from 'commander'
import type { StepSlice } from '../../scan/catalog/step-selection.js'
import { parseSteps } from '../../scan/catalog/step-text.js'
import { type Command, FORMATS, type FormatName, formatNames } from '../format/formats.js'

/** Parses a path. Blanks around it, as copying leaves them, are dropped. */
function pathText(text: string): string {
  const path = text.trim()
  if (path === '') throw new InvalidArgumentError('Expected a path, got an empty text.')
  return path
}

/** @returns a parser of numbers that accepts what `isMeant` does */
function numberText(expected: string, form: RegExp, isMeant: (number: number) => boolean): (text: string) => number {
  return text => {
    const number = Number(text)
    if (form.test(text) && isMeant(number)) return number
    throw new InvalidArgumentError(`Expected ${expected}.`)
  }
}

const WHOLE = /^\d+$/
const DECIMAL = /^\d*\.?\d+$/

const wholeNumber = numberText('a whole number below 2^53', WHOLE, Number.isSafeInteger)
/** Parses the library's `memory`, in MiB. */
const memory = numberText('a whole number of MiB from 4 to 2048', WHOLE, size => size >= 4 && size <= 2048)
/** Parses the memory limit of a query, in MiB. */
export const queryMemory = numberText(
  'a whole number of MiB from 64 to 1048576',
  WHOLE,
  size => size >= 64 && size <= 2 ** 20,
)
const rate = numberText('a number of GB/s above 0', DECIMAL, rate => rate > 0)
export const tolerance = numberText('a number from 0 on', /\S/, number => number >= 0)
export const seconds = numberText('a number of seconds, up to a million', DECIMAL, number => number <= 1e6)

/** Steps as they were written, and their selection. */
export interface StepsText {
  readonly text: string
  readonly selection: readonly (number | StepSlice)[]
}

/** Parses steps as `parseSteps` does. */
function stepsText(text: string): StepsText {
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
function reductionList(text: string): readonly string[] {
  return text.trim().split(/\s*,\s*|\s+/)
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

/** A rule that `--rule` names. */
export interface RuleText {
  /** The whole argument. */
  readonly text: string
  readonly rule: string
  readonly parameters: Readonly<Record<string, string>>
}

/** Parses `NAME,k=v,k=v`. A piece without `k=` continues the value before it, so that values may contain commas. */
export function ruleText(text: string): RuleText {
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
  return { text, rule, parameters: Object.fromEntries(parameters) }
}

/** The parsers of values, by their names in help. Other values stay as they are. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  ...{ FILE: pathText, DIR: pathText, PLACE: pathText, PATH: pathText },
  ...{ PLAN: pathText, RUNS: pathText, TRIAL: pathText, TRIALS: pathText },
  ...{ N: wholeNumber, A: wholeNumber, B: wholeNumber, BYTES: wholeNumber },
  ...{ 'RULE,…': commaSeparated, 'CODE,…': commaSeparated, PATHS: commaSeparated },
  ...{ MIB: memory, R: tolerance, 'GB/S': rate, SECONDS: seconds },
  ...{ STEPS: stepsText, LIST: reductionList, MODE: text => text.toUpperCase(), 'NAME[,k=v…]': ruleText },
}

/**
 * The parser of an option or argument, which gathers the values of one that is repeatable.
 * @param flags such as `--rule <NAME>` or `[TRIALS...]`
 */
export function readerOf(
  flags: string,
  isRepeatable: boolean,
): ((text: string, previous: unknown) => unknown) | undefined {
  const [, name = '', dots] = /[<[](.*?)(\.\.\.)?[>\]]$/.exec(flags) ?? []
  const read = READERS[name]
  if (dots === undefined && !isRepeatable) return read
  return (text, previous = []) => [...(previous as readonly unknown[]), read ? read(text) : text]
}
