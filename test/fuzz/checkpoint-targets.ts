/** Readers of torch's files: pickles, the ZIP around them and the older form, and the metadata of distributed checkpoints. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TrialscanError } from '#dist/base/errors.js'
import { DISTRIBUTED } from '#dist/format/checkpoint/dcp/format.js'
import { runPickle } from '#dist/format/checkpoint/pickle/machine.js'
import { readPickle } from '#dist/format/checkpoint/pickle/read-pickle.js'
import type { RangedFile, StoredTensor, TensorFileContents } from '#dist/format/checkpoint/stored-tensor.js'
import { TORCH } from '#dist/format/checkpoint/torch/format.js'
import { structureOf } from '#dist/format/checkpoint/torch/structure.js'
import { fileOf, sizeOf } from '../support/checkpoint-files.js'
import { bytesOf, call, dict, int, list, pickled, tensor, text, torchZip, tuple } from '../support/pickles.js'
import { mutateBytes } from './bytes.js'
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
