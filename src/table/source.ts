/** The state of parsing an expression, token by token. */

import { quote, type UsageError } from '../base/errors.js'
import { type Token, tokensOf, wrong } from './tokens.js'

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
