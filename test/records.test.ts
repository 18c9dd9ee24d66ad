/** Records of a batch all at once, beside the same record by record. */

import { describe, expect, it } from 'vitest'
import { CoreRecords, OrdinaryRecords } from '#dist/core/batch/core-records.js'
import { RecordSlot, Status } from '#dist/core/border/abi.js'
import type { Address } from '#dist/core/border/memory.js'
import { DTYPES, dtypeNumber, isOrdinary } from '#dist/core/dtype.js'
import { Engine } from '#dist/core/engine.js'
import { isFiniteRow } from '#dist/core/moments.js'
import { MOMENT_INDEX, ROW_LENGTH } from '#dist/core/moments-row.js'

const engine = new Engine()

describe('records of a batch', () => {
  it('are ordinary if the host says so of their dtypes and rows', () => {
    engine.reset()
    const batch = engine.reserveBatch(1)
    const ordinary = new OrdinaryRecords(engine, batch)
    const words = engine.words(batch.slots, RecordSlot.size / 4).fill(0)
    const row = engine.rows(batch, 1)
    const slots = ['nanCount', 'positiveInfinityCount', 'negativeInfinityCount', 'exponent'] as const
    const rows = [
      { count: 3 },
      { count: 0 },
      ...slots.flatMap(slot => [
        { count: 3, [slot]: 1 },
        { count: 3, [slot]: -1 },
        { count: 3, [slot]: Number.NaN },
      ]),
    ] as const
    let found = 0
    for (const dtype of DTYPES) {
      for (const status of [Status.ok, Status.truncated]) {
        for (const numbers of rows) {
          words[RecordSlot.status / 4] = status
          words[RecordSlot.dtype / 4] = dtypeNumber(dtype)
          row.fill(0)
          for (const [name, number] of Object.entries(numbers)) row[MOMENT_INDEX[name as 'count']] = number
          const expected = status === Status.ok && isOrdinary(dtype) && isFiniteRow(row, 0)
          expect([dtype, status, numbers, ordinary.count(0, 1)]).toEqual([dtype, status, numbers, expected ? 1 : 0])
          if (expected) found++
        }
      }
    }
    expect(found).toBeGreaterThan(DTYPES.length / 2)
  })

  it('are described up to the first that is not ordinary, or whose dimensions have no space', () => {
    engine.reset()
    const batch = engine.reserveBatch(8)
    const ordinary = new OrdinaryRecords(engine, batch)
    const ranks = [0, 3, 1, 250, 34, 1, 0, 0]
    const dims = engine.reserveBytes(8 * 300)
    engine.doubles(dims, 300).set(Array.from({ length: 300 }, (_, i) => i))
    const words = engine.words(batch.slots, (8 * RecordSlot.size) / 4).fill(0)
    ranks.forEach((rank, i) => {
      const at = (i * RecordSlot.size) / 4
      words[at + RecordSlot.dtype / 4] = dtypeNumber('float32')
      words[at + RecordSlot.rank / 4] = rank
      words[at + RecordSlot.dims / 4] = dims + 8 * i
      engine.rows(batch, 8).fill(0, i * ROW_LENGTH, (i + 1) * ROW_LENGTH)[i * ROW_LENGTH + MOMENT_INDEX.count] = 1
    })
    // There is space for 288.
    expect(ordinary.count(0, 8)).toBe(5)
    const { dtypes, ranks: told, dims: all } = ordinary.describe(5)
    expect([...dtypes]).toEqual(Array(5).fill(dtypeNumber('float32')))
    expect([...told]).toEqual([0, 3, 1, 250, 34])
    expect([...all]).toEqual([
      1,
      2,
      3,
      2,
      ...Array.from({ length: 250 }, (_, i) => 3 + i),
      ...Array.from({ length: 34 }, (_, i) => 4 + i),
    ])
    expect(ordinary.count(5, 3)).toBe(3)
    words[(6 * RecordSlot.size + RecordSlot.dtype) / 4] = dtypeNumber('int64')
    expect(ordinary.count(5, 3)).toBe(1)
    expect(ordinary.count(6, 2)).toBe(0)
    expect(ordinary.count(7, 1)).toBe(1)
  })

  it('are asked for as they are one by one, in any order, and beyond what was read', () => {
    const tag = Int32Array.of(1, -1, 0, 1, 0, 0)
    const startByte = Float64Array.of(1000, 1100, 1300, 1700, 2 ** 40, 1200)
    const byteLength = Float64Array.of(100, 200, 300, 2 ** 32 + 5, 400, 15)
    const step = Float64Array.of(0, 7, -1, 2 ** 52, 3, 4)
    const tornasole = Uint8Array.of(0, 1, 0, 0, 1, 0)
    for (const order of [null, Int32Array.of(5, 3, 4, 1, 0, 2)]) {
      engine.reset()
      const tags = engine.writeTexts(['a', 'layer.weight'])
      const [batch, expected] = [engine.reserveBatch(6), engine.reserveBatch(6)]
      const records = new CoreRecords(engine, { tag, startByte, byteLength, step, tornasole }, order, tags)
      const [window, windowLength, available] = [4096 as Address, 800, 350]
      const of = (i: number) => order?.[1 + i] ?? 1 + i
      const asked = { address: window, startByte: 1000, byteLength: windowLength, available }
      expect(records.ask(batch, 1, 5, asked)).toBe(order === null ? 2 : 1)
      const isPossible = (i: number) => byteLength[of(i)]! >= 16 && byteLength[of(i)]! < 2 ** 32
      engine.ask(
        expected,
        5,
        tags,
        i => {
          const record = of(i)
          const length = isPossible(i) ? byteLength[record]! : 0
          return { byteLength: length, tag: tag[record]!, step: step[record]!, tornasole: tornasole[record] === 1 }
        },
        i => {
          const at = startByte[of(i)]! - 1000
          const length = isPossible(i) ? Math.max(0, Math.min(byteLength[of(i)]!, available - at)) : 0
          return { address: window + Math.min(at, windowLength), byteLength: length }
        },
      )
      for (let i = 0; i < 5; i++) {
        const at = (slots: Address) => engine.view((slots + i * RecordSlot.size) as Address, RecordSlot.status).slice()
        expect([i, at(batch.slots)]).toEqual([i, at(expected.slots)])
      }
    }
  })
})
