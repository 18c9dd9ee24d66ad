import { expect, it } from 'vitest'
import { markBoundaries, translatePattern } from '#dist/format/regex/python-regex.js'

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
  expect(translatePattern(python)).toEqual({ source, isReversed, isMarked: false })
})

it('a pattern that looks ahead is read backwards', () => {
  expect(translatePattern('^(?!ab).*c')).toMatchObject({ source: 'c(?:.)*(?<!(?:ba))\\z', isReversed: true })
  // A `$` that more follows is a lookahead too: what follows may take the newline.
  expect(translatePattern('a$\\n')).toMatchObject({ source: '\\x{a}(?<=\\A\\n?)a', isReversed: true })
})

it('lookahead that need not hold is dropped', () => {
  expect(translatePattern('a(?:b(?=c)?)')).toMatchObject({ source: expect.not.stringContaining('(?<') })
})

it('a pattern with a boundary asks for the mark before it, and each of its characters takes its own', () => {
  const mark = '[\\x{10fffc}-\\x{10ffff}]'
  const edge = '(?<=[\\x{10fffd}\\x{10ffff}])'
  expect(translatePattern('\\ba')).toEqual({
    source: `(?<=${mark})(?:${edge}a${mark})`,
    isReversed: false,
    isMarked: true,
  })
})

it("marks tell where words begin and end, Unicode's and those of ASCII", () => {
  const kinds = [...markBoundaries('aé-')].map(char => char.codePointAt(0)! - 0x10fffc)
  // A mark before, and one behind each character: 1 for an edge of a word, 2 for one of ASCII letters.
  expect(kinds.filter((_, i) => i % 2 === 0)).toEqual([3, 2, 1, 0])
  expect(markBoundaries('')).toBe('\u{10fffc}')
  expect([...markBoundaries('\u{10ffff}')]).toEqual(['\u{10fffc}', '\ufffe', '\u{10fffc}'])
})
