/** Patterns of trialscan's own, which V8's engine matches: they mean what they mean as patterns of others. */

import { describe, expect, it } from 'vitest'
import { compileOwnPattern, compilePattern } from '#dist/format/regex/pattern.js'
import { IN_WORDS, NOT_OF_TREES } from '#dist/rules/base/names.js'

const NAMES = [
  ...[
    'relu0_output_0',
    'leaky_relu_output',
    'prelu1_output',
    'ReLU/outputs',
    'x/Relu6_1:0',
    'tanh0_input_0',
    'logsigmoid_output',
  ],
  ...[
    'CNN_input_0',
    'CrossEntropyLoss_input_0',
    'CrossEntropyLoss_input_1',
    'crossentropyloss_input_1\n',
    'labels_1:0',
    'label\n',
  ],
  ...[
    'embedding0_input_0',
    'predictions',
    'trees/Node',
    'gradient/loss',
    'my\nloss',
    'lo\u017f\u017f',
    '\u212aeras/loss',
    'labels\u0663',
  ],
  ...[
    '',
    'inputs',
    'sig1_output',
    'hardtanh_output',
    'sequential0_input_0',
    'a'.repeat(300),
    ...[
      'CrossEntropyLoss_output_0',
      'Loss_input_output',
      'softmaxloss0_output',
      'gradient/kernel',
      'dense/kernel:0',
      'my_Loss',
    ],
    ...[
      'train-error',
      'validation-auc',
      'a_-b^',
      'average_shap/f0',
      'average_shap/bias',
      'full_shap/f1',
      'loss\n._output',
    ],
    `${'relu'.repeat(100)}_output`,
  ],
]

/** The same pattern, which the engine for those of others gets even if hooks write it. */
function inGroup(source: string): string {
  const [, flag = '', body = ''] = /^(\(\?i\))?(.*)$/s.exec(source)!
  return `${flag}(?:${body})`
}

describe.each([...IN_WORDS.keys(), NOT_OF_TREES])('%s', source => {
  it('finds the same names', () => {
    const [own, others] = [compileOwnPattern(source), compilePattern(inGroup(source))]
    expect(NAMES.filter(own.matches)).toEqual(NAMES.filter(others.matches))
  })

  it('ends on names that were made to hurt it', () => {
    const startedAt = performance.now()
    for (const part of [
      'relu',
      'tanh',
      'sigmoid_',
      'act1.',
      'embed',
      'Loss',
      'A',
      'loss_',
      'weigh',
      'a-',
      'full_shap/',
    ]) {
      for (const length of [256, 20_000]) compileOwnPattern(source).matches(part.repeat(length / part.length))
    }
    expect(performance.now() - startedAt).toBeLessThan(20_000)
  })
})
