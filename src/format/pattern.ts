/** The patterns that collections and users write: Python regular expressions, matched in linear time. */

import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'
import { markBoundaries, refusal, type Translation, translatePattern } from './python-regex.js'

/** A pattern that is searched for anywhere in a name, as Python's `re.search` does. Case matters. */
export interface Pattern {
  readonly source: string
  /** What a name costs at the most, in a unit of its own: 1 for a plain text, else the characters of the pattern. */
  readonly cost: number
  matches(name: string): boolean
}

/** More is no pattern for names; compiling what is as long can take a second, and a hundred MB. */
const MAX_PATTERN_LENGTH = 1 << 15

/**
 * Compiles a Python regular expression (format.md "Collections file"). What it takes to match a name grows with the
 * name's length and the pattern's and never faster, whoever wrote them: RE2 does not backtrack.
 * @throws UsageError for an invalid pattern, and for constructs that could not be matched so: see `translatePattern`
 */
export function compilePattern(source: string): Pattern {
  if (source.length > MAX_PATTERN_LENGTH)
    throw refusal(source, `a pattern of more than ${MAX_PATTERN_LENGTH} characters`)
  const literal = literalSearch(source)
  if (literal !== null) return { source, cost: 1, matches: literal }
  const translation = translatePattern(source)
  return {
    source,
    cost: source.length * (translation.isMarked ? MARKED_COST : 1),
    matches: engineSearch(source, translation),
  }
}

/** Names for which Python's `re`, RE2 and V8's engine mean the same by our patterns, and too short for any to be slow. */
const SHORT_ASCII = /^[\x20-\x7e]{0,256}$/

/**
 * As `compilePattern`, of a pattern of trialscan's own, in which nothing backtracks without an end: V8's engine, a tenth as
 * long, takes the names that nobody made to hurt it.
 */
export function compileOwnPattern(source: string): Pattern {
  const [, flag = '', own = ''] = /^(\(\?i\))?(.*)$/s.exec(source)!
  const quick = new RegExp(own, flag && 'i')
  let careful: Pattern | undefined
  const matches = (name: string): boolean => {
    if (SHORT_ASCII.test(name)) return quick.test(name)
    careful ??= compilePattern(source)
    return careful.matches(name)
  }
  return { source, cost: source.length, matches }
}

/** A text with marks is twice as long, and so is the pattern. */
const MARKED_COST = 4

/** Whether a pattern stands for a plain text, which takes no engine. */
export function isPlainText(source: string): boolean {
  return source.length <= MAX_PATTERN_LENGTH && literalSearch(source) !== null
}

type Search = (name: string) => boolean

/** Characters that stand for themselves, escaped or not. A `.*` at either end of a search changes nothing if no anchor is beyond it. */
const LITERAL = /^(?:(\^)|(?:\.\*)?)((?:[\w/: @,=<>!~#%&;'"`-]|\\[^0-9a-zA-Z])*)(?:(\$)|(?:\.\*)?)$/

/** The search for a plain text, which needs no engine; null for anything else. */
function literalSearch(source: string): Search | null {
  const match = LITERAL.exec(source)
  if (match === null) return null
  const [, start, escaped = '', end] = match
  const text = escaped.replace(/\\(.)/gs, '$1')
  if (start && end) return name => name === text || name === `${text}\n`
  if (start) return name => name.startsWith(text)
  // `$` is also before a newline at the end.
  if (end) return name => name.endsWith(text) || name.endsWith(`${text}\n`)
  return name => name.includes(text)
}

function engineSearch(source: string, { source: translated, isReversed, isMarked }: Translation): Search {
  const engine = loadEngine()
  try {
    const compiled = engine.compile(translated, engine.LOOKBEHINDS)
    return name => {
      const text = isMarked ? markBoundaries(name) : name
      return compiled.test(isReversed ? [...text].reverse().join('') : text)
    }
  } catch (error) {
    // The translation is valid RE2, so this is about its size: nested repetition.
    throw refusal(source, 'a pattern of that size', error)
  }
}

let loaded: typeof RE2JS | undefined

/** Loading re2js takes 15 ms: most commands never need it, and a synchronous caller can't wait for an import. */
function loadEngine(): typeof RE2JS {
  loaded ??= (createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS
  return loaded
}
