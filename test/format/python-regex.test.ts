import { expect, it } from 'vitest'
import { translatePattern } from '#dist/format/python-regex.js'

it.each([
  ['abc', 'abc', false],
  ['a.c', 'a.c', false],
  ['^a\\Z', '\\Aa\\z', false],
  ['a$', 'a(?:\\n?\\z)', false],
  ['(?P<x>a|b)+', '(?:(?:a|b))+', false],
  ['a{,2}', '(?:a){0,2}', false],
  ['a{x}', 'a\\x{7b}x\\x{7d}', false],
  ['(?m)^a$', '(?m:^)a(?m:$)', false],
  ['[^/bias]', '(?:[^\\x{2f}\\x{62}\\x{69}\\x{61}\\x{73}])', false],
])('%s becomes %s', (python, source, isReversed) => {
  expect(translatePattern(python)).toEqual({ source, isReversed })
})

it('a pattern that looks ahead is read backwards', () => {
  expect(translatePattern('^(?!ab).*c')).toEqual({ source: 'c(?:.)*(?<!(?:ba))\\z', isReversed: true })
  // A `$` that more follows is a lookahead too: what follows may take the newline.
  expect(translatePattern('a$\\n')).toEqual({ source: '\\x{a}(?<=\\A\\n?)a', isReversed: true })
})

it('lookahead that need not hold is dropped', () => {
  expect(translatePattern('a(?:b(?=c)?)')).toMatchObject({ source: expect.not.stringContaining('(?<') })
})
