/** Expressions over rows, in the syntax of SQL's WHERE: `nan_count > 0 and tensor like 'gradient/%'`. */

import { quote, UsageError } from '../base/errors.js'
import type { StatisticName } from '../base/types.js'
import { type ScanRow, shapeText } from '../scan/job/row.js'
import { columnOf, nearestColumns, type RowColumn } from './columns.js'
import {
  type ArithmeticSign,
  COMPARISONS,
  calculate,
  isEqual,
  isLike,
  type Real,
  realOf,
  type Value,
} from './operators.js'
import { Source, wrong } from './tokens.js'

/** A test of rows by an expression. */
export interface RowFilter {
  /** The expression as given. */
  readonly text: string
  /** The columns in the expression, in order. */
  readonly columns: readonly string[]
  /** The reductions that a scan must compute so that its rows have these columns. */
  readonly reductions: readonly StatisticName[]
  /** True if the expression is true for a row, which means neither false nor unknown. */
  test(row: ScanRow): boolean
}

/** Computes a value from a row; null if the row lacks something for it. */
type Read = (row: ScanRow) => Value | null

interface Term {
  readonly kind: keyof typeof KINDS
  /** The value, which is of that kind. */
  readonly read: Read
  /** The position of the operand. */
  readonly start: number
  readonly end: number
}

/** The kinds of terms in words. */
const KINDS = { number: 'a number', text: 'a text', truth: 'a condition' } as const
const RESERVED: ReadonlySet<string> = new Set(['and', 'or', 'not', 'like', 'in', 'between', 'is', 'null'])
const NUMBER_WORDS: ReadonlyMap<string, number> = new Map([
  ['inf', Number.POSITIVE_INFINITY],
  ['infinity', Number.POSITIVE_INFINITY],
])
/**
 * Parses an expression: comparisons of columns, numbers and texts, with `and`, `or`, `not`, `between`, `in`, `like`, `is null`, `is nan`
 * and arithmetic. docs/cli.md describes the syntax.
 * @throws UsageError with the position, what was expected and what was found
 */
export function parseWhere(text: string): RowFilter {
  if (typeof text !== 'string') throw new UsageError(`expected an expression as text, got ${typeof text}`)
  const parser = new Parser(text)
  const { read } = parser.whole()
  const columns = [...parser.columns.values()]
  return {
    text,
    columns: columns.map(({ name }) => name),
    reductions: columns.flatMap(({ reduction }) => reduction ?? []),
    test: row => read(row) === true,
  }
}

/** A recursive-descent parser with a method for each level of precedence. Repeated operators become lists, not deeper calls. */
class Parser {
  readonly columns = new Map<string, RowColumn>()
  readonly #source: Source

  constructor(text: string) {
    this.#source = new Source(text)
  }

  whole(): Term {
    const condition = this.#as('truth', this.#either())
    if (this.#source.token.kind !== 'end') throw this.#source.unexpected('an operator or the end')
    return condition
  }

  #either(): Term {
    return this.#joined('or', true, () => this.#both())
  }

  #both(): Term {
    return this.#joined('and', false, () => this.#negation())
  }

  /** Parses conditions joined by a word. @param decisive the value of one condition that decides all */
  #joined(word: string, decisive: boolean, next: () => Term): Term {
    const first = next()
    if (!this.#source.is(word)) return first
    const reads = [this.#as('truth', first).read]
    while (this.#source.take(word)) reads.push(this.#as('truth', next()).read)
    return this.#term('truth', first.start, row => {
      let result: boolean | null = !decisive
      for (const read of reads) {
        const value = read(row)
        if (value === decisive) return decisive
        if (value === null) result = null
      }
      return result
    })
  }

  #negation(): Term {
    const { start } = this.#source.token
    if (!this.#source.take('not')) return this.#predicate()
    const { read } = this.#source.nested(() => this.#as('truth', this.#negation()))
    return this.#term('truth', start, negated(read))
  }

  #predicate(): Term {
    const left = this.#sum()
    const { kind, text } = this.#source.token
    if (kind === 'sign' && Object.hasOwn(COMPARISONS, text)) return this.#compared(left)
    if (this.#source.take('is')) return this.#test(left)
    const isNegated = this.#source.take('not')
    const read = this.#source.take('like')
      ? this.#liked(left)
      : this.#source.take('in')
        ? this.#listed(left)
        : this.#source.take('between')
          ? this.#bounded(left)
          : null
    if (read !== null) return this.#term('truth', left.start, isNegated ? negated(read) : read)
    if (isNegated) throw this.#source.unexpected('like, in or between')
    return left
  }

  #compared(left: Term): Term {
    const sign = this.#source.next().text
    const right = this.#sum()
    if (left.kind === 'truth' && /^(?:<=?|>=?)$/.test(sign)) throw this.#unlike('a number or a text', left)
    return this.#term('truth', left.start, both(left, this.#as(left.kind, right), COMPARISONS[sign]!))
  }

  /** Parses the rest of a test that begins with `is`. Its result is never unknown. */
  #test(left: Term): Term {
    const isNegated = this.#source.take('not')
    if (this.#source.take('null'))
      return this.#term('truth', left.start, row => (left.read(row) === null) !== isNegated)
    if (!this.#source.take('nan')) throw this.#source.unexpected(isNegated ? 'null or nan' : 'null, nan or not')
    const { read } = this.#as('number', left)
    return this.#term('truth', left.start, row => Number.isNaN(read(row)) !== isNegated)
  }

  #liked(left: Term): Read {
    const text = this.#as('text', left)
    return both(text, this.#as('text', this.#sum()), (a, b) => isLike(String(a), String(b)))
  }

  #bounded(left: Term): Read {
    const low = this.#sum()
    this.#source.expect('and')
    const high = this.#sum()
    const kind = kindToCompare(left)
    const isAbove = both(this.#as(kind, left), this.#as(kind, low), COMPARISONS['>=']!)
    const isBelow = both(left, this.#as(kind, high), COMPARISONS['<=']!)
    return row => {
      const above = isAbove(row)
      if (above === false) return false
      return isBelow(row) && above
    }
  }

  #listed(left: Term): Read {
    this.#source.expect('(')
    const terms = [this.#sum()]
    while (this.#source.take(',')) terms.push(this.#sum())
    this.#source.expect(')')
    const kind = kindToCompare(left)
    const { read } = this.#as(kind, left)
    return among(
      read,
      terms.map(term => this.#as(kind, term).read),
    )
  }

  #sum(): Term {
    return this.#calculated(['+', '-'], () => this.#product())
  }

  #product(): Term {
    return this.#calculated(['*', '/'], () => this.#signed())
  }

  #calculated(signs: readonly ArithmeticSign[], next: () => Term): Term {
    const first = next()
    const steps: { readonly sign: ArithmeticSign; readonly read: Read }[] = []
    for (let sign = signs.find(sign => this.#source.is(sign)); sign; sign = signs.find(sign => this.#source.is(sign))) {
      this.#source.next()
      steps.push({ sign, read: this.#as('number', next()).read })
    }
    if (steps.length === 0) return first
    const { read } = this.#as('number', first)
    return this.#term('number', first.start, row => {
      let result = read(row) as Real | null
      for (const { sign, read } of steps) {
        const value = result === null ? null : (read(row) as Real | null)
        result = result === null || value === null ? null : calculate(sign, result, value)
      }
      return result
    })
  }

  #signed(): Term {
    const { start } = this.#source.token
    const isNegative = this.#source.take('-')
    if (!isNegative && !this.#source.take('+')) return this.#primary()
    const { read } = this.#source.nested(() => this.#as('number', this.#signed()))
    const negative = (row: ScanRow) => {
      const value = read(row) as Real | null
      return value === null ? null : -value
    }
    return this.#term('number', start, isNegative ? negative : read)
  }

  #primary(): Term {
    const { kind, text, start } = this.#source.token
    if (this.#source.take('(')) {
      const inner = this.#source.nested(() => this.#either())
      this.#source.expect(')')
      return { ...inner, start, end: this.#source.end }
    }
    if (kind === 'number') {
      this.#source.next()
      const value = realOf(text)
      return this.#term('number', start, () => value)
    }
    if (kind === 'text') {
      this.#source.next()
      return this.#term('text', start, () => text)
    }
    const word = text.toLowerCase()
    if (kind !== 'word' || RESERVED.has(word)) {
      const hint = word === 'null' ? 'write is null or is not null' : undefined
      throw this.#source.unexpected('a column, a number or a quoted text', hint)
    }
    if (word === 'nan') {
      throw this.#source.unexpected(
        'a column or a number',
        'no comparison with nan is true; write mean is nan, or nan_count > 0',
      )
    }
    const number = NUMBER_WORDS.get(word)
    if (number !== undefined || word === 'true' || word === 'false') {
      this.#source.next()
      return number !== undefined
        ? this.#term('number', start, () => number)
        : this.#term('truth', start, () => word === 'true')
    }
    return this.#column(word)
  }

  #column(name: string): Term {
    const { start } = this.#source.token
    const column = columnOf(name)
    if (column === undefined) {
      const { nearest, hint } = nearestColumns(name)
      throw this.#source.unexpected('the name of a column', hint, { nearest })
    }
    if (column.kind === 'distribution')
      throw this.#source.unexpected('a column of numbers or texts', `${name} has many numbers`)
    this.#source.next()
    this.columns.set(column.name, column)
    const { kind } = column
    if (kind === 'number') return this.#term(kind, start, row => realIn(column, row))
    if (kind === 'truth') return this.#term(kind, start, row => column.value(row) === true)
    return this.#term('text', start, row => textIn(column, row))
  }

  #term(kind: Term['kind'], start: number, read: Read): Term {
    return { kind, read, start, end: this.#source.end }
  }

  #as(kind: Term['kind'], term: Term): Term {
    if (term.kind !== kind) throw this.#unlike(KINDS[kind], term)
    return term
  }

  /** The error for a term of another kind. */
  #unlike(expected: string, { kind, start, end }: Term) {
    const got = `${quote(this.#source.text.slice(start, end))}, which is ${KINDS[kind]}`
    return wrong(this.#source.text, start, expected, got)
  }
}

/** The kind that terms beside this one must have: numbers or texts. */
function kindToCompare({ kind }: Term): 'number' | 'text' {
  return kind === 'number' ? kind : 'text'
}

/** Combines two values; unknown if one of them is. */
function both({ read: a }: Term, { read: b }: Term, decide: (a: Value, b: Value) => boolean): Read {
  return row => {
    const left = a(row)
    if (left === null) return null
    const right = b(row)
    return right === null ? null : decide(left, right)
  }
}

/** True if a value is among others; unknown if it might equal one that is unknown. */
function among(value: Read, reads: readonly Read[]): Read {
  return row => {
    const wanted = value(row)
    if (wanted === null) return null
    let result: boolean | null = false
    for (const read of reads) {
      const item = read(row)
      if (item === null) result = null
      else if (isEqual(wanted, item)) return true
    }
    return result
  }
}

function negated(read: Read): Read {
  return row => {
    const value = read(row)
    return value === null ? null : !value
  }
}

/** A column's value as a real number. Complex numbers have no order; they count as absent. */
function realIn(column: RowColumn, row: ScanRow): Real | null {
  const value = column.value(row)
  return typeof value === 'number' || typeof value === 'bigint' ? value : null
}

/** A column's value as text; shapes are compared as text. */
function textIn(column: RowColumn, row: ScanRow): string | null {
  if (column.kind === 'shape') return row.shape === null ? null : shapeText(row.shape)
  const value = column.value(row)
  return typeof value === 'string' ? value : null
}
