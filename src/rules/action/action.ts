/** Actions that run when a rule fires: a line in the log, a command, a POST, a callback. */

import { TrialscanError, UsageError } from '../../base/errors.js'
import { checkOptions, isObject, kinds, optionsOf } from '../../base/options.js'
import { jsonExcerpt } from '../../format/json.js'
import { type Finding, LEVELS, type Logger } from '../finding.js'

/** A rule that has fired at a step. */
export interface Firing {
  readonly rule: string
  readonly name: string
  readonly trial: string
  readonly step: number
  /** The message, one sentence. */
  readonly message: string
  readonly findings: readonly Finding[]
}

export interface Action {
  readonly name: string
  /** Called when a rule fires. Its errors are logged, not passed on. */
  onFire(firing: Firing, logger: Logger): void | Promise<void>
}

export type OneAction = string | Action | Action['onFire']

/** The actions of a rule: SageMaker's `action_json`, callbacks, actions. */
export type Actions = OneAction | readonly OneAction[]

/** An action that SageMaker would take. */
export type SageMakerAction =
  /** Stops the one running training job whose name has this prefix. */
  | { readonly name: 'stoptraining'; readonly trainingJobPrefix: string }
  | { readonly name: 'sms' | 'email'; readonly endpoint: string }

/** Called in place of SageMaker's own action. */
export type SageMakerHandler = (action: SageMakerAction, firing: Firing) => void | Promise<void>

export interface LogOptions {
  /** Default: warn. */
  readonly level?: keyof Logger | undefined
}

export interface CommandOptions {
  /** The time after which the command is killed, in milliseconds. Default: 60 s. */
  readonly timeoutMs?: number | undefined
}

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Default: 10 s. */
  readonly timeoutMs?: number | undefined
}

/** The length of the quoted end of a failed command's standard error, in characters. */
const TAIL_LENGTH = 1_000
/** Linux limits one argument of a command to 128 KiB. The whole text is on the command's standard input. */
const MAX_VARIABLE_LENGTH = 8_192
/** The longest delay that a timer accepts. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1
export const TIMEOUT = `milliseconds above 0, at most ${MAX_TIMEOUT_MS}`

const timeoutKind = kinds.that<number>(TIMEOUT, isTimeout)
const LOG_OPTIONS = optionsOf<LogOptions>({ level: kinds.oneOf(LEVELS) })
const COMMAND_OPTIONS = optionsOf<CommandOptions>({ timeoutMs: timeoutKind })
const POST_OPTIONS = optionsOf<PostOptions>({
  // `readHeaders` checks each header.
  headers: kinds.that('an object', isObject),
  timeoutMs: timeoutKind,
})

/** Runs actions one after another. An error in one is logged, and the next one runs. */
export async function runActions(actions: readonly Action[], firing: Firing, logger: Logger): Promise<void> {
  for (const action of actions) {
    try {
      await action.onFire(firing, logger)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      logger.error(`action ${action.name} of ${firing.name} at step ${firing.step} has failed: ${reason}`)
    }
  }
}

/** Calls a function. */
export function callbackAction(onFire: Action['onFire']): Action {
  if (typeof onFire !== 'function') throw expected('callbackAction', 'a function', onFire)
  return { name: 'callback', onFire }
}

/** Writes a line to the rule's log. */
export function logAction(options?: LogOptions): Action {
  const { level = 'warn' } = checkOptions('logAction', LOG_OPTIONS, options)
  return {
    name: 'log',
    onFire: ({ name, step, trial, message }, logger) => {
      logger[level](`${name} fired at step ${step} of ${trial}: ${message}`)
    },
  }
}

/**
 * Runs a command. Its standard input is the firing as a line of JSON; its environment has TRIALSCAN_RULE, TRIALSCAN_STEP and
 * TRIALSCAN_MESSAGE. Its standard output is discarded, since ours may be a table or JSON lines. An exit code other than 0, a signal and a
 * timeout are errors.
 * @param args if given, even if empty, `command` is a program that is run without a shell; otherwise it is a line for the shell
 */
export function commandAction(command: string, args?: readonly string[] | null, options?: CommandOptions): Action {
  const { timeoutMs = 60_000 } = checkOptions('commandAction', COMMAND_OPTIONS, options)
  if (!args) {
    readLine(command, 'commandAction: command')
    return { name: 'command', onFire: firing => runProcess(['sh', '-c', command], command, firing, timeoutMs) }
  }
  readProgram(command, 'commandAction: command')
  readTexts(args, 'commandAction: args')
  return { name: 'command', onFire: firing => runProcess([command, ...args], command, firing, timeoutMs) }
}

/** POSTs the firing as JSON. Any status but 2xx is an error, including a redirect, which would lose the JSON. */
export function postAction(url: string | URL, options?: PostOptions): Action {
  const { headers = {}, timeoutMs = 10_000 } = checkOptions('postAction', POST_OPTIONS, options)
  const target = readUrl(String(url), 'postAction: url')
  const fields = readHeaders(headers, 'postAction: headers')
  if (!fields.has('content-type')) fields.set('content-type', 'application/json')
  return { name: 'post', onFire: firing => post(target, fields, firing, timeoutMs) }
}

/**
 * Runs a command in our environment plus a few variables. env(1) adds them, since the library itself does not read its
 * environment.
 */
async function runProcess(argv: readonly string[], command: string, firing: Firing, timeoutMs: number): Promise<void> {
  // Loaded on demand: few users of the library ever run a command.
  const { spawn } = await import('node:child_process')
  const variables = Object.entries({ RULE: firing.rule, STEP: firing.step, MESSAGE: firing.message }).map(
    ([key, value]) => `TRIALSCAN_${key}=${String(value).replaceAll('\0', '').slice(0, MAX_VARIABLE_LENGTH)}`,
  )
  return new Promise((resolve, reject) => {
    const child = spawn('env', [...variables, ...argv], { stdio: ['pipe', 'ignore', 'pipe'] })
    let tail = ''
    const late = (): void =>
      end(child.exitCode === null ? `killed after ${timeoutMs / 1000} s` : `exit code ${child.exitCode}`)
    const timer = setTimeout(late, timeoutMs)
    const end = (failure: string | null, cause?: unknown): void => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      // A background process of the shell may keep it open for ever.
      child.stderr.destroy()
      const detail = tail.trim() === '' ? '' : `: ${tail.trim()}`
      if (failure === null) resolve()
      else
        reject(new TrialscanError('ActionFailed', `${jsonExcerpt(command)}: ${failure}${detail}`, { command }, cause))
    }
    child.stderr.setEncoding('utf8')
    child.stderr.on('data', (text: string) => {
      tail = (tail + text).slice(-TAIL_LENGTH)
    })
    child.on('error', error => end(error.message, error))
    child.on('exit', code => code === 0 && end(null))
    // All of its standard error has arrived only now.
    child.on('close', (code, signal) => end(signal === null ? `exit code ${code}` : `ended by ${signal}`))
    // A command need not read its standard input.
    child.stdin.on('error', () => {})
    child.stdin.end(`${firingJson(firing)}\n`)
  })
}

async function post(url: URL, headers: Headers, firing: Firing, timeoutMs: number): Promise<void> {
  // The message names only the host, since the path of a webhook is often secret.
  const failed = (reason: string, cause?: unknown) =>
    new TrialscanError('ActionFailed', `POST to ${url.host}: ${reason}`, { host: url.host }, cause)
  let response: Response
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    response = await fetch(url, { method: 'POST', headers, body: firingJson(firing), redirect: 'manual', signal })
    await response.body?.cancel()
  } catch (error) {
    const { name, message, cause } = error as Error
    if (name === 'TimeoutError') throw failed(`no answer within ${timeoutMs / 1000} s`, error)
    throw failed(cause instanceof Error ? cause.message || String((cause as { code?: unknown }).code) : message, error)
  }
  if (!response.ok) throw failed(`expected an answer of 2xx, got ${response.status} ${response.statusText}`.trim())
}

/** Findings have the keys of `check --format jsonl`. */
function firingJson({ rule, name, trial, step, message, findings }: Firing): string {
  const rows = findings.map(({ modeStep: mode_step, tensor, worker, value, threshold, ...finding }) => ({
    rule: finding.rule,
    name: finding.name,
    step: finding.step,
    mode: finding.mode,
    mode_step,
    tensor,
    worker,
    value: numberOrText(value),
    threshold: numberOrText(threshold),
    message: finding.message,
  }))
  return JSON.stringify({ rule, name, trial, step, message, findings: rows })
}

/** JSON has no NaN and no infinities, so they become strings. */
function numberOrText(value: number | null): number | string | null {
  return value === null || Number.isFinite(value) ? value : String(value)
}

export function readLine(value: unknown, at: string): string {
  return matching(value, at, /^(?=[^\0]*[^\s\0])[^\0]*$/, 'a command')
}

/** env(1) would read a name with `=` as a variable. */
export function readProgram(value: unknown, at: string): string {
  return matching(value, at, /^[^\0=]+$/, 'a program, without =')
}

export function readTexts(value: unknown, at: string): readonly string[] {
  if (!Array.isArray(value)) throw expected(at, 'a list of strings', value)
  return value.map((item, index) => matching(item, `${at}[${index}]`, /^[^\0]*$/, 'a string'))
}

export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= MAX_TIMEOUT_MS
}

export function readUrl(value: unknown, at: string): URL {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  if (url === null || !/^https?:$/.test(url.protocol)) throw expected(at, 'an http or https URL', value)
  // User names and passwords are secret, so the message does not quote them.
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(`${at}: expected a URL without user and password, got one with them`, { at })
  }
  return url
}

export function readHeaders(value: unknown, at: string): Headers {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw expected(at, 'an object', value)
  const headers = new Headers()
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string') throw expected(`${at}.${name}`, 'a string', text)
    try {
      headers.set(name, text)
    } catch (error) {
      throw new UsageError(`${at}: expected a header, got ${jsonExcerpt(name)} with what can't be sent`, { at }, error)
    }
  }
  return headers
}

export function matching(value: unknown, at: string, pattern: RegExp, wanted: string): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw expected(at, wanted, value)
  return value
}

export function expected(at: string, wanted: string, got: unknown): UsageError {
  return new UsageError(`${at}: expected ${wanted}, got ${jsonExcerpt(got)}`, {
    at,
    expected: wanted,
    got: jsonExcerpt(got),
  })
}
