import { expect, it } from 'vitest'
import {
  expectBoolean,
  expectInteger,
  expectList,
  expectObject,
  expectString,
  inside,
  parseJsonObject,
  show,
} from '#dist/format/json.js'

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
    message: expect.stringMatching(/^file:\/\/\/x\.json.*: expected .+, got .+/s),
  })
})

it('tells the byte offset where the engine tells the place', () => {
  // Every Node tells the place of these two; é has two bytes.
  expect(thrownBy(() => parseJsonObject('{"é": 1 "b"}', 'u', 'Bad'))).toMatchObject({ offset: 9 })
  expect(thrownBy(() => parseJsonObject('{"é": 1', 'u', 'Bad'))).toMatchObject({ offset: 8 })
  expect(thrownBy(() => parseJsonObject('', 'u', 'Bad'))).toMatchObject({ offset: 0, got: 'an empty file' })
})

it('values are what they should be, or the error says where they are not', () => {
  const place = inside(inside(PLACE, 'list'), 3)
  expect(thrownBy(() => expectString(1, place))).toMatchObject({
    message: 'file:///x.json: a.list[3]: expected a string, got 1',
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
  expect(show('x'.repeat(1e6)).length).toBeLessThan(70)
  expect([undefined, null, [1, 2], {}, 1, true, 'a'].map(show)).toEqual([
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
