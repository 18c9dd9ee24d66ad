/**
 * The errors a caller can act on. Every message says what was expected and what was found, and names the file and the
 * offset where there is one. Across a thread an error travels as plain data (`toData`, `fromData`), because Piscina
 * keeps only the message of a thrown error.
 */

import { fileURLToPath } from 'node:url'

/** An error as data: what crosses a thread, and what `toJSON` gives. */
export interface ErrorData {
  readonly name: string
  readonly code: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/**
 * Base of every error that trialscan throws. `code` is stable and made for programs, `message` for people: a file on the
 * local disk has its path there, and its URL in the field `url`.
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

/** The bytes could not be had: not found, denied, short read, unavailable. */
export class StoreError extends TrialscanError {
  readonly url: string
  /** True when the same request may succeed later. */
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
 * Whether an error tells what a file is, as the next look would tell again: there is none, it is a directory, too large, not
 * what it claims to be. Any other says that its bytes could not be had, or not all of the same file: nothing is known of it.
 */
export function tellsOfFile({ name, code, fields }: ErrorData): boolean {
  if (name !== 'StoreError') return code !== 'ObjectChanged'
  // Not what a gateway may mean by 404.
  if (code === 'NotFound') return fields.s3 === undefined || fields.s3 === 'NoSuchKey'
  return code === 'NotAFile' || code === 'NotADirectory' || code === 'TooLarge' || fields.isLasting === true
}

/** The bytes are not what they claim to be. */
export class FormatError extends TrialscanError {
  readonly url: string
  /** Byte offset in the file where the fault shows, when there is one. */
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

/** The trial is fine, but it does not hold what was asked for. */
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

/** The step exists, but this tensor was not saved at it, or not in the form that was asked for. */
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

/** The step was not seen yet; the job may still write it. */
export class StepNotYetAvailable extends QueryError {
  constructor(
    readonly step: number,
    readonly mode: string,
    detail: string,
  ) {
    super('StepNotYetAvailable', `${stepName(step, mode)} is not available yet: ${detail}`, { step, mode })
  }
}

/** The job has ended before that step: no more steps will come, and no more tensors. */
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

/** What was waited for did not come in time. */
export class WaitTimeout extends QueryError {
  constructor(
    readonly timeoutMs: number,
    missing: string,
    there: string,
  ) {
    super('WaitTimeout', `waited ${timeoutMs / 1000} s for ${missing}; ${there}`, { timeoutMs, missing })
  }
}

/** The job wrote its collections files nowhere we can see: nothing tells what the trial holds. */
export class MissingCollectionFiles extends QueryError {
  constructor(
    readonly url: string,
    detail: string,
    /** listed: how many objects on S3, where there were more than anybody can have meant */
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

/** The reduction has no meaning for the dtype: complex numbers have no order, strings have no numbers. */
export class ReductionUndefined extends QueryError {
  constructor(
    readonly reduction: string,
    readonly dtype: string,
    detail: string,
  ) {
    super('ReductionUndefined', `${reduction} is not defined for ${dtype}: ${detail}`, { reduction, dtype })
  }
}

/** A rule's condition is true at a step: what `rule.invoke` throws then. */
export class RuleEvaluationConditionMet extends TrialscanError {
  constructor(
    readonly ruleName: string,
    readonly step: number,
    /** Whether the rule has nothing to look for any more. */
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

/** A rule was not told what it can't do without: which tensors, which bound, which other trial. */
export class InsufficientInformationForRuleInvocation extends UsageError {
  constructor(
    readonly ruleName: string,
    readonly detail: string,
  ) {
    super(`rule ${ruleName}: ${detail}`, { rule: ruleName })
  }
}

/**
 * Our own bug: the engine did what it promises never to do. The instance is thrown away. Or, as `NoCore`: there is no
 * engine, since the package is not there as a whole; as `NoAddressSpace`, since the process may not have the address space.
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

/** A thread died at work, or there was none to be had: too little memory, too few descriptors, killed. */
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

/** An error as data, ready to cross a thread. What is not ours becomes an EngineError with the original message. */
export function errorToData(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return error.toJSON()
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { name: 'EngineError', code: 'Engine', message, fields: {} }
}

/** The error that `errorToData` took apart. Without a stack, which would tell of this place, and takes a kilobyte. */
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
 * The known names nearest to a mistyped one: those that contain it, else those the fewest slips of the hand away.
 * @param limit how many at the most
 */
export function nearestNames(name: string, known: Iterable<string>, limit = 3): string[] {
  const wanted = name.toLowerCase()
  const allowed = Math.max(2, Math.ceil(wanted.length / 3))
  let best = allowed
  let nearest: string[] = []
  for (const candidate of known) {
    const other = candidate.toLowerCase()
    const distance = wanted.length > 2 && other.includes(wanted) ? 0 : slips(wanted, other, allowed)
    if (distance > best) continue
    if (distance < best) nearest = []
    best = distance
    nearest.push(candidate)
  }
  return nearest.sort().slice(0, limit)
}

/** Edit distance, a swap of neighbours counted once; Infinity where lengths alone rule out `limit` or names are endless. */
function slips(a: string, b: string, limit: number): number {
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

/** The path of a `file://` URL; others as they are. */
export function pathOfUrl(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

/** Longer paths are told as a whole once, and else in short. */
const MAX_SHOWN_PATH = 512

/** A path, or URL, as the errors of many records name it: its beginning and its end, if it is endless. */
export function shortPath(path: string): string {
  return path.length > MAX_SHOWN_PATH ? `${path.slice(0, MAX_QUOTED_LENGTH)}…${path.slice(-MAX_QUOTED_LENGTH)}` : path
}

/** An error as one of many of a file: its long path in short, in the field `url`, too. */
export function inShort(error: ErrorData): ErrorData {
  const { url } = error.fields
  if (typeof url !== 'string' || url.length <= MAX_SHOWN_PATH) return error
  const path = pathOfUrl(url)
  const short = shortPath(path)
  return { ...error, message: error.message.replaceAll(path, () => short), fields: { ...error.fields, url: short } }
}

/** The same error with its file's path as a whole. @param url of the file */
export function inFull(error: TrialscanError, url: string): TrialscanError {
  const path = pathOfUrl(url)
  const short = shortPath(path)
  if (short === path || error.fields.url !== short) return error
  const message = error.message.replaceAll(short, () => path)
  return errorFromData({ ...error.toJSON(), message, fields: { ...error.fields, url } })
}

/** A name as a message shows it, cut if it is endless: names can be of any length. */
export function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_LENGTH ? `${name.slice(0, MAX_QUOTED_LENGTH)}…` : name)
}

const MAX_QUOTED_LENGTH = 200

function quotedNames(names: readonly string[]): string {
  if (names.length === 0) return 'none'
  const shown = names.slice(0, 8).map(quote).join(', ')
  return names.length > 8 ? `${shown} and ${names.length - 8} more` : shown
}

function suggest(nearest: readonly string[]): string {
  return nearest.length === 0 ? '' : `; did you mean ${nearest.map(quote).join(' or ')}?`
}

function stepName(step: number, mode: string): string {
  return mode === 'GLOBAL' ? `step ${step}` : `${mode} step ${step}`
}
