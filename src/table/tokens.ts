/** The tokens of an expression, and the state of parsing it. */

import { quote, UsageError } from '../base/errors.js'

/** A token. `word`: a name or one of SQL's words; `sign`: an operator, a parenthesis or a comma. */
interface Token {
  readonly kind: 'word' | 'number' | 'text' | 'sign' | 'end'
  /** The token as written; for a quoted text, its content. */
  readonly text: string
  /** The start and the end of the token, from 0. */
  readonly start: number
  readonly end: number
}

const BLANKS = /\s*/y
/** The pattern of each kind of token. Names of percentiles have a dot, approximate ones a tilde. */
const PATTERNS: readonly (readonly [Token['kind'], RegExp])[] = [
  ['number', /(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])/iy],
  ['word', /~?[a-z_]\w*(?:\.\d+)?(?![\w.])/iy],
  ['text', /'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"/y],
  ['sign', /==|!=|<>|<=|>=|[-+*/<>=(),]/y],
]
/** The piece of text that a message shows if no token was recognised. */
const STRAY = /&&|\|\||[\w.~]+|./suy

/** The operators of other languages, and the SQL words for them. */
const SQL_WORDS: Readonly<Record<string, string>> = { '&&': 'and', '||': 'or', '!': 'not', '~': 'like' }

/** The tokens of an expression, followed by an end token. @throws UsageError for a character that begins no token */
function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    at += matchAt(BLANKS, source, at)!.length
    if (at >= source.length) break
    const token = tokenAt(source, at)
    tokens.push(token)
    at = token.end
  }
  return [...tokens, { kind: 'end', text: '', start: source.length, end: source.length }]
}

function tokenAt(source: string, start: number): Token {
  for (const [kind, pattern] of PATTERNS) {
    const text = matchAt(pattern, source, start)
    if (text === undefined) continue
    const end = start + text.length
    if (kind !== 'text') return { kind, text, start, end }
    const mark = text[0]!
    return { kind, text: text.slice(1, -1).replaceAll(mark + mark, mark), start, end }
  }
  const stray = matchAt(STRAY, source, start)!
  if (stray === "'" || stray === '"') throw wrong(source, start, `a closing ${stray}`, 'none')
  const word = SQL_WORDS[stray]
  const expected = 'a column, a number, a quoted text or an operator'
  throw wrong(source, start, expected, quote(stray), word && `write ${word}`)
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

/** The limit of nested parentheses, `not` and signs. Each level takes a dozen calls. */
const MAX_DEPTH = 100

export class Source {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  /** @throws UsageError for a character that begins no token */
  constructor(readonly text: string) {
    this.#tokens = tokensOf(text)
  }

  /** The next token. */
  get token(): Token {
    return this.#tokens[this.#at]!
  }

  /** The end of the previous token. */
  get end(): number {
    return this.#tokens[this.#at - 1]?.end ?? 0
  }

  next(): Token {
    return this.#tokens[this.#at++]!
  }

  /** True if the next token is this sign, or this word in upper or lower case. */
  is(word: string): boolean {
    const { kind, text } = this.token
    return (kind === 'word' || kind === 'sign') && text.toLowerCase() === word
  }

  /** Consumes the next token if it is this one. @returns true if it was */
  take(word: string): boolean {
    const isThere = this.is(word)
    if (isThere) this.#at++
    return isThere
  }

  expect(word: string): void {
    if (!this.take(word)) throw this.unexpected(word)
  }

  /** Parses one level deeper. */
  nested<T>(parse: () => T): T {
    if (this.#depth >= MAX_DEPTH) {
      throw wrong(this.text, this.token.start, `at most ${MAX_DEPTH} levels`, 'one more')
    }
    this.#depth++
    const parsed = parse()
    this.#depth--
    return parsed
  }

  /** The error for the next token. */
  unexpected(expected: string, hint?: string, fields?: Readonly<Record<string, unknown>>): UsageError {
    const { kind, start, end } = this.token
    const got = kind === 'end' ? 'the end' : quote(this.text.slice(start, end))
    return wrong(this.text, start, expected, got, hint, fields)
  }
}

/** The error for an expression. @param at the position of the error, from 0 */
export function wrong(
  source: string,
  at: number,
  expected: string,
  got: string,
  hint?: string,
  fields: Readonly<Record<string, unknown>> = {},
): UsageError {
  const place = `at character ${at + 1} of ${quote(source)}`
  const advice = hint === undefined ? '' : `; ${hint}`
  return new UsageError(`expected ${expected} ${place}, got ${got}${advice}`, { expression: source, at, ...fields })
}
