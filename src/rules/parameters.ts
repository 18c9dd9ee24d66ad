/**
 * The parameters of rules. Each accepts a string, since SageMaker's JSON holds nothing else, and either
 * spelling of its name: `num_steps` or `numSteps`.
 */

import { nearestNames, UsageError } from '../base/errors.js'

/** The reader of one parameter. */
export interface Parameter<T, G = T> {
  readonly default: T
  /** The accepted values in words, for messages and the documentation. */
  readonly expects: string
  /** The current name of the parameter, if this is an older one. */
  readonly standsFor?: string
  /** Returns undefined for a value that is not accepted. */
  readonly read: (given: G | string) => T | undefined
}

export type Parameters = Readonly<Record<string, Parameter<unknown, never>>>

type Read<P> = P extends Parameter<infer T, never> ? T : never
type GivenFor<P> = P extends { readonly read: (given: infer G) => unknown } ? G : never
type CamelCase<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : K

/** The values of parameters by name. */
export type Values<P extends Parameters> = { readonly [K in keyof P]: Read<P[K]> }

/** The arguments of a rule's constructor: each parameter in either spelling. */
export type Arguments<P extends Parameters> = {
  readonly [K in keyof P as K | CamelCase<K>]?: GivenFor<P[K]> | null | undefined
}

/** The bounds of a number: `min` and `max` are inclusive, `above` and `below` exclusive. */
export interface Bounds {
  readonly min?: number
  readonly max?: number
  readonly above?: number
  readonly below?: number
}

/** SageMaker's documentation shows `None` and an empty string as defaults. */
function isNotGiven(given: unknown): boolean {
  return given === undefined || given === null || given === 'None' || given === ''
}

export function number<D extends number | null>(
  byDefault: D,
  bounds: Bounds = {},
): Parameter<D extends null ? number | null : number, number> {
  const { min = -Infinity, max = Infinity, above = -Infinity, below = Infinity } = bounds
  return {
    default: byDefault as never,
    expects: `a number${boundsText(bounds)}`,
    read: given => {
      const read = typeof given === 'string' ? Number(given.trim() === '' ? Number.NaN : given) : given
      const fits = typeof read === 'number' && read >= min && read <= max && (read > above || above === -Infinity)
      return fits && (read < below || below === Infinity) ? (read as never) : undefined
    },
  }
}

export function integer<D extends number | null>(
  byDefault: D,
  bounds: Bounds = {},
): Parameter<D extends null ? number | null : number, number> {
  const real = number(byDefault, bounds)
  return {
    ...real,
    expects: `a whole number${boundsText(bounds)}`,
    read: given => {
      const read = real.read(given)
      return Number.isSafeInteger(read) ? read : undefined
    },
  }
}

export function flag(byDefault: boolean): Parameter<boolean, boolean> {
  return {
    default: byDefault,
    expects: 'true or false',
    read: given => {
      const word = typeof given === 'string' ? given.toLowerCase() : given
      return word === true || word === 'true' ? true : word === false || word === 'false' ? false : undefined
    },
  }
}

/** Names or patterns: an array, or a string separated by commas. A pattern that contains a comma needs an array. */
export function list(...byDefault: readonly string[]): Parameter<readonly string[], readonly string[]> {
  return {
    default: byDefault,
    expects: 'names separated by commas, or an array of them',
    read: given => {
      if (typeof given === 'string') return splitList(given)
      return Array.isArray(given) && given.every(item => typeof item === 'string') ? given : undefined
    },
  }
}

/** An older name of a parameter, read in the same way. */
export function olderNameOf<T, G>(standsFor: string, parameter: Parameter<T, G>): Parameter<T, G> {
  return { ...parameter, standsFor }
}

/** Numbers: an array, or a string separated by commas. */
export function numbers(...byDefault: readonly number[]): Parameter<readonly number[], readonly number[] | number> {
  const kind = number(0)
  return {
    default: byDefault,
    expects: 'numbers separated by commas, or an array of them',
    read: given => {
      const items = typeof given === 'string' ? splitList(given) : Array.isArray(given) ? given : [given]
      const read = items.map(item => kind.read(item))
      return read.length > 0 && !read.includes(undefined) ? (read as number[]) : undefined
    },
  }
}

export function text<D extends string | null>(
  byDefault: D,
): Parameter<D extends null ? string | null : string, string> {
  return {
    default: byDefault as never,
    expects: 'text',
    read: given => (typeof given === 'string' ? (given as never) : undefined),
  }
}

/** A parameter that is one of a few words, in upper or lower case. */
export function choice<W extends string>(...words: readonly W[]): Parameter<W | null, W> {
  return {
    default: null,
    expects: `one of ${words.join(', ')}`,
    read: given => words.find(word => word.toLowerCase() === String(given).toLowerCase()),
  }
}

/** The steps that a rule judges as one sequence: see `Sequence`. */
export const MODE_CHOICE = ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL', 'each', 'training'] as const

export function mode(): Parameter<(typeof MODE_CHOICE)[number] | null, (typeof MODE_CHOICE)[number]> {
  return choice(...MODE_CHOICE)
}

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}

/** The documented name of a parameter, from any spelling. */
export function snakeCase(name: string): string {
  return name.replaceAll('-', '_').replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/**
 * Reads the parameters of a rule.
 * @throws UsageError for an unknown parameter, and for a value that is not accepted
 */
export function readParameters<P extends Parameters>(
  rule: string,
  parameters: P,
  given: Readonly<Record<string, unknown>>,
): Values<P> {
  const values: Record<string, unknown> = {}
  for (const [name, parameter] of Object.entries(parameters)) values[name] = parameter.default
  const spellings = new Map<string, string>()
  for (const [spelled, value] of Object.entries(given)) {
    const name = snakeCase(spelled)
    const parameter = Object.hasOwn(parameters, name) ? (parameters[name] as Parameter<unknown, unknown>) : undefined
    if (parameter === undefined) throw unknownParameter(rule, spelled, Object.keys(parameters))
    if (isNotGiven(value)) {
      // An empty string is an empty list of names. For all other parameters it means the default.
      const empty = value === '' && parameter.standsFor === undefined ? parameter.read('') : undefined
      if (Array.isArray(empty)) values[name] = empty
      continue
    }
    const target = parameter.standsFor ?? name
    const other = spellings.get(target)
    if (other !== undefined) {
      const message = `rule ${rule}: expected ${target} once, got it as ${other} and as ${spelled}`
      throw new UsageError(message, { rule, parameter: target })
    }
    spellings.set(target, spelled)
    const read = parameter.read(value as string)
    if (read === undefined) {
      const message = `rule ${rule}: expected ${name} to be ${parameter.expects}, got ${JSON.stringify(value)}`
      throw new UsageError(message, { rule, parameter: name, got: value })
    }
    values[target] = read
    values[name] = read
  }
  return values as Values<P>
}

function unknownParameter(rule: string, name: string, known: readonly string[]): UsageError {
  const nearest = nearestNames(snakeCase(name), known)
  const hint =
    nearest.length > 0
      ? `did you mean ${nearest.join(' or ')}?`
      : known.length > 0
        ? `it has: ${known.join(', ')}`
        : 'it has none'
  return new UsageError(`rule ${rule} has no parameter ${JSON.stringify(name)}; ${hint}`, { rule, parameter: name })
}

function boundsText({ min, max, above, below }: Bounds): string {
  const parts = [
    min !== undefined && `at least ${min}`,
    above !== undefined && `above ${above}`,
    max !== undefined && `at most ${max}`,
    below !== undefined && `below ${below}`,
  ].filter(part => part !== false)
  return parts.length === 0 ? '' : ` ${parts.join(' and ')}`
}
