/** The operators of an expression. Integers are exact, however large; NaN behaves as in IEEE 754. */

/** A number, or a 64-bit integer with all its digits. */
export type Real = number | bigint

/** Values of one kind can be compared. */
export type Value = Real | string | boolean

const isOther = (a: Value, b: Value): boolean => !isEqual(a, b)

/** Comparisons by their signs. Texts are compared by their UTF-16 units, and a bigint exactly with a number. */
export const COMPARISONS: Readonly<Record<string, (a: Value, b: Value) => boolean>> = {
  '=': isEqual,
  '==': isEqual,
  '!=': isOther,
  '<>': isOther,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
}

/** True if two values are equal; NaN never is. */
export function isEqual(a: Value, b: Value): boolean {
  return typeof a === typeof b ? a === b : a <= b && a >= b
}

const ON_NUMBERS = {
  '+': (a: number, b: number) => a + b,
  '-': (a: number, b: number) => a - b,
  '*': (a: number, b: number) => a * b,
  '/': (a: number, b: number) => a / b,
}

export type ArithmeticSign = keyof typeof ON_NUMBERS

/** The limit beyond which integers become float64, so that an expression can't make numbers of any length. */
const MAX_INTEGER = 2n ** 128n

/** Computes; integers beyond 2^53 are exact beside other integers, except when divided. */
export function calculate(sign: ArithmeticSign, a: Real, b: Real): Real {
  const isExact = (typeof a === 'bigint' || typeof b === 'bigint') && isInteger(a) && isInteger(b)
  if (sign === '/' || !isExact) return ON_NUMBERS[sign](Number(a), Number(b))
  const [x, y] = [BigInt(a), BigInt(b)]
  const result = sign === '+' ? x + y : sign === '-' ? x - y : x * y
  return result > MAX_INTEGER || result < -MAX_INTEGER ? Number(result) : result
}

function isInteger(value: Real): boolean {
  return typeof value === 'bigint' || Number.isSafeInteger(value)
}

/** The value of a literal. Integers beyond 2^53 keep their digits, up to a limit. */
export function realOf(text: string): Real {
  const value = Number(text)
  return Number.isSafeInteger(value) || !/^\d{1,40}$/.test(text) ? value : BigInt(text)
}

/** SQL's LIKE: `%` is any text, `_` any one character; case counts. Linear in the text for each `%`. */
export function isLike(text: string, pattern: string): boolean {
  let at = 0
  let next = 0
  // The position of the last %, and the start of the text behind its match.
  let star = -1
  let taken = 0
  while (at < text.length) {
    const wanted = pattern[next]
    if (wanted === '%') {
      star = next++
      taken = at
    } else if (wanted === '_' || (next < pattern.length && wanted === text[at])) {
      at += wanted === '_' ? lengthAt(text, at) : 1
      next++
    } else if (star >= 0) {
      taken += lengthAt(text, taken)
      at = taken
      next = star + 1
    } else return false
  }
  while (pattern[next] === '%') next++
  return next === pattern.length
}

/** The length of a character in UTF-16 units: 1 or 2. */
function lengthAt(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1
}
