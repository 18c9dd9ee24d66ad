/** What rules say. */

import type { TrialscanError } from '../errors.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../types.js'

/** A rule's condition is true of a tensor, or of a step as a whole. */
export interface Finding {
  /** The rule's class. */
  readonly rule: string
  /** What the rule is called where it was configured; else as its class. */
  readonly name: string
  /** The name of the trial. */
  readonly trial: string
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** Null where it is about the step as a whole. */
  readonly tensor: string | null
  readonly worker: Worker | null
  /** What was measured, and what it was held against; null where that is no number. */
  readonly value: number | null
  readonly threshold: number | null
  /** One sentence. */
  readonly message: string
}

/** Data that a rule wanted and the trial does not have. */
export interface Missing {
  readonly rule: string
  readonly name: string
  readonly trial: string
  /** What is missing, and what there is instead: one sentence. */
  readonly missing: string
  /** Whether the rule judged all that does not need it; false: it had nothing to judge. */
  readonly partial: boolean
}

/** Bytes that could not be read, or were not what they claim, so that a tensor was not judged. */
export interface Problem {
  readonly trial: string
  readonly step: GlobalStep
  readonly tensor: string | null
  readonly error: TrialscanError
}

/**
 * A problem that was met where a step was judged. It is that of the record that could not be read, which may be one of an
 * earlier step.
 */
export function problemAt(step: number, error: TrialscanError): Omit<Problem, 'trial'> {
  const { tensor, step: own } = error.fields
  return {
    step: (typeof own === 'number' ? own : step) as GlobalStep,
    tensor: typeof tensor === 'string' && tensor !== '' ? tensor : null,
    error,
  }
}

/** Where rules write what they have to say besides. `console` is one. */
export interface Logger {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** The levels of a logger. */
export const LEVELS: readonly (keyof Logger)[] = ['debug', 'info', 'warn', 'error']

export function isLogger(given: unknown): boolean {
  return LEVELS.every(level => typeof (given as Partial<Logger> | null)?.[level] === 'function')
}

const nothing = (): void => {}

/** Says nothing. */
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
