/**
 * The options of public calls. Each call's options are described once, and arguments are checked against that, so that users of plain
 * JavaScript learn of a wrong name or type, too. Only this module uses valibot, which does the checking.
 */

import * as v from 'valibot'
import { shown } from './arguments.js'
import { nearestNames, quote, UsageError } from './errors.js'
import { CHECK_LEVELS, type CheckLevel, MODES, type Mode } from './types.js'

declare const taken: unique symbol

/** The type of an option, exactly: neither a wider nor a narrower kind will do. */
export interface Kind<in out T> {
  readonly [taken]?: T
}

/** A kind for each option of `O`: none missing, none too many, each of the option's own type. */
export type Kinds<O> = { readonly [K in keyof Required<O>]: Kind<Exclude<O[K], undefined>> }

/** @param expects the kind in words, for messages; a function gets the rejected value */
function kind<T>(expects: string | ((value: unknown) => string), schema: v.GenericSchema<unknown>): Kind<T> {
  return v.message(schema, typeof expects === 'string' ? expects : ({ input }) => expects(input)) as Kind<T>
}

/** Describes the options of a call. An option with nested options is described by theirs. @param required the required options */
export function optionsOf<O extends object>(kinds: Kinds<O>, ...required: (keyof O & string)[]): Kind<O> {
  const entries = Object.entries(kinds as Record<string, v.GenericSchema>).map(([name, schema]) => {
    return [name, (required as string[]).includes(name) ? schema : v.optional(schema)]
  })
  const described = v.strictObject(Object.fromEntries(entries), 'an object')
  const run: Described['~run'] = (dataset, config) =>
    described['~run'](isObject(dataset.value) ? dataset : { value: undefined }, config)
  return { ...described, '~run': run, required } as Kind<O>
}

/** The options of a call that was given none. */
export const NO_OPTIONS = Object.freeze({})

/**
 * Checks the options of a call against their description.
 * @param call the call as written: `trial.scan`
 * @returns the options; an empty object for none
 * @throws UsageError that names the call and the option, and for an unknown option the nearest known one
 */
export function checkOptions<O extends object>(call: string, takes: Kind<O>, given: O | undefined): O {
  const described = takes as Described
  if (given === undefined && described.required.length === 0) return NO_OPTIONS as O
  const options = given === undefined ? (NO_OPTIONS as O) : given
  expectOptions(call, options, Object.keys(described.entries))
  const { issues } = v.safeParse(described, options, { abortEarly: true })
  if (!issues) return options
  // An unknown name may be a required one, mistyped.
  const stray = Object.keys(options).find(name => !Object.hasOwn(described.entries, name))
  throw stray === undefined ? wrong(call, described, issues[0]) : unknownOption(call, described, [stray])
}

export function fits<T>(takes: Kind<T>, given: unknown): given is T {
  return v.is(takes as v.GenericSchema, given)
}

/** Rejects arguments of a call without any. */
export function expectNoOptions(call: string, given: readonly unknown[], hint = ''): void {
  if (given.length === 0 || given[0] === undefined) return
  throw new UsageError(`${call}: expected no options, got ${shown(given[0])}${hint}`, { call })
}

type Described = v.StrictObjectSchema<v.ObjectEntries, string> & {
  readonly required: readonly string[]
}

/**
 * Requires that options are a plain object, not an array, a Map or a Promise.
 * @param known the names of options
 * @throws UsageError that shows the correct form
 */
export function expectOptions(call: string, given: unknown, known: readonly string[]): void {
  if (isObject(given)) return
  const mode = known.includes('mode') && MODES.find(mode => mode === String(given).toUpperCase())
  const hint = mode ? `write { mode: '${mode}' }` : `it takes { ${known.join(', ')} }`
  throw new UsageError(`${call}: expected options in an object, got ${shown(given)}; ${hint}`, { call })
}

export function isObject(given: unknown): given is object {
  return Object.prototype.toString.call(given) === '[object Object]'
}

/** True for an object that was written as one: no instance of a class, whose fields would be taken for entries. */
export function isPlainObject(given: unknown): given is object {
  if (typeof given !== 'object' || given === null) return false
  const prototype = Object.getPrototypeOf(given)
  return prototype === Object.prototype || prototype === null
}

function wrong(call: string, described: Described, issue: v.BaseIssue<unknown>): UsageError {
  const path = (issue.path ?? []).filter(({ type }) => type === 'object' || type === 'array')
  const keys = path.map(({ key }) => String(key))
  const option = path.map(({ type, key }, i) => (type === 'array' ? `[${key}]` : `${i > 0 ? '.' : ''}${key}`)).join('')
  if (issue.type === 'strict_object' && issue.expected === 'never') return unknownOption(call, described, keys)
  const isMissing = issue.type === 'strict_object' && issue.expected === JSON.stringify(keys.at(-1))
  if (isMissing) return new UsageError(`${call}: expected ${option}, got none`, { call, option })
  const value = path.at(-1)?.value
  // A value given for S3 may be a secret by mistake.
  const isSecret = keys[0] === 's3' && ['string', 'object'].includes(typeof value)
  const got = isSecret ? `a value of type ${typeof value}` : shown(value)
  return new UsageError(`${call}: expected ${option} to be ${issue.message}, got ${got}`, { call, option })
}

function unknownOption(call: string, described: Described, keys: readonly string[]): UsageError {
  const known = Object.keys(within(described, keys.slice(0, -1)).entries)
  const last = keys.at(-1)!.replaceAll(/[-_]/g, '')
  const nearest = last === 'regex' && known.includes('tensors') ? ['tensors'] : nearestNames(last, known)
  const hint = nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `it takes ${known.join(', ')}`
  const option = keys.join('.')
  return new UsageError(`${call} has no option ${quote(option)}; ${hint}`, { call, option, nearest })
}

/** The description of a nested option. */
function within(described: Described, keys: readonly string[]): Described {
  return keys.reduce((outer, key) => {
    const entry = outer.entries[key] as v.OptionalSchema<Described, undefined>
    return entry.type === 'optional' ? entry.wrapped : (entry as unknown as Described)
  }, described)
}

export const kinds = {
  text: kind<string>('a text', v.string()),

  flag: kind<boolean>('true or false', v.boolean()),

  mode: oneOf<Mode>(MODES),

  checkLevel: oneOf<CheckLevel>(CHECK_LEVELS),

  step: wholeNumber(0, undefined, 'a step, a whole number from 0 on'),

  /** A pattern for names: a string or a RegExp. */
  pattern: kind<string | RegExp>('a pattern', v.union([v.string(), v.instance(RegExp)])),

  signal: kind<AbortSignal>('an AbortSignal', v.instance(AbortSignal)),

  milliseconds: kind<number>('milliseconds, at least 0', v.pipe(v.number(), v.minValue(0))),

  /** A tolerance. Infinity is allowed, as in numpy. */
  tolerance: kind<number>('a number from 0 on', v.pipe(v.number(), v.minValue(0))),

  oneOf,

  wholeNumber,

  callback<F extends (...args: never[]) => unknown>(): Kind<F> {
    return kind('a function', v.function())
  },

  /** A check by a custom function. */
  that<T>(expects: string | ((value: unknown) => string), fits: (value: unknown) => boolean): Kind<T> {
    return kind(expects, v.custom<T>(fits))
  },

  listOf<T>(items: string, itemKind: Kind<T>): Kind<readonly T[]> {
    return kind(`an array of ${items}`, v.array(itemKind as v.GenericSchema<T>))
  },

  oneOrMore<T>(item: string, items: string, itemKind: Kind<T>): Kind<T | readonly T[]> {
    const schema = itemKind as v.GenericSchema<T>
    return kind(`${item}, or an array of ${items}`, v.union([schema, v.array(schema)]))
  },

  orNull<T>(valueKind: Kind<T>): Kind<T | null> {
    return v.nullable(valueKind as v.GenericSchema<T>) as Kind<T | null>
  },
}

function oneOf<W extends string>(words: readonly W[]): Kind<W> {
  return kind(`one of ${words.join(', ')}`, v.picklist(words))
}

/** @param expects the kind in words, with the bounds */
function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER, expects?: string): Kind<number> {
  const bounds = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
  const schema = v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))
  return kind(expects ?? `a whole number ${bounds}`, schema)
}
