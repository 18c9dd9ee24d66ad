/** Files of torch, made by hand: each kind of tensor, each way of keeping it, and each thing that can be wrong. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { StoredTensor, Surroundings, TensorFileContents } from '#dist/format/checkpoint/stored-tensor.js'
import { TORCH } from '#dist/format/checkpoint/torch/format.js'
import { readStructure } from '#dist/format/checkpoint/torch/read-structure.js'
import { FormatError } from '#dist/index.js'
import { FIXTURES, fileOf } from '../../support/checkpoint-files.js'
import {
  BUILD,
  bytesOf,
  call,
  dict,
  EMPTY_LIST,
  EMPTY_TUPLE,
  global,
  int,
  list,
  MARK,
  NONE,
  type Piece,
  pickled,
  REDUCE,
  STOP,
  tensor,
  text,
  torchZip,
  tuple,
  uint64,
} from '../../support/pickles.js'

const around: Surroundings = { paths: ['file.pt'], open: () => Promise.reject(new Error('no other file')) }

function read(bytes: Uint8Array, path = 'file.pt', paths: readonly string[] = [path]): Promise<TensorFileContents> {
  return TORCH.read(fileOf(bytes, path), { ...around, paths })
}

const FOUR = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer)
const one = { count: 4, size: [2, 2], stride: [2, 1] }

/** A file of one pickle, and one storage of four floats. */
function fileWith(root: Piece, more: Parameters<typeof torchZip>[0] = {}): Uint8Array {
  return torchZip({ 'data.pkl': pickled(root), 'data/0': FOUR, version: bytesOf('3\n'), ...more })
}

function place(file: Uint8Array): number {
  return Buffer.from(file).indexOf(FOUR)
}

function storageId(type = 'FloatStorage', key = '0', more: Piece = []): Piece {
  return bytesOf(tuple(text('storage'), global('torch', type), text(key), text('cuda:0'), int(4), more), [0x51])
}

/** `OrderedDict([[key, value], …])`. */
function ordered(entries: Readonly<Record<string, Piece>>): Piece {
  return call(
    'collections',
    'OrderedDict',
    list(...Object.entries(entries).map(([key, value]) => list(text(key), value))),
  )
}

describe('tensors', () => {
  it('lie where their storage lies', async () => {
    const file = fileWith(dict({ a: tensor(one) }))
    expect(await read(file)).toMatchObject({
      tensors: [{ name: 'a', dtype: 'float32', shape: [2, 2], blocks: [{ file: 'file.pt', start: place(file) }] }],
      unread: [],
      problems: [],
    })
  })

  it.each<[string, Piece, string[]]>([
    ['lists and dicts in dicts', dict({ a: list(tensor(one), dict({ b: tensor(one) })) }), ['a.0', 'a.1.b']],
    ['integers as keys', bytesOf(dict({}), MARK, int(7), tensor(one), [0x75]), ['7']],
    ['tuples as keys', bytesOf(dict({}), MARK, tuple(int(0), text('w')), tensor(one), [0x75]), ['0,w']],
    ['a root that is the tensor', tensor(one), ['file']],
    [
      'a parameter',
      call('torch._utils', '_rebuild_parameter', tensor(one), [0x88], call('collections', 'OrderedDict')),
      ['file'],
    ],
    [
      'an OrderedDict with a state',
      bytesOf(
        call('collections', 'OrderedDict'),
        MARK,
        text('w'),
        tensor(one),
        [0x75],
        dict({ _metadata: dict({}) }),
        BUILD,
      ),
      ['w'],
    ],
    [
      'a module as a whole',
      bytesOf(
        global('__main__', 'Net'),
        EMPTY_TUPLE,
        [0x81],
        dict({
          training: [0x88],
          _parameters: dict({ scale: tensor(one) }),
          _modules: dict({
            fc: bytesOf(
              global('torch.nn', 'Linear'),
              EMPTY_TUPLE,
              [0x81],
              dict({ _parameters: dict({ weight: tensor(one) }) }),
              BUILD,
            ),
          }),
        }),
        BUILD,
      ),
      ['scale', 'fc.weight'],
    ],
    [
      'a subclass of Tensor',
      call(
        'torch._tensor',
        '_rebuild_from_type_v2',
        global('torch._utils', '_rebuild_tensor_v2'),
        global('a', 'B'),
        tensorArguments(),
        dict({}),
      ),
      ['file'],
    ],
    [
      'the local part of a DTensor',
      call(
        'torch._tensor',
        '_rebuild_from_type_v2',
        global('torch._utils', '_rebuild_wrapper_subclass'),
        global('torch.distributed.tensor', 'DTensor'),
        tuple(),
        tuple(dict({}), dict({ _local_tensor: tensor(one) })),
      ),
      ['file'],
    ],
    ['an OrderedDict of Python 2', ordered({ a: ordered({ 'b.c': tensor(one) }), d: tensor(one) }), ['a.b.c', 'd']],
    ['an OrderedDict of no pairs', call('collections', 'OrderedDict', list(list(tensor(one)))), ['0.0.0']],
    ['a bare storage', storageId(), ['file']],
  ])('of %s', async (_, root, names) => {
    const { tensors, unread } = await read(fileWith(root))
    expect(unread).toEqual([])
    expect(tensors.map(({ name }) => name)).toEqual(names)
  })

  function tensorArguments(): Piece {
    return tuple(storageId(), int(0), tuple(int(2)), tuple(int(1)), [0x89], call('collections', 'OrderedDict'))
  }

  it.each([
    ['DoubleStorage', 'float64', 2],
    ['HalfStorage', 'float16', 8],
    ['BFloat16Storage', 'bfloat16', 8],
    ['LongStorage', 'int64', 2],
    ['IntStorage', 'int32', 4],
    ['ShortStorage', 'int16', 8],
    ['CharStorage', 'int8', 16],
    ['ByteStorage', 'uint8', 16],
    ['BoolStorage', 'bool', 16],
    ['ComplexFloatStorage', 'complex64', 2],
    ['ComplexDoubleStorage', 'complex128', 1],
    ['QInt8Storage', 'int8', 16],
    ['QInt32Storage', 'int32', 4],
  ])('of %s are %s', async (storage, dtype, count) => {
    const { tensors } = await read(fileWith(tensor({ storage, count, size: [count], stride: [1] })))
    expect(tensors).toMatchObject([{ dtype, shape: [count] }])
  })

  it.each([
    ['float8_e4m3fn', 16],
    ['float8_e5m2fnuz', 16],
    ['uint16', 8],
    ['uint64', 2],
  ])('of bytes are what the seventh argument says: %s', async (dtype, count) => {
    const { tensors } = await read(
      fileWith(tensor({ storage: 'UntypedStorage', count: 16, size: [count], stride: [1], dtype })),
    )
    expect(tensors).toMatchObject([{ dtype, shape: [count] }])
  })

  it('of an OrderedDict of Python 2 stand beside its other values', async () => {
    const { metadata } = await read(fileWith(ordered({ epoch: int(7), w: tensor(one) })))
    expect(metadata!.get('epoch')).toBe('7')
  })

  it('of no elements need no storage', async () => {
    const { tensors } = await read(fileWith(tensor({ key: '7', count: 0, size: [0, 3], stride: [3, 1] })))
    expect(tensors).toMatchObject([{ shape: [0, 3], blocks: [] }])
  })

  it('read no more than the header and the directory of a large file', async () => {
    const large = new Uint8Array(4 << 20)
    const file = fileOf(
      torchZip({ 'data.pkl': pickled(tensor({ count: 1 << 20, size: [1 << 20], stride: [1] })), 'data/0': large }),
    )
    await TORCH.read(file, around)
    expect(file.reads).toBeLessThanOrEqual(4)
  })

  it('are found in an archive that is not aligned as usual, too', async () => {
    const file = torchZip({ 'data.pkl': pickled(tensor(one)), 'data/0': FOUR }, 'archive', 16)
    const { tensors } = await read(file)
    expect(tensors[0]!.blocks[0]!.start).toBe(place(file))
  })
})

describe('what can not be read is listed, and the rest is read', () => {
  it.each<[string, Piece, RegExp]>([
    [
      'a sparse tensor',
      call('torch._utils', '_rebuild_sparse_tensor', global('torch', 'sparse_coo'), tuple()),
      /_rebuild_sparse_tensor is not read/,
    ],
    ['a quantised tensor', call('torch._utils', '_rebuild_qtensor', tuple()), /_rebuild_qtensor is not read/],
    [
      'a tensor quantised to four bits',
      call('torch._utils', '_rebuild_qtensor', storageId('QUInt4x2Storage')),
      /_rebuild_qtensor is not read/,
    ],
    ['a storage of two bits', storageId('QUInt2x4Storage'), /can be read, got quint2x4/],
    ['a meta tensor', call('torch._utils', '_rebuild_meta_tensor_no_storage', tuple()), /not read/],
    ['an unknown wrapper', call('torch._utils', '_rebuild_wrapper_subclass', tuple()), /not read/],
    [
      'complex32',
      tensor({ storage: 'ComplexHalfStorage', count: 4, size: [4], stride: [1] }),
      /can be read, got complex32/,
    ],
    ['a negative view', tensor({ ...one, metadata: dict({ neg: [0x88] }) }), /save resolve_neg\(\) of it/],
    [
      'a conjugate view of v3',
      tensor({ ...one, dtype: 'complex64', metadata: dict({ conj: [0x88] }) }),
      /save resolve_conj\(\) of it/,
    ],
    [
      'an unknown dtype',
      tensor({ storage: 'UntypedStorage', count: 4, size: [4], stride: [1], dtype: 'float2' }),
      /float2, which is not known/,
    ],
    [
      'a transposed float4',
      tensor({ storage: 'UntypedStorage', count: 4, size: [2, 2], stride: [1, 2], dtype: 'float4_e2m1fn_x2' }),
      /can be read, got float4_e2m1fn_x2/,
    ],
    ['a storage that is missing', tensor({ ...one, key: '9' }), /expected storage 9 in the file, got none/],
    [
      'a storage that is too short',
      tensor({ count: 40, size: [40], stride: [1] }),
      /expected 160 bytes in storage 0, got 16/,
    ],
    [
      'a view outside of its storage',
      tensor({ count: 4, size: [2, 2], stride: [3, 1] }),
      /a view of the 4 elements of storage 0, got one up to element 4/,
    ],
    ['an offset outside', tensor({ ...one, offset: 1 }), /one up to element 4/],
    ['a negative stride', tensor({ ...one, stride: [2, -1] }), /offset, size and stride do not fit/],
    ['a size without a stride', tensor({ ...one, stride: [1] }), /do not fit together/],
    ['more elements than can be', tensor({ count: 4, size: [2 ** 30, 2 ** 30], stride: [0, 0] }), /can be counted/],
    [
      'a view of a hundred dimensions',
      tensor({ count: 4, size: new Array(100).fill(1), stride: new Array(100).fill(1) }),
      /100 dimensions/,
    ],
  ])('%s', async (_, bad, message) => {
    const { tensors, unread } = await read(fileWith(dict({ good: tensor(one), bad })))
    expect(tensors.map(({ name }) => name)).toEqual(['good'])
    expect(unread).toHaveLength(1)
    expect(unread[0]!.name).toBe('bad')
    expect(unread[0]!.error).toBeInstanceOf(FormatError)
    expect(unread[0]!.error.message).toMatch(message)
  })

  it('a tensor quantised to four bits in a legacy file', async () => {
    const emb = call('torch._utils', '_rebuild_qtensor', storageId('QUInt4x2Storage', '0', NONE))
    const w = call(
      'torch._utils',
      '_rebuild_tensor',
      ...[storageId('FloatStorage', '1', NONE), int(0), tuple(int(4))],
      tuple(int(1)),
    )
    const file = bytesOf(
      pickled([0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19]),
      pickled(int(1001)),
      pickled(dict({ little_endian: [0x88] })),
      pickled(dict({ emb, w })),
      pickled(list(text('0'), text('1'))),
      ...[uint64(4), new Uint8Array(4), uint64(4), FOUR],
    )
    const { tensors, unread } = await read(file)
    expect([tensors, unread]).toMatchObject([[{ name: 'w', blocks: [{ start: place(file) }] }], [{ name: 'emb' }]])
  })

  it('a storage that someone compressed', async () => {
    const file = fileWith(tensor(one), { 'data/0': { content: FOUR, method: 8 } })
    expect((await read(file)).unread[0]!.error.message).toMatch(/compressed bytes: unpack the file with unzip.*zip -0/)
  })
})

describe('refusals', () => {
  const whole = fileWith(dict({ a: tensor(one) }))
  const legacy = Uint8Array.from(readFileSync(join(FIXTURES, 'torch/legacy.pt')))

  it.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(0), /expected a file of torch\.save, got an empty file/],
    [
      'a file to which something was appended',
      bytesOf(whole, 'junk'),
      /the end of the file behind a ZIP archive, got 4 bytes more: something was appended/,
    ],
    ['a file that was cut off', whole.slice(0, -100), /it is cut off: its directory is missing/],
    [
      'a Git LFS pointer',
      bytesOf('version https://git-lfs.github.com/spec/v1\noid sha256:12\n'),
      /was not fetched: git lfs pull/,
    ],
    ['a tar', bytesOf(new Uint8Array(257), 'ustar', new Uint8Array(300)), /a tar, as torch\.save wrote before/],
    ['a plain pickle', pickled(int(1)), /a pickle alone, without tensors/],
    ['other bytes', bytesOf('hello, world'), /"hello, world" at its beginning/],
    ['no pickle', torchZip({ version: bytesOf('3\n') }), /one member data\.pkl, got none/],
    ['two pickles', torchZip({ 'data.pkl': pickled(int(1)), 'b/data.pkl': pickled(int(1)) }), /got 2 of them/],
    [
      'TorchScript',
      fileWith(int(1), { 'constants.pkl': pickled(int(1)) }),
      /TorchScript: load it with torch\.jit\.load/,
    ],
    [
      'big-endian elements',
      fileWith(int(1), { byteorder: bytesOf('big') }),
      /expected little-endian elements, got "big"/,
    ],
    ['a compressed pickle', torchZip({ 'data.pkl': { content: pickled(int(1)), method: 8 } }), /compressed bytes/],
    [
      'a pickle that is broken',
      torchZip({ 'data.pkl': pickled([0x85]) }),
      /archive\/data\.pkl, byte 2: expected 1 on the stack/,
    ],
    ['an id of no storage', fileWith(bytesOf(text('x'), [0x51])), /expected ids of storages/],
    [
      'a legacy file that is big-endian',
      replaced(legacy, bytesOf('little_endian'), [0x88], [0x89]),
      /little-endian elements/,
    ],
    [
      'a legacy file that ends in its pickles',
      legacy.slice(0, 300),
      /up to the end of the pickle|the end of the pickle/,
    ],
  ])('%s', async (_, bytes, message) => {
    await expect(read(bytes)).rejects.toThrow(message)
    await expect(read(bytes)).rejects.toThrow(FormatError)
  })

  it('but not half a surrogate in a text, as Python may pickle it', async () => {
    const half = bytesOf([0x58], [3, 0, 0, 0], [0xed, 0xa0, 0x80])
    const root = bytesOf(dict({ note: half, meta: int(1) }), MARK, half, tensor(one), tuple(half), tensor(one), [0x75])
    const file = fileWith(root)
    const { tensors, metadata } = await read(file)
    expect(tensors.map(({ name }) => name)).toEqual(['\ufffd'.repeat(3), '\ufffd'.repeat(3)])
    expect(metadata!.get('note')).toBe('\ufffd'.repeat(3))
    const { structure } = await readStructure(fileOf(file, 'file.pt'))
    expect(structure).toMatchObject({ note: '\ufffd'.repeat(3) })
  })

  it('a name that comes twice', async () => {
    const twice = torchZip({ 'data.pkl': pickled(tensor(one)), 'data/0': FOUR, 'data/1': FOUR })
    await expect(read(replacedAll(twice, 'data/1', 'data/0'))).rejects.toThrow(
      /each name once, got "archive\/data\/0" again/,
    )
  })

  it('an encrypted pickle', async () => {
    const file = Buffer.from(fileWith(int(1)))
    const at = file.indexOf('PK\x01\x02')
    file[at + 8]! |= 1
    await expect(read(Uint8Array.from(file))).rejects.toThrow(/a member that is not encrypted/)
  })

  it.each([
    ['3', [0x80, 3]],
    ['4', [0x80, 4, 0x95, 13, 0, 0, 0, 0, 0, 0, 0]],
    ['5', [0x80, 5]],
  ])('but not a legacy file of protocol %s', async (_, head) => {
    const moved = ({ blocks, ...tensor }: StoredTensor) => ({
      ...tensor,
      blocks: blocks.map(block => ({ ...block, start: block.start + head.length - 2 })),
    })
    const { tensors } = await read(bytesOf(head, legacy.slice(2)))
    expect(tensors).toEqual((await read(legacy)).tensors.map(moved))
  })

  it('a legacy file that was cut off has the tensors before', async () => {
    const { tensors, unread } = await read(legacy.slice(0, -40))
    expect(unread.length).toBeGreaterThan(0)
    expect(tensors.length).toBeGreaterThan(10)
    expect(unread[0]!.error.message).toMatch(/bytes of storage .*, got \d+ up to the end of the file/)
    // The tensor is named, not its storage alone.
    expect(unread[0]!.error.fields.tensor).toBe(unread[0]!.name)
  })

  it('a legacy file with a storage of another length', async () => {
    const count = uint64(35)
    await expect(read(replaced(legacy, count, count, uint64(36)))).rejects.toThrow(/expected 35 elements in storage/)
  })

  it('classes of modules may stand with their source, as before 1.6', async () => {
    const type = bytesOf(tuple(text('module'), global('my', 'Model'), text('my.py'), text('class Model: …')), [0x51])
    const model = bytesOf(type, EMPTY_TUPLE, [0x81], dict({ _parameters: dict({ w: tensor(one) }) }), BUILD)
    const { tensors } = await read(fileWith(model))
    expect(tensors.map(({ name }) => name)).toEqual(['w'])
  })

  it('bytes behind STOP are no fault', async () => {
    const file = torchZip({ 'data.pkl': bytesOf(pickled(tensor(one)), STOP, [1, 2, 3]), 'data/0': FOUR })
    expect((await read(file)).tensors).toHaveLength(1)
  })

  function replaced(bytes: Uint8Array, after: Piece, from: Piece, to: Piece): Uint8Array {
    const copy = Buffer.from(bytes)
    const at = copy.indexOf(bytesOf(from), copy.indexOf(bytesOf(after)))
    copy.set(bytesOf(to), at)
    return Uint8Array.from(copy)
  }

  function replacedAll(bytes: Uint8Array, from: string, to: string): Uint8Array {
    return Uint8Array.from(Buffer.from(Buffer.from(bytes).toString('latin1').replaceAll(from, to), 'latin1'))
  }
})

describe('names of files', () => {
  const dump = fileWith(tensor(one))

  it.each<[string, string, { name: string; worker?: string; order?: number }]>([
    [
      'SGLang',
      'd/step=3___rank=1___dump_index=12___name=model.layers.0.mlp.pt',
      { name: 'model.layers.0.mlp', worker: 'rank_1', order: 12 },
    ],
    [
      'SGLang, with tags',
      'step=3___rank=0___dump_index=2___name=q___tp_rank=1___layer_id=7.pt',
      { name: 'q.layer_id=7', worker: 'rank_0', order: 2 },
    ],
    ['TensorRT-LLM', 'rank0/17.layers.3.attention-output.0.pt', { name: 'layers.3.attention-output.0' }],
    ['any other', 'a/b/hidden_states.pt', { name: 'hidden_states' }],
  ])('%s', async (_, path, expected) => {
    const [found] = (await read(dump, path)).tensors
    expect(found).toMatchObject(expected)
  })

  it('tell dumps of one name apart by their order', async () => {
    const paths = [3, 10, 2].map(index => `step=0___rank=0___dump_index=${index}___name=x.pt`)
    const names = await Promise.all(paths.map(async path => (await read(dump, path, paths)).tensors[0]!.name))
    expect(names).toEqual(['x#2', 'x#3', 'x'])
  })

  it('of SGLang stand before what the dictionary says', async () => {
    const meta = dict({ name: text('model.embed'), step: int(5), rank: int(3) })
    const file = fileWith(dict({ value: tensor(one), meta }))
    expect((await read(file, 'dump.pt')).tensors).toMatchObject([{ name: 'model.embed', step: 5, worker: 'rank_3' }])
    const nested = fileWith(dict({ value: dict({ q: tensor(one) }), meta }))
    expect((await read(nested, 'dump.pt')).tensors).toMatchObject([{ name: 'model.embed.q' }])
  })
})

describe('hostile files', () => {
  it('of a pickle that would run a command have their tensors, and a warning', async () => {
    const file = Uint8Array.from(readFileSync(join(FIXTURES, 'broken/evil.pt')))
    const { tensors, metadata } = await read(file)
    expect(tensors.length).toBeGreaterThan(0)
    expect(metadata!.get('warning')).toMatch(/^loads (?:os|posix)\.system: do not open this with torch\.load$/)
  })

  it('cut off, say so', async () => {
    const file = Uint8Array.from(readFileSync(join(FIXTURES, 'broken/cut.pt')))
    await expect(read(file)).rejects.toThrow(/cut off: its directory is missing/)
  })

  it.each<[string, Piece, string | undefined]>([
    ['eval', call('builtins', 'eval', text('1')), 'builtins.eval'],
    ['a getattr of a module', call('builtins', 'getattr', global('os', 'path'), text('join')), 'os.path'],
    ['a getattr of builtins', call('builtins', 'getattr', global('builtins', 'X'), text('eval')), 'builtins.getattr'],
    ['torch.load', call('torch', 'load', text('x')), 'torch.load'],
    [
      'a getattr of an enum',
      call('builtins', 'getattr', global('torch.serialization', '_MEM_FORMAT'), text('preserve')),
      undefined,
    ],
    ['a Namespace', bytesOf(call('argparse', 'Namespace'), dict({ lr: int(1) }), BUILD), undefined],
    ['an enum', bytesOf(global('megatron.core.enums', 'ModelType'), tuple(int(1)), REDUCE), undefined],
    ['a numpy scalar', call('numpy.core.multiarray', 'scalar', int(1)), undefined],
    ['a path', call('pathlib', 'PosixPath', text('a')), undefined],
  ])('warn of what runs code, and not of what does not: %s', async (_, value, name) => {
    const { metadata } = await read(fileWith(dict({ value })))
    if (name === undefined) expect(metadata!.get('warning')).toBeUndefined()
    else expect(metadata!.get('warning')).toContain(name)
  })

  it.each<[string, Piece, readonly string[]]>([
    [
      'objects that hold those that hold them',
      // As omegaconf has them: _content leads to a node, and the _parent of that back.
      bytesOf(
        call('omegaconf', 'DictConfig'),
        [0x71, 0],
        dict({
          _content: dict({
            lr: bytesOf(call('omegaconf', 'Node'), dict({ _parent: [0x68, 0], of: tensor(one) }), BUILD),
          }),
        }),
        BUILD,
      ),
      ['bad._content.lr.of', 'w'],
    ],
    ['a tensor that holds itself', bytesOf(tensor(one), [0x71, 0], tuple([0x68, 0]), BUILD), ['bad', 'w']],
    [
      'thirty objects that hold each other',
      bytesOf(
        ...Array.from({ length: 30 }, (_, i) => bytesOf(call('a', 'B'), [0x71, i])),
        ...Array.from({ length: 30 }, (_, i) => {
          const all = Array.from({ length: 30 }, (_, j) => [0x68, j])
          return bytesOf([0x68, i], bytesOf(EMPTY_LIST, MARK, ...all, [0x65]), BUILD, [0x30])
        }),
        ...Array.from({ length: 29 }, () => [0x30]),
      ),
      ['w'],
    ],
  ])('of cycles have their tensors, none of them twice: %s', async (_, bad, names) => {
    const file = fileWith(dict({ bad, w: tensor(one) }))
    expect((await read(file)).tensors.map(({ name }) => name)).toEqual(names)
    expect(JSON.stringify((await readStructure(fileOf(file, 'file.pt'))).structure).length).toBeLessThan(1e6)
  })

  it('of cycles are shown up to the value that comes again', async () => {
    const file = fileWith(dict({ a: bytesOf(call('a', 'B'), [0x71, 0], list(int(1), [0x68, 0]), BUILD) }))
    expect((await readStructure(fileOf(file, 'file.pt'))).structure).toMatchObject({
      a: { state: [1, { cycle: true }] },
    })
  })

  it('of lists that hold themselves are refused', async () => {
    const bad = bytesOf(EMPTY_LIST, [0x71, 0], [0x68, 0, 0x61])
    await expect(read(fileWith(dict({ bad, w: tensor(one) })))).rejects.toThrow(/do not hold themselves, got a cycle/)
  })

  it('that hold a billion laughs cost nothing, and one with a tensor in it is refused', async () => {
    const doubled = (first: Piece, times: number) =>
      bytesOf(first, ...Array.from({ length: times }, (_, i) => bytesOf([0x71, i], [0x68, i], [0x86])))
    expect((await read(fileWith(dict({ laughs: doubled(int(1), 200), a: tensor(one) })))).tensors).toHaveLength(1)
    await expect(read(fileWith(doubled(tensor(one), 40)))).rejects.toThrow(
      /expected at most 1000000 tensors, got 1099511627776/,
    )
  })
})
