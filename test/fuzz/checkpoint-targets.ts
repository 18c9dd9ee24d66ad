/** Readers of checkpoints: safetensors and the index of shards; torch's pickles, ZIP and older form; the metadata of distributed checkpoints. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TrialscanError } from '#dist/base/errors.js'
import { DISTRIBUTED } from '#dist/format/checkpoint/dcp/format.js'
import { runPickle } from '#dist/format/checkpoint/pickle/machine.js'
import { readPickle } from '#dist/format/checkpoint/pickle/read-pickle.js'
import { headerLength, parseHeader } from '#dist/format/checkpoint/safetensors/safetensors-header.js'
import { parseShardIndex } from '#dist/format/checkpoint/safetensors/shards.js'
import type { RangedFile, StoredTensor, TensorFileContents } from '#dist/format/checkpoint/stored-tensor.js'
import { TORCH } from '#dist/format/checkpoint/torch/format.js'
import { structureOf } from '#dist/format/checkpoint/torch/structure.js'
import { fileOf, sizeOf } from '../support/checkpoint-files.js'
import { bytesOf, call, dict, int, list, pickled, tensor, text, torchZip, tuple } from '../support/pickles.js'
import { concat, littleEndian, mutateBytes, utf8 } from './bytes.js'
import { mutateJson } from './json.js'
import type { Target } from './targets.js'

const OPCODES = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte))
const ZIP_WORDS = ['PK\x01\x02', 'PK\x03\x04', 'PK\x05\x06', 'PK\x06\x06', 'PK\x06\x07', 'archive/data/0'].map(word =>
  bytesOf(word),
)

function handMade(): Uint8Array[] {
  const one = tensor({ count: 4, size: [2, 2], stride: [2, 1] })
  return [
    pickled(dict({ a: one, b: list(int(1), text('x')), c: tuple(int(-1)) })),
    pickled(call('os', 'system', text('id'))),
    bytesOf([0x80, 4, 0x95], new Uint8Array(8), [0x8c, 1, 0x61, 0x94, 0x8c, 1, 0x62, 0x94, 0x93, 0x29, 0x81, 0x2e]),
    pickled([0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 64], [0x47, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0, 0x86]),
  ]
}

/** What may be refused, and nothing else. */
function expectRefusal(error: unknown): void {
  if (!(error instanceof TrialscanError)) throw error
}

export const pickle: Target = {
  seeds: fixtures => [
    ...handMade(),
    Uint8Array.from(readFileSync(join(fixtures, 'checkpoints/dcp/step-100/.metadata'))).slice(0, 4096),
    Uint8Array.from(readFileSync(join(fixtures, 'checkpoints/torch/legacy.pt'))).slice(0, 2600),
  ],
  mutate: (input, chance, other) => mutateBytes(input, chance, OPCODES, other),
  maxByteLength: 1 << 14,
  run(input) {
    try {
      const value = readPickle(input)
      const structure = JSON.stringify(structureOf(runPickle(input)))
      if (value === undefined || structure === undefined) throw new Error('a pickle that is nothing')
    } catch (error) {
      expectRefusal(error)
    }
  },
}

/** Each block lies in its file. */
function expectInside({ tensors }: TensorFileContents, lengthOf: (path: string) => number): void {
  for (const found of tensors) {
    for (const block of found.blocks) {
      const end = block.start + extentOf(found, block) * sizeOf(found.dtype)
      if (!(block.start >= 0 && end <= lengthOf(block.file)))
        throw new Error(`${found.name} lies outside of ${block.file}`)
    }
  }
}

function extentOf({ shape }: StoredTensor, { shape: own = shape, strides }: StoredTensor['blocks'][0]): number {
  if (own.includes(0)) return 0
  if (strides === undefined) return own.reduce((product, size) => product * size, 1)
  return 1 + own.reduce((sum, size, axis) => sum + (size - 1) * strides[axis]!, 0)
}

export const torchFile: Target = {
  seeds: fixtures => [
    ...handMade().map(root => torchZip({ 'data.pkl': root, 'data/0': new Uint8Array(16), version: bytesOf('3\n') })),
    Uint8Array.from(readFileSync(join(fixtures, 'checkpoints/torch/legacy.pt'))),
    Uint8Array.from(readFileSync(join(fixtures, 'checkpoints/broken/evil.pt'))),
  ],
  mutate: (input, chance, other) => mutateBytes(input, chance, [...OPCODES, ...ZIP_WORDS], other),
  maxByteLength: 1 << 14,
  async run(input) {
    const around = { paths: ['file.pt'], open: () => Promise.reject(new Error('another file')) }
    try {
      expectInside(await TORCH.read(fileOf(input), around), () => input.length)
    } catch (error) {
      expectRefusal(error)
    }
  },
}

export const distributedMetadata: Target = {
  seeds: fixtures =>
    ['checkpoints/dcp/step-100/.metadata', 'checkpoints/torch-2.13/dcp/step-100/.metadata'].map(path =>
      Uint8Array.from(readFileSync(join(fixtures, path))),
    ),
  mutate: (input, chance, other) => mutateBytes(input, chance, OPCODES, other),
  maxByteLength: 1 << 15,
  async run(input) {
    // A megabyte of zeros: each chunk is refused, in its own right.
    const chunks = new Uint8Array(1 << 20)
    const open = async (path: string): Promise<RangedFile> => fileOf(chunks, path)
    try {
      const contents = await DISTRIBUTED.read(fileOf(input, '.metadata'), { paths: ['.metadata'], open })
      expectInside(contents, () => chunks.length)
    } catch (error) {
      expectRefusal(error)
    }
  },
}

const HEADER_WORDS = ['dtype', 'shape', 'data_offsets', '__metadata__', 'F32', 'BF16', 'F8_E4M3', 'F4', 'F6_E2M3'].map(
  utf8,
)

/** A header with its length before it, and as many elements behind it as there were. */
function safetensorsOf(header: Uint8Array, elements: Uint8Array): Uint8Array {
  return concat([littleEndian(BigInt(header.length), 8), header, elements])
}

export const safetensors: Target = {
  seeds: fixtures => [
    Uint8Array.from(readFileSync(join(fixtures, 'checkpoints/base/model.safetensors'))),
    safetensorsOf(
      utf8('{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[],"data_offsets":[2,3]}}'),
      new Uint8Array(3),
    ),
  ],
  mutate(input, chance, other) {
    const length = input.length < 8 ? -1 : Number(new DataView(input.buffer, input.byteOffset).getBigUint64(0, true))
    if (chance.once(3) || length < 0 || length > input.length - 8)
      return mutateBytes(input, chance, HEADER_WORDS, other)
    const header = mutateJson(input.subarray(8, 8 + length), chance, HEADER_WORDS, other)
    return safetensorsOf(header, input.subarray(8 + length))
  },
  maxByteLength: 1 << 14,
  async run(input) {
    try {
      const length = headerLength(input.subarray(0, 64), 'x', input.length)
      let filled = 8 + length
      for (const { name, begin, end } of (await parseHeader(input.subarray(8, filled), 'x', input.length)).tensors) {
        if (!(begin <= end && end <= input.length)) throw new Error(`${name} lies outside of the file`)
        if (begin < end && begin < filled) throw new Error(`${name} overlaps another tensor, or the header`)
        filled = Math.max(filled, end)
      }
    } catch (error) {
      expectRefusal(error)
    }
  },
}

export const shardIndex: Target = {
  seeds: () => [
    utf8(
      '{"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}',
    ),
  ],
  mutate: (input, chance, other) =>
    mutateJson(input, chance, ['weight_map', 'metadata', 'total_size', '../a.safetensors'].map(utf8), other),
  maxByteLength: 1 << 14,
  run(input) {
    try {
      const { shards, shardOf } = parseShardIndex(new TextDecoder().decode(input), 'x')
      for (const shard of shards) if (/[/\\]|^\.\.?$/.test(shard)) throw new Error(`${shard} lies elsewhere`)
      for (const [name, shard] of shardOf) if (!shards.includes(shard)) throw new Error(`${name} is in no shard`)
    } catch (error) {
      expectRefusal(error)
    }
  },
}
