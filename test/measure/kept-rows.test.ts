import { expect, it } from 'vitest'
import { ROW_LENGTH } from '#dist/core/moments-row.js'
import { KeptRows } from '#dist/trial/measure/kept-rows.js'

/** Rows of random bits, of which some slots are the same in all; the others are in one row alone, or in several. */
function rowsOf(count: number): Float64Array<ArrayBuffer> {
  const words = new Int32Array(2 * ROW_LENGTH * count)
  let state = 20191113
  const next = (): number => {
    state = Math.imul(state, 1664525) + 1013904223
    return state
  }
  const first = Int32Array.from({ length: 2 * ROW_LENGTH }, next)
  first.fill(0x7ff4_0123, 0, 2)
  for (let row = 0; row < count; row++) {
    words.set(first, 2 * ROW_LENGTH * row)
    for (let word = row % 5; word < 2 * ROW_LENGTH; word += 7) words[2 * ROW_LENGTH * row + word] = next()
  }
  return new Float64Array(words.buffer)
}

it.each([1, 2, 100])('%d rows are given back to the bit, NaN that carry integers too', count => {
  const rows = rowsOf(count)
  expect(rows.some(Number.isNaN)).toBe(true)
  const kept = new KeptRows(rows)
  for (let i = count - 1; i >= 0; i--) {
    const row = rows.slice(i * ROW_LENGTH, (i + 1) * ROW_LENGTH)
    expect(new BigUint64Array(kept.row(i).buffer)).toEqual(new BigUint64Array(row.buffer))
  }
})

it('a row is a copy', () => {
  const kept = new KeptRows(rowsOf(3))
  kept.row(1).fill(0)
  expect(kept.row(1)).toEqual(rowsOf(3).subarray(ROW_LENGTH, 2 * ROW_LENGTH))
})
