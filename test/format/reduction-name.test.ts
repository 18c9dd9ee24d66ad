import { expect, it } from 'vitest'
import { REDUCTIONS } from '#dist/base/types.js'
import { parseReductionName, reductionTensorName } from '#dist/format/reduction-name.js'

it('every reduction goes into a name and comes back', () => {
  for (const reduction of REDUCTIONS) {
    for (const tensor of ['fc.weight', 'gradient/fc.weight', 'a\nb', '/']) {
      expect(parseReductionName(reductionTensorName(reduction, tensor))).toEqual({ reduction, tensor })
    }
  }
  expect(reductionTensorName('abs_l2', 'gradient/x')).toBe('smdebug/reductions/abs_l2/gradient/x')
})

it('reads the names of Tornasole', () => {
  expect(parseReductionName('tornasole/reductions/mean/x')).toEqual({ reduction: 'mean', tensor: 'x' })
})

it.each([
  'fc.weight',
  'smdebug/reductions/median/x',
  'smdebug/reductions/abs_/x',
  'smdebug/reductions/abs_abs_min/x',
  'smdebug/reductions/constructor/x',
  'smdebug/reductions/mean',
  'smdebug/reductions/mean/',
  'x/smdebug/reductions/mean/x',
  'SMDEBUG/reductions/mean/x',
])('%s is none', name => {
  expect(parseReductionName(name)).toBeNull()
})
