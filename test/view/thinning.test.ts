/** Which steps are shown where there are too many. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Mode } from '#dist/index.js'
import { thinned } from '#dist/view/thinning.js'

const MODES = ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL'] as const

it('keeps all nine steps of evaluation among ninety, and says what it left out', () => {
  const steps = Array.from({ length: 90 }, (_, i) => i)
  const modeOf = (step: number): Mode => (step % 10 === 9 ? 'EVAL' : 'TRAIN')
  const { steps: kept, thinned: left } = thinned(steps, modeOf, 60)
  expect(kept).toHaveLength(60)
  expect(kept.filter(step => modeOf(step) === 'EVAL')).toEqual([9, 19, 29, 39, 49, 59, 69, 79, 89])
  expect([kept[0], kept.at(-2)]).toEqual([0, 88])
  expect(left).toEqual([
    { mode: 'TRAIN', kept: 51, of: 81 },
    { mode: 'EVAL', kept: 9, of: 9 },
  ])
})

it('keeps all where there is room', () => {
  expect(thinned([1, 2, 3], () => 'TRAIN', 3)).toEqual({ steps: [1, 2, 3], thinned: [] })
})

it('fills the room, in order, with the first and last step of each mode, whatever the modes', () => {
  const modes = fc.array(fc.constantFrom(...MODES), { maxLength: 300 })
  fc.assert(
    fc.property(modes, fc.integer({ min: 24, max: 60 }), (all, most) => {
      const steps = [...all.keys()]
      const { steps: kept, thinned: left } = thinned(steps, step => all[step]!, most)
      expect(kept).toHaveLength(Math.min(all.length, most))
      expect([...kept].sort((a, b) => a - b)).toEqual(kept)
      for (const mode of new Set(all)) {
        const own = kept.filter(step => all[step] === mode)
        expect([own[0], own.at(-1)]).toEqual([all.indexOf(mode), all.lastIndexOf(mode)])
        if (left.length > 0) expect(left.find(one => one.mode === mode)!.kept).toBe(own.length)
      }
      if (all.length <= most) expect(left).toEqual([])
    }),
    { seed: 34 },
  )
})
