/** Hostile checkpoints: headers, archives and pickles, each with what has to be said of it. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { counting, safetensors, withHeader } from '../../fixtures/checkpoint-writer.js'
import {
  BUILD,
  bytesOf,
  call,
  dict,
  distributedMetadata,
  EMPTY_LIST,
  global,
  int,
  list,
  MARK,
  NONE,
  type Piece,
  PROTO2,
  pickled,
  STOP,
  tensor,
  text,
  torchZip,
  tuple,
  uint32,
  uint64,
} from '../support/pickles.js'

export interface Exhibit {
  readonly name: string
  /** The file that is named. */
  readonly path: string
  readonly files: () => Readonly<Record<string, Uint8Array | string>>
  /** What a scan says of it; null: nothing is wrong with what is read. */
  readonly says: RegExp | null
  /** Rows of the scan that are right. Default: none. */
  readonly rows?: number
  /** What verify says, where a scan can't know. */
  readonly verify?: RegExp
  /** MB that it may take beyond a good file. Default: 300. */
  readonly memory?: number
}

type Fields = Readonly<Record<string, unknown>>

const entry = (begin: number, end: number, more: Fields = {}) => ({
  dtype: 'F32',
  shape: [(end - begin) / 4],
  data_offsets: [begin, end],
  ...more,
})

function header(
  name: string,
  says: RegExp | null,
  json: string | Uint8Array | object,
  more: Partial<Exhibit> = {},
  data = 16,
) {
  const content = typeof json === 'string' || json instanceof Uint8Array ? json : JSON.stringify(json)
  const file = () => ({ 'model.safetensors': withHeader(content, new Uint8Array(data)) })
  return { name, path: 'model.safetensors', files: file, says, ...more }
}

function bytes(
  name: string,
  says: RegExp | null,
  content: () => Uint8Array,
  path = 'model.safetensors',
  more: Partial<Exhibit> = {},
) {
  return { name, path, files: () => ({ [path]: content() }), says, ...more }
}

/** A good tensor `w` of four elements, and a bad one. */
const beside = (bad: Fields, name = 'bad') => ({ w: entry(0, 16), [name]: bad })

const HEADERS: readonly Exhibit[] = [
  ...[2n ** 63n, 2n ** 64n - 1n, 2n ** 32n].map(length =>
    bytes(`a header of ${length} bytes`, /expected a header of at most 100000000 bytes, got a length of/, () => {
      const file = withHeader('{}')
      new DataView(file.buffer, file.byteOffset).setBigUint64(0, length, true)
      return file
    }),
  ),
  header('a byte order mark', /expected a header in JSON/, `\uFEFF${JSON.stringify({ w: entry(0, 16) })}`),
  header('bytes that are no UTF-8', /expected a header in UTF-8/, Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d)),
  ...['[]', 'null', '"x"', '0', '', '{', '{"w":}'].map(json =>
    header(`a header of ${json}`, /expected (?:a header|the length of a header|a file of tensors)/, json),
  ),
  header(
    'JSON nested a million deep',
    /expected a text as dtype, got nothing/,
    `{"w":${JSON.stringify(entry(0, 16))},"bad":${'['.repeat(1e6)}${']'.repeat(1e6)}}`,
    { rows: 1, memory: 800 },
  ),
  header(
    'metadata nested a million deep',
    /expected a text as __metadata__ "x", got an object/,
    `{"w":${JSON.stringify(entry(0, 16))},"__metadata__":{"x":${'{"a":'.repeat(1e6)}1${'}'.repeat(1e6)}}}`,
    { rows: 1, memory: 1200 },
  ),
  header(
    'metadata that is a list',
    /expected __metadata__ of texts/,
    { __metadata__: [1], w: entry(0, 16) },
    { rows: 1 },
  ),
  header('a text of 20 MB', null, { __metadata__: { a: 'x'.repeat(2e7) }, w: entry(0, 16) }, { rows: 1, memory: 600 }),
  header(
    'names of NUL, marks of direction and escape sequences',
    null,
    { 'a\0b': entry(0, 4), '\u202egnp': entry(4, 8), '\u001b[31mred\n': entry(8, 12), '': entry(12, 16) },
    { rows: 4 },
  ),
  header(
    'names that differ by normalisation alone',
    null,
    { '\u00e9': entry(0, 8), 'e\u0301': entry(8, 16) },
    { rows: 2 },
  ),
  header('half a surrogate as a name', null, `{"\\ud800":${JSON.stringify(entry(0, 16))}}`, { rows: 1 }),
  header(
    'names of prototypes',
    null,
    `{"__proto__":${JSON.stringify(entry(0, 8))},"constructor":${JSON.stringify(entry(8, 16))}}`,
    { rows: 2 },
  ),
  header('two names that are one', null, `{"w":${JSON.stringify(entry(0, 16))},"w":${JSON.stringify(entry(0, 16))}}`, {
    rows: 1,
    verify: /each name once in the header/,
  }),
  header('two dtypes of one tensor', null, `{"w":{"dtype":"I32","dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, {
    rows: 1,
    verify: /each key of \\"w\\" once/,
  }),
  header(
    'an overlap of one byte',
    /bytes from 17 on|bytes from \d+ on/,
    { w: entry(0, 16), bad: { dtype: 'U8', shape: [2], data_offsets: [15, 17] } },
    { rows: 1 },
    17,
  ),
  header(
    'a hole of one byte',
    /a gap of 1 bytes/,
    { w: entry(0, 16), b: { dtype: 'U8', shape: [1], data_offsets: [17, 18] } },
    { rows: 2 },
    18,
  ),
  header(
    'a million on one range',
    /it overlaps the one before/,
    `{${Array.from({ length: 3e5 }, (_, i) => `"${i}":{"dtype":"U8","shape":[16],"data_offsets":[0,16]}`).join(',')}}`,
    { rows: 1, memory: 1000 },
  ),
  ...(
    [
      ['offsets the wrong way round', { data_offsets: [16, 12] }, /expected .* data_offsets \[16,12\]/],
      ['fractions', { data_offsets: [0.5, 4.5] }, /two whole numbers/],
      ['texts as offsets', { data_offsets: ['0', '4'] }, /two whole numbers/],
      ['truth values as offsets', { data_offsets: [false, true] }, /two whole numbers/],
      ['negative offsets', { data_offsets: [-4, 0] }, /two whole numbers/],
      ['three offsets', { data_offsets: [16, 16, 16] }, /two whole numbers/],
      ['a product of dimensions beyond 2^64', { shape: [2 ** 33, 2 ** 33] }, /count of elements below 2\^53/],
      ['a dimension of 2^64', { shape: [2 ** 64] }, /whole numbers below 2\^53/],
      ['floats as dimensions', { shape: [0.5, 8] }, /whole numbers below 2\^53/],
      ['texts as dimensions', { shape: ['4'] }, /whole numbers below 2\^53/],
      ['truth values as dimensions', { shape: [true] }, /whole numbers below 2\^53/],
      ['negative dimensions', { shape: [-1, -4] }, /whole numbers below 2\^53/],
      ['a thousand dimensions', { shape: new Array(1000).fill(1) }, /whole numbers below 2\^53/],
      ['a dtype of toString', { dtype: 'toString' }, /expected one of/],
      ['no dtype', { dtype: null }, /expected a text as dtype/],
    ] as const
  ).map(([name, fields, says]) => header(name, says, beside(entry(16, 16, fields)), { rows: 1 })),
  bytes('a link of Git LFS', /a pointer of Git LFS/, () =>
    bytesOf('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n'),
  ),
]

const good = () => safetensors([counting('w', [4])])
const index = (map: unknown, more: Fields = {}) =>
  JSON.stringify({ metadata: { total_size: 1e308 }, weight_map: map, ...more })

function indexed(name: string, says: RegExp | null, map: unknown, rows = 1): Exhibit {
  const path = 'model.safetensors.index.json'
  return {
    name,
    path,
    files: () => ({ [path]: typeof map === 'string' ? map : index(map), 'model.safetensors': good() }),
    says,
    rows,
  }
}

const INDICES: readonly Exhibit[] = [
  ...['../../../etc/passwd', '/etc/passwd', 'https://example.org/x.safetensors', 'a\\b', 'x\0', '..', ''].map(shard =>
    indexed(`an index that names ${JSON.stringify(shard)}`, /the name of a file beside the index/, {
      w: 'model.safetensors',
      bad: shard,
    }),
  ),
  indexed('an index that names itself', /the name of a file beside the index/, {
    w: 'model.safetensors',
    x: 'model.safetensors.index.json',
  }),
  indexed('an index of numbers', /the name of a file beside the index/, { w: 'model.safetensors', x: 1 }),
  indexed(
    'an index nested a million deep',
    /nested no more than 100 deep/,
    `{"weight_map":${'['.repeat(1e6)}${']'.repeat(1e6)}}`,
    0,
  ),
  indexed('an index that is null', /index\.json: expected an object, got null/, 'null', 0),
]

const FOUR = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer)
const w = { count: 4, size: [4], stride: [1] }

function archive(root: Piece, more: Parameters<typeof torchZip>[0] = {}): Uint8Array {
  return torchZip({ 'data.pkl': pickled(root), 'data/0': FOUR, version: bytesOf('3\n'), ...more })
}

function zip(name: string, says: RegExp | null, content: () => Uint8Array, more: Partial<Exhibit> = {}): Exhibit {
  return bytes(name, says, content, 'file.pt', more)
}

/** A file of a good tensor beside something else. */
function pickle(name: string, says: RegExp | null, bad: () => Piece, more: Partial<Exhibit> = {}): Exhibit {
  return zip(name, says, () => archive(dict({ w: tensor(w), bad: bad() })), { rows: 1, ...more })
}

/** A pickle that is no more than these opcodes. */
function raw(name: string, says: RegExp | null, content: () => Piece, more: Partial<Exhibit> = {}): Exhibit {
  return zip(name, says, () => torchZip({ 'data.pkl': bytesOf(PROTO2, content(), STOP), 'data/0': FOUR }), more)
}

function changed(file: Uint8Array, change: (view: DataView, buffer: Buffer) => void): Uint8Array {
  const copy = Buffer.from(file)
  change(new DataView(copy.buffer, copy.byteOffset, copy.length), copy)
  return copy
}

const END = Buffer.from([0x50, 0x4b, 5, 6])
const END64 = Buffer.from([0x50, 0x4b, 6, 6])

function many(count: number, byte: number): Uint8Array {
  return new Uint8Array(count).fill(byte)
}

/** A value, and a tuple of it twice, and so on: 2^times of it. */
function doubled(first: Piece, times: number): Piece {
  return bytesOf(first, ...Array.from({ length: times }, (_, i) => bytesOf([0x71, i], [0x68, i], [0x86])))
}

const ARCHIVES: readonly Exhibit[] = [
  zip('an archive of 2^32 members', /entries in the directory|directory/, () =>
    changed(archive(dict({ w: tensor(w) })), (view, buffer) => {
      view.setBigUint64(buffer.indexOf(END64) + 32, 2n ** 32n, true)
      view.setUint16(buffer.indexOf(END) + 10, 0xffff, true)
    }),
  ),
  ...(
    [
      ['of 2^63 bytes', 40],
      ['at 2^63', 48],
    ] as const
  ).map(([what, at]) =>
    zip(`a directory ${what}, as ZIP64 says`, /directory|end of a ZIP archive/, () =>
      changed(archive(dict({ w: tensor(w) })), (view, buffer) => {
        view.setBigUint64(buffer.indexOf(END64) + at, 2n ** 63n, true)
        view.setUint16(buffer.indexOf(END) + 10, 0xffff, true)
      }),
    ),
  ),
  zip('members outside of the file', /a member within the/, () =>
    changed(archive(dict({ w: tensor(w) })), (view, buffer) =>
      view.setUint32(buffer.lastIndexOf('archive/data/0') - 4, 0xfffffff0, true),
    ),
  ),
  zip('a member that reaches into the next', /4\d* bytes of \S+ alone, got/, () =>
    changed(archive(dict({ w: tensor(w) })), (view, buffer) => {
      const entry = buffer.lastIndexOf('archive/data/0') - 46
      for (const field of [20, 24]) view.setUint32(entry + field, 40_000, true)
    }),
  ),
  zip('a name twice', /each name once/, () => {
    const file = archive(dict({ w: tensor(w) }), { 'data/1': FOUR })
    return changed(file, (_, buffer) => {
      for (let at = buffer.indexOf('data/1'); at >= 0; at = buffer.indexOf('data/1')) buffer.write('data/0', at)
    })
  }),
  zip('two pickles', /one member data\.pkl, got 2/, () =>
    archive(dict({ w: tensor(w) }), { 'x/data.pkl': pickled(NONE) }),
  ),
  zip('TorchScript', /TorchScript/, () => archive(dict({ w: tensor(w) }), { 'constants.pkl': pickled(NONE) })),
  zip('a compressed storage', /compressed bytes/, () =>
    archive(dict({ w: tensor(w) }), { 'data/0': { content: FOUR, method: 8 } }),
  ),
  zip('a wrong checksum', null, () => archive(dict({ w: tensor(w) }), { 'data/0': { content: FOUR, crc: 1 } }), {
    rows: 1,
    verify: /BadMemberChecksum/,
  }),
  zip(
    'a header of a member that leads elsewhere than the directory',
    null,
    () =>
      changed(archive(dict({ w: tensor(w) }), { 'data/0': bytesOf(FOUR) }), (view, buffer) => {
        const local = buffer.indexOf('archive/data/0') - 30
        view.setUint16(local + 28, view.getUint16(local + 28, true) - 4, true)
      }),
    { rows: 1, verify: /BadMemberChecksum/ },
  ),
  zip('a storage that is shorter than promised', /expected 400 bytes in storage 0, got 16/, () =>
    archive(dict({ w: tensor({ count: 100, size: [4], stride: [1] }) })),
  ),
  zip('a storage that is not there', /storage 7 in the file, got none/, () =>
    archive(dict({ w: tensor({ ...w, key: '7' }) })),
  ),
  zip('a storage of ../', /storage \.\.\/\.\.\/x in the file, got none/, () =>
    archive(dict({ w: tensor({ ...w, key: '../../x' }) })),
  ),
]

const PICKLES: readonly Exhibit[] = [
  pickle('what would run a command', null, () => call('posix', 'system', text('touch owned'))),
  pickle('names of anything', null, () => bytesOf(text('os'), text('system'), [0x93], tuple(text('true')), [0x52])),
  raw('STACK_GLOBAL of numbers', /two texts for STACK_GLOBAL/, () => bytesOf(int(1), int(2), [0x93])),
  raw('STACK_GLOBAL of a megabyte', /bytes of a name for STACK_GLOBAL/, () =>
    bytesOf(text('a'.repeat(1e6)), text('b'), [0x93]),
  ),
  raw('GLOBAL without an end', /a line of at most 1024 bytes/, () => many(5000, 0x63)),
  ...([0x82, 0x83, 0x84, 0x69, 0x6f, 0x32, 0x49, 0x97] as const).map(opcode =>
    raw(`opcode 0x${opcode.toString(16)}`, /an opcode that torch\.save writes/, () => [opcode, 1, 0, 0, 0]),
  ),
  raw('a million marks', /marks at most 1000 deep/, () => many(1e6, 0x28)),
  raw('an integer of 2^31 bytes', /an integer of at most/, () => bytesOf([0x8b], uint32(2 ** 31))),
  raw('a text of 2^32 bytes', /at most 67108864 bytes of text/, () => bytesOf([0x58], uint32(2 ** 32 - 1))),
  raw('bytes of 2^63', /expected 9223372036854776000 bytes/, () => bytesOf([0x8e], uint64(2 ** 63))),
  raw('a frame that lies', /a frame within/, () => bytesOf([0x95], uint64(2 ** 63))),
  raw('an entry of the memo at 2^32', /entries of the memo/, () => bytesOf(NONE, [0x72], uint32(2 ** 32 - 1))),
  raw('an entry of the memo that was never set', /memo that was set/, () => [0x68, 9]),
  raw('an empty stack', /on the stack/, () => [0x52]),
  raw('a list that holds itself', /a cycle/, () => bytesOf(EMPTY_LIST, [0x71, 0], [0x68, 0], [0x61])),
  // Real checkpoints have objects that do: omegaconf's nodes hold their parents.
  pickle('an object that holds itself', null, () => bytesOf(call('a', 'B'), [0x71, 0], tuple([0x68, 0]), BUILD)),
  ...(
    [
      ['tuples', [0x85]],
      ['lists', undefined],
    ] as const
  ).map(([what, opcode]) =>
    raw(
      `${what} nested a million deep`,
      /nested at most 1000 deep/,
      () => (opcode ? bytesOf(NONE, many(1e6, opcode[0])) : bytesOf(many(1e6, 0x5d), many(1e6 - 1, 0x61))),
      { memory: 600 },
    ),
  ),
  raw('tuples that are deep only where they come again', /nested at most 1000 deep/, () => {
    const deep = (i: number) => bytesOf(i === 0 ? tensor(w) : [0x68, i - 1], many(900, 0x85), [0x71, i])
    return bytesOf(MARK, ...Array.from({ length: 20 }, (_, i) => deep(i)), [0x74])
  }),
  pickle('a billion laughs', null, () => doubled(int(1), 250)),
  raw('a billion tensors', /at most 1000000 tensors, got 1099511627776/, () => doubled(tensor(w), 40)),
  raw('names of a gigabyte', /names of at most/, () =>
    dict({
      ['k'.repeat(1 << 20)]: bytesOf(
        EMPTY_LIST,
        MARK,
        tensor(w),
        [0x71, 0],
        ...Array.from({ length: 999 }, () => [0x68, 0]),
        [0x65],
      ),
    }),
  ),
  raw(
    'a wide dict that many share',
    null,
    () => {
      const wide = bytesOf(
        [0x7d],
        MARK,
        ...Array.from({ length: 50_000 }, (_, i) => bytesOf(int(i), NONE)),
        text('w'),
        tensor(w),
        [0x75],
      )
      return bytesOf(EMPTY_LIST, MARK, wide, [0x71, 0], ...Array.from({ length: 20_000 }, () => [0x68, 0]), [0x65])
    },
    { rows: 20_001, memory: 800 },
  ),
  raw('twenty million values', /STOP with one value|opcodes|on the stack/, () => many(20e6, 0x5d), { memory: 1400 }),
  ...[
    NONE,
    int(1),
    text('x'),
    tuple(),
    tuple(text('storage'), NONE, NONE, NONE, NONE),
    tuple(text('storage'), global('os', 'system'), text('0'), text('cpu'), int(4)),
    list(),
  ].map((id, i) =>
    raw(`a persistent id that is no storage (${i})`, /ids of storages/, () =>
      dict({ w: tensor(w), bad: bytesOf(id, [0x51]) }),
    ),
  ),
  ...(
    [
      ['a negative stride', { ...w, size: [2], stride: [-1] }, /do not fit together/],
      ['a negative offset', { ...w, offset: -1 }, /do not fit together/],
      ['a negative size', { ...w, size: [-4] }, /do not fit together/],
      ['an offset of 2^31 - 1', { ...w, offset: 2 ** 31 - 1 }, /a view of the 4 elements of storage 0/],
      [
        'strides that overflow',
        { ...w, size: new Array(8).fill(2 ** 31 - 1), stride: new Array(8).fill(2 ** 31 - 1) },
        /can be counted/,
      ],
      ['a size that overflows', { ...w, size: new Array(3).fill(2 ** 31 - 1), stride: [0, 0, 0] }, /can be counted/],
      [
        'one element that stands for 2^31',
        { ...w, size: [2 ** 31 - 1], stride: [0] },
        /a view of at most 1024 times its elements/,
      ],
      ['other numbers of strides', { ...w, stride: [] }, /do not fit together/],
      ['sixty-five dimensions', { ...w, size: new Array(65).fill(1), stride: new Array(65).fill(1) }, /65 dimensions/],
      ['a count of elements that is negative', { ...w, count: -1 }, /ids of storages/],
    ] as const
  ).map(([name, bad, says]) => pickle(name, says, () => tensor(bad), name.startsWith('a count') ? { rows: 0 } : {})),
  pickle('a sparse tensor', /_rebuild_sparse_tensor is not read/, () =>
    call('torch._utils', '_rebuild_sparse_tensor', NONE),
  ),
]

const PLACE = (file: string, start = 0, length = 10) => ({ file, start, length })
const chunk = (offsets: readonly number[], sizes: readonly number[], file = '__0_0.distcp', start = 0) => ({
  offsets,
  sizes,
  place: PLACE(file, start),
})

const DISTRIBUTED: readonly Exhibit[] = (
  [
    ['chunks of a file elsewhere', { w: { size: [4], chunks: [chunk([0], [4], '../../x')] } }, /names of files beside/],
    [
      'chunks that overlap and leave a hole',
      { w: { size: [4], chunks: [chunk([0], [2]), chunk([1], [2])] } },
      /do not overlap/,
    ],
    [
      'chunks outside of their tensor',
      { w: { size: [4], chunks: [chunk([2 ** 31 - 1], [4])] } },
      /chunks within \[4\]/,
    ],
    [
      'a chunk behind the end of its file',
      { w: { size: [4], chunks: [chunk([0], [4], '__0_0.distcp', 2 ** 31 - 1)] } },
      /it was cut off/,
    ],
    ['a chunk that is none', { w: { size: [4], chunks: [chunk([0], [4])] } }, /a chunk as torch\.save writes it/],
  ] as const
).map(([name, tensors, says]) => ({
  name,
  path: '.metadata',
  files: () => ({ '.metadata': distributedMetadata(tensors), '__0_0.distcp': new Uint8Array(100) }),
  says,
}))

const chunks = (offsets: Readonly<Record<string, number>>, file: number) =>
  safetensors([counting('w', [2])], {
    DCP_SHARDING_INFO: JSON.stringify({ w: { saved_offsets: Object.values(offsets) } }),
    file: `${file}`,
  })

const PARTS: readonly Exhibit[] = [
  {
    name: 'parts that overlap and leave a hole',
    path: '',
    files: () => ({
      'model-00001-of-00002.safetensors': chunks({ at: 0 }, 1),
      'model-00002-of-00002.safetensors': chunks({ at: 2 ** 40 }, 2),
    }),
    says: /parts of "w" that make up/,
  },
  {
    name: 'parts of one place',
    path: '',
    files: () => ({
      'model-00001-of-00003.safetensors': chunks({ at: 0 }, 1),
      'model-00002-of-00003.safetensors': chunks({ at: 0 }, 2),
      'model-00003-of-00003.safetensors': chunks({ at: 4 }, 3),
    }),
    says: /parts of "w" that make up \[6\], got parts that overlap/,
  },
]

export const CHECKPOINT_EXHIBITS: readonly Exhibit[] = [
  ...HEADERS,
  ...INDICES,
  ...ARCHIVES,
  ...PICKLES,
  ...DISTRIBUTED,
  ...PARTS,
]

/** Writes an exhibit into a directory. @returns the place that is named */
export function placed({ files, path }: Exhibit, directory: string): string {
  for (const [name, content] of Object.entries(files())) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return join(directory, path)
}
