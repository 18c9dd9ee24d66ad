/** The reports of rules: findings, missing data and problems; and the logger that they write to. */

import { StepUnavailable, TensorUnavailable, TensorUnavailableForStep, type TrialscanError } from '../base/errors.js'
import { kinds, optionsOf } from '../base/options.js'
import { FRAMEWORKS, type Framework, type GlobalStep, type Mode, type ModeStep, type Worker } from '../base/types.js'

/** A rule's condition that is met, by a tensor or by a step as a whole. */
export interface Finding {
  /** The rule's class. */
  readonly rule: string
  /** The rule's configured name. Default: its class. */
  readonly name: string
  /** The name of the trial. */
  readonly trial: string
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** The tensor; null for the step as a whole. */
  readonly tensor: string | null
  readonly worker: Worker | null
  /** The measured value and its limit; null if it is not a number. */
  readonly value: number | null
  readonly threshold: number | null
  /** The message, one sentence. */
  readonly message: string
}

/** Holds findings back that only later steps can confirm. Later findings wait behind an open one. */
export class Hold {
  state: 'open' | 'kept' | 'dropped' = 'open'
}

const holds = new WeakMap<Finding, Hold>()

export function holdBack(finding: Finding, hold: Hold): void {
  holds.set(finding, hold)
}

export function holdOf(finding: Finding): Hold | undefined {
  return holds.get(finding)
}

/** The records that a finding's rule judged, by step and tensor. */
export type WasJudged = (step: number, tensor: string) => boolean

const judged = new WeakMap<Finding, WasJudged>()

export function drawFrom(finding: Finding, wasJudged: WasJudged): void {
  judged.set(finding, wasJudged)
}

/** The records that a finding's rule judged; all of them if `evaluate` did not make the finding. */
export function judgedFor(finding: Finding): WasJudged {
  return judged.get(finding) ?? (() => true)
}

/** Data that a rule wanted and the trial does not have. */
export interface Missing {
  readonly rule: string
  readonly name: string
  readonly trial: string
  /** The missing tensors, and those that the trial has instead, in one sentence. */
  readonly missing: string
  /** True if the rule judged what does not need these data; false if it had nothing to judge. */
  readonly partial: boolean
}

/** The point at which a sentence about missing tensors goes on to those of the trial. */
export const TRIAL_HAS = '; the trial has '

/** True if tensors are missing, not steps or unreadable data. */
export function lacksTensors({ missing }: Pick<Missing, 'missing'>): boolean {
  return missing.includes(TRIAL_HAS)
}

/** A collection to save. All parameter values are texts, as in SageMaker's configurations. */
export interface HookCollection {
  readonly CollectionName: string
  readonly CollectionParameters: Readonly<Record<string, string>>
}

export interface CollectionConfigsOptions {
  /**
   * The framework whose names are used. Default: the trial's framework, or all names that the rule looks for if the framework is unknown.
   */
  readonly framework?: Framework
  /** The interval between saved steps. Default: 500, as in SageMaker's own configurations. */
  readonly saveInterval?: number
}

export const COLLECTION_CONFIGS_OPTIONS = optionsOf<CollectionConfigsOptions>({
  framework: kinds.oneOf(FRAMEWORKS),
  saveInterval: kinds.wholeNumber(1),
})

/** A tensor that was not judged because its bytes could not be read or were not what they claim to be. */
export interface Problem {
  readonly trial: string
  readonly step: GlobalStep
  readonly tensor: string | null
  readonly error: TrialscanError
}

/** A problem met while judging a step. Its own step is that of the unreadable record, which may be earlier. */
export function problemAt(step: number, error: TrialscanError): Omit<Problem, 'trial'> {
  const { tensor, step: recordStep } = error.fields
  return {
    step: (typeof recordStep === 'number' ? recordStep : step) as GlobalStep,
    tensor: typeof tensor === 'string' && tensor !== '' ? tensor : null,
    error,
  }
}

/** True for an error which only says that data are missing; it does not end a rule. */
export function isUnavailable(error: unknown): error is TensorUnavailable | TensorUnavailableForStep | StepUnavailable {
  return (
    error instanceof TensorUnavailable || error instanceof TensorUnavailableForStep || error instanceof StepUnavailable
  )
}

/** A logger for rules. `console` is one. */
export interface Logger {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

export const LEVELS: readonly (keyof Logger)[] = ['debug', 'info', 'warn', 'error']

export function isLogger(given: unknown): boolean {
  return LEVELS.every(level => typeof (given as Partial<Logger> | null)?.[level] === 'function')
}

const nothing = (): void => {}

/** A logger that discards everything. */
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** The default logger: on Node.js the console, as with smdebug, without debug messages. */
export const defaultLogger: Logger =
  'getBuiltinModule' in (globalThis.process ?? {})
    ? {
        debug: nothing,
        info: message => console.info(message),
        warn: message => console.warn(message),
        error: message => console.error(message),
      }
    : silent
