import { expect, it } from 'vitest'
import type { FormatError } from '#dist/base/errors.js'
import {
  expectBoolean,
  expectInteger,
  expectList,
  expectObject,
  expectString,
  inside,
  jsonExcerpt,
  parseJsonObject,
} from '#dist/format/json.js'
import { uniform } from '../../fixtures/random.js'

const PLACE = { url: 'file:///x.json', code: 'Bad', at: 'a' }

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  return undefined
}

it('gives the object', () => {
  expect(parseJsonObject('{"a": [1]}', 'u', 'Bad')).toEqual({ a: [1] })
})

it.each(['', ' \n', 'x', '{', '{"a":1,}', '[]', '1', 'null', '"x"', '{"a":1} x'])('refuses %j', text => {
  expect(thrownBy(() => parseJsonObject(text, 'file:///x.json', 'Bad'))).toMatchObject({
    name: 'FormatError',
    code: 'Bad',
    url: 'file:///x.json',
    message: expect.stringMatching(/^\/x\.json.*: expected .+, got .+/s),
  })
})

const faultOf = (text: string) => thrownBy(() => parseJsonObject(text, 'u', 'Bad')) as FormatError

it.each<[string, number, string]>([
  ['{"é": 1 "b"}', 9, '"\\"b\\"}"'],
  ['{"é": 1', 8, 'the end of the file'],
  ['x', 0, '"x"'],
  ['{"a": 1,}', 8, '"}"'],
  ['{"a": [1,]}', 9, '"]}"'],
  ['{"a" 1}', 5, '"1}"'],
  ['{a: 1}', 1, '"a: 1}"'],
  ['{"a": 1} {', 9, '"{"'],
  ['{"a": 1]', 7, '"]"'],
  ['{"a": 01}', 7, '"1}"'],
  ['{"a": -}', 6, '"-}"'],
  ['{"a": tru}', 6, '"tru}"'],
  ['{"a": NaN}', 6, '"NaN}"'],
  ['{"a": "b\\x"}', 8, '"\\\\x\\"}"'],
  ['{"a": "b\n"}', 8, '"\\n\\"}"'],
  ['{"a": "b', 8, 'the end of the file'],
  ['{"a": "b\\', 9, 'the end of the file'],
  ['{"a": "b\\"', 10, 'the end of the file'],
  ['{"a": {"b": [[], {}, {"c": "d"} }', 32, '"}"'],
])('tells where %j is none', (text, offset, got) => {
  expect(faultOf(text)).toMatchObject({ offset, got, expected: 'JSON' })
})

it('tells of an empty file', () => {
  expect(faultOf('')).toMatchObject({ offset: 0, got: 'an empty file' })
})

it('tells no offset behind bytes that are no UTF-8', () => {
  expect(faultOf('{"\ufffd": x}').offset).toBeUndefined()
})

it('tells of every text that is no JSON where it ceases to be some, as V8 does where it tells', () => {
  const random = uniform(20191113)
  const seed = '{"a": [1, -2.5e3, "x\\u00e9\\n", true, null, {"b": {}}], "c": [[], ""]}'
  let compared = 0
  for (let i = 0; i < 20_000; i++) {
    const at = Math.floor(random() * seed.length)
    const other = '{}[]",:0-.eE\\utnx \t'[Math.floor(random() * 20)]!
    const text = [
      seed.slice(0, at) + other + seed.slice(at),
      seed.slice(0, at) + other + seed.slice(at + 1),
      seed.slice(0, at) + seed.slice(at + 1),
      seed.slice(0, at),
    ][i % 4]!
    let reason: string | undefined
    try {
      JSON.parse(text)
    } catch (error) {
      reason = (error as Error).message
    }
    if (reason === undefined) continue
    const { offset } = faultOf(text)
    const position = /at position (\d+)/.exec(reason)?.[1]
    // Of words, numbers and escapes V8 tells how far into them it came.
    if (position === undefined || !/^Expected|non-whitespace|control character/.test(reason)) continue
    compared++
    expect([text, offset]).toEqual([text, Number(position)])
  }
  expect(compared).toBeGreaterThan(1000)
})

it('values are what they should be, or the error says where they are not', () => {
  const place = inside(inside(PLACE, 'list'), 3)
  expect(thrownBy(() => expectString(1, place))).toMatchObject({
    message: '/x.json: a.list[3]: expected a string, got 1',
    fields: { at: 'a.list[3]', expected: 'a string', got: '1' },
  })
  for (const value of [null, undefined, [], 'x', 1]) expect(() => expectObject(value, PLACE)).toThrow('an object')
  for (const value of [-1, 0.5, 2 ** 53, Number.NaN, '1', null, undefined, true]) {
    expect(() => expectInteger(value, PLACE)).toThrow('a whole number')
  }
  expect(() => expectInteger(0, PLACE, 1)).toThrow('from 1')
  expect(Object.is(expectInteger(-0, PLACE), 0)).toBe(true)
  expect(() => expectBoolean('true', PLACE)).toThrow('true or false')
  expect(() => expectList({ length: 1 }, PLACE, expectString)).toThrow('a list')
  expect(expectList(null, PLACE, expectString)).toEqual([])
  expect(expectList(['x'], PLACE, expectString)).toEqual(['x'])
})

it('shows values shortly', () => {
  expect(jsonExcerpt('x'.repeat(1e6)).length).toBeLessThan(70)
  expect([undefined, null, [1, 2], {}, 1, true, 'a'].map(jsonExcerpt)).toEqual([
    'nothing',
    'null',
    'a list of 2',
    'an object',
    '1',
    'true',
    '"a"',
  ])
})

it('looks over a text of more than a MiB before it is parsed', () => {
  const padded = (text: string) => `{"a":"${'x'.repeat(1 << 20)}",${text}}`
  const nested = (depth: number) => `"b":${'['.repeat(depth)}${']'.repeat(depth)}`
  // The object itself is the first.
  expect(parseJsonObject(padded(nested(99)), 'u', 'Bad').b).toBeInstanceOf(Array)
  // {"a":"…","b":[[…
  const offset = 6 + (1 << 20) + 2 + 4 + 99
  expect(thrownBy(() => parseJsonObject(padded(nested(100)), 'u', 'Bad'))).toMatchObject({ code: 'Bad', offset })
  // What stands in strings does not count, escaped quotes or not.
  const text = JSON.stringify({ a: '"[{,\\'.repeat(1 << 20), b: '\\', c: '[' })
  expect(parseJsonObject(text, 'u', 'Bad').c).toBe('[')
  expect(() => parseJsonObject(padded(`"b":[${'0,'.repeat(1 << 23)}0]`), 'u', 'Bad')).toThrow(/at most 8388608 values/)
})
