/** Expressions over rows: what is true, what is unknown, what is refused; and against an oracle. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  FormatError,
  type GlobalStep,
  type ModeStep,
  momentsOf,
  parseColumns,
  parseWhere,
  type ScanRow,
  UsageError,
  type ValueRow,
} from '#dist/index.js'
import { DTYPES } from '../cli/run.js'

const ROW: ValueRow = {
  tensor: "gradient/fc's.weight",
  step: 12 as GlobalStep,
  mode: 'TRAIN',
  modeStep: 10 as ModeStep,
  worker: 'worker_0',
  dtype: 'int64',
  shape: [3, 5],
  reductions: {
    min: -1,
    max: 2 ** 63,
    abs_mean: 0.5,
    abs_max: Number.POSITIVE_INFINITY,
    std: Number.NaN,
    nan_count: 2,
    'p99.9': 7,
    '~p50': 1,
    mean: { re: 1, im: 2 },
  },
  exact: { min: -1n, max: 2n ** 63n - 1n, abs_min: 0n, abs_max: 2n ** 63n - 1n },
  saved: false,
  moments: momentsOf('int64', new Float64Array(34)),
}
const { exact: _, moments: __, ...PLACE } = ROW
const FLOATS: ScanRow = { ...ROW, dtype: 'float32', exact: undefined } as unknown as ScanRow
/** Of which nothing but its place is known. */
const FAILED: ScanRow = {
  ...PLACE,
  dtype: null,
  shape: null,
  reductions: {},
  error: new FormatError('TruncatedRecord', 'file:///t/e: short', { url: 'file:///t/e', offset: 7 }),
}

const isTrue = (text: string, row: ScanRow = FLOATS) => parseWhere(text).test(row)

describe('an expression', () => {
  it.each([
    ['step = 12', true],
    ['step == 12.0 and mode_step<>12', true],
    ['STEP = 12 AND Mode = "TRAIN"', true],
    ["mode = 'train'", false],
    ['step != 12 or mode_step >= 10', true],
    ['step < 12 or step > 12', false],
    ['step <= 12', true],
    ["tensor = 'gradient/fc''s.weight'", true],
    ['tensor = "gradient/fc\'s.weight"', true],
    ["tensor like 'gradient/%'", true],
    ["tensor not like '%weight'", false],
    ["tensor like '%s_weight'", true],
    ["tensor like 'weight'", false],
    ["worker in ('worker_1', 'worker_0')", true],
    ["dtype not in ('float32')", false],
    ['step in (1, 2 * 6)', true],
    ['step between 12 and 13 and mode_step between 1 and 9', false],
    ['step not between 13 and 14', true],
    ["dtype between 'float16' and 'float64'", true],
    ["shape = '3x5' and rank = 2 and size = 15", true],
    ['saved', false],
    ['not saved and saved = false and saved <> true', true],
    ['p99.9 > 6 and ~p50 < 2', true],
    ['abs_mean > .4 and abs_mean < 5e-1 + 1E-7', true],
    ['abs_max = inf and abs_max > 10 * abs_mean', true],
    ['-step = -12 and - -step = + 12', true],
    ['error_code is null and error_message is null', true],
  ])('%s is %s', (text, expected) => {
    expect(isTrue(text)).toBe(expected)
  })

  it.each([
    ['true or true and false', true],
    ['(true or true) and false', false],
    ['not false and false', false],
    ['not (false and false)', true],
    ['not step = 13', true],
    ['1 + 2 * 3 = 7', true],
    ['(1 + 2) * 3 = 9', true],
    ['10 - 4 - 3 = 3', true],
    ['16 / 4 / 2 = 2', true],
    ['2 * -3 = -6', true],
    ['7 / 2 = 3.5', true],
    ['1 / 0 = inf', true],
    ['step between 1 and 20 and false', false],
  ])('has the precedence of SQL: %s is %s', (text, expected) => {
    expect(isTrue(text)).toBe(expected)
  })

  it.each([
    ['std > 0', false],
    ['std <= 0', false],
    ['std = std', false],
    ['std <> std', true],
    ['not std > 0', true],
    ['std is nan', true],
    ['abs_max is not nan and min is not nan', true],
    ['std is not null', true],
    ['std + 1 is nan', true],
    ['std between -inf and inf', false],
    ['0 / 0 is nan', true],
  ])('takes NaN as IEEE 754 does: %s is %s', (text, expected) => {
    expect(isTrue(text)).toBe(expected)
  })

  it.each([
    ['l2 > 0', false],
    ['not l2 > 0', false],
    ['l2 = l2', false],
    ['l2 + 1 > 0', false],
    ['-l2 < 0', false],
    ['l2 is null', true],
    ['l2 * 2 is null', true],
    ['l2 is not null', false],
    ['l2 is nan', false],
    ['(l2 > 0) is null', true],
    ['l2 > 0 or true', true],
    ['(l2 > 0 or false) is null', true],
    ['(l2 > 0 and false) is null', false],
    ['not (l2 > 0 and false)', true],
    ['(l2 between 0 and 1) is null', true],
    ['(step between 13 and l2) is null', false],
    ['(step between l2 and 1) is null', false],
    ['(step between 1 and l2) is null', true],
    ['step in (l2, 12)', true],
    ['(step in (l2, 13)) is null', true],
    ['step not in (l2, 13)', false],
    ['(l2 in (1)) is null', true],
    // Complex numbers have no order.
    ['mean is null', true],
  ])('takes what is not there as SQL takes null: %s is %s', (text, expected) => {
    expect(isTrue(text)).toBe(expected)
  })

  it('finds rows that could not be read by their errors alone', () => {
    expect(isTrue("error_code = 'TruncatedRecord' and error_message like '%short'", FAILED)).toBe(true)
    expect(isTrue('dtype is null and shape is null and size is null', FAILED)).toBe(true)
    expect(isTrue('nan_count > 0 or nan_count <= 0', FAILED)).toBe(false)
    expect(isTrue('tensor is null', { ...FAILED, tensor: null } as ScanRow)).toBe(true)
  })

  it.each([
    ['max = 9223372036854775807', true],
    ['max = 9223372036854775808', false],
    ['max < 9223372036854775808', true],
    ['max > 9223372036854775806', true],
    ['max <> 9223372036854775806', true],
    ['max = 9223372036854775807.0', false],
    ['max - 1 = 9223372036854775806', true],
    ['max - min = 9223372036854775808', true],
    ['max * 2 = 18446744073709551614', true],
    ['max in (9223372036854775806, 9223372036854775807)', true],
    ['max between 9223372036854775807 and 9223372036854775807', true],
    ['-max = -9223372036854775807', true],
    ['max < inf and max > -inf', true],
    ['min = -1 and min < -.5', true],
    [`max ${'* max '.repeat(200)} = inf`, true],
    [`${'9'.repeat(500)} = inf`, true],
  ])('is exact beyond 2^53: %s is %s', (text, expected) => {
    expect(isTrue(text, ROW)).toBe(expected)
  })

  it('says which columns it names, and what a scan must be asked for', async () => {
    const filter = parseWhere('NAN_COUNT > 0 and (tensor <> "x" or ~p50 < p99.9 or nan_count = step)')
    expect(filter.columns).toEqual(['nan_count', 'tensor', '~p50', 'p99.9', 'step'])
    expect(filter.reductions).toEqual(['nan_count', '~p50', 'p99.9'])
    expect(parseWhere('step > 1').reductions).toEqual([])
    const trial = await createTrial(DTYPES)
    const names: (string | null)[] = []
    const nan = parseWhere('nan_count > 0 and step = 0')
    for await (const row of trial.scan({ reductions: nan.reductions })) if (nan.test(row)) names.push(row.tensor)
    expect(names).toEqual(['edge/nan', 'edge/nanonly'])
  })
})

describe('like', () => {
  it.each([
    ['', '', true],
    ['', '%', true],
    ['', '_', false],
    ['abc', 'a%c', true],
    ['abc', 'a_c', true],
    ['abc', 'a_', false],
    ['abc', '%b', false],
    ['abc', '%%c%%', true],
    ['aXbXc', '%X%X_', true],
    ['mississippi', '%iss%ip%', true],
    ['mississippi', '%iss%issi', false],
    ['a.c', 'a.c', true],
    ['abc', 'a.c', false],
    ['a%c', 'a%c', true],
    ['\u{1f600}', '_', true],
    ['\u{1f600}b', '__', true],
    ['\u{1f600}', '__', false],
  ])('%j like %j is %s', (text, pattern, expected) => {
    expect(isTrue(`tensor like '${pattern}'`, { ...ROW, tensor: text })).toBe(expected)
  })

  it('is done soon, whatever the pattern', () => {
    const row = { ...ROW, tensor: 'a'.repeat(20_000) }
    expect(isTrue(`tensor like '${'%a'.repeat(2_000)}%b'`, row)).toBe(false)
  })

  it('agrees with a regular expression', () => {
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', '\u{1f600}', '.') })
    const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '_', '%', '.') })
    fc.assert(
      fc.property(texts, patterns, (text, pattern) => {
        const source = pattern.replaceAll('.', '\\.').replaceAll('_', '.').replaceAll('%', '.*')
        const isLike = isTrue(`tensor like '${pattern}'`, { ...ROW, tensor: text })
        expect(isLike).toBe(new RegExp(`^(?:${source})$`, 'su').test(text))
      }),
    )
  })
})

describe('what is wrong is told with its place', () => {
  const operand = 'a column, a number or a quoted text'
  it.each([
    ['abs_mxa > 3', 1, 'expected the name of a column', 'got "abs_mxa"; did you mean abs_max?'],
    ['step > 1 and modestep > 3', 14, 'expected the name of a column', 'got "modestep"; did you mean mode_step?'],
    ['qqqqqqqqqq = 1', 1, 'expected the name of a column', 'there are tensor, step,'],
    ['p101 > 0', 1, 'expected the name of a column', 'got "p101"'],
    ['histogram:3 > 0', 10, 'expected a column, a number, a quoted text or an operator', 'got ":"'],
    ['sketch > 0', 1, 'expected a column of numbers or texts', 'sketch has many numbers'],
    ['', 1, `expected ${operand}`, 'got the end'],
    ['  ', 3, `expected ${operand}`, 'got the end'],
    ['nan_count >', 12, `expected ${operand}`, 'got the end'],
    ['nan_count > and step', 13, `expected ${operand}`, 'got "and"'],
    ['(step = 1', 10, 'expected )', 'got the end'],
    ['step = 1)', 9, 'expected an operator or the end', 'got ")"'],
    ['1 < step < 3', 10, 'expected an operator or the end', 'got "<"'],
    ['step', 1, 'expected a condition', 'got "step", which is a number'],
    ['not tensor', 5, 'expected a condition', 'got "tensor", which is a text'],
    ["step = 'a'", 8, 'expected a number', `got "'a'", which is a text`],
    ['tensor = 1 + 2', 10, 'expected a text', 'got "1 + 2", which is a number'],
    ['(step > 1) * 2 > 0', 1, 'expected a number', 'got "(step > 1)", which is a condition'],
    ['saved < true', 1, 'expected a number or a text', 'got "saved", which is a condition'],
    ['step like "a"', 1, 'expected a text', 'got "step", which is a number'],
    ['step in (1, "a")', 13, 'expected a number', 'which is a text'],
    ['step in 1', 9, 'expected (', 'got "1"'],
    ['step in (1', 11, 'expected )', 'got the end'],
    ['step between 1 or 2', 16, 'expected and', 'got "or"'],
    ['step not 3', 10, 'expected like, in or between', 'got "3"'],
    ['step is 3', 9, 'expected null, nan or not', 'got "3"'],
    [
      'std = nan',
      7,
      'expected a column or a number',
      'no comparison with nan is true; write mean is nan, or nan_count > 0',
    ],
    ['tensor is nan', 1, 'expected a number', 'got "tensor", which is a text'],
    ['step = null', 8, `expected ${operand}`, 'write is null or is not null'],
    ["tensor = 'abc", 10, "expected a closing '", 'got none'],
    ['step = 1 && saved', 10, 'expected a column, a number', 'got "&&"; write and'],
    ['step = 1 || saved', 10, 'expected a column, a number', 'got "||"; write or'],
    ['!saved', 1, 'expected a column, a number', 'got "!"; write not'],
    ['step = 1e', 8, 'expected a column, a number', 'got "1e"'],
    ['step = 1.2.3', 8, 'expected a column, a number', 'got "1.2.3"'],
    ['a.b = 1', 1, 'expected a column, a number', 'got "a.b"'],
    ['step = \u{1f600}', 8, 'expected a column, a number', 'got "\u{1f600}"'],
  ])('%s', (text, character, expected, got) => {
    let error: unknown
    try {
      parseWhere(text)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(UsageError)
    const { message, fields } = error as UsageError
    expect(message).toContain(`${expected}`)
    expect(message).toContain(` at character ${character} of `)
    expect(message).toContain(got)
    expect(fields.at).toBe(character - 1)
  })

  it.each(['(', 'not ', '-', '+ ', '(not ', '1 + ('])('%s over and over', opening => {
    expect(() => parseWhere(opening.repeat(100_000))).toThrow(/expected at most 100 levels/)
  })

  it('but a hundred levels are fine, and any number of terms', () => {
    expect(isTrue(`${'('.repeat(100)}step = 12${')'.repeat(100)}`)).toBe(true)
    expect(isTrue(`${'not '.repeat(100)}saved`)).toBe(false)
    expect(isTrue(`saved${' or saved'.repeat(50_000)} or step = 12`)).toBe(true)
    expect(isTrue(`not saved${' and not saved'.repeat(50_000)}`)).toBe(true)
    expect(isTrue(`0${' + 1'.repeat(50_000)} = 50000`)).toBe(true)
    expect(isTrue(`tensor in ('a'${", 'b'".repeat(50_000)})`)).toBe(false)
  })

  it('text that is no expression is never more than an error', () => {
    const words = [
      'step',
      'and',
      'or',
      'not',
      '(',
      ')',
      '1',
      "'a'",
      '=',
      '<',
      '-',
      'is',
      'null',
      'in',
      ',',
      'like',
      '~',
    ]
    const texts = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words)).map(words => words.join(' ')),
    )
    fc.assert(
      fc.property(texts, text => {
        try {
          parseWhere(text).test(FLOATS)
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

it('what is no text is refused, in plain JavaScript too', () => {
  for (const given of [undefined, null, 5, ['step > 1']]) {
    expect(() => parseWhere(given as unknown as string)).toThrow(/expected an expression as text/)
    expect(() => parseColumns([given] as unknown as string[])).toThrow(/expected names of columns in an array/)
  }
  expect(() => parseColumns('step' as unknown as string[])).toThrow(/expected names of columns in an array/)
})

describe('columns', () => {
  it('are found by their names, in any case', () => {
    const columns = parseColumns(['Tensor', 'shape', 'rank', 'size', 'saved', 'max', 'p99.9', 'l2', 'histogram:4'])
    expect(columns.map(({ name }) => name)).toEqual(
      ['tensor', 'shape', 'rank', 'size', 'saved', 'max', 'p99.9', 'l2', 'histogram:4'], // biome-ignore format: one line
    )
    expect(columns.map(column => column.value(ROW))).toEqual([
      "gradient/fc's.weight",
      [3, 5],
      2,
      15,
      false,
      2n ** 63n - 1n,
      7,
      null,
      null,
    ])
    expect(columns.flatMap(({ reduction }) => reduction ?? [])).toEqual(['max', 'p99.9', 'l2', 'histogram:4'])
    expect(columns.map(({ kind }) => kind).at(-1)).toBe('distribution')
  })

  it('that there are not are refused with the nearest', () => {
    expect(() => parseColumns(['step', 'wroker'])).toThrow(/got "wroker"; did you mean worker\?/)
  })
})

/** An expression as a tree, how it is written, and what it is worth: as obvious and as slow as can be. */
type Value = number | bigint | string | boolean | null
interface Node {
  readonly text: string
  /** How tightly its operator binds: or 1, and 2, not 3, comparisons 4, sums 5, products 6, signs 7, all else 8. */
  readonly level: number
  readonly value: Value
}

const within = (node: Node, level: number) => (node.level < level ? `(${node.text})` : node.text)

const leaf = (text: string, value: Value): Node => ({ text, level: 8, value })
const NUMBERS = [
  leaf('step', 12),
  leaf('size', 15),
  leaf('max', 2n ** 63n - 1n),
  leaf('min', -1n),
  leaf('std', Number.NaN),
  leaf('abs_mean', 0.5),
  leaf('l1', null),
  leaf('9223372036854775806', 2n ** 63n - 2n),
  leaf('9007199254740992.0', 2 ** 53),
  leaf('0', 0),
  leaf('1.5e1', 15),
  leaf('inf', Number.POSITIVE_INFINITY),
]
const TEXTS = [leaf('mode', 'TRAIN'), leaf("'int64'", 'int64'), leaf('"it""s"', 'it"s'), leaf('dtype', 'int64')]

/** -1, 0 or 1; null for NaN. Integers are compared as integers, what lies between them by its whole part. */
function order(a: number | bigint, b: number | bigint): number | null {
  if (Number.isNaN(a) || Number.isNaN(b)) return null
  if (typeof a === 'number' && typeof b === 'number') return Math.sign(a - b) || 0
  if (typeof a === 'number') return -order(b, a)!
  if (b === Number.POSITIVE_INFINITY) return -1
  if (b === Number.NEGATIVE_INFINITY) return 1
  const whole = typeof b === 'bigint' ? b : BigInt(Math.floor(b))
  if (a !== whole) return a < whole ? -1 : 1
  return typeof b === 'number' && b > Math.floor(b) ? -1 : 0
}

function arithmetic(sign: string, a: number | bigint, b: number | bigint): number | bigint {
  const isWhole = (value: number | bigint) => typeof value === 'bigint' || Number.isSafeInteger(value)
  const isExact = (typeof a === 'bigint' || typeof b === 'bigint') && isWhole(a) && isWhole(b) && sign !== '/'
  if (isExact) {
    const [x, y] = [BigInt(a), BigInt(b)]
    const result = sign === '+' ? x + y : sign === '-' ? x - y : x * y
    return result > 2n ** 128n || result < -(2n ** 128n) ? Number(result) : result
  }
  const [x, y] = [Number(a), Number(b)]
  return sign === '+' ? x + y : sign === '-' ? x - y : sign === '*' ? x * y : x / y
}

const compared = (sign: string, order: number | null): boolean =>
  ({
    '=': order === 0,
    '<>': order !== 0,
    '<': order === -1,
    '<=': order === -1 || order === 0,
    '>': order === 1,
    '>=': order === 1 || order === 0,
  })[sign]!

const textOrder = (a: Value, b: Value) => (a! < b! ? -1 : a! > b! ? 1 : 0)

const nodes = fc.letrec<{ number: Node; truth: Node }>(tie => ({
  number: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...NUMBERS),
    fc.tuple(fc.constantFrom('+', '-', '*', '/'), tie('number'), tie('number')).map(([sign, a, b]): Node => {
      const level = sign === '+' || sign === '-' ? 5 : 6
      const value = a.value === null || b.value === null ? null : arithmetic(sign, a.value as number, b.value as number)
      return { text: `${within(a, level)} ${sign} ${within(b, level + 1)}`, level, value }
    }),
    tie('number').map((a): Node => {
      const value = a.value === null ? null : typeof a.value === 'bigint' ? -a.value : -(a.value as number)
      return { text: `-${within(a, 7)}`, level: 7, value }
    }),
  ),
  truth: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(fc.constantFrom('=', '<>', '<', '<=', '>', '>='), tie('number'), tie('number'))
      .map(([sign, a, b]): Node => {
        const isKnown = a.value !== null && b.value !== null
        const value = isKnown ? compared(sign, order(a.value as number, b.value as number)) : null
        return { text: `${within(a, 5)}${sign}${within(b, 5)}`, level: 4, value }
      }),
    fc
      .tuple(fc.constantFrom('=', '<', '>='), fc.constantFrom(...TEXTS), fc.constantFrom(...TEXTS))
      .map(([sign, a, b]): Node => {
        const value = compared(sign, textOrder(a.value, b.value))
        return { text: `${a.text} ${sign} ${b.text}`, level: 4, value }
      }),
    fc.tuple(fc.boolean(), tie('number'), tie('number'), tie('number')).map(([isNegated, a, b, c]): Node => {
      const at = (sign: string, one: Node) =>
        a.value === null || one.value === null ? null : compared(sign, order(a.value as number, one.value as number))
      const value = and(at('>=', b), at('<=', c))
      const text = `${within(a, 5)} ${isNegated ? 'not ' : ''}BETWEEN ${within(b, 5)} and ${within(c, 5)}`
      return { text, level: 4, value: isNegated ? not(value) : value }
    }),
    fc
      .tuple(fc.boolean(), tie('number'), fc.array(tie('number'), { minLength: 1, maxLength: 3 }))
      .map(([isNegated, a, list]): Node => {
        const value = list
          .map(one =>
            a.value === null || one.value === null ? null : order(a.value as number, one.value as number) === 0,
          )
          .reduce<boolean | null>((any, one) => or(any, one), false)
        const text = `${within(a, 5)} ${isNegated ? 'not ' : ''}in (${list.map(one => one.text).join(',')})`
        return { text, level: 4, value: isNegated ? not(value) : value }
      }),
    fc.tuple(tie('number'), fc.constantFrom('null', 'nan'), fc.boolean()).map(([a, what, isNegated]): Node => {
      const is = what === 'null' ? a.value === null : Number.isNaN(a.value)
      return { text: `${within(a, 5)} is ${isNegated ? 'not ' : ''}${what}`, level: 4, value: is !== isNegated }
    }),
    fc.tuple(tie('truth'), tie('truth')).map(([a, b]): Node => {
      return {
        text: `${within(a, 2)} AND ${within(b, 2)}`,
        level: 2,
        value: and(a.value as boolean, b.value as boolean),
      }
    }),
    fc.tuple(tie('truth'), tie('truth')).map(([a, b]): Node => {
      return {
        text: `${within(a, 1)}\nor ${within(b, 1)}`,
        level: 1,
        value: or(a.value as boolean, b.value as boolean),
      }
    }),
    tie('truth').map((a): Node => ({ text: `not ${within(a, 3)}`, level: 3, value: not(a.value as boolean) })),
    fc.constantFrom(leaf('saved', false), leaf('true', true)),
  ),
}))

function and(a: boolean | null, b: boolean | null): boolean | null {
  return a === false || b === false ? false : a === null || b === null ? null : true
}

function or(a: boolean | null, b: boolean | null): boolean | null {
  return not(and(not(a), not(b)))
}

function not(a: boolean | null): boolean | null {
  return a === null ? null : !a
}

it('any expression is worth what an oracle says', () => {
  const seen = new Set<Value>()
  fc.assert(
    fc.property(nodes.truth, ({ text, value }) => {
      seen.add(value)
      expect(parseWhere(text).test(ROW)).toBe(value === true)
      expect(parseWhere(`(${text}) is null`).test(ROW)).toBe(value === null)
    }),
    { numRuns: 5_000 },
  )
  expect(seen).toEqual(new Set([true, false, null]))
})
