/** What `verifyTrial` says of checkpoints, and what opening them does. */

import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, createWriter, reindexTrial, repairTrial, verifyTrial } from '#dist/index.js'
import {
  counting,
  npz,
  safetensors,
  tensorOf,
  withHeader,
  writeFile,
  writeShards,
} from '../../fixtures/checkpoint-writer.js'
import { trialscan } from '../cli/run.js'
import { CHECKPOINTS, FIXTURES, hasCheckpoints } from '../support/checkpoints.js'
import {
  bytesOf,
  dict,
  distributedMetadata,
  int,
  MARK,
  pickled,
  SETITEMS,
  tensor,
  text,
  torchZip,
} from '../support/pickles.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('verify-checkpoints')
let count = 0

/** A checkpoint in two shards of two tensors each. */
function shards(): { readonly directory: string; readonly first: string; readonly index: string } {
  const directory = join(scratch, `${count++}`)
  writeShards(directory, [
    [counting('a', [4]), counting('b', [4])],
    [counting('c', [4]), counting('d', [4])],
  ])
  const first = join(directory, 'model-00001-of-00002.safetensors')
  return { directory, first, index: join(directory, 'model.safetensors.index.json') }
}

async function codesOf(place: string): Promise<Readonly<Record<string, number>>> {
  return (await verifyTrial(place)).problemCounts
}

/** The tensors that are left, all of which can be read. */
async function readable(place: string): Promise<string[]> {
  const trial = await createTrial(place, { refresh: 'manual' })
  const names: string[] = []
  for await (const { tensor, error } of trial.scan({ reductions: ['sum'] })) if (!error) names.push(tensor!)
  await trial.close()
  return names
}

it('finds nothing wrong with whole checkpoints', async () => {
  for (const name of ['run', 'base', 'tuned']) {
    const { ok, stats } = await verifyTrial(join(FIXTURES, name))
    expect(ok).toBe(true)
    expect(stats.records).toBeGreaterThan(0)
  }
})

it('notes an index that counts other bytes than its shards have', async () => {
  const { directory, first, index } = shards()
  expect((await verifyTrial(directory)).notes).toEqual([])
  writeFileSync(index, readFileSync(index, 'utf8').replace('"total_size":64', '"total_size":65'))
  const { ok, notes } = await verifyTrial(directory)
  expect([ok, notes]).toMatchObject([
    true,
    [{ code: 'WrongTotalSize', file: 'model.safetensors.index.json', expected: /total_size 64,/, found: '65' }].map(
      note => ({ ...note, expected: expect.stringMatching(note.expected) }),
    ),
  ])
  // Of shards that are not whole it says nothing.
  truncateSync(first, readFileSync(first).length - 4)
  expect((await verifyTrial(directory)).noteCounts).toEqual({})
})

it('names what is wrong with a step however lately it was written', async () => {
  const directory = join(scratch, `${count++}`)
  for (const step of [1, 2]) writeShards(join(directory, `step-${step}`), [[counting('a', [4])], [counting('b', [4])]])
  truncateSync(join(directory, 'step-2/model-00002-of-00002.safetensors'), 20)
  const { code, stdout } = await trialscan('verify', directory, '--format', 'table')
  expect(code).toBe(4)
  expect(stdout).toMatch(/step-2\/model-00002-of-00002\.safetensors\n {2}TruncatedFile {2}offset 20/)
})

it.each([
  ['events.out.tfevents.1.host', /^\d checkpoint files? beside them, .*verify "step-1" by itself$/],
  ['runs/events.out.tfevents.1.host', /^1 event file beside them, .*verify "runs" by itself$/],
])('notes what is of another kind and not read: %s', async (path, found) => {
  const directory = join(scratch, `${count++}`)
  writeShards(join(directory, 'step-1'), [[counting('a', [4])]])
  mkdirSync(join(directory, 'runs'), { recursive: true })
  writeFileSync(join(directory, path), '')
  const { notes } = await verifyTrial(directory)
  expect(notes.filter(({ code }) => code === 'NotRead')).toMatchObject([{ found: expect.stringMatching(found) }])
})

it('has not passed where nothing was read', async () => {
  const directory = join(scratch, `${count++}`)
  mkdirSync(directory)
  writeFileSync(join(directory, 'model.safetensors'), safetensors([]))
  writeFileSync(join(directory, 'tokenizer.bin'), 'no tensors')
  const alone = await trialscan('verify', directory, '--format', 'table')
  expect([alone.code, alone.stdout]).toEqual([5, expect.stringContaining(': nothing was read; 1 note')])
  const several = await trialscan('verify', directory, join(FIXTURES, 'torch'), '--format', 'json')
  expect([several.code, several.stderr]).toEqual([
    5,
    expect.stringContaining('verdict: unjudged; 0 of 2 trials failed, of 1 nothing was read'),
  ])
})

describe('members of archives', () => {
  const whole = readFileSync(join(FIXTURES, 'torch/zip.pt'))

  /** An archive of one tensor. */
  function chunkOf(values: Float32Array): Uint8Array {
    return torchZip({
      'data.pkl': pickled(tensor({ count: values.length, size: [values.length], stride: [1] })),
      'data/0': new Uint8Array(values.buffer),
    })
  }

  /** The file of torch with one byte of a storage changed, or all CRC-32 of its directory. */
  function changed(change: (bytes: Buffer) => void): string {
    const path = join(scratch, `${count++}.pt`)
    const bytes = Buffer.from(whole)
    change(bytes)
    writeFileSync(path, bytes)
    return path
  }

  it('are held against their checksums', async () => {
    expect((await verifyTrial(join(FIXTURES, 'torch/zip.pt'))).ok).toBe(true)
    // Of the first storage: after the name in its own header, and the padding to 64 bytes.
    const name = whole.indexOf('/data/0')
    const header = whole.lastIndexOf('PK\x03\x04', name, 'latin1')
    const start = header + 30 + whole.readUInt16LE(header + 26) + whole.readUInt16LE(header + 28)
    const { problems, problemCounts } = await verifyTrial(changed(bytes => bytes.writeUInt8(bytes[start]! ^ 1, start)))
    expect(problemCounts).toEqual({ BadMemberChecksum: 1 })
    expect(problems[0]).toMatchObject({
      offset: start,
      expected: expect.stringMatching(/CRC-32 0x[0-9a-f]{8} of ".*data\/0"/),
    })
  })

  it('without a header are named, and the others checked', async () => {
    const placeOf = (key: number) => {
      const header = whole.lastIndexOf('PK\x03\x04', whole.indexOf(`/data/${key}`), 'latin1')
      return { header, start: header + 30 + whole.readUInt16LE(header + 26) + whole.readUInt16LE(header + 28) }
    }
    const [broken, other] = [placeOf(1), placeOf(3)]
    const path = changed(bytes => {
      bytes.fill(0, broken.header, broken.start)
      bytes.writeUInt8(bytes[other.start]! ^ 1, other.start)
    })
    const { problems, problemCounts } = await verifyTrial(path)
    expect(problemCounts).toEqual({ BadCheckpointFile: 1, BadMemberChecksum: 1 })
    expect(problems).toMatchObject([
      { offset: broken.header, expected: expect.stringContaining('/data/1'), found: 'other bytes' },
      { offset: other.start },
    ])
  })

  it('of any number of chunks, and one that is no archive is named', async () => {
    const directory = join(scratch, `${count++}`)
    mkdirSync(directory)
    const piece = chunkOf(Float32Array.of(1, 2))
    const pieces = Array.from({ length: 520 }, (_, i) => (i === 400 ? new Uint8Array(piece.length) : piece))
    const place = (i: number) => ({ file: '__0_0.distcp', start: i * piece.length, length: piece.length })
    const tensors = pieces.map((_, i) => [
      `layers.${i}`,
      { size: [2], chunks: [{ offsets: [0], sizes: [2], place: place(i) }] },
    ])
    writeFileSync(join(directory, '.metadata'), distributedMetadata(Object.fromEntries(tensors)))
    writeFileSync(join(directory, '__0_0.distcp'), Buffer.concat(pieces))
    const { problems } = await verifyTrial(directory)
    expect(problems).toMatchObject([{ offset: 400 * piece.length, tensor: 'layers.400', found: 'other bytes' }])
  })

  it('are those of the chunks of a distributed checkpoint and of the files of a dump, too', async () => {
    const [first, second] = [chunkOf(Float32Array.of(1, 2)), chunkOf(Float32Array.of(3, 4))]
    const dcp = join(scratch, `${count++}`)
    const dump = join(scratch, `${count++}`)
    mkdirSync(dcp)
    mkdirSync(join(dump, 'dump_tensor_data'), { recursive: true })
    const chunk = (offset: number, start: number, { length }: Uint8Array) => ({
      offsets: [offset],
      sizes: [2],
      place: { file: '__0_0.distcp', start, length },
    })
    const chunks = [chunk(0, 0, first), chunk(2, first.length, second)]
    writeFileSync(join(dcp, '.metadata'), distributedMetadata({ a: { size: [4], chunks } }))
    writeFileSync(join(dcp, '__0_0.distcp'), Buffer.concat([first, second]))
    const described = { type: 'torch.Tensor', dtype: 'torch.float32', shape: [2], data_name: 'x.pt' }
    writeFileSync(join(dump, 'dump.json'), JSON.stringify({ task: 'tensor', data: { x: { output: [described] } } }))
    writeFileSync(join(dump, 'dump_tensor_data/x.pt'), second)
    for (const [place, file, base] of [
      [dcp, '__0_0.distcp', first.length],
      [dump, 'dump_tensor_data/x.pt', 0],
    ] as const) {
      expect((await verifyTrial(place)).ok).toBe(true)
      const bytes = readFileSync(join(place, file))
      const at = base + Buffer.from(second).indexOf(Buffer.from(Float32Array.of(3, 4).buffer))
      bytes[at]! ^= 1
      writeFileSync(join(place, file), bytes)
      expect((await verifyTrial(place)).problems).toMatchObject([{ code: 'BadMemberChecksum', file, offset: at }])
    }
    // What else is damaged hides no archive.
    truncateSync(join(dump, 'dump.json'), 20)
    expect(await codesOf(dump)).toEqual({ BadCheckpointFile: 1, BadMemberChecksum: 1 })
  })

  it('are looked for in places of safetensors, which have none and may be the same', async () => {
    const directory = join(scratch, `${count++}`)
    mkdirSync(directory)
    // torch gives all tensors of a safetensors file its start, and the length of their elements.
    const entry = (size: number[], length: number) => ({
      size,
      chunks: [{ offsets: size.map(() => 0), sizes: size, place: { file: '__0_0.distcp', start: 0, length } }],
    })
    writeFileSync(join(directory, '.metadata'), distributedMetadata({ a: entry([2, 3], 24), b: entry([8], 32) }))
    writeFileSync(join(directory, '__0_0.distcp'), safetensors([counting('a', [2, 3]), counting('b', [8])]))
    const { problems, stats } = await verifyTrial(directory)
    expect([problems, stats.records, stats.recordsWithoutChecksum]).toEqual([[], 2, 2])
  })

  it('are checked once for each chunk, apart from one that begins in another, until the signal', async () => {
    const directory = join(scratch, `${count++}`)
    mkdirSync(directory)
    const piece = chunkOf(Float32Array.of(1, 2))
    const { length } = piece
    const chunk = (start: number, length: number) => ({
      size: [2],
      chunks: [{ offsets: [0], sizes: [2], place: { file: '__0_0.distcp', start, length } }],
    })
    const [a, again, b, cut] = [chunk(0, length), chunk(0, length), chunk(length, length), chunk(length, length - 8)]
    // What begins amid one is no archive.
    const metadata = { a, again, b, cut, c: chunk(8, length) }
    writeFileSync(join(directory, '.metadata'), distributedMetadata(metadata))
    piece[Buffer.from(piece).indexOf(Buffer.from(Float32Array.of(1, 2).buffer))]! ^= 1
    writeFileSync(join(directory, '__0_0.distcp'), Buffer.concat([piece, piece]))
    const { problems, problemCounts } = await verifyTrial(directory)
    expect(problemCounts).toEqual({ BadMemberChecksum: 2, BadCheckpointFile: 3 })
    const overlaps = problems.filter(({ expected }) => expected === 'archives that do not overlap')
    expect(overlaps).toMatchObject([{ file: '__0_0.distcp', offset: length }])
    const codes: string[] = []
    const stop = new AbortController()
    const onProblem = ({ code }: { readonly code: string }) => {
      codes.push(code)
      if (code === 'BadMemberChecksum') stop.abort()
    }
    await expect(verifyTrial(directory, { signal: stop.signal, onProblem })).rejects.toThrow(/aborted/)
    expect(codes.filter(code => code === 'BadMemberChecksum')).toEqual(['BadMemberChecksum'])
  })

  it('have checksums, which other files lack: of these the tensors are counted', async () => {
    const counts = async (place: string) => {
      const { records, recordsWithoutChecksum } = (await verifyTrial(resolve(FIXTURES, place))).stats
      return [records, recordsWithoutChecksum]
    }
    expect(await counts('torch/zip.pt')).toEqual([24, 0])
    expect(await counts('saved')).toEqual([11, 0])
    expect(await counts('dcp')).toEqual([8, 0])
    expect(await counts('base')).toEqual([11, 11])
    // Layers that Megatron stacks are records, a tensor with its saved reductions is one.
    const stacked = join(scratch, `${count++}`)
    mkdirSync(stacked)
    const piece = torchZip({
      'data.pkl': pickled(tensor({ count: 6, size: [3, 2], stride: [2, 1] })),
      'data/0': new Uint8Array(24),
    })
    const place = { file: '__0_0.distcp', start: 0, length: piece.length }
    const chunks = [{ offsets: [0, 0], sizes: [3, 2], place }]
    writeFileSync(join(stacked, '.metadata'), distributedMetadata({ 'layers.w': { size: [3, 2], chunks } }))
    writeFileSync(join(stacked, 'metadata.json'), '{"sharded_backend": "torch_dist"}')
    writeFileSync(join(stacked, '__0_0.distcp'), piece)
    expect(await counts(stacked)).toEqual([3, 0])
    const reduced = join(scratch, `${count++}.npz`)
    writeFileSync(reduced, npz([counting('x', [2]), counting('smdebug/reductions/max/x', [])]))
    expect(await counts(reduced)).toEqual([1, 0])
    // Beside the archive lies a file without: 23 of its 24 tensors have elements.
    expect(await counts('torch')).toEqual([48, 23])
    const told = async (place: string) =>
      (await trialscan('verify', join(FIXTURES, place), '--format', 'table')).stdout.split('\n').slice(3).join('\n')
    expect(await told('torch/zip.pt')).toBe('')
    expect(await told('base')).toMatch(/^no file of these has checksums: /)
    expect(await told('torch')).toMatch(/^23 of 48 records carry no payload checksum: /)
  })

  it('are noted where a file was written without', async () => {
    const path = changed(bytes => {
      for (
        let at = bytes.indexOf('PK\x01\x02', 0, 'latin1');
        at >= 0;
        at = bytes.indexOf('PK\x01\x02', at + 4, 'latin1')
      ) {
        bytes.writeUInt32LE(0, at + 16)
      }
    })
    const { ok, noteCounts } = await verifyTrial(path)
    expect([ok, noteCounts]).toEqual([true, { NoChecksums: 1 }])
  })
})

it('tells a statistic that contradicts the elements it was saved with', async () => {
  const root = join(scratch, `${count++}`)
  mkdirSync(join(root, 'dump_tensor_data'), { recursive: true })
  const write = (name: string, size: readonly number[], storage: string, content: ArrayBufferView) => {
    const elements = size.reduce((product, length) => product * length, 1)
    const pickle = pickled(tensor({ storage, count: elements, size, stride: size.map(() => 1) }))
    const bytes = new Uint8Array(content.buffer as ArrayBuffer)
    writeFileSync(join(root, 'dump_tensor_data', `${name}.pt`), torchZip({ 'data.pkl': pickle, 'data/0': bytes }))
  }
  write('right', [2], 'FloatStorage', Float32Array.of(-1, 3))
  write('scalar', [], 'FloatStorage', Float32Array.of(-2))
  write('half', [2], 'HalfStorage', Uint16Array.of(0x7800, 0x7800))
  write('wrong', [2], 'FloatStorage', Float32Array.of(-1, 3))
  const entry = (name: string, dtype: string, shape: number[], [Max, Min, Mean, Norm]: readonly unknown[]) => ({
    output: [{ type: 'torch.Tensor', dtype: `torch.${dtype}`, shape, Max, Min, Mean, Norm, data_name: `${name}.pt` }],
  })
  const data = {
    right: entry('right', 'float32', [2], [3, -1, 1.0000001, 3.1622777]),
    // torch gives a scalar as its own norm, and a norm in half precision as infinite.
    scalar: entry('scalar', 'float32', [], [-2, -2, -2, -2]),
    half: entry('half', 'float16', [2], [32768, 32768, 32768, 'inf']),
    wrong: entry('wrong', 'float32', [2], [4, -1, null, 'nan']),
  }
  writeFileSync(join(root, 'dump.json'), JSON.stringify({ task: 'tensor', data }))
  const { problems } = await verifyTrial(root)
  const told = {
    code: 'ReductionMismatch',
    file: 'dump_tensor_data/wrong.pt',
    offset: expect.any(Number),
    tensor: 'wrong',
  }
  expect(problems).toMatchObject([
    { ...told, expected: 'max 4, as it was saved beside the elements', found: '3 of them' },
    { ...told, expected: 'l2 NaN, as it was saved beside the elements', found: '3.1622776601683795 of them' },
  ])
})

it('notes a pickle that torch.load would run', async () => {
  const { ok, notes } = await verifyTrial(join(FIXTURES, 'broken/evil.pt'))
  expect([ok, notes]).toMatchObject([true, [{ code: 'RunsCode', found: expect.stringContaining('posix.system') }]])
})

describe('a damaged checkpoint: what is wrong is told, and everything else is read', () => {
  it('a shard that is missing', async () => {
    const { directory, first } = shards()
    const moved = readFileSync(first)
    const { rmSync } = await import('node:fs')
    rmSync(first)
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file, lost }) => [code, file, lost])).toEqual([
      ['MissingShard', 'model-00001-of-00002.safetensors', '2 tensors'],
    ])
    expect(await readable(directory)).toEqual(['c', 'd'])
    writeFileSync(first, moved)
    expect(await codesOf(directory)).toEqual({})
  })

  it('a header of zeros', async () => {
    const { directory, first } = shards()
    writeFileSync(first, new Uint8Array(400))
    expect(await codesOf(directory)).toEqual({ ZeroHeader: 1 })
    expect(await readable(directory)).toEqual(['c', 'd'])
  })

  it.each(
    [
      'x.safetensors',
      'x.pt',
      'x.pth',
      'pytorch_model.bin',
      'x.ckpt',
      'x.npz',
      'x.npy',
      '.metadata',
      'dump.json',
    ].flatMap(
      name =>
        [
          [name, 0],
          [name, 600],
        ] as const,
    ),
  )('%s of %i zeros', async (name, byteLength) => {
    const directory = join(scratch, `${count++}`)
    writeFile(join(directory, 'good.safetensors'), safetensors([counting('w', [4])]))
    writeFile(join(directory, name), new Uint8Array(byteLength))
    expect(await codesOf(directory)).toEqual({ ZeroHeader: 1 })
    expect(await readable(directory)).toEqual(['w'])
  })

  it('an empty log is none', async () => {
    const directory = join(scratch, `${count++}`)
    writeFile(join(directory, 'good.safetensors'), safetensors([counting('w', [4])]))
    writeFile(join(directory, 'nvdlfw_inspect_globalrank-0.log'), new Uint8Array(0))
    expect(await codesOf(directory)).toEqual({})
  })

  it('a pointer of Git LFS', async () => {
    const { directory, first } = shards()
    writeFileSync(first, 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n')
    expect(await codesOf(directory)).toEqual({ GitLfsPointer: 1 })
    const trial = await createTrial(directory)
    expect(trial.problems[0]!.message).toMatch(/the file itself was not fetched: git lfs pull/)
    await trial.close()
  })

  it.each([
    'model.npz',
    'model.npy',
    'model.pt',
    'weights.bin',
    '.metadata',
    'dump.json',
    'model.safetensors.index.json',
  ])('a pointer of Git LFS in the place of %s', async name => {
    const directory = join(scratch, `${count++}`)
    mkdirSync(directory)
    writeFileSync(join(directory, 'good.safetensors'), safetensors([counting('w', [4])]))
    writeFileSync(join(directory, name), 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n')
    expect(await codesOf(directory)).toEqual({ GitLfsPointer: 1 })
    expect(await readable(directory)).toEqual(['w'])
  })

  it('a file that is cut off: the tensors that are cut are named', async () => {
    const { directory, first } = shards()
    truncateSync(first, readFileSync(first).length - 3)
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['TruncatedFile', 'b']])
    expect(await readable(directory)).toEqual(['a', 'c', 'd'])
  })

  it.each([
    ['that are cut', 'TruncatedFile', 'F32', 0.25],
    ['of a dtype that is not read', 'UnreadableDType', 'F6_E2M3', 1],
  ])('hundreds of tensors %s: all are there, and are named', async (_, code, dtype, part) => {
    const directory = join(scratch, `${count++}`)
    const [names, byteLength] = [Array.from({ length: 400 }, (_, i) => `t${i}`), dtype === 'F32' ? 16 : 3]
    const placed = (i: number) => ({ dtype, shape: [4], data_offsets: [i * byteLength, (i + 1) * byteLength] })
    const header = JSON.stringify(Object.fromEntries(names.map((name, i) => [name, placed(i)])))
    const shard = 'model-00001-of-00001.safetensors'
    writeFile(join(directory, shard), withHeader(header, new Uint8Array(400 * byteLength * part)))
    const map = Object.fromEntries(names.map(name => [name, shard]))
    writeFile(join(directory, 'model.safetensors.index.json'), Buffer.from(JSON.stringify({ weight_map: map })))
    const unread = names.slice(dtype === 'F32' ? 100 : 0)
    expect(await codesOf(directory)).toEqual({ [code]: unread.length })
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.checkpoint!.unread.map(({ name }) => name)).toEqual(unread)
    expect(trial.problems).toHaveLength(101)
    expect(trial.problems[100]!.message).toContain(
      `tensors "${unread[100]}" to "t399": expected tensors that can be read, got ${unread.length - 100} faults more`,
    )
    await trial.close()
  })

  it('bytes behind the last tensor', async () => {
    const { directory, first } = shards()
    writeFileSync(first, Buffer.concat([readFileSync(first), Buffer.alloc(5)]))
    expect(await codesOf(directory)).toEqual({ BadSafetensors: 1 })
    expect(await readable(directory)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('an index that names the wrong shard, lacks a tensor, or has one that is nowhere', async () => {
    const { directory, index } = shards()
    const { weight_map: map } = JSON.parse(readFileSync(index, 'utf8'))
    const { d: _, ...others } = map
    writeFileSync(index, JSON.stringify({ weight_map: { ...others, a: map.c, x: map.c } }))
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, expected }) => [code, expected])).toEqual([
      ['IndexMismatch', 'tensor "a" in model-00002-of-00002.safetensors'],
      ['IndexMismatch', 'tensor "d" in the index'],
      ['IndexMismatch', 'tensor "x" in model-00002-of-00002.safetensors'],
    ])
  })

  it('an index that names a file outside', async () => {
    const { directory, index } = shards()
    const { weight_map: map } = JSON.parse(readFileSync(index, 'utf8'))
    writeFileSync(index, JSON.stringify({ weight_map: { ...map, e: '../../etc/passwd' } }))
    expect(await codesOf(directory)).toEqual({ BadShardIndex: 1 })
    expect(await readable(directory)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('a tensor in two shards, without an index', async () => {
    const directory = join(scratch, `${count++}`)
    writeFile(join(directory, 'x.safetensors'), safetensors([counting('a', [2])]))
    writeFile(join(directory, 'y.safetensors'), safetensors([counting('a', [2]), counting('b', [2])]))
    expect(await codesOf(directory)).toEqual({ DuplicateTensor: 1 })
    expect(await readable(directory)).toEqual(['a', 'b'])
  })

  it('a name that a header has twice, which a parser of JSON does not tell', async () => {
    const file = join(scratch, `${count++}.safetensors`)
    const entry = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    writeFile(file, withHeader(`{"a":${entry},"a":${entry}}`, new Uint8Array(4)))
    expect(await codesOf(file)).toEqual({ DuplicateTensor: 1 })
  })

  it('keys of a dict that differ, and whose tensors have one name', async () => {
    const file = join(scratch, `${count++}.pt`)
    const one = tensor({ count: 1, size: [1], stride: [1] })
    const root = bytesOf(dict({}), MARK, int(1), one, text('1'), one, text('w'), one, text('w'), one, SETITEMS)
    writeFile(file, torchZip({ 'data.pkl': pickled(root), 'data/0': new Uint8Array(4) }))
    expect(await codesOf(file)).toEqual({ DuplicateTensor: 1 })
    expect(await readable(file)).toEqual(['1', 'w'])
  })

  it('a shard that its number says is missing, without an index', async () => {
    const { directory, first, index } = shards()
    const { rmSync } = await import('node:fs')
    rmSync(first)
    rmSync(index)
    expect(await codesOf(directory)).toEqual({ MissingShard: 1 })
  })
})

it('repair and reindex say that checkpoints are none of theirs', async () => {
  const place = join(FIXTURES, 'base')
  await expect(repairTrial(place, join(scratch, 'repaired'))).rejects.toThrow(/got checkpoints, which are not repaired/)
  await expect(reindexTrial(place)).rejects.toThrow(/got checkpoints, which need no index files/)
})

describe.runIf(hasCheckpoints)('the broken checkpoints of the specification', () => {
  it.each([
    ['missing-shard', { MissingShard: 1 }],
    ['zero-header', { ZeroHeader: 1 }],
    ['lfs-pointer', { GitLfsPointer: 1 }],
    ['truncated', { TruncatedFile: 6 }],
    ['tail', { BadSafetensors: 1 }],
    ['nan-in-shard', {}],
    ['cut.pt', { BadCheckpointFile: 1 }],
    ['evil.pt', {}],
  ])('%s', async (name, codes) => {
    expect(await codesOf(join(CHECKPOINTS, 'trials', 'broken', name))).toEqual(codes)
  })

  it('the tensor with one NaN is named when values are read', async () => {
    const { tensor } = JSON.parse(readFileSync(join(CHECKPOINTS, 'expected/broken-nan.json'), 'utf8'))
    const { problems } = await verifyTrial(join(CHECKPOINTS, 'trials/broken/nan-in-shard'), { values: true })
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['NaNValues', tensor]])
    expect((await verifyTrial(join(CHECKPOINTS, 'trials/base'), { values: true })).ok).toBe(true)
  })
})

describe('values', () => {
  const directory = join(scratch, 'values')
  writeShards(directory, [
    [
      tensorOf('a.weight', 'F32', [4], [1, Number.NaN, Number.POSITIVE_INFINITY, 0]),
      tensorOf('zero.weight', 'BF16', [2, 2], [0, 0, 0, 0]),
      tensorOf('same.weight', 'I64', [3], [7, 7, 7]),
      tensorOf('fc.bias', 'F32', [2], [0, 0]),
      tensorOf('input_layernorm.weight', 'F32', [2], [1, 1]),
      tensorOf('one', 'F32', [1], [3]),
    ],
    [
      tensorOf('wide.weight', 'F32', [2], [65536, 1]),
      tensorOf('half.weight', 'F32', [2], [-65504, 1]),
      tensorOf('q_proj.lora_B.weight', 'F32', [2], [0, 0]),
      tensorOf('v_proj.lora_B.weight', 'F32', [2], [Number.NaN, 0]),
    ],
  ])

  it('are read with the option alone', async () => {
    const { ok, noteCounts, stats } = await verifyTrial(directory)
    expect([ok, noteCounts, stats.values]).toEqual([true, {}, null])
  })

  it('tell NaN and infinities as problems; zeros, constants and what is beyond half precision as notes', async () => {
    const { problems, notes, stats } = await verifyTrial(directory, { values: true })
    expect(problems.map(({ code, tensor, found }) => [code, tensor, found])).toEqual([
      ['NaNValues', 'a.weight', '1 NaN among 4 elements of "a.weight"'],
      ['InfiniteValues', 'a.weight', '1 infinite among 4 elements of "a.weight"'],
      ['NaNValues', 'v_proj.lora_B.weight', '1 NaN among 2 elements of "v_proj.lora_B.weight"'],
    ])
    expect(notes.map(({ code, tensor, found }) => [code, tensor, found]).sort()).toEqual([
      ['AdapterWithoutEffect', 'q_proj.lora_B.weight', 'zeros alone: 2 elements of "q_proj.lora_B.weight"'],
      ['BeyondHalf', 'wide.weight', '65536 among 2 elements of "wide.weight"'],
      ['ConstantTensor', 'same.weight', '7 alone: 3 elements of "same.weight"'],
      ['ZeroTensor', 'zero.weight', 'zeros alone: 4 elements of "zero.weight"'],
    ])
    expect(stats.values).toEqual({ read: 10, of: 10 })
  })

  it('the first line says of how many tensors they were read', async () => {
    const { stdout, code } = await trialscan('verify', directory, '--values', '--format', 'table')
    expect(stdout.split('\n')[0]).toMatch(/: 3 problems in 1 file; 4 notes; values read of 10 of 10 tensors found$/)
    expect(code).toBe(4)
    const { stdout: lines } = await trialscan('verify', directory, '--values', '--format', 'jsonl')
    expect(JSON.parse(lines.trimEnd().split('\n').at(-1)!)).toMatchObject({ values_read: 10, values_found: 10 })
  })

  it('of a tensor that is cut off are not counted as read', async () => {
    const { directory: cut, first } = shards()
    truncateSync(first, readFileSync(first).length - 3)
    const { problemCounts, stats } = await verifyTrial(cut, { values: true })
    expect([problemCounts, stats.values]).toEqual([{ TruncatedFile: 1 }, { read: 3, of: 3 }])
  })

  it('of a trial of smdebug, too', async () => {
    const place = join(scratch, 'smdebug')
    const writer = await createWriter(place)
    await writer.step()
    await writer.save('fc.weight', Float32Array.of(1, Number.NaN), { shape: [2] })
    await writer.save('fc2.weight', new Float32Array(2), { shape: [2] })
    await writer.close()
    const { problems, notes, stats } = await verifyTrial(place, { values: true })
    expect(problems.map(({ code, tensor, step }) => [code, tensor, step])).toEqual([['NaNValues', 'fc.weight', 0]])
    expect(notes.filter(({ code }) => code === 'ZeroTensor').map(({ tensor }) => tensor)).toEqual(['fc2.weight'])
    expect(stats.values).toEqual({ read: 2, of: 2 })
  })
})
