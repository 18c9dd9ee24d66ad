/** Parameters: of any kind from a string, under either spelling, and refused by name. */

import { describe, expect, it } from 'vitest'
import { BUILTIN_RULES, UsageError } from '#dist/index.js'
import { choice, flag, integer, list, number, numbers, readParameters, text } from '#dist/rules/parameters.js'

const PARAMETERS = {
  threshold: number(1.5),
  bound: number(null),
  percent: number(50, { above: 0, below: 100 }),
  num_steps: integer(3, { min: 2 }),
  only_nan: flag(false),
  collection_names: list(),
  tensor_regex: list('.*'),
  token_values: numbers(0),
  name_prefix: text(null),
  mode: choice('EVAL', 'TRAIN', 'GLOBAL'),
}

const DEFAULTS = {
  threshold: 1.5,
  bound: null,
  percent: 50,
  num_steps: 3,
  only_nan: false,
  collection_names: [],
  tensor_regex: ['.*'],
  token_values: [0],
  name_prefix: null,
  mode: null,
}

const read = (given: Record<string, unknown>) => readParameters('Any', PARAMETERS, given)

it('has defaults', () => {
  expect(read({})).toEqual(DEFAULTS)
})

it.each([
  [{ threshold: '1e-05' }, { threshold: 1e-5 }],
  [{ threshold: -2 }, { threshold: -2 }],
  [{ threshold: ' 3 ' }, { threshold: 3 }],
  [{ threshold: 'Infinity' }, { threshold: Number.POSITIVE_INFINITY }],
  [{ threshold: 'None', bound: '', num_steps: undefined, mode: null }, {}],
  [{ bound: '7' }, { bound: 7 }],
  [{ num_steps: '5' }, { num_steps: 5 }],
  [{ num_steps: '10.0' }, { num_steps: 10 }],
  [
    { numSteps: 5, 'only-nan': 'True' },
    { num_steps: 5, only_nan: true },
  ],
  [{ only_nan: 'false' }, { only_nan: false }],
  [{ only_nan: true }, { only_nan: true }],
  [{ collection_names: 'gradients, weights,,' }, { collection_names: ['gradients', 'weights'] }],
  [{ collectionNames: ['a,b'] }, { collection_names: ['a,b'] }],
  [{ tensor_regex: '' }, { tensor_regex: [] }],
  [{ tensor_regex: 'None' }, {}],
  [{ token_values: '1, 2.5' }, { token_values: [1, 2.5] }],
  [{ token_values: 7 }, { token_values: [7] }],
  [{ token_values: ['3', 4] }, { token_values: [3, 4] }],
  // Numbers, too: nothing at all is not an empty list of them.
  [{ token_values: '' }, {}],
  [{ token_values: 'None' }, {}],
  [{ percent: '99.9' }, { percent: 99.9 }],
  [{ num_steps: '2' }, { num_steps: 2 }],
  [{ only_nan: 'None' }, {}],
  [{ name_prefix: 'job' }, { name_prefix: 'job' }],
  [{ name_prefix: '' }, {}],
  [{ mode: 'eval' }, { mode: 'EVAL' }],
])('reads %j', (given, expected) => {
  expect(read(given)).toEqual({ ...DEFAULTS, ...expected })
})

it.each([
  [{ threshold: 'high' }, 'expected threshold to be a number, got "high"'],
  [{ threshold: [1] }, 'expected threshold to be a number, got [1]'],
  [{ percent: '0' }, 'expected percent to be a number above 0 and below 100, got "0"'],
  [{ percent: 100 }, 'got 100'],
  [{ percent: 'NaN' }, 'got "NaN"'],
  [{ num_steps: '1' }, 'expected num_steps to be a whole number at least 2, got "1"'],
  [{ num_steps: 2.5 }, 'got 2.5'],
  [{ only_nan: 'constructor' }, 'expected only_nan to be true or false, got "constructor"'],
  [{ only_nan: 1 }, 'expected only_nan to be true or false, got 1'],
  [{ only_nan: 'yes' }, 'expected only_nan to be true or false, got "yes"'],
  [{ collection_names: [1] }, 'expected collection_names to be names separated by commas'],
  [{ token_values: [null] }, 'expected token_values to be numbers separated by commas'],
  [{ token_values: '1,x' }, 'expected token_values to be numbers separated by commas'],
  [{ name_prefix: 5 }, 'expected name_prefix to be text, got 5'],
  [{ mode: 'PREDICT' }, 'expected mode to be one of EVAL, TRAIN, GLOBAL, got "PREDICT"'],
  [{ treshold: 1 }, 'has no parameter "treshold"; did you mean threshold?'],
  [{ nonsense: 1 }, 'has no parameter "nonsense"; it has: threshold, bound'],
  [{ __proto__: null, constructor: 1 }, 'has no parameter "constructor"'],
])('refuses %j', (given, message) => {
  expect(() => read(given)).toThrow(UsageError)
  expect(() => read(given)).toThrow(message)
  expect(() => read(given)).toThrow('rule Any')
})

const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

describe.each(BUILTIN_RULES.map(RuleClass => [RuleClass.name, RuleClass.parameters] as const))(
  '%s',
  (rule, parameters) => {
    const defaults = readParameters(rule, parameters, {})

    it.each([
      ['', (name: string) => name],
      [', spelled as in JavaScript', camelCase],
    ])('takes its defaults as strings%s', (_, spell) => {
      const given = Object.entries(defaults).map(([name, value]) => [
        spell(name),
        value === null ? 'None' : String(value),
      ])
      expect(readParameters(rule, parameters, Object.fromEntries(given))).toEqual(defaults)
    })
  },
)
