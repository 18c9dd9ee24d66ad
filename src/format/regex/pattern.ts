/** Patterns of collections and users: Python regular expressions, matched in linear time. */

import { markBoundaries, refusal, type Translation, translatePattern } from './python-regex.js'
import { loadEngine } from './re2.js'

/** A pattern that is searched for anywhere in a name, like Python's `re.search`. Case-sensitive. */
export interface Pattern {
  readonly source: string
  /** The cost of matching a name: 1 for a plain text, otherwise the characters of the pattern. */
  readonly cost: number
  matches(name: string): boolean
}

/** The limit for a pattern's length; compiling one can take a second, and 100 MB. */
const MAX_PATTERN_LENGTH = 1 << 15

/**
 * Compiles a Python regular expression. The time to match a name is at most proportional to the lengths of the name and of the pattern,
 * whoever wrote them: RE2 does not backtrack.
 * @throws UsageError for an invalid pattern, and for constructs that can't be matched in linear time: see `translatePattern`
 */
export function compilePattern(source: string): Pattern {
  if (source.length > MAX_PATTERN_LENGTH)
    throw refusal(source, `a pattern of more than ${MAX_PATTERN_LENGTH} characters`)
  const literal = literalSearch(source)
  if (literal !== null) return { source, cost: 1, matches: literal }
  return compileForEngine(source)
}

function compileForEngine(source: string): Pattern {
  const translation = translatePattern(source)
  return {
    source,
    cost: source.length * (translation.isMarked ? MARKED_COST : 1),
    matches: engineSearch(source, translation),
  }
}

/** Names for which our own patterns mean the same to Python's `re`, RE2 and V8, and which are too short to be slow. */
const SHORT_ASCII = /^[\x20-\x7e]{0,256}$/

/**
 * Like `compilePattern`, for trialscan's own patterns, which can't backtrack without end. Ordinary names use V8's engine, which takes a
 * tenth of the time.
 */
export function compileOwnPattern(source: string): Pattern {
  // A search may begin anywhere, so that a leading `.*` only takes time.
  const [, flag = '', body = ''] = /^(\(\?i\))?(?:\.\*)?(.*)$/s.exec(source)!
  const quick = new RegExp(body, flag && 'i')
  let careful: Pattern | undefined
  const matches = (name: string): boolean => {
    if (SHORT_ASCII.test(name)) return quick.test(name)
    careful ??= compileForEngine(source)
    return careful.matches(name)
  }
  return { source, cost: source.length, matches }
}

/** The cost factor of marks: the text is twice as long, and so is the pattern. */
const MARKED_COST = 4

/** True if a pattern is plain text, which needs no regex engine. */
export function isPlainText(source: string): boolean {
  return source.length <= MAX_PATTERN_LENGTH && literalSearch(source) !== null
}

type PatternSearch = (name: string) => boolean

/** Literal characters, escaped or not. At either end of a search, `.*` changes nothing unless an anchor follows. */
const LITERAL = /^(?:(\^)|(?:\.\*)?)((?:[\w/: @,=<>!~#%&;'"`-]|\\[^0-9a-zA-Z])*)(?:(\$)|(?:\.\*)?)$/

/** The search for a plain text, without an engine; null for anything else. */
function literalSearch(source: string): PatternSearch | null {
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

function engineSearch(source: string, { source: translated, isReversed, isMarked }: Translation): PatternSearch {
  const engine = loadEngine()
  try {
    const compiled = engine.compile(translated, engine.LOOKBEHINDS)
    return name => {
      const text = isMarked ? markBoundaries(name) : name
      return compiled.test(isReversed ? [...text].reverse().join('') : text)
    }
  } catch (error) {
    // The translation is valid RE2, so it must be too large: nested repetition.
    throw refusal(source, 'a pattern of that size', error)
  }
}
