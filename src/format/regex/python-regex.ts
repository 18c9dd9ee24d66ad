/**
 * Python's regular expressions in RE2's syntax. Only the question "does it match anywhere?" is kept: groups capture
 * nothing, and lazy repetition is the same as greedy.
 *
 * RE2 has no lookahead, but re2js has lookbehind, in linear time. What follows in a text precedes in the reversed text,
 * so every part is translated twice: forward and backward. A pattern that looks ahead (such as smdebug's own
 * `^(?!gradient).*weight`) is searched for backward in the reversed text, which is exact.
 *
 * RE2's `\b` knows only ASCII words. A pattern with `\b` or `\B` is searched for in a text that has a mark before the
 * first character and after each: whether a word begins or ends there (`markBoundaries`). The question is then one of
 * what precedes, in either direction, and every character of the pattern takes the mark after it.
 */

import { UsageError } from '../../base/errors.js'

/** A pattern for re2js, to be compiled with its LOOKBEHINDS flag. */
export interface Translation {
  readonly source: string
  /** True if the text is reversed (by code points) before the search. */
  readonly isReversed: boolean
  /** True if the text needs marks (`markBoundaries`), which are added before it is reversed. */
  readonly isMarked: boolean
}

/**
 * The pattern that finds the same texts in re2js as `source` does with Python's `re.search`. Two differences remain:
 * case is folded as RE2 does it, and characters that are newer than a Python may count as letters here.
 * @throws UsageError for what Python refuses, for what can't be matched in linear time (backreferences, conditional
 *   groups, atomic groups, possessive repetition, more than 1000 repetitions), and for lookahead and lookbehind in one
 *   pattern
 */
export function translatePattern(source: string): Translation {
  const plain = new Translator(source, false)
  const unmarked = plain.translate()
  const isMarked = plain.hasBoundary
  const whole = isMarked ? new Translator(source, true).translate() : unmarked
  const isReversed = whole.looksAhead || whole.consumesLineEnd
  if (isReversed && whole.looksBehind) throw refusal(source, 'lookahead (or $ before more) together with lookbehind')
  const translated = isReversed ? whole.backward : whole.forward
  // A match never begins between a character and its mark.
  return { source: isMarked ? `(?<=[${MARKS}])(?:${translated})` : translated, isReversed, isMarked }
}

/** Marks are the last four code points, noncharacters all: the first for no boundary, the others by the bits of its kind. */
const FIRST_MARK = 0x10fffc
const MARKS = '\\x{10fffc}-\\x{10ffff}'
const UNICODE_BOUNDARY = 1
const ASCII_BOUNDARY = 2

/** A text with a mark before it and after each of its characters: whether a word begins or ends there. */
export function markBoundaries(text: string): string {
  const marked: string[] = []
  let [wasWord, wasAscii] = [false, false]
  const mark = (isWord: boolean, isAscii: boolean): void => {
    const kinds = (isWord === wasWord ? 0 : UNICODE_BOUNDARY) + (isAscii === wasAscii ? 0 : ASCII_BOUNDARY)
    marked.push(String.fromCodePoint(FIRST_MARK + kinds))
    wasWord = isWord
    wasAscii = isAscii
  }
  for (const char of text) {
    mark(/[\p{L}\p{N}_]/u.test(char), /\w/.test(char))
    // A mark in the text itself becomes another noncharacter.
    marked.push(char.codePointAt(0)! < FIRST_MARK ? char : '\ufffe')
  }
  mark(false, false)
  return marked.join('')
}

/** A part of a pattern as RE2 reads it: in the text, and in the reversed text. */
interface PatternPart {
  readonly forward: string
  readonly backward: string
  readonly looksAhead: boolean
  readonly looksBehind: boolean
  /** True if it has a `$` (see `LINE_END`). */
  readonly hasLineEnd: boolean
  /** True if it has a `$` with more after it, so that the forward translation of `$` is not exact. */
  readonly consumesLineEnd: boolean
}

interface Flags {
  readonly ignoreCase: boolean
  readonly multiline: boolean
  readonly dotAll: boolean
  readonly ascii: boolean
  readonly verbose: boolean
}

const FLAG_NAMES: Readonly<Record<string, keyof Flags>> = {
  i: 'ignoreCase',
  m: 'multiline',
  s: 'dotAll',
  a: 'ascii',
  x: 'verbose',
}

/** The limit of nested groups. The translator recurses once per level. */
const MAX_GROUP_DEPTH = 200

/** RE2's own limit: repetition is expanded when a pattern is compiled. */
const MAX_REPEAT = 1000

const EMPTY = verbatim('')

/**
 * `$`: the end, or before a newline at the end. The forward form consumes that newline, which matters only if the
 * pattern goes on; the backward form is a lookbehind and consumes nothing.
 */
const LINE_END: PatternPart = { ...verbatim('(?:\\n?\\z)'), backward: '(?<=\\A\\n?)', hasLineEnd: true }

/** The anchors for a text with marks. Those that look ahead don't see a mark in front of it. */
const MARKED_LINE_END: PatternPart = {
  ...LINE_END,
  forward: `(?:(?:\\n[${MARKS}])?\\z)`,
  backward: `(?<=\\A[${MARKS}](?:\\n[${MARKS}])?)`,
}
const ANCHORS = { begin: '\\A', end: '\\z', lineBegin: '(?m:^)', lineEnd: '(?m:$)', textEnd: LINE_END }
const MARKED_ANCHORS = {
  begin: `(?<=\\A[${MARKS}])`,
  end: '\\z',
  lineBegin: `(?<=(?:\\A|\\n)[${MARKS}])`,
  lineEnd: '(?m:$)',
  textEnd: MARKED_LINE_END,
}

/** Class contents, and their complements: a Python `str` pattern uses Unicode's classes unless `(?a)`. */
const CLASSES = {
  unicode: { w: '\\p{L}\\p{N}_', d: '\\p{Nd}', s: '\\t-\\r\\x1c-\\x20\\x{85}\\p{Z}' },
  ascii: { w: '0-9A-Za-z_', d: '0-9', s: '\\t-\\r\\x20' },
}

const CONTROLS: Readonly<Record<string, string>> = {
  a: '\x07',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** One walk over the pattern, in the order of Python's own parser (Lib/re/_parser.py). */
class Translator {
  /** True if there was a `\b` or `\B`. */
  hasBoundary = false
  readonly #source: string
  readonly #isMarked: boolean
  #at = 0
  #depth = 0

  /** @param isMarked true if the text will have marks */
  constructor(source: string, isMarked: boolean) {
    this.#source = source
    this.#isMarked = isMarked
  }

  translate(): PatternPart {
    const flags = this.#globalFlags()
    const whole = this.#alternatives(flags)
    if (this.#at < this.#source.length) throw this.#invalid('unbalanced parenthesis')
    return whole
  }

  /** `(?im)` applies to the whole pattern, so it may stand only at its beginning. */
  #globalFlags(): Flags {
    let flags: Flags = { ignoreCase: false, multiline: false, dotAll: false, ascii: false, verbose: false }
    for (;;) {
      const match = /^\(\?([a-zA-Z]+)\)/.exec(this.#source.slice(this.#at))
      if (match === null) return flags
      flags = this.#setFlags(flags, match[1]!, true)
      this.#at += match[0].length
    }
  }

  #setFlags(flags: Flags, letters: string, value: boolean): Flags {
    const changed = { ...flags }
    for (const letter of letters) {
      const name = FLAG_NAMES[letter]
      if (name !== undefined) changed[name] = value
      else if (letter !== 'u') throw this.#invalid(`unknown or unusable flag ${letter}`)
      else changed.ascii = false
    }
    return changed
  }

  #alternatives(flags: Flags): PatternPart {
    if (++this.#depth > MAX_GROUP_DEPTH) throw this.#invalid(`groups nested more than ${MAX_GROUP_DEPTH} deep`)
    const branches = [this.#sequence(flags)]
    while (this.#take('|')) branches.push(this.#sequence(flags))
    this.#depth--
    return branches.length === 1 ? branches[0]! : { ...joined(branches), ...alternated(branches) }
  }

  #sequence(flags: Flags): PatternPart {
    const parts: PatternPart[] = []
    for (;;) {
      this.#skipComments(flags)
      const next = this.#source[this.#at]
      if (next === undefined || next === '|' || next === ')') break
      parts.push(this.#repeated(this.#atom(flags), flags))
    }
    const consumesLineEnd = parts.some(part => part.consumesLineEnd) || parts.slice(0, -1).some(part => part.hasLineEnd)
    return {
      ...joined(parts),
      consumesLineEnd,
      forward: parts.map(part => part.forward).join(''),
      backward: parts
        .map(part => part.backward)
        .reverse()
        .join(''),
    }
  }

  /** One item, possibly repeated. */
  #atom(flags: Flags): PatternPart & { isAssertion?: boolean; isAnchor?: boolean } {
    const char = this.#char()
    const at = this.#isMarked ? MARKED_ANCHORS : ANCHORS
    switch (char) {
      case '.':
        if (this.#isMarked) return this.#part(`[^${flags.dotAll ? '' : '\\n'}${MARKS}]`)
        return verbatim(flags.dotAll ? '(?s:.)' : '.')
      case '^':
        return this.#anchor(flags.multiline ? [at.lineBegin, at.lineEnd] : [at.begin, at.end])
      case '$':
        if (!flags.multiline) return { ...at.textEnd, isAnchor: true }
        return this.#anchor([at.lineEnd, at.lineBegin])
      case '(':
        return this.#group(flags)
      case '[':
        return this.#class(flags)
      case '\\':
        return this.#escape(flags)
      case '*':
      case '+':
      case '?':
        throw this.#invalid('nothing to repeat')
      case '{':
        this.#at--
        if (this.#bounds() !== null) throw this.#invalid('nothing to repeat')
        this.#at++
        return this.#literal(char, flags)
      default:
        return this.#literal(char, flags)
    }
  }

  /** A part that consumes one character, and the mark after it. */
  #part(source: string): PatternPart {
    return verbatim(this.#isMarked ? `${source}[${MARKS}]` : source)
  }

  #literal(char: string, flags: Flags): PatternPart {
    const source = /[\w/ -]/.test(char) ? char : hexEscape(char)
    return this.#part(flags.ignoreCase ? `(?i:${source})` : source)
  }

  #anchor([forward, backward]: readonly [forward: string, backward: string]): PatternPart & { isAnchor: true } {
    return { ...verbatim(forward), backward, isAnchor: true }
  }

  /** `\b` or `\B`: the preceding mark is that of a boundary, or is not. */
  #boundary(isInside: boolean, flags: Flags): PatternPart & { isAnchor: true } {
    this.hasBoundary = true
    const kind = flags.ascii ? ASCII_BOUNDARY : UNICODE_BOUNDARY
    const marks = [0, 1, 2, 3].filter(kinds => ((kinds & kind) === 0) === isInside)
    const source = `(?<=[${marks.map(kinds => hexEscape(String.fromCodePoint(FIRST_MARK + kinds))).join('')}])`
    return this.#anchor([source, source])
  }

  #repeated(part: PatternPart & { isAssertion?: boolean; isAnchor?: boolean }, flags: Flags): PatternPart {
    this.#skipComments(flags)
    const bounds = this.#bounds()
    if (bounds === null) return part
    if (part.isAnchor) throw this.#invalid('nothing to repeat')
    if (this.#take('+')) throw refusal(this.#source, 'possessive repetition')
    this.#take('?')
    this.#skipComments(flags)
    const at = this.#at
    if (this.#bounds() !== null) throw this.#invalid('multiple repeat')
    this.#at = at
    const [min, max] = bounds
    // An assertion consumes nothing: repeating it changes nothing, and making it optional removes it.
    if (part.isAssertion) return min === 0 ? EMPTY : part
    const suffix =
      min === 0 && max === 1 ? '?' : max === undefined ? (min < 2 ? '*+'[min] : `{${min},}`) : `{${min},${max}}`
    return {
      ...part,
      consumesLineEnd: part.hasLineEnd,
      forward: `(?:${part.forward})${suffix}`,
      backward: `(?:${part.backward})${suffix}`,
    }
  }

  /** `*`, `+`, `?`, `{2}`, `{2,}`, `{,3}` or `{2,3}` as minimum and maximum; null, with nothing read, for anything else. */
  #bounds(): readonly [min: number, max: number | undefined] | null {
    if (this.#take('*')) return [0, undefined]
    if (this.#take('+')) return [1, undefined]
    if (this.#take('?')) return [0, 1]
    const match = /^\{(?!\})(\d*)(?:(,)(\d*))?\}/.exec(this.#source.slice(this.#at, this.#at + 64))
    if (match === null) return null
    this.#at += match[0].length
    const [, low = '', comma, high = ''] = match
    const min = Number(low)
    const max = comma === undefined ? min : high === '' ? undefined : Number(high)
    if (max !== undefined && max < min) throw this.#invalid('min repeat greater than max repeat')
    if (Math.max(min, max ?? 0) > MAX_REPEAT) throw refusal(this.#source, `repetition of more than ${MAX_REPEAT} times`)
    return [min, max]
  }

  #group(flags: Flags): PatternPart & { isAssertion?: boolean } {
    if (!this.#take('?')) return this.#rest(flags)
    if (this.#take(':')) return this.#rest(flags)
    if (this.#take('P<')) {
      if (!this.#skip(/^[\p{L}_][\p{L}\p{N}_]*>/u)) throw this.#invalid('bad group name')
      return this.#rest(flags)
    }
    if (this.#take('P=')) throw refusal(this.#source, 'backreference')
    if (this.#take('(')) throw refusal(this.#source, 'conditional group')
    if (this.#take('>')) throw refusal(this.#source, 'atomic group')
    for (const sign of ['=', '!'] as const) {
      if (this.#take(sign)) return looking(this.#rest(flags), sign, true)
      if (this.#take(`<${sign}`)) return looking(this.#rest(flags), sign, false)
    }
    const match = /^([a-zA-Z]*)(?:-([a-zA-Z]+))?:/.exec(this.#source.slice(this.#at))
    if (match === null) {
      const isFlags = /^[a-zA-Z]+\)/.test(this.#source.slice(this.#at))
      throw this.#invalid(isFlags ? 'global flags not at the start of the expression' : 'unknown extension (?')
    }
    this.#at += match[0].length
    return this.#rest(this.#setFlags(this.#setFlags(flags, match[1]!, true), match[2] ?? '', false))
  }

  /** The rest of a group, with its end. */
  #rest(flags: Flags): PatternPart {
    const inner = this.#alternatives(flags)
    if (!this.#take(')')) throw this.#invalid('missing ), unterminated subpattern')
    return { ...inner, forward: `(?:${inner.forward})`, backward: `(?:${inner.backward})` }
  }

  #escape(flags: Flags): PatternPart & { isAnchor?: boolean } {
    const char = this.#char('bad escape (end of pattern)')
    const { begin, end } = this.#isMarked ? MARKED_ANCHORS : ANCHORS
    if (char === 'A') return this.#anchor([begin, end])
    if (char === 'Z' || char === 'z') return this.#anchor([end, begin])
    if (char === 'b' || char === 'B') return this.#boundary(char === 'B', flags)
    const known = this.#classEscape(char, flags)
    if (known !== null) return this.#part(known.isNegated ? this.#others(known.set) : `[${known.set}]`)
    // `\1` to `\99` refer back, but three octal digits are a character.
    if (/[1-9]/.test(char) && !/^[0-3][0-7]{2}/.test(this.#source.slice(this.#at - 1))) {
      throw refusal(this.#source, 'backreference')
    }
    return this.#literal(this.#character(char), flags)
  }

  /** `\w`, `\d`, `\s` and their opposites; null for any other. */
  #classEscape(char: string, flags: Flags): { readonly set: string; readonly isNegated: boolean } | null {
    const name = char.toLowerCase()
    if (name !== 'w' && name !== 'd' && name !== 's') return null
    return { set: CLASSES[flags.ascii ? 'ascii' : 'unicode'][name], isNegated: name !== char }
  }

  /** The character of an escape; `char` is what follows the backslash. */
  #character(char: string): string {
    const control = CONTROLS[char]
    if (control !== undefined) return control
    const digits = { x: 2, u: 4, U: 8 }[char]
    if (digits !== undefined) {
      const hex = this.#source.slice(this.#at, this.#at + digits)
      const code = /^[0-9a-fA-F]+$/.test(hex) && hex.length === digits ? Number.parseInt(hex, 16) : Number.NaN
      if (!(code <= 0x10ffff)) throw this.#invalid(`incomplete or too large escape \\${char}${hex}`)
      this.#at += digits
      return String.fromCodePoint(code)
    }
    if (/[0-7]/.test(char)) {
      const octal = /^[0-7]{1,3}/.exec(this.#source.slice(this.#at - 1))![0]
      if (octal > '377' && octal.length === 3) throw this.#invalid(`octal escape \\${octal} above \\377`)
      this.#at += octal.length - 1
      return String.fromCharCode(Number.parseInt(octal, 8))
    }
    if (/[0-9a-zA-Z]/.test(char)) throw this.#invalid(`bad escape \\${char}`)
    return char
  }

  #class(flags: Flags): PatternPart {
    const isNegated = this.#take('^')
    let set = ''
    // RE2 can't negate a set inside another: `[a\W]` is `[a]|[^\w]`.
    const negatedSets: string[] = []
    for (let isFirst = true; isFirst || !this.#take(']'); isFirst = false) {
      const low = this.#classItem(flags)
      if (typeof low !== 'string') {
        if (low.isNegated) negatedSets.push(this.#others(low.set))
        else set += low.set
      } else if (/^-[^\]]/s.test(this.#source.slice(this.#at))) {
        this.#at++
        const high = this.#classItem(flags)
        if (typeof high !== 'string' || high.codePointAt(0)! < low.codePointAt(0)!) {
          throw this.#invalid('bad character range')
        }
        set += `${hexEscape(low)}-${hexEscape(high)}`
      } else {
        set += hexEscape(low)
      }
      if (typeof low !== 'string' && /^-[^\]]/s.test(this.#source.slice(this.#at))) {
        throw this.#invalid('bad character range')
      }
    }
    const caseless = flags.ignoreCase ? 'i' : ''
    if (negatedSets.length === 0) return this.#part(`(?${caseless}:${isNegated ? this.#others(set) : `[${set}]`})`)
    const union = [...(set === '' ? [] : [`[${set}]`]), ...negatedSets].join('|')
    // One character is the same in both directions, so a lookbehind serves either.
    const any = this.#isMarked ? this.#others('') : '(?s:.)'
    return this.#part(isNegated ? `(?:${any}(?${caseless}:(?<!${union})))` : `(?${caseless}:${union})`)
  }

  /** The class of all characters that are not in a set. */
  #others(set: string): string {
    return `[^${set}${this.#isMarked ? MARKS : ''}]`
  }

  #classItem(flags: Flags): string | { readonly set: string; readonly isNegated: boolean } {
    const char = this.#char('unterminated character set')
    if (char !== '\\') return char
    const escaped = this.#char('unterminated character set')
    return this.#classEscape(escaped, flags) ?? (escaped === 'b' ? '\b' : this.#character(escaped))
  }

  /** The next character, a whole code point. */
  #char(missing = 'unexpected end of pattern'): string {
    const code = this.#source.codePointAt(this.#at)
    if (code === undefined) throw this.#invalid(missing)
    const char = String.fromCodePoint(code)
    this.#at += char.length
    return char
  }

  #take(text: string): boolean {
    const isNext = this.#source.startsWith(text, this.#at)
    if (isNext) this.#at += text.length
    return isNext
  }

  /** Comments may stand anywhere, even between an item and its repetition. */
  #skipComments(flags: Flags): void {
    while (this.#skip(flags.verbose ? /^(?:\s+|#[^\n]*|\(\?#[^)]*\))/ : /^\(\?#[^)]*\)/));
    if (this.#source.startsWith('(?#', this.#at)) throw this.#invalid('missing ), unterminated comment')
  }

  #skip(what: RegExp): boolean {
    const match = what.exec(this.#source.slice(this.#at))
    this.#at += match?.[0].length ?? 0
    return match !== null
  }

  #invalid(reason: string): UsageError {
    const pattern = this.#source
    const got = `${reason} at position ${this.#at}`
    return new UsageError(`pattern ${quotedPattern(pattern)}: expected a Python regular expression, got ${got}`, {
      pattern,
      reason: got,
    })
  }
}

/** The error for a pattern that is valid Python, but that can't be matched in linear time. */
export function refusal(pattern: string, construct: string, cause?: unknown): UsageError {
  return new UsageError(
    `pattern ${quotedPattern(pattern)}: ${construct} is not supported: only what can be matched in linear time is accepted, ` +
      'so that no pattern can hang',
    { pattern, construct },
    cause,
  )
}

function quotedPattern(pattern: string): string {
  return JSON.stringify(pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern)
}

/** A part that reads the same in both directions, as a single character does. */
function verbatim(source: string): PatternPart {
  return {
    forward: source,
    backward: source,
    looksAhead: false,
    looksBehind: false,
    hasLineEnd: false,
    consumesLineEnd: false,
  }
}

/** A character, escaped so that it is always literal. */
function hexEscape(char: string): string {
  return `\\x{${char.codePointAt(0)!.toString(16)}}`
}

/** A lookaround with `inner` (a group). A lookahead becomes a lookbehind when reversed. */
function looking(inner: PatternPart, sign: '=' | '!', isAhead: boolean): PatternPart & { isAssertion: true } {
  const unused = ''
  return {
    ...inner,
    forward: isAhead ? unused : `(?<${sign}${inner.forward})`,
    backward: isAhead ? `(?<${sign}${inner.backward})` : unused,
    looksAhead: inner.looksAhead || isAhead,
    looksBehind: inner.looksBehind || !isAhead,
    consumesLineEnd: inner.consumesLineEnd || inner.hasLineEnd,
    isAssertion: true,
  }
}

/** The combined properties of parts, without sources. */
function joined(parts: readonly PatternPart[]): PatternPart {
  return {
    ...EMPTY,
    looksAhead: parts.some(part => part.looksAhead),
    looksBehind: parts.some(part => part.looksBehind),
    hasLineEnd: parts.some(part => part.hasLineEnd),
    consumesLineEnd: parts.some(part => part.consumesLineEnd),
  }
}

function alternated(branches: readonly PatternPart[]): { readonly forward: string; readonly backward: string } {
  return {
    forward: branches.map(branch => branch.forward).join('|'),
    backward: branches.map(branch => branch.backward).join('|'),
  }
}
