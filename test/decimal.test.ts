/** Numbers as the core writes them: every one as JavaScript does, but for the sign of zero, which is kept. */

import { describe, expect, it } from 'vitest'
import { CoreRecords } from '#dist/core/batch/core-records.js'
import { LineTable } from '#dist/core/batch/line-table.js'
import { NumberForm, RecordSlot } from '#dist/core/border/abi.js'
import { NO_TEXTS } from '#dist/core/border/memory.js'
import { decimalPowers } from '#dist/core/decimal.js'
import { Engine } from '#dist/core/engine.js'
import { MOMENT_INDEX, MOMENT_SLOTS, ROW_LENGTH } from '#dist/core/moments-row.js'
import { jsonNumber, plainNumber } from '#dist/scan/job/row.js'
import { uniform } from '../fixtures/random.js'

const engine = new Engine()
const ROWS = 1 << 12

function written(numbers: Float64Array, columns: number, label: string, isJson = false): string {
  engine.reset()
  const slots = MOMENT_SLOTS.map(name => [MOMENT_INDEX[name], name] as const).sort(([a], [b]) => a - b)
  const named = Array.from({ length: columns }, (_, i) => slots[i]!)
  const count = numbers.length / columns
  // Scalars, in whose rows these numbers are where moments would be.
  const batch = engine.reserveBatch(count)
  engine.words(batch.slots, (count * RecordSlot.size) / 4).fill(0)
  const view = engine.rows(batch, count)
  for (let row = 0; row < count; row++) {
    for (const [i, [slot]] of named.entries()) view[row * ROW_LENGTH + slot] = numbers[row * columns + i]!
  }
  const column = new Float64Array(count)
  const asked = { tag: new Int32Array(count), startByte: column, byteLength: column, step: column }
  const records = new CoreRecords(engine, { ...asked, tornasole: new Uint8Array(count) }, null, NO_TEXTS)
  const table = new LineTable(engine, {
    columns: named.map(([, slot], i) => ({ label: `${label}${i}:`, slot, form: NumberForm.slot })),
    isJson,
    end: '',
    names: [''],
    dtype: () => '',
  })
  const parts: Uint8Array[] = []
  for (let at = 0; at < count; ) {
    const { text, ends } = table.write(records, at, batch, at, count - at)!
    parts.push(text.slice())
    at += ends.length
  }
  return Buffer.concat(parts).toString()
}

function expected(numbers: Float64Array, columns: number, label: string, isJson = false): string {
  const spell = isJson ? jsonNumber : plainNumber
  const scalar = isJson ? '[]' : 'scalar'
  return Array.from(
    numbers,
    (number, i) => `${i % columns === 0 ? scalar : ''}${label}${i % columns}:${spell(number)}`,
  ).join('')
}

const SPECIAL = [
  0,
  -0,
  1,
  -1,
  0.1,
  0.2,
  0.3,
  5e-324,
  -5e-324,
  1e-323,
  2.225073858507201e-308,
  2.2250738585072014e-308,
  1.7976931348623157e308,
  1e21,
  1e22,
  999999999999999900000,
  123456789012345680000,
  1e-6,
  1e-7,
  1.5e-7,
  -1.2345678901234567e-6,
  9007199254740991,
  9007199254740992,
  9007199254740994,
  2 ** 63,
  -(2 ** 63),
  100,
  1e20,
  4.35,
  9.5367431640625e-7,
  8.41e21,
  2e-44,
  1e23,
  9e-265,
  5.0e-310,
  1.7800590868057611e-307,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
]

describe('a number as text', () => {
  it.each([false, true])('of the special ones; as JSON: %s', isJson => {
    const numbers = Float64Array.from(SPECIAL)
    expect(written(numbers, 1, ',', isJson)).toBe(expected(numbers, 1, ',', isJson))
  })

  it.each([2, 3, 18])('stands behind the label of its column, of %s columns', columns => {
    const numbers = Float64Array.from({ length: columns * 5 }, (_, i) => i / 7)
    const label = '," of a longer name, in more than sixteen bytes":'
    expect(written(numbers, columns, label)).toBe(expected(numbers, columns, label))
  })

  const random = uniform(Number(process.env.TRIALSCAN_SEED ?? 20191113))
  const below = (limit: number) => Math.floor(random() * limit)
  const numbers = new Float64Array(ROWS)
  const bits = new BigUint64Array(numbers.buffer)
  const ofBits = (i: number, value: bigint) => {
    bits[i] = value & 0xffff_ffff_ffff_ffffn
  }
  const near = (i: number, value: number) => {
    numbers[i] = value
    ofBits(i, bits[i]! + BigInt(below(5) - 2))
  }
  const DRAWS: Readonly<Record<string, (i: number) => void>> = {
    'any bits': i => ofBits(i, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32))),
    'float32 numbers': i => {
      numbers[i] = Math.fround((random() - 0.5) * 10 ** (random() * 20 - 10))
    },
    'whole numbers': i => {
      numbers[i] = Math.floor(random() * 10 ** (random() * 24))
    },
    'numbers of few digits': i => {
      numbers[i] = Number(`${below(10 ** (1 + below(6)))}e${below(80) - 40}`)
    },
    'subnormal numbers': i => ofBits(i, BigInt(below(2 ** (1 + below(50))))),
    'neighbours of powers of two': i => near(i, 2 ** (below(2098) - 1074)),
    'neighbours of powers of ten': i => near(i, 10 ** (below(632) - 323)),
  }
  it.each(Object.entries(DRAWS))('of %s: 131,072 of them', (_, draw) => {
    for (let round = 0; round < 32; round++) {
      for (let i = 0; i < ROWS; i++) draw(i)
      expect(written(numbers, 2, ',') === expected(numbers, 2, ',')).toBe(true)
    }
  })
})

it('takes powers of ten that are the first 128 bits, rounded up', () => {
  const powers = new BigUint64Array(decimalPowers().slice().buffer)
  for (const [i, exponent] of [-292, -291, -28, -1, 0, 1, 27, 55, 56, 323, 324].map(
    e => [e + 292, BigInt(e)] as const,
  )) {
    const power = (powers[2 * i]! << 64n) | powers[2 * i + 1]!
    expect(power >> 127n).toBe(1n)
    // power − 1 < 10^exponent · 2^shift ≤ power
    const [numerator, denominator] = exponent < 0n ? [1n, 10n ** -exponent] : [10n ** exponent, 1n]
    const shift = 127n - log2(numerator, denominator)
    const [left, right] = shift < 0n ? [numerator, denominator << -shift] : [numerator << shift, denominator]
    expect((power - 1n) * right < left && left <= power * right).toBe(true)
  }
})

/** ⌊log2 numerator/denominator⌋ */
function log2(numerator: bigint, denominator: bigint): bigint {
  const bitsOf = (value: bigint) => BigInt(value.toString(2).length)
  const guess = bitsOf(numerator) - bitsOf(denominator)
  const isLess = guess < 0n ? numerator << -guess < denominator : numerator < denominator << guess
  return isLess ? guess - 1n : guess
}
