/** The axes of very many histograms. */

import { expect, it } from 'vitest'
import { axesOf, lostOf } from '#dist/view/page/pictures/histogram.js'

it('has an axis for more bars than a call takes arguments', () => {
  const shares = new Array<number>(60).fill(1 / 60)
  const all = Array.from({ length: 4000 }, (_, i) => ({
    low: -i,
    high: i + 1,
    shares,
    count: 60,
    lost: [1, 2, 3] as const,
  }))
  const { from, to, most } = axesOf(all, 'linear')
  expect([from, to]).toEqual([-3999, 4000])
  expect(most).toBeGreaterThan(1)
  expect(lostOf(all[0]!)).toBe(6)
})
