/** Checkpoints of torch.distributed.checkpoint, made by hand: holes, overlaps, files that are missing or cut. */

import { describe, expect, it } from 'vitest'
import { DISTRIBUTED } from '#dist/format/checkpoint/dcp/format.js'
import type { TensorFileContents } from '#dist/format/checkpoint/stored-tensor.js'
import { FormatError, StoreError } from '#dist/index.js'
import { counting, safetensors } from '../../../fixtures/checkpoint-writer.js'
import { bytesOfTensor, fileOf } from '../../support/checkpoint-files.js'
import {
  bytesOf,
  type DistributedPiece,
  distributedMetadata,
  list,
  pickled,
  tensor,
  text,
  torchZip,
} from '../../support/pickles.js'

/** A chunk as a file of its own, of floats that count from `first`. */
function chunkFile(sizes: readonly number[], first: number): Uint8Array {
  const count = sizes.reduce((product, size) => product * size, 1)
  const elements = Float32Array.from({ length: count }, (_, i) => first + i)
  const stride = sizes.map((_, axis) => sizes.slice(axis + 1).reduce((product, size) => product * size, 1))
  return torchZip({
    'data.pkl': pickled(tensor({ count, size: sizes, stride })),
    'data/0': new Uint8Array(elements.buffer),
    version: bytesOf('3\n'),
  })
}

type Files = Record<string, Uint8Array>

function read(metadata: Uint8Array, files: Files = {}, readsAll = false): Promise<TensorFileContents> {
  const all: Files = { 'step-1/.metadata': metadata, ...files }
  return DISTRIBUTED.read(fileOf(metadata, 'step-1/.metadata'), {
    paths: Object.keys(all),
    readsAll,
    async open(path) {
      const bytes = all[path]
      if (bytes === undefined) throw new StoreError('NotFound', `${path}: no such file`, { url: path })
      return fileOf(bytes, path)
    },
  })
}

/** Two ranks, each with two of the four rows of a tensor, and a second tensor that rank 0 has alone. */
function twoRanks(change: (piece: DistributedPiece) => DistributedPiece = piece => piece): [Uint8Array, Files] {
  const [upper, lower, small] = [chunkFile([2, 3], 0), chunkFile([2, 3], 6), chunkFile([2], 100)]
  const whole: DistributedPiece = {
    size: [4, 3],
    chunks: [
      { offsets: [0, 0], sizes: [2, 3], place: { file: '__0_0.distcp', start: 0, length: upper.length } },
      { offsets: [2, 0], sizes: [2, 3], place: { file: '__1_0.distcp', start: 0, length: lower.length } },
    ],
  }
  const norm: DistributedPiece = {
    size: [2],
    chunks: [{ offsets: [0], sizes: [2], place: { file: '__0_0.distcp', start: upper.length, length: small.length } }],
  }
  return [
    distributedMetadata({ 'a.weight': change(whole), 'norm.weight': norm }),
    { 'step-1/__0_0.distcp': bytesOf(upper, small), 'step-1/__1_0.distcp': lower },
  ]
}

function changed(index: number, change: object): (piece: DistributedPiece) => DistributedPiece {
  return piece => ({
    ...piece,
    chunks: piece.chunks.map((chunk, i) => (i === index ? { ...chunk, ...change } : chunk)),
  })
}

describe('chunks', () => {
  it('of several ranks are one tensor', async () => {
    const [metadata, files] = twoRanks()
    const { tensors, unread, problems } = await read(metadata, files)
    expect([unread, problems]).toEqual([[], []])
    expect(tensors).toMatchObject([
      { name: 'a.weight', dtype: 'float32', shape: [4, 3] },
      { name: 'norm.weight', shape: [2] },
    ])
    const bytes = bytesOfTensor(tensors[0]!, path => files[path]!)
    expect([...new Float32Array(bytes.buffer)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  /** Each chunk a safetensors file of its own. */
  function safetensorsRanks(name = 'a.weight', dtype: 'F32' | 'F64' = 'F32') {
    const chunk = (first: number) => safetensors([counting(name, [2, 3], dtype, first)])
    const [upper, lower] = [chunk(0), chunk(6)]
    const place = (start: number, { length }: Uint8Array) => ({ file: '__0_0.distcp', start, length })
    const metadata = distributedMetadata({
      'a.weight': {
        size: [4, 3],
        chunks: [
          { offsets: [0, 0], sizes: [2, 3], place: place(0, upper) },
          { offsets: [2, 0], sizes: [2, 3], place: place(upper.length, lower) },
        ],
      },
    })
    return { metadata, files: { 'step-1/__0_0.distcp': bytesOf(upper, lower) } as Files }
  }

  it('may be safetensors', async () => {
    const { metadata, files } = safetensorsRanks()
    const { tensors, unread } = await read(metadata, files)
    expect(unread).toEqual([])
    const bytes = bytesOfTensor(tensors[0]!, path => files[path]!)
    expect([...new Float32Array(bytes.buffer)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  it.each<[string, ReturnType<typeof safetensorsRanks>, RegExp]>([
    ['name', safetensorsRanks('b'), /expected an entry "a\.weight" in the header of a chunk, got none/],
    ['dtype', safetensorsRanks('a.weight', 'F64'), /a chunk of float32 \[2,3\], got float64 \[2,3\]/],
  ])('of safetensors with another %s are told', async (_, { metadata, files }, message) => {
    const { tensors, unread } = await read(metadata, files)
    expect(tensors).toEqual([])
    expect(unread[0]!.error.message).toMatch(message)
  })

  it('of safetensors that reach beyond their place are told', async () => {
    const file = safetensors([counting('a', [8]), counting('b', [8])])
    const chunks = [{ offsets: [0], sizes: [8], place: { file: '__0_0.distcp', start: 0, length: file.length - 8 } }]
    const { tensors, unread } = await read(distributedMetadata({ b: { size: [8], chunks } }), {
      'step-1/__0_0.distcp': file,
    })
    const message = `expected a chunk of ${file.length} bytes, got ${file.length - 8}`
    expect([tensors, unread[0]!.error.message]).toEqual([[], expect.stringContaining(message)])
  })

  describe('in one safetensors file, as torch writes it', () => {
    const file = safetensors([counting('a', [2, 3]), counting('b', [8], 'F32', 6), counting('c', [4, 5], 'F32', 14)])
    // Each place begins where the file does, and is as long as the elements.
    const entry = (sizes: number[], start: number, offsets = sizes.map(() => 0)) => {
      const length = 4 * sizes.reduce((product, size) => product * size, 1)
      return { offsets, sizes, place: { file: '__0_0.distcp', start, length } }
    }
    const of = (start: number) =>
      distributedMetadata({
        a: { size: [2, 3], chunks: [entry([2, 3], start)] },
        b: { size: [8], chunks: [entry([8], start)] },
        c: { size: [4, 5], chunks: [entry([4, 5], start)] },
      })

    it.each([0, 100])('from byte %d', async start => {
      const bytes = bytesOf(new Uint8Array(start), file)
      const { tensors, unread, problems } = await read(of(start), { 'step-1/__0_0.distcp': bytes })
      expect([unread, problems]).toEqual([[], []])
      const numbers = tensors.flatMap(tensor => [...new Float32Array(bytesOfTensor(tensor, () => bytes).buffer)])
      expect(numbers).toEqual(Array.from({ length: 34 }, (_, i) => i))
    })

    it.each([
      ['the last tensor', -3, ['a', 'b'], /expected 80 bytes, got 77: the file is cut off/],
      ['the header', 60, [], /expected a header of \d+ bytes, got 52: the file is cut off/],
      ['the length of the header', 2, [], /got other bytes/],
      ['all', 0, [], /expected \d+ bytes in __0_0\.distcp, got 0: it was cut off/],
    ])('cut off in %s', async (_, end, names, message) => {
      const bytes = file.subarray(0, end)
      const { tensors, unread } = await read(of(0), { 'step-1/__0_0.distcp': bytes })
      expect(tensors.map(({ name }) => name)).toEqual(names)
      for (const { error } of unread) expect(error.message).toMatch(message)
    })

    it('of each rank', async () => {
      const files = Object.fromEntries(
        [0, 1].map(rank => [
          `step-1/__${rank}_0.distcp`,
          safetensors([counting('other', [4]), counting('a', [2, 3], 'F32', 6 * rank)]),
        ]),
      )
      const ofRank = (rank: number) => {
        const { place, ...box } = entry([2, 3], 0, [2 * rank, 0])
        return { ...box, place: { ...place, file: `__${rank}_0.distcp` } }
      }
      const metadata = distributedMetadata({ a: { size: [4, 3], chunks: [ofRank(0), ofRank(1)] } })
      const { tensors, unread } = await read(metadata, files)
      expect(unread).toEqual([])
      const bytes = bytesOfTensor(tensors[0]!, path => files[path]!)
      expect([...new Float32Array(bytes.buffer)]).toEqual(Array.from({ length: 12 }, (_, i) => i))
    })

    it('of more chunks than are opened one by one', async () => {
      const names = Array.from({ length: 520 }, (_, i) => `t${i}`)
      const bytes = safetensors(names.map((name, i) => counting(name, [2], 'F32', 2 * i)))
      const metadata = distributedMetadata(
        Object.fromEntries(names.map(name => [name, { size: [2], chunks: [entry([2], 0)] }])),
      )
      const { tensors } = await read(metadata, { 'step-1/__0_0.distcp': bytes })
      const numbers = tensors.flatMap(tensor => [...new Float32Array(bytesOfTensor(tensor, () => bytes).buffer)])
      expect(numbers).toEqual(Array.from({ length: 1040 }, (_, i) => i))
    })

    it('with one entry for two chunks', async () => {
      const metadata = distributedMetadata({
        a: { size: [4, 3], chunks: [entry([2, 3], 0), entry([2, 3], 0, [2, 0])] },
      })
      const { tensors, unread } = await read(metadata, { 'step-1/__0_0.distcp': file })
      expect([tensors, unread[0]!.error.message]).toEqual([
        [],
        'step-1/__0_0.distcp, byte 0, tensor "a": expected an entry for each chunk, got one for several',
      ])
    })
  })

  it('that are transposed are read by their strides', async () => {
    const elements = Float32Array.from({ length: 6 }, (_, i) => i)
    const chunk = torchZip({
      'data.pkl': pickled(tensor({ count: 6, size: [2, 3], stride: [1, 2] })),
      'data/0': new Uint8Array(elements.buffer),
      version: bytesOf('3\n'),
    })
    const at = (offset: number, start: number) => ({
      offsets: [offset, 0],
      sizes: [2, 3],
      place: { file: '__0_0.distcp', start, length: chunk.length },
    })
    const bytes = bytesOf(chunk, chunkFile([2, 3], 6))
    const metadata = distributedMetadata({ a: { size: [4, 3], chunks: [at(0, 0), at(2, chunk.length)] } })
    const { tensors, unread } = await read(metadata, { 'step-1/__0_0.distcp': bytes })
    expect(unread).toEqual([])
    const numbers = new Float32Array(bytesOfTensor(tensors[0]!, () => bytes).buffer)
    expect([...numbers]).toEqual([0, 2, 4, 1, 3, 5, 6, 7, 8, 9, 10, 11])
  })

  describe('of more than are opened one by one', () => {
    const COUNT = 520
    const name = (i: number) => (i === 300 ? 'odd.weight' : `layers.${i}.weight`)

    /** A checkpoint in which each tensor is a chunk of one file. */
    function checkpointOf(chunkAt: (i: number) => Uint8Array): [Uint8Array, Files] {
      const parts = Array.from({ length: COUNT }, (_, i) => chunkAt(i))
      let start = 0
      const pieces = parts.map(({ length }, i): [string, DistributedPiece] => {
        const place = { file: '__0_0.distcp', start, length }
        start += length
        return [name(i), { size: [2, 2], chunks: [{ offsets: [0, 0], sizes: [2, 2], place }] }]
      })
      return [distributedMetadata(Object.fromEntries(pieces)), { 'step-1/__0_0.distcp': bytesOf(...parts) }]
    }

    it.each([
      ['of another name', 300],
      ['the first of its name', 0],
    ])('one stands for those with its name but for numbers; a transposed one for none: %s', async (_, odd) => {
      const [metadata, files] = checkpointOf(i => (i === odd ? transposedFile(0, 1, 2, 3) : chunkFile([2, 2], 0)))
      const { tensors, unread } = await read(metadata, files)
      expect(unread).toEqual([])
      const numbers = tensors.map(found => [...new Float32Array(bytesOfTensor(found, path => files[path]!).buffer)])
      expect(numbers).toEqual(tensors.map(() => [0, 1, 2, 3]))
    })

    it.each([
      ['the first', 0],
      ['another, and each is opened', 7],
    ])('if %s is none, the others are read', async (_, broken) => {
      const [metadata, files] = checkpointOf(i => {
        const chunk = chunkFile([2, 2], 4 * i)
        return i === broken ? chunk.fill(0) : chunk
      })
      // Without `readsAll` the elements of the latter are taken as they lie.
      const { tensors, unread } = await read(metadata, files, broken > 0)
      expect(unread.map(({ name }) => name)).toEqual([name(broken)])
      const numbers = tensors.flatMap(found => [...new Float32Array(bytesOfTensor(found, path => files[path]!).buffer)])
      const expected = Array.from({ length: 4 * COUNT }, (_, i) => i)
      expect(numbers).toEqual(expected.filter(i => Math.floor(i / 4) !== broken))
    })
  })

  it('are found without their index, and without elements', async () => {
    const empty = distributedMetadata({
      x: {
        size: [0, 4],
        chunks: [{ offsets: [0, 0], sizes: [0, 4], place: { file: '__0_0.distcp', start: 0, length: 0 } }],
      },
    })
    const { tensors } = await read(empty, { 'step-1/__0_0.distcp': new Uint8Array(0) })
    expect(tensors).toMatchObject([{ name: 'x', shape: [0, 4], blocks: [] }])
  })
})

/** A chunk of [2, 2] whose elements lie the other way round. */
function transposedFile(...values: readonly number[]): Uint8Array {
  const [a, b, c, d] = values as [number, number, number, number]
  return torchZip({
    'data.pkl': pickled(tensor({ count: 4, size: [2, 2], stride: [1, 2] })),
    'data/0': new Uint8Array(Float32Array.of(a, c, b, d).buffer),
    version: bytesOf('3\n'),
  })
}

it.each([
  ['in C order', chunkFile([2, 2], 4)],
  ['transposed', transposedFile(4, 5, 6, 7)],
])('layers that Megatron stacks into one tensor are tensors of their own: %s', async (_, second) => {
  const name = 'decoder.layers.mlp.weight'
  const pieces = [chunkFile([2, 2], 0), second, chunkFile([4], 100)] as const
  const place = (file: string, start: number, { length }: Uint8Array) => ({ file, start, length })
  // Cut along the layers, and along an axis of each.
  const metadata = distributedMetadata({
    [name]: {
      size: [2, 4],
      chunks: [
        { offsets: [0, 0], sizes: [2, 2], place: place('__0_0.distcp', 0, pieces[0]) },
        { offsets: [0, 2], sizes: [2, 2], place: place('__0_0.distcp', pieces[0].length, pieces[1]) },
      ],
    },
    'output.weight': { size: [4], chunks: [{ offsets: [0], sizes: [4], place: place('__1_0.distcp', 0, pieces[2]) }] },
  })
  const files: Files = { 'step-1/__0_0.distcp': bytesOf(pieces[0], pieces[1]), 'step-1/__1_0.distcp': pieces[2] }
  const namesIn = (found: Awaited<ReturnType<typeof read>>) => found.tensors.map(tensor => tensor.name)
  expect(namesIn(await read(metadata, files))).toEqual([name, 'output.weight'])
  const metadataJson = bytesOf('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
  const layers = await read(metadata, { ...files, 'step-1/metadata.json': metadataJson })
  expect(namesIn(layers)).toEqual(['decoder.layers.0.mlp.weight', 'decoder.layers.1.mlp.weight', 'output.weight'])
  const numbers = layers.tensors.map(tensor => [
    ...new Float32Array(bytesOfTensor(tensor, path => files[path]!).buffer),
  ])
  expect(numbers).toEqual([
    [0, 1, 4, 5],
    [2, 3, 6, 7],
    [100, 101, 102, 103],
  ])
})

it.each([
  ['none', [3_000_000, 0], [[3_000_000, 0]], null],
  ['too many for one tensor', [5000, 1], [[5000, 1]], 'expected at most 4096 layers, got 5000'],
  [
    'too many for all blocks',
    [4000, 300],
    Array.from({ length: 300 }, () => [4000, 1]),
    'expected at most 1048576 more chunks, got 1199700',
  ],
])('layers with elements are not cut apart beyond a bound, and a note says so: %s', async (_, size, sizes, fault) => {
  const piece = chunkFile(sizes[0]!, 0)
  const chunks = sizes.map((sizes, i) => {
    const place = { file: '__0_0.distcp', start: i * piece.length, length: piece.length }
    return { offsets: [0, i], sizes, place }
  })
  const found = await read(distributedMetadata({ 'layers.w': { size, chunks } }), {
    'step-1/__0_0.distcp': Buffer.concat(sizes.map(() => piece)),
    'step-1/metadata.json': bytesOf('{"sharded_backend": "torch_dist"}'),
  })
  expect([found.tensors.map(({ name }) => name), found.unread]).toEqual([['layers.w'], []])
  const note = `step-1/.metadata: stacked layers are not read one by one: ${fault}`
  expect(found.notes).toEqual(fault === null ? [] : [note])
})

it('layers are not cut apart where tensors have other numbers of them, and a note says so', async () => {
  const file = safetensors([counting('layers.a', [2, 3]), counting('layers.b', [3, 2])])
  const whole = (size: number[]) => {
    return { size, chunks: [{ offsets: [0, 0], sizes: size, place: { file: '__0_0.distcp', start: 0, length: 24 } }] }
  }
  const metadata = distributedMetadata({ 'layers.a': whole([2, 3]), 'layers.b': whole([3, 2]) })
  const found = await read(metadata, {
    'step-1/__0_0.distcp': file,
    'step-1/metadata.json': bytesOf('{"sharded_backend": "torch_dist"}'),
  })
  expect(found.tensors.map(({ name }) => name)).toEqual(['layers.a', 'layers.b'])
  expect(found.notes![0]).toMatch(/one by one: expected as many layers in each tensor, got 2 and 3$/)
})

describe('what is missing is named, and the rest is read', () => {
  async function expectUnread(
    change: (piece: DistributedPiece) => DistributedPiece,
    message: RegExp,
    without?: string,
  ) {
    const [metadata, files] = twoRanks(change)
    const kept = Object.fromEntries(Object.entries(files).filter(([path]) => path !== without))
    const found = await read(metadata, kept)
    expect(found.tensors.map(({ name }) => name)).toEqual(['norm.weight'])
    expect(found.unread.map(({ name }) => name)).toEqual(['a.weight'])
    expect(found.unread[0]!.error).toBeInstanceOf(FormatError)
    expect(found.unread[0]!.error.message).toMatch(message)
    // Where its name stands in `.metadata`, or where the chunk lies.
    expect(found.unread[0]!.error.fields.offset).toEqual(expect.any(Number))
    return found
  }

  const nameAt = (metadata: Uint8Array, name: string): number => Buffer.from(metadata).indexOf(name)

  it('the file of a rank', async () => {
    const { problems } = await expectUnread(
      piece => piece,
      /its chunks in __1_0\.distcp, got no such file/,
      'step-1/__1_0.distcp',
    )
    const at = nameAt(twoRanks()[0], '__1_0.distcp')
    expect(problems.map(({ message }) => message)).toEqual([
      `step-1/.metadata, byte ${at}: expected the file __1_0.distcp of rank 1 beside it, got none`,
    ])
  })

  it('a chunk that nobody has: the file that lacks it', async () => {
    const without = (piece: DistributedPiece): DistributedPiece => ({ ...piece, chunks: piece.chunks.slice(1) })
    await expectUnread(without, /\[4,3\], got 6 elements that none has; none of its chunks is in __0_0\.distcp/)
  })

  it('a chunk without a place', async () => {
    await expectUnread(changed(1, { place: undefined }), /a place for each chunk, got none for that at \[2, 0\]/)
  })

  it('chunks that overlap: both, with their files', async () => {
    await expectUnread(
      changed(1, { offsets: [1, 0] }),
      /do not overlap, got those at \[0, 0\] in __0_0\.distcp and at \[1, 0\] in __1_0\.distcp/,
    )
  })

  it('a file that was cut off', async () => {
    const place = { file: '__1_0.distcp', start: 0, length: 1 << 20 }
    await expectUnread(changed(1, { place }), /expected 1048576 bytes in __1_0\.distcp, got \d+: it was cut off/)
  })

  it('a chunk that was transformed', async () => {
    const place = { file: '__1_0.distcp', start: 0, length: 10, transform: list(text('zstd')) }
    await expectUnread(changed(1, { place }), /a chunk that was transformed/)
  })

  it('a chunk of another shape', async () => {
    const [upper] = [chunkFile([2, 3], 0)]
    const place = { file: '__0_0.distcp', start: upper.length, length: chunkFile([2], 100).length }
    await expectUnread(changed(1, { place }), /a chunk of float32 \[2,3\], got float32 \[2\]/)
  })

  it('a chunk that is none', async () => {
    const place = { file: '__1_0.distcp', start: 64, length: 100 }
    await expectUnread(changed(1, { place }), /a chunk as torch\.save writes it, or of safetensors, got other bytes/)
  })

  it.each(['../other.distcp', 'a/b', 'C:x'])('a file elsewhere: %s', async file => {
    const change = changed(1, { place: { file, start: 0, length: 10 } })
    const { problems } = await expectUnread(change, /a file beside \.metadata, got one elsewhere/)
    expect(problems.map(({ message }) => message)).toEqual([
      `step-1/.metadata, byte ${nameAt(twoRanks(change)[0], file)}: expected names of files beside .metadata, got ${JSON.stringify(file)}`,
    ])
  })

  it('chunks outside of the tensor, and of other axes', async () => {
    await expectUnread(changed(1, { offsets: [3, 0] }), /chunks within \[4,3\], got one up to 5 along axis 0/)
    await expectUnread(changed(1, { offsets: [3] }), /offsets and sizes of 2 axes for chunk 1/)
  })

  it('a dtype that is not known', async () => {
    await expectUnread(piece => ({ ...piece, dtype: 'float3' }), /elements that can be read, got torch\.float3/)
  })
})

describe('refusals', () => {
  it.each<[string, Uint8Array, RegExp]>([
    ['no pickle', bytesOf('hello'), /got 0x68|expected/],
    ['another object', pickled(text('x')), /expected Metadata of torch\.distributed\.checkpoint, got a text/],
  ])('%s', async (_, metadata, message) => {
    await expect(read(metadata)).rejects.toThrow(message)
    await expect(read(metadata)).rejects.toThrow(FormatError)
  })
})
