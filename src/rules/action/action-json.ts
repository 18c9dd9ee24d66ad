/**
 * Actions from JSON. SageMaker's own (`action_json`) are read and checked like ours, and passed to a callback: this package never calls
 * AWS for them.
 */

import { expectText } from '../../base/arguments.js'
import { nearestNames, UsageError } from '../../base/errors.js'
import { jsonExcerpt } from '../../format/json.js'
import { LEVELS, type Logger } from '../finding.js'
import {
  type Action,
  type Actions,
  callbackAction,
  commandAction,
  expected,
  isTimeout,
  logAction,
  matching,
  type OneAction,
  postAction,
  readHeaders,
  readLine,
  readProgram,
  readTexts,
  readUrl,
  type SageMakerAction,
  type SageMakerHandler,
  TIMEOUT,
} from './action.js'

/** @throws UsageError for any other value; see `parseActions` for text */
export function actionsOf(actions: Actions | null | undefined): readonly Action[] {
  const list: readonly OneAction[] = Array.isArray(actions) ? actions : [(actions ?? '') as OneAction]
  return list.flatMap((item): readonly Action[] => {
    if (typeof item === 'string') return parseActions(item)
    if (typeof item === 'function') return [callbackAction(item)]
    if (typeof item?.name === 'string' && typeof item.onFire === 'function') return [item]
    throw expected('actions', 'action_json, a function or an action (with name and onFire)', item)
  })
}

/** The keys of the actions that `action_json` can name, SageMaker's first. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  stoptraining: ['training_job_prefix'],
  sms: ['endpoint'],
  email: ['endpoint'],
  log: ['level'],
  command: ['command', 'args', 'timeout_ms'],
  post: ['url', 'headers', 'timeout_ms'],
}

function makeAction(name: string, field: Field, handler: SageMakerHandler | undefined): Action {
  switch (name) {
    case 'stoptraining':
      return sagemakerAction({ name, trainingJobPrefix: field('training_job_prefix', readJobPrefix) }, handler)
    case 'sms':
      return sagemakerAction({ name, endpoint: field('endpoint', readPhone) }, handler)
    case 'email':
      return sagemakerAction({ name, endpoint: field('endpoint', readEmail) }, handler)
    case 'log':
      return logAction({ level: field('level', optional(readLevel)) })
    case 'command': {
      const args = field('args', optional(readTexts))
      const command = field('command', args ? readProgram : readLine)
      return commandAction(command, args, { timeoutMs: field('timeout_ms', optional(readTimeout)) })
    }
    default: {
      const headers = field('headers', optional(readHeaders))
      const timeoutMs = field('timeout_ms', optional(readTimeout))
      return postAction(field('url', readUrl), { headers: headers && Object.fromEntries(headers), timeoutMs })
    }
  }
}

type Reader<T> = (value: unknown, at: string) => T
type Field = <T>(key: string, read: Reader<T>) => T

/**
 * Reads actions: a JSON object or an array of them, SageMaker's (`stoptraining`, `sms`, `email`) and ours (`log`, `command`, `post`). A
 * blank text has none. smdebug skips an action that is unknown or lacks a key; here it is an error, so that a broken alarm is noticed
 * before the training. smdebug also lowercases the whole text; here only names and keys ignore case.
 * @param handler called for SageMaker's actions. Default: logs what SageMaker would have done
 * @throws UsageError with the place in the text
 */
export function parseActions(text: string, handler?: SageMakerHandler): readonly Action[] {
  expectText('parseActions', 'text', text)
  if (text.trim() === '') return []
  const value = parseActionJson(text)
  return Array.isArray(value)
    ? value.map((item, index) => actionOf(item, `action_json[${index}]`, handler))
    : [actionOf(value, 'action_json', handler)]
}

function parseActionJson(text: string): unknown {
  // `serialize()` of sagemaker-debugger-rulesconfig puts a backslash before every quote.
  const isEscaped = /^[\s[]*\{\s*\\"/.test(text)
  try {
    return JSON.parse(isEscaped ? text.replaceAll('\\"', '"') : text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`action_json: expected JSON, got ${reason}`, { at: 'action_json' }, error)
  }
}

function actionOf(value: unknown, at: string, handler: SageMakerHandler | undefined): Action {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw expected(at, 'an object with the name of an action', value)
  }
  const fields = new Map<string, unknown>(Object.entries(value).map(([key, value]) => [key.toLowerCase(), value]))
  const name = fields.get('name')
  const names = Object.keys(KEYS)
  if (typeof name !== 'string') throw expected(`${at}.name`, `one of ${names.join(', ')}`, name)
  const kind = name.toLowerCase()
  const keys = Object.hasOwn(KEYS, kind) ? KEYS[kind] : undefined
  if (keys === undefined) throw unknownName(at, `there is no action ${jsonExcerpt(name)}`, name, names)
  for (const key of fields.keys()) {
    if (key === 'name' || keys.includes(key)) continue
    throw unknownName(at, `action ${name} takes no ${jsonExcerpt(key)}`, key, keys)
  }
  return makeAction(kind, (key, read) => read(fields.get(key) ?? undefined, `${at}.${key}`), handler)
}

function sagemakerAction(action: SageMakerAction, handler: SageMakerHandler | undefined): Action {
  return {
    name: action.name,
    onFire: (firing, logger) => {
      if (handler) return handler(action, firing)
      logger.info(
        `${firing.name} fired at step ${firing.step}: SageMaker would ${actionText(action)}; trialscan calls no AWS`,
      )
    },
  }
}

function actionText(action: SageMakerAction): string {
  if (action.name === 'stoptraining') return `stop training jobs named ${action.trainingJobPrefix}*`
  return `send ${action.name === 'sms' ? 'an SMS' : 'an e-mail'} to ${action.endpoint}`
}

function readJobPrefix(value: unknown, at: string): string {
  return matching(value, at, /^[A-Za-z0-9-]+$/, 'letters, digits and dashes')
}

function readPhone(value: unknown, at: string): string {
  return matching(value, at, /^\+\d{1,15}$/, 'a phone number: + and up to 15 digits')
}

/** Wider than AWS's own pattern, which refuses dots, capitals and most domains. */
function readEmail(value: unknown, at: string): string {
  return matching(value, at, /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/, 'an e-mail address')
}

function readLevel(value: unknown, at: string): keyof Logger {
  const level = LEVELS.find(level => level === value)
  if (level === undefined) throw expected(at, `one of ${LEVELS.join(', ')}`, value)
  return level
}

function readTimeout(value: unknown, at: string): number {
  if (isTimeout(value)) return value
  throw expected(at, TIMEOUT, value)
}

function optional<T>(read: Reader<T>): Reader<T | undefined> {
  return (value, at) => (value === undefined ? undefined : read(value, at))
}

function unknownName(at: string, sentence: string, name: string, known: readonly string[]): UsageError {
  const nearest = nearestNames(name, known)
  const hint = nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `known: ${known.join(', ')}`
  return new UsageError(`${at}: ${sentence}; ${hint}`, { at, got: name, nearest })
}
