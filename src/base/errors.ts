/**
 * The errors a caller can act on. Every message says what was expected and what was found, and names the file and the
 * offset if there is one. Between threads an error travels as plain data (`errorToData`, `errorFromData`), because
 * Piscina keeps only the message of a thrown error.
 */

import { fileURLToPath } from './file-url.js'

/** An error as plain data: its form between threads, and the result of `toJSON`. */
export interface ErrorData {
  readonly name: string
  readonly code: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/**
 * Base of every error that trialscan throws. `code` is stable and meant for programs, `message` for people. A message
 * names a file on the local disk by its path; the field `url` has its URL.
 */
export class TrialscanError extends Error {
  readonly code: string
  /** Plain facts about the error (file, offset, expected, got, …); also set as properties of the subclasses. */
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: string, message: string, fields: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(withPath(message, fields.url), cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.fields = fields
  }

  toJSON(): ErrorData {
    return { name: this.name, code: this.code, message: this.message, fields: this.fields }
  }
}

/** Bytes that could not be read or written: not found, denied, short read, unavailable. */
export class StoreError extends TrialscanError {
  readonly url: string
  /** True if the same request may succeed later. */
  readonly retryable: boolean

  constructor(
    code: 'NotFound' | 'Denied' | 'NotAFile' | 'NotADirectory' | 'TooLarge' | 'Unavailable',
    message: string,
    fields: { readonly url: string; readonly retryable?: boolean } & Readonly<Record<string, unknown>>,
    cause?: unknown,
  ) {
    super(code, message, fields, cause)
    this.url = fields.url
    this.retryable = fields.retryable ?? false
  }
}

/**
 * True if an error is about the file itself, so that another attempt would fail the same way: it does not exist, is a directory, is too
 * large, or has invalid content. Any other error means that the bytes, or all bytes of one version of the file, could not be read;
 * nothing is known about the file then.
 */
export function isAboutFile({ name, code, fields }: ErrorData): boolean {
  if (name !== 'StoreError') return code !== 'ObjectChanged'
  // On S3 only this code: a gateway may mean something else by 404.
  if (code === 'NotFound') return fields.s3 === undefined || fields.s3 === 'NoSuchKey'
  return code === 'NotAFile' || code === 'NotADirectory' || code === 'TooLarge' || fields.isLasting === true
}

/** Bytes that are not what they claim to be. */
export class FormatError extends TrialscanError {
  readonly url: string
  /** The byte offset of the fault in the file; undefined if there is none. */
  readonly offset: number | undefined
  readonly expected: string | undefined
  readonly got: string | undefined

  constructor(
    code: string,
    message: string,
    fields: {
      readonly url: string
      readonly offset?: number
      readonly expected?: string
      readonly got?: string
    } & Readonly<Record<string, unknown>>,
    cause?: unknown,
  ) {
    super(code, message, fields, cause)
    this.url = fields.url
    this.offset = fields.offset
    this.expected = fields.expected
    this.got = fields.got
  }
}

/** The trial is intact, but it does not have what was asked for. */
export class QueryError extends TrialscanError {}

/** No tensor of that name was saved. */
export class TensorUnavailable extends QueryError {
  constructor(
    readonly tensor: string,
    trial: string,
    nearest: readonly string[],
  ) {
    super('TensorUnavailable', `tensor ${quote(tensor)} was not saved in trial ${quote(trial)}${suggest(nearest)}`, {
      tensor,
      nearest,
    })
  }
}

/** The step exists, but this tensor was not saved at it, or not in the requested form. */
export class TensorUnavailableForStep extends QueryError {
  constructor(
    readonly tensor: string,
    readonly step: number,
    readonly mode: string,
    detail: string,
  ) {
    super('TensorUnavailableForStep', `tensor ${quote(tensor)} at ${stepName(step, mode)}: ${detail}`, {
      tensor,
      step,
      mode,
    })
  }
}

/** The step was not saved, and will not be: a later one is complete, or the job has ended. */
export class StepUnavailable extends QueryError {
  constructor(
    readonly step: number,
    readonly mode: string,
    detail: string,
  ) {
    super('StepUnavailable', `${stepName(step, mode)} is not available: ${detail}`, { step, mode })
  }
}

/** The step has not been seen yet; the job may still write it. */
export class StepNotYetAvailable extends QueryError {
  constructor(
    readonly step: number,
    readonly mode: string,
    detail: string,
  ) {
    super('StepNotYetAvailable', `${stepName(step, mode)} is not available yet: ${detail}`, { step, mode })
  }
}

/** The job ended before that step: no more steps or tensors will come. */
export class NoMoreData extends QueryError {
  constructor(
    readonly step: number,
    readonly mode: string,
    readonly lastStep: number | undefined,
  ) {
    const last = lastStep === undefined ? 'without a step' : `its last step is ${lastStep}`
    super('NoMoreData', `${stepName(step, mode)} will not come: the job has ended, ${last}`, { step, mode, lastStep })
  }
}

/** Neither a shape nor a value was saved at that step. */
export class ShapeUnavailableForStep extends QueryError {
  constructor(
    readonly tensor: string,
    readonly step: number,
    readonly mode: string,
    detail: string,
  ) {
    super('ShapeUnavailableForStep', `shape of tensor ${quote(tensor)} at ${stepName(step, mode)}: ${detail}`, {
      tensor,
      step,
      mode,
    })
  }
}

/** A wait that ended without a result. */
export class WaitTimeout extends QueryError {
  constructor(
    readonly timeoutMs: number,
    missing: string,
    available: string,
  ) {
    super('WaitTimeout', `waited ${timeoutMs / 1000} s for ${missing}; ${available}`, { timeoutMs, missing })
  }
}

/** There are no visible collections files, so the content of the trial is unknown. */
export class MissingCollectionFiles extends QueryError {
  constructor(
    readonly url: string,
    detail: string,
    /** listed: the number of objects found on S3, if there were implausibly many */
    more: { readonly listed?: number } = {},
  ) {
    super('MissingCollectionFiles', `${url}: ${detail}`, { url, ...more })
  }
}

/** The tensor has no data of that worker at that step. */
export class InvalidWorker extends QueryError {
  constructor(
    readonly worker: string,
    known: readonly string[],
  ) {
    super('InvalidWorker', `worker ${quote(worker)} has no data here; workers that have: ${quotedNames(known)}`, {
      worker,
      known,
    })
  }
}

/** The reduction is not defined for the dtype: complex numbers have no order, and strings are not numbers. */
export class ReductionUndefined extends QueryError {
  constructor(
    readonly reduction: string,
    readonly dtype: string,
    detail: string,
  ) {
    super('ReductionUndefined', `${reduction} is not defined for ${dtype}: ${detail}`, { reduction, dtype })
  }
}

/** A rule's condition is met at a step; thrown by `rule.invoke`. */
export class RuleEvaluationConditionMet extends TrialscanError {
  constructor(
    readonly ruleName: string,
    readonly step: number,
    /** True if the rule has nothing left to judge. */
    readonly endOfRule = false,
  ) {
    super('RuleEvaluationConditionMet', `the condition of rule ${ruleName} is met at step ${step}`, {
      rule: ruleName,
      step,
    })
  }
}

/** The call itself is wrong: an unknown option, a bad range, a pattern that does not compile. */
export class UsageError extends TrialscanError {
  constructor(message: string, fields: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super('Usage', message, fields, cause)
  }
}

/** A rule lacks something that it requires: a selection of tensors, a bound, or another trial. */
export class InsufficientInformationForRuleInvocation extends UsageError {
  constructor(
    readonly ruleName: string,
    readonly detail: string,
  ) {
    super(`rule ${ruleName}: ${detail}`, { rule: ruleName })
  }
}

/**
 * A bug of trialscan: the engine broke a guarantee, and its instance is discarded. Two codes mean that there is no engine: `NoCore` if
 * files of the package are missing, and `NoAddressSpace` if the process lacks the address space.
 */
export class EngineError extends TrialscanError {
  constructor(
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
    code: 'Engine' | 'NoCore' | 'NoAddressSpace' = 'Engine',
  ) {
    super(code, message, fields, cause)
  }
}

/** A thread died at work, or none could be started: too little memory, too few descriptors, or killed. */
export class ThreadError extends TrialscanError {
  constructor(
    code: 'ThreadDied' | 'ThreadsNotStarted' | 'ThreadsClosed',
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super(code, message, fields, cause)
  }
}

/** An error as data, for another thread. Any other error becomes an EngineError with the original message. */
export function errorToData(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return error.toJSON()
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { name: 'EngineError', code: 'Engine', message, fields: {} }
}

/** Restores an error from `errorToData`. It has no stack, which would describe this place and take a kilobyte. */
export function errorFromData(data: ErrorData): TrialscanError {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return restored(data)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function restored(data: ErrorData): TrialscanError {
  const { code, message, fields } = data
  switch (data.name) {
    case 'StoreError':
      return new StoreError(code as StoreError['code'] as 'NotFound', message, fields as { url: string })
    case 'FormatError':
      return new FormatError(code, message, fields as { url: string })
    case 'UsageError':
      return new UsageError(message, fields)
    case 'EngineError':
      return new EngineError(message, fields, undefined, code as EngineError['code'] as 'Engine')
    case 'ThreadError':
      return new ThreadError(code as ThreadError['code'] as 'ThreadDied', message, fields)
    default:
      return new QueryError(code, message, fields)
  }
}

/**
 * The known names nearest to a mistyped one: those that contain it, otherwise those with the fewest typing errors.
 * @param limit the largest number of names
 */
export function nearestNames(name: string, known: Iterable<string>, limit = 3): string[] {
  const wanted = name.toLowerCase()
  const allowed = Math.max(2, Math.ceil(wanted.length / 3))
  let best = allowed
  let nearest: string[] = []
  for (const candidate of known) {
    const other = candidate.toLowerCase()
    const distance = wanted.length > 2 && other.includes(wanted) ? 0 : editDistance(wanted, other, allowed)
    if (distance > best) continue
    if (distance < best) nearest = []
    best = distance
    nearest.push(candidate)
  }
  return nearest.sort().slice(0, limit)
}

/** The edit distance, counting a swap of neighbours once; Infinity if the lengths alone exceed `limit` or a name is too long. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit || a.length > 200) return Number.POSITIVE_INFINITY
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(row[j - 1]! + 1, last[j]! + 1, substitution))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

function withPath(message: string, url: unknown): string {
  return typeof url === 'string' && url !== '' ? message.replaceAll(url, () => pathOfUrl(url)) : message
}

/** The path of a `file://` URL; other URLs are returned as they are. */
export function pathOfUrl(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

/** The length beyond which a path is shown in full only once, and shortened after that. */
const MAX_SHOWN_PATH = 512

/** A path or URL in the form for many errors: if it is too long, only its beginning and its end. */
export function shortPath(path: string): string {
  return path.length > MAX_SHOWN_PATH ? `${path.slice(0, MAX_QUOTED_LENGTH)}…${path.slice(-MAX_QUOTED_LENGTH)}` : path
}

/** An error in the form for many errors of a file: its long path is shortened, also in the field `url`. */
export function withShortPath(error: ErrorData): ErrorData {
  const { url } = error.fields
  if (typeof url !== 'string' || url.length <= MAX_SHOWN_PATH) return error
  const path = pathOfUrl(url)
  const short = shortPath(path)
  return { ...error, message: error.message.replaceAll(path, () => short), fields: { ...error.fields, url: short } }
}

/** A copy of the error with the full path of its file. @param url the file's URL */
export function withFullPath(error: TrialscanError, url: string): TrialscanError {
  const path = pathOfUrl(url)
  const short = shortPath(path)
  if (short === path || error.fields.url !== short) return error
  const message = error.message.replaceAll(short, () => path)
  return errorFromData({ ...error.toJSON(), message, fields: { ...error.fields, url } })
}

/** A name in the form that messages use, truncated if it is very long. */
export function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_LENGTH ? `${name.slice(0, MAX_QUOTED_LENGTH)}…` : name)
}

const MAX_QUOTED_LENGTH = 200

function quotedNames(names: readonly string[]): string {
  if (names.length === 0) return 'none'
  const shown = names.slice(0, 8).map(quote).join(', ')
  return names.length > 8 ? `${shown} and ${names.length - 8} more` : shown
}

/** The suggestion `; did you mean …?`; empty without near names. */
export function suggest(nearest: readonly string[]): string {
  return nearest.length === 0 ? '' : `; did you mean ${nearest.map(quote).join(' or ')}?`
}

function stepName(step: number, mode: string): string {
  return mode === 'GLOBAL' ? `step ${step}` : `${mode} step ${step}`
}
