/** Tensors of two checkpoints that can't be compared: each is told, and the rest is compared. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('not-comparable')

type Stored = readonly [dtype: string, shape: readonly number[], bytes: ArrayBufferView]

function written(name: string, tensors: Readonly<Record<string, Stored>>): string {
  const header: Record<string, unknown> = {}
  const pieces: Buffer[] = []
  let at = 0
  for (const [tensor, [dtype, shape, { buffer, byteLength }]] of Object.entries(tensors)) {
    header[tensor] = { dtype, shape, data_offsets: [at, at + byteLength] }
    at += byteLength
    pieces.push(Buffer.from(buffer))
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const path = join(scratch, `${name}.safetensors`)
  writeFileSync(path, Buffer.concat([length, text, ...pieces]))
  return path
}

const four: Stored = ['F32', [4], Float32Array.of(1, 2, 3, 4)]
const a = written('a', {
  'codes.weight': four,
  'count.weight': four,
  'same.weight': four,
  'wide.weight': four,
  'z.weight': four,
})

it('integers beside floats, shapes that differ, and names that one side lacks', async () => {
  const b = written('b', {
    'codes.weight': ['I8', [4], Int8Array.of(1, 2, 3, 9)],
    'count.weight': ['I32', [4], Int32Array.of(1, 2, 3, 4)],
    'same.weight': four,
    'wide.weight': ['F32', [2, 2], Float32Array.of(1, 2, 3, 4)],
    'y.weight': four,
  })
  const { code, stdout } = await trialscan('diff', a, b, '--format', 'jsonl')
  expect(code).toBe(1)
  const rows = stdout
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(line => JSON.parse(line))
  const told = Object.fromEntries(rows.map(({ tensor, kind, message }) => [tensor, [kind, message]]))
  expect(told).toEqual({
    'codes.weight': [
      'dtype',
      'it is float32 in the first run and int8 in the second, and no scales say which floats the integers stand for',
    ],
    'wide.weight': ['shape', 'its shape is [4] in the first run and [2,2] in the second'],
    'y.weight': ['missing', 'only in the second run'],
    'z.weight': ['missing', 'only in the first run'],
  })
  const { stdout: table } = await trialscan('diff', a, b, '--format', 'table')
  expect(table.replace(/\s+/g, ' ')).toContain('2 of 4 tensors changed')
  expect(table).toMatch(/codes\.weight +dtype +it is float32/)
})

it('the rest alone decides the exit code', async () => {
  const b = written('c', { 'same.weight': four, 'count.weight': ['I32', [4], Int32Array.of(1, 2, 3, 4)] })
  expect((await trialscan('diff', a, b)).code).toBe(0)
  expect((await trialscan('diff', a, written('d', { 'other.weight': four }))).code).toBe(5)
})
