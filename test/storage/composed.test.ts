/** Files that are made of pieces of others: any range of them has the bytes that all of it has. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ComposedStore } from '#dist/storage/composed/composed-store.js'
import type { SourceRecord } from '#dist/storage/composed/table-builder.js'
import { TableBuilder } from '#dist/storage/composed/table-builder.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { writeFile } from '../../fixtures/checkpoint-writer.js'
import { scratchDirectory } from '../support/scratch.js'

const root = scratchDirectory('composed')
const END = Uint8Array.of(250, 251, 252, 253)
const base = { kind: 'local', root } as const
/** Each byte tells its place. */
const FILE = Uint8Array.from({ length: 4096 }, (_, i) => (i * 7 + (i >> 8)) & 0xff)
writeFile(join(root, 'a.bin'), FILE)
writeFile(join(root, 'b.bin'), FILE.slice().reverse())

function storeOf(records: readonly SourceRecord[]): ComposedStore {
  const builder = new TableBuilder(END)
  builder.begin('one', 'a.bin')
  for (const record of records) builder.add(record)
  return new ComposedStore(new LocalStore(base), { kind: 'composed', base, tables: [builder.finish()] })
}

async function bytesOf(store: ComposedStore, start: number, length: number): Promise<number[]> {
  const bytes = new Uint8Array(length)
  const got = await store.readInto('one', start, bytes)
  return [...bytes.subarray(0, got)]
}

/** What the elements of a box are, one by one. */
function gather(
  file: Uint8Array,
  start: number,
  shape: readonly number[],
  strides: readonly number[],
  size: number,
): number[] {
  const out: number[] = []
  const walk = (axis: number, at: number): void => {
    if (axis === shape.length) out.push(...file.subarray(start + at * size, start + (at + 1) * size))
    else for (let i = 0; i < shape[axis]!; i++) walk(axis + 1, at + i * strides[axis]!)
  }
  walk(0, 0)
  return out
}

const HEAD = Uint8Array.of(1, 2, 3)

describe.each([
  { name: 'one run', shape: [4, 5], strides: [5, 1], size: 4 },
  { name: 'transposed', shape: [5, 4], strides: [1, 5], size: 4 },
  { name: 'every other', shape: [4, 3], strides: [10, 2], size: 2 },
  { name: 'expanded', shape: [3, 4], strides: [0, 1], size: 8 },
  { name: 'three axes, permuted', shape: [2, 3, 4], strides: [4, 8, 1], size: 2 },
  { name: 'far apart', shape: [3, 2], strides: [1, 700], size: 2 },
  { name: 'a scalar', shape: [], strides: [], size: 4 },
])('$name', ({ shape, strides, size }) => {
  const start = 16
  const record: SourceRecord = {
    head: HEAD,
    dataByteLength: shape.reduce((product, length) => product * length, size),
    blocks: [{ file: 'a.bin', start, byteLength: 0, offsets: shape.map(() => 0), shape, strides }],
    gathered: { shape, elementByteLength: size },
  }
  const whole = [...HEAD, ...gather(FILE, start, shape, strides, size), ...END]

  it('any range has what the whole has', async () => {
    const store = storeOf([record, record])
    const all = [...whole, ...whole]
    expect(await store.byteLength('one')).toBe(all.length)
    for (let from = 0; from < all.length; from += 3) {
      for (const length of [1, 2, 5, 17, 60, all.length]) {
        expect(await bytesOf(store, from, length)).toEqual(all.slice(from, from + length))
      }
    }
    await store.close()
  })
})

it('puts boxes of several files together', async () => {
  // A tensor of 4 × 6: columns 0 to 3 from one file, 4 and 5 from another.
  const shape = [4, 6]
  const store = storeOf([
    {
      head: HEAD,
      dataByteLength: 24,
      blocks: [
        { file: 'a.bin', start: 100, byteLength: 0, offsets: [0, 0], shape: [4, 4], strides: [4, 1] },
        { file: 'b.bin', start: 7, byteLength: 0, offsets: [0, 4], shape: [4, 2], strides: [2, 1] },
      ],
      gathered: { shape, elementByteLength: 1 },
    },
  ])
  const b = FILE.slice().reverse()
  const expected = Array.from({ length: 24 }, (_, i) => {
    const [row, column] = [Math.floor(i / 6), i % 6]
    return column < 4 ? FILE[100 + row * 4 + column]! : b[7 + row * 2 + column - 4]!
  })
  expect(await bytesOf(store, 3, 24)).toEqual(expected)
  expect(await bytesOf(store, 10, 9)).toEqual(expected.slice(7, 16))
  await store.close()
})

it('reads runs of several files one after the other, and bytes that no file holds', async () => {
  const store = storeOf([
    {
      head: HEAD,
      dataByteLength: 12,
      blocks: [
        { file: 'a.bin', start: 5, byteLength: 4 },
        { file: null, start: 0, byteLength: 3, literal: Uint8Array.of(9, 8, 7) },
        { file: 'b.bin', start: 0, byteLength: 5 },
      ],
    },
  ])
  const expected = [...HEAD, ...FILE.subarray(5, 9), 9, 8, 7, ...FILE.slice().reverse().subarray(0, 5), ...END]
  expect(await bytesOf(store, 0, 100)).toEqual(expected)
  expect(store.headByteLength('one', 0)).toBe(3)
  expect(store.headByteLength('one', 1)).toBeUndefined()
  await store.close()
})

it('says that a file was cut while it was read', async () => {
  const store = storeOf([{ head: HEAD, dataByteLength: 8, blocks: [{ file: 'a.bin', start: 4092, byteLength: 8 }] }])
  expect(() => store.readInto('one', 0, new Uint8Array(15))).toThrow(/a\.bin: expected 4100 bytes, got 4096/)
  await store.close()
})
