import { describe, expect, it } from 'vitest'
import { compilePattern } from '#dist/format/regex/pattern.js'

describe('finds what re.search of Python 3.11 finds', () => {
  it.each<[pattern: string, found: string[], notFound: string[]]>([
    // plain text, which needs no engine
    ['', ['', 'x'], []],
    ['.*', ['', 'x', '\n'], []],
    ['^', [''], []],
    ['$', ['', 'x'], []],
    ['weight', ['weight', 'fc.weight', 'weights'], ['Weight', '']],
    ['^gradient', ['gradient/x'], ['x/gradient']],
    ['bias$', ['fc.bias', 'fc.bias\n'], ['bias_', 'fc.bias\n\n']],
    ['^loss$', ['loss', 'loss\n'], ['aloss', 'losses', 'loss\n\n']],
    ['.*loss', ['a_loss', 'loss', 'a\nloss_b'], ['los']],
    ['^trees/.*', ['trees/Gain', 'trees/'], ['trees', 'xtrees/']],
    ['^fc\\.weight\\[0\\]$', ['fc.weight[0]'], ['fcxweight[0]']],
    // what smdebug writes by itself
    [
      '^(?!gradient).*weight',
      ['fc.weight', 'weight', 'a/gradient.weight', 'gradienweight', 'weight\nx'],
      ['gradient/fc.weight', 'gradientweight', '', 'a\nweight', 'fc.bias'],
    ],
    ['[Ll]oss_(?!input).*output', ['CrossEntropyLoss_output_0', 'loss_x_output'], ['Loss_input_output', 'Loss_']],
    ['^[a-zA-z]+-.+(?<!(auc|map))$', ['train-error', 'a-maps'], ['train-auc', 'validation-map', 'train-']],
    ['^[a-zA-z]+-[a-zA-z0-9]+$', ['train-error', 'a_-b^'], ['train-', 'a-b.c']],
    ['^average_shap/.*[^/bias]$', ['average_shap/f0'], ['average_shap/bias', 'average_shap/fa']],
    ['^hyperparameters/.*$', ['hyperparameters/eta', 'hyperparameters/'], ['hyperparameters']],
    // anchors and newlines
    ['a.c', ['abc', 'a\rc'], ['a\nc', 'ac']],
    ['(?s)a.c', ['a\nc'], ['ac']],
    ['a\\Z', ['a', 'ba'], ['a\n']],
    ['x+$', ['x\n'], ['x\n\n']],
    ['a$\\n', ['a\n'], ['a', 'a\n\n']],
    ['a$\\Z', ['a'], ['a\n']],
    ['(?m)^b$', ['a\nb\nc'], ['ab']],
    ['\\Ab', ['b'], ['a\nb']],
    // what RE2 has not, or otherwise
    ['(?P<layer>conv\\d+)\\.', ['conv12.bias'], ['conv.bias']],
    ['(?i)LOSS', ['loss', 'xLoSs'], ['los']],
    ['(?i:L)oss', ['loss', 'Loss'], ['LOSS']],
    ['(?i)[A-C]x', ['bX'], ['dx']],
    ['(?x) a b # c', ['ab'], ['a b']],
    ['a(?#comment)+b', ['aaab'], ['b']],
    ['a{,2}b', ['b', 'aab'], ['a']],
    ['^a{,2}b', ['b', 'aab'], ['aaab']],
    ['a{2}', ['aa'], ['a{2}', 'a']],
    ['a{}', ['a{}'], ['a']],
    ['a{1,x', ['a{1,x'], ['a']],
    ['\\w', ['é', '日', '_', '9'], ['-', '']],
    ['(?a)\\w', ['a'], ['é']],
    ['\\d', ['٣', '3'], ['x']],
    ['^\\s$', [' ', '\v', '\u00a0', '\u2003', '\x1c'], ['x']],
    ['^[\\W]$', ['-'], ['a', 'é']],
    ['^[^\\W_]$', ['a', 'é'], ['-', '_']],
    ['[]x]', [']', 'x'], ['[']],
    ['[[:alpha:]]', ['a]', ':]', '[]'], ['a', 'b]']],
    ['[a\\-z]', ['-', 'a', 'z'], ['b']],
    ['\\bfc\\b', ['a.fc.b', 'fc'], ['fcx', 'a_fc']],
    // words of any letters, and of ASCII's
    ['\\bимя\\b', ['имя', 'a-имя.b', 'x имя'], ['имяx', 'éимя', 'имя_', '_имя', '9имя']],
    ['\\bfc\\b', ['fc', 'é.fc'], ['éfc', 'fcé', 'fc日']],
    ['(?a)\\bfc\\b', ['fc', 'éfc', 'fcé'], ['fcx', '9fc']],
    ['(?a:\\b)fc\\b', ['éfc'], ['xfc', 'fcé']],
    ['\\Bя', ['имя', '_я'], ['я', '-я']],
    ['я\\B', ['яма'], ['имя', 'я']],
    ['\\b', ['я', '-я'], ['', '-', '😀']],
    ['^\\b.\\b$', ['é', '٣', 'é\n'], ['éa', '-', '\n']],
    ['(?m)^\\bé$', ['a\né\nb', 'é'], ['aé', 'é-']],
    ['(?i)\\bÉ\\b', ['é'], ['éa']],
    ['\\b[^a]+\\b\\.', ['éé.'], ['a.']],
    ['[\\Wa]\\b', ['a', '-é'], ['b-']],
    ['[^\\W_]\\b', ['é'], ['é_', '_']],
    ['(?s)-.\\b', ['-\né'], ['-\n-']],
    ['(?!имя)\\b\\w+$', ['ямя', 'x-y'], ['']],
    ['^(?!\\bгр).*\\bвес', ['a.вес', 'вес'], ['гр.вес', 'aвес']],
    ['(?<=\\bé)x', ['-éx', 'éx'], ['aéx']],
    ['\\b$\\n', ['é\n'], ['-\n', 'é']],
    ['(?:\\bé ?)+', ['é é'], ['aé']],
    ['\\x41\\u00e9\\U0001F600\\101', ['Aé😀A'], ['A']],
    ['^.$', ['😀', 'a'], ['ab']],
    ['a|b|', ['', 'c'], []],
    // lookaround, also nested and repeated
    ['a(?=b)', ['ab'], ['ba']],
    ['(?<=b)a', ['ba'], ['ab']],
    ['(?<![\\w.])fc', ['/fc', 'fc'], ['xfc', '.fc']],
    ['a(?=b(?!c))', ['abd', 'ab'], ['abc']],
    ['^(?:(?!b).)*$', ['acd', ''], ['abc']],
    ['(?=a)*c', ['c'], ['a']],
    ['(?=.*x)(?=.*y)^', ['xy', 'yx', 'a-y-x'], ['x', 'y']],
    ['^(?!gradient).*😀', ['a😀'], ['gradient/😀']],
  ])('%j', (source, found, notFound) => {
    const pattern = compilePattern(source)
    expect(pattern.source).toBe(source)
    expect(found.filter(name => !pattern.matches(name))).toEqual([])
    expect(notFound.filter(name => pattern.matches(name))).toEqual([])
  })
})

/** By Python 3.11: characters of every general category, and those at the edges of what is a letter, a digit or a blank. */
const KINDS: readonly [chars: string, classes: string][] = [
  ['aZéßǅʰªº日한ⁿₐ', 'w'],
  ['_ⅷ²½௰〇㊀𐅀', 'w'],
  ['09٣৯߅𝟗', 'wd'],
  [' \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000', 's'],
  // Marks, joiners, controls, signs, what is private and what is no character.
  ['\u0301\u0903\u20dd\u200b\u200c\u200d\u2060\ufeff\u180e\u0000\u007f', ''],
  ['-–(«»!+$^©😀\ue000\uffff', ''],
]

it('\\w, \\d and \\s are those of Python for texts of any letters', () => {
  for (const [chars, classes] of KINDS) {
    for (const name of 'wds') {
      const [one, other] = [compilePattern(`^\\${name}\\Z`), compilePattern(`^[^\\${name}]\\Z`)]
      for (const char of chars) {
        const told = [char.codePointAt(0)!.toString(16), name, one.matches(char), other.matches(char)]
        expect(told).toEqual([told[0], name, classes.includes(name), !classes.includes(name)])
      }
    }
  }
})

describe('refuses what is no pattern', () => {
  it.each([
    '(',
    ')',
    '[',
    '[]',
    '[^]',
    '*',
    '+a',
    '?',
    '{1}',
    'a**',
    'a{2}{3}',
    'a{3,2}',
    '^*',
    '$+',
    '\\',
    '\\Q',
    '\\pL',
    '\\C',
    '\\x4',
    '\\U00110000',
    '\\N{DASH}',
    '[z-a]',
    '[\\d-z]',
    '[a-\\d]',
    '[\\400]',
    '(?P<1>a)',
    '(?P<>a)',
    '(?',
    '(?<x>a)',
    '(?#',
    'a(?i)b',
    '(?U)a',
    '(?L)a',
    '('.repeat(30_000),
  ])('%j', source => {
    expect(() => compilePattern(source)).toThrow(
      expect.objectContaining({
        name: 'UsageError',
        code: 'Usage',
        message: expect.stringMatching(/^pattern ".*": expected a Python regular expression, got /),
        fields: expect.objectContaining({ pattern: source }),
      }),
    )
  })
})

it.each([
  ['(a)\\1', 'backreference'],
  ['(?P<x>a)(?P=x)', 'backreference'],
  ['(a)(?(1)b|c)', 'conditional group'],
  ['(?>a+)b', 'atomic group'],
  ['a++b', 'possessive repetition'],
  ['a{1001}', 'repetition of more than 1000 times'],
  ['(?:a{1000}){1000}', 'a pattern of that size'],
  ['(?=a).(?<=b)', 'lookahead (or $ before more) together with lookbehind'],
])('refuses %s and names the %s', (source, construct) => {
  expect(() => compilePattern(source)).toThrow(
    expect.objectContaining({
      name: 'UsageError',
      fields: { pattern: source, construct },
      message: expect.stringMatching(/not supported: only what can be matched in linear time .* no pattern can hang/),
    }),
  )
})

it('a pattern of more than 2^15 characters is refused, be it a plain text', () => {
  expect(compilePattern('a'.repeat(1 << 15)).matches('a'.repeat(1 << 15))).toBe(true)
  for (const source of ['a'.repeat((1 << 15) + 1), '\\.'.repeat(10_000_000), '['.repeat(10_000_000)]) {
    expect(() => compilePattern(source)).toThrow(/more than 32768 characters/)
  }
})

it('no pattern hangs', () => {
  const name = 'a'.repeat(2000)
  const startMs = performance.now()
  for (const source of ['(a+)+b', '(a*)*b', '(a|aa)+b', '(?:a?){500}a{500}b', '^(?!(a+)+b).*c', '(.*)*(?<!(a+)+b)c']) {
    expect(compilePattern(source).matches(name)).toBe(false)
  }
  expect(performance.now() - startMs).toBeLessThan(20_000)
})
