/** Two tensors of 16 bits compared in the core, beside the same numbers as float64. */

import { expect, test } from 'vitest'
import { DifferenceRow, DTypeNumber } from '#dist/core/border/abi.js'
import { loadCore } from '../support/core.js'

const { exports: core, memory } = loadCore()
core.arenaReset()
const COUNT = 1 << 16
const [A, B, WIDE_A, WIDE_B, ROW] = Array.from({ length: 5 }, () => core.arenaReserve(COUNT * 8) >>> 0) as [
  number,
  number,
  number,
  number,
  number,
]

function compared(dtype: DTypeNumber, a: number, b: number, count: number): Float64Array {
  const row = new Float64Array(memory.buffer, ROW, DifferenceRow.size / 8)
  row.fill(0)
  row[DifferenceRow.firstUnequal / 8] = -1
  core.compare(dtype, a, dtype, b, count, 1, 1, ROW)
  return row.slice()
}

test.each([
  ['float16', DTypeNumber.float16, 0x7c00],
  ['bfloat16', DTypeNumber.bfloat16, 0x7f80],
] as const)('%s of any bits, finite or not, at any address, with the distance in steps', (_, dtype, infinity) => {
  const place = (bits: number) => (bits & 0x8000 ? -(bits & 0x7fff) : bits)
  for (const [offset, count] of [3, 7, 8, 1000, 1023, 5001, COUNT - 8].entries()) {
    for (const isTame of [true, false]) {
      const patterns = [40_503, 25_173].map(factor =>
        Uint16Array.from({ length: count }, (_, i) => {
          const bits = (i * factor + 13_849 + offset) & 0xffff
          return isTame && (bits & 0x7fff) >= infinity ? bits & 0x83ff : bits
        }),
      ) as [Uint16Array, Uint16Array]
      for (const [side, at] of [A + offset, B + 3].entries()) {
        new Uint8Array(memory.buffer).set(new Uint8Array(patterns[side]!.buffer), at)
        core.widenToDoubles(dtype, at, count, [WIDE_A, WIDE_B][side]!)
      }
      const narrow = compared(dtype, A + offset, B + 3, count)
      const wide = compared(DTypeNumber.float64, WIDE_A, WIDE_B, count)
      let most = 0
      for (let i = 0; i < count; i++) {
        const [p, q] = [patterns[0][i]!, patterns[1][i]!]
        if ([p, q].every(bits => (bits & 0x7fff) <= infinity)) most = Math.max(most, Math.abs(place(p) - place(q)))
      }
      expect(narrow[DifferenceRow.maxUlps / 8]).toBe(most)
      for (let slot = 0; slot < narrow.length; slot++) {
        if (slot === DifferenceRow.maxUlps / 8) continue
        // Sums are added up in another order.
        const [x, y] = [narrow[slot]!, wide[slot]!]
        if (!Object.is(x, y))
          expect(Math.abs(x - y)).toBeLessThanOrEqual(1e-11 * Math.abs(wide[DifferenceRow.squaresA / 8]!))
      }
    }
  }
})
