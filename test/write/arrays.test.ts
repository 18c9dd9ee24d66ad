/** Files of arrays: read as numpy and safetensors write them, and refused, without harm, if they are anything else. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FormatError } from '#dist/base/errors.js'
import { readNpy } from '#dist/format/array/npy.js'
import { readSafetensors } from '#dist/format/array/safetensors.js'
import { type FileArray, type NamedArray, sourceOf } from '#dist/format/array/source.js'
import { readNpz } from '#dist/format/array/zip.js'
import { type Entry, npy, of, safetensors, zip } from '../support/array-files.js'

async function tensorsOf(bytes: Uint8Array): Promise<NamedArray[]> {
  const arrays: NamedArray[] = []
  for await (const array of readSafetensors(sourceOf('x', bytes))) arrays.push(array)
  return arrays
}

const readOne = (bytes: Uint8Array) => readNpy(sourceOf('x.npy', bytes))

async function readZip(bytes: Uint8Array): Promise<readonly NamedArray[]> {
  const arrays: NamedArray[] = []
  for await (const one of readNpz(sourceOf('x.npz', bytes))) arrays.push(one)
  return arrays
}

/** The shapes of those that were read, and of the others why not. */
const shapesOf = (arrays: Iterable<NamedArray>) =>
  Array.from(arrays, ([name, array]) => [name, array instanceof FormatError ? array.message : array.shape])

const arrayOf = ([, array]: NamedArray): FileArray => {
  if (array instanceof FormatError) throw array
  return array
}

describe('.npy', () => {
  it.each([1, 2, 3])('is read: version %i', version => {
    const { dtype, shape, data } = readOne(npy(of('<i2', '(3,)'), Uint8Array.of(1, 0, 2, 0, 3, 0), version))
    expect([dtype, shape, [...(data as Uint8Array)]]).toEqual(['int16', [3], [1, 0, 2, 0, 3, 0]])
  })

  it('is read: big-endian numbers, of each part of a complex one', () => {
    const bytes = Buffer.alloc(16)
    bytes.writeDoubleBE(1.5, 0)
    bytes.writeDoubleBE(-2, 8)
    for (const [descr, dtype] of [
      ['>c16', 'complex128'],
      ['>f8', 'float64'],
    ]) {
      const array = readOne(npy(of(descr!, descr === '>f8' ? '(2,)' : '()'), bytes))
      expect(array.dtype).toBe(dtype)
      expect([...new Float64Array(new Uint8Array(array.data as Uint8Array).buffer)]).toEqual([1.5, -2])
    }
  })

  it('is read: Fortran order, texts, bfloat16 by another name', () => {
    expect(readOne(npy(of('|u1', '(2, 3)', 'True'), Uint8Array.of(1, 4, 2, 5, 3, 6)))).toMatchObject({ stride: [1, 2] })
    const texts = Buffer.alloc(4 * 4)
    texts.writeUInt32LE(0x1d11e, 0)
    texts.writeUInt32LE(97, 8)
    texts.writeUInt32LE(98, 12)
    expect(readOne(npy(of('<U2', '(2,)'), texts)).data).toEqual(['𝄞', 'ab'])
    expect(readOne(npy(of('|S2', '(2, 2)', 'True'), Buffer.from('a\0bbc\0d\0'))).data).toEqual(['a', 'c', 'bb', 'd'])
    expect(readNpy(sourceOf('x', npy(of('|V2', '(1,)'), Uint8Array.of(128, 63))), 'bfloat16').dtype).toBe('bfloat16')
  })

  it.each([
    ['an object', npy(of('|O', '()'), new Uint8Array(8)), /expected elements of b1.*got "O"/],
    [
      'records',
      npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", new Uint8Array(4)),
      /expected elements of b1, .*, U or S, got .*\('a', '<f4'\)/,
    ],
    ['code', npy("{'descr': '<f4', 'fortran_order': exit(), 'shape': ()}", new Uint8Array(4)), /plain elements/],
    [
      'a shape that lies',
      npy(of('<f4', '(1000000000000,)'), new Uint8Array(4)),
      /expected 4000000000000 bytes.*got 4$/,
    ],
    [
      'a shape beyond counting',
      npy(of('<f4', '(9007199254740991, 9007199254740991)'), new Uint8Array(4)),
      /can be counted/,
    ],
    ['empty texts without end', npy(of('<U0', '(9007199254740991,)'), new Uint8Array(0)), /at most 16777216 texts/],
    ['a header that lies', Buffer.from('\x93NUMPY\x02\0\xff\xff\xff\x7f{', 'latin1'), /header of at most 65536 bytes/],
    ['half a header', npy(of('<f4', '(1,)'), new Uint8Array(4)).subarray(0, 40), /byte 8: expected a header within/],
    ['something else', Buffer.from('hello'), /byte 0: expected a .npy file/],
    ['halves of surrogate pairs', npy(of('<U1', '()'), Uint8Array.of(0, 0xd8, 0, 0)), /UTF-32/],
  ])('is refused: %s', (_, bytes, message) => {
    expect(() => readOne(bytes)).toThrow(message)
  })
})

describe('.npz', () => {
  const a = npy(of('|u1', '(100,)'), new Uint8Array(100))
  it('is read, stored and deflated', async () => {
    const arrays = await readZip(
      zip([
        { name: 'a.npy', content: a },
        { name: 'b/c.npy', content: a, isDeflated: true },
      ]),
    )
    expect(shapesOf(arrays)).toEqual([
      ['a', [100]],
      ['b/c', [100]],
    ])
  })

  it('has no array of a directory', async () => {
    const arrays = await readZip(
      zip([
        { name: 'sub/', content: Buffer.alloc(0) },
        { name: 'sub/a.npy', content: a },
      ]),
    )
    expect(shapesOf(arrays)).toEqual([['sub/a', [100]]])
  })

  it.each([
    [
      'a bomb',
      [{ name: 'a.npy', content: new Uint8Array(1 << 20), isDeflated: true, claims: { byteLength: 1000 } }],
      /expected 1000 bytes .*got more/,
    ],
    [
      'a length that lies',
      [{ name: 'a.npy', content: a, isDeflated: true, claims: { byteLength: 1 << 29 } }],
      /length that \d+ bytes can have/,
    ],
    ['a wrong checksum', [{ name: 'a.npy', content: a, claims: { crc: 1 } }], /checksum 00000001 .*got/],
    ['a place outside', [{ name: 'a.npy', content: a, claims: { offset: 1 << 30 } }], /member within/],
    ['a place of something else', [{ name: 'a.npy', content: a, claims: { offset: 3 } }], /header of a member/],
    [
      'a name twice',
      [
        { name: 'a.npy', content: a },
        { name: 'a.npy', content: a },
      ],
      /each name once/,
    ],
    ['another file', [{ name: 'a.txt', content: a }], /member named ….npy/],
    ['an object', [{ name: 'o.npy', content: npy(of('|O', '()'), new Uint8Array(8)) }], /elements of b1.*got "O"/],
    ['dates', [{ name: 'd.npy', content: npy(of('<M8', '()'), new Uint8Array(8)) }], /elements of b1.*got "M8"/],
    [
      'more than 1 GiB',
      [{ name: 'a.npy', content: a, claims: { byteLength: 2 ** 31 } }],
      /at most \d+ bytes for a.npy/,
    ],
    ['what is encrypted', [{ name: 'a.npy', content: a, claims: { flags: 1 } }], /not encrypted/],
  ] as const)('tells %s, which costs no other array', async (_, entries, message) => {
    const [first, last] = [
      { name: 'first.npy', content: a },
      { name: 'last.npy', content: a },
    ]
    const arrays = shapesOf(await readZip(zip([first, ...(entries as readonly Entry[]), last])))
    expect(arrays[0]).toEqual(['first', [100]])
    expect(arrays.at(-1)).toEqual(['last', [100]])
    expect(arrays.at(-2)![1]).toMatch(message)
    expect(arrays.length).toBe(2 + entries.length)
  })
})

const TWO = '"shape":[2],"data_offsets":[0,2]'

describe('.safetensors', () => {
  it('is read, in the order of its bytes', async () => {
    const header =
      '{"__metadata__":{"a":"b"},"y":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}'
    const arrays = await tensorsOf(safetensors(header, Uint8Array.of(0, 0, 128, 63, 1, 2)))
    expect(arrays.map(one => [one[0], arrayOf(one).dtype, arrayOf(one).shape])).toEqual([
      ['x', 'float32', []],
      ['y', 'bfloat16', [1]],
    ])
  })

  it('tells a dtype that is not known, which costs no other tensor', async () => {
    const header =
      '{"x":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]},"y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}  '
    const arrays = await tensorsOf(safetensors(header, new Uint8Array(4)))
    expect(shapesOf(arrays)).toEqual([
      ['x', expect.stringMatching(/tensor "x": expected one of BOOL.*got F6_E2M3/)],
      ['y', [1]],
    ])
  })

  it.each([
    [
      'a hole',
      '{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
      /expected tensor "x", got a gap of 1 bytes/,
      'x',
    ],
    [
      'an overlap',
      '{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}',
      /bytes from 1\d\d on/,
      'x',
    ],
    [
      'a shape that lies',
      '{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,1]},"y":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
      /"x": expected 36 bytes/,
      'y',
    ],
    [
      'bytes left over',
      '{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
      /end of the file, got 1 bytes more/,
      'x',
    ],
    ['metadata that is no text', `{"__metadata__":{"a":1},"x":{"dtype":"U8",${TWO}}}`, /__metadata__ "a", got 1/, 'x'],
    [
      'metadata that is no object',
      `{"__metadata__":"a","x":{"dtype":"U8",${TWO}}}`,
      /__metadata__ of texts, got "a"/,
      'x',
    ],
    ['no shape', '{"x":{"dtype":"U8","data_offsets":[0,2]}}', /"x": expected a shape/, ''],
    ['offsets backwards', '{"x":{"dtype":"F6_E2M3","shape":[2],"data_offsets":[2,0]}}', /"x": .*as shape/, ''],
    [
      'a count beyond 2^53',
      '{"x":{"dtype":"U8","shape":[2,18446744073709551614],"data_offsets":[0,2]}}',
      /"x": expected a shape of whole numbers below 2\^53/,
      '',
    ],
  ])('tells %s, and has the tensors that are whole', async (_, header, message, whole) => {
    const arrays = await tensorsOf(safetensors(header, new Uint8Array(2)))
    const [told, there] = [
      arrays.filter(([, one]) => one instanceof FormatError),
      arrays.filter(([, one]) => !(one instanceof FormatError)),
    ]
    expect(told.map(([, error]) => (error as FormatError).message)[0]).toMatch(message)
    expect(there.map(([name]) => name).join()).toBe(whole)
  })

  it.each([
    ['no JSON', '{"x"', /expected a header in JSON/],
    ['a header that is no object', ' []', /expected a header that is an object/],
    ['a dtype twice', `{"x":{"dtype":"U8","dtype":"I8",${TWO}}}`, /each key once, got "dtype" again/],
    ['a key twice, spelled otherwise', `{"x":{"dtype":"U8","d\\u0074ype":"I8",${TWO}}}`, /"dtype" again/],
    ['a name twice', `{"x":{"dtype":"U8",${TWO}},"x":{"dtype":"U8",${TWO}}}`, /"x" again/],
    [
      'an offset 0.0',
      '{"x":{"dtype":"U8","shape":[2],"data_offsets":[0.0,2]}}',
      /whole numbers in data_offsets, got 0.0/,
    ],
    ['a size 2e0', '{"x":{"dtype":"U8","shape":[2e0],"data_offsets":[0,2]}}', /whole numbers in shape, got 2e0/],
    ['a size -0', '{"x":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}', /whole numbers in shape, got -0/],
  ])('is refused: %s', async (_, header, message) => {
    await expect(tensorsOf(safetensors(header, new Uint8Array(2)))).rejects.toThrow(message)
  })

  it('is refused: a name that is not in UTF-8', async () => {
    const bytes = safetensors(`{"x":{"dtype":"U8",${TWO}}}`, new Uint8Array(2))
    bytes[10] = 0xff
    await expect(tensorsOf(bytes)).rejects.toThrow('a header in UTF-8')
  })

  it('is refused: a pointer of Git LFS, zeros, and what is no file of arrays', async () => {
    const refusals = ['version https://git-lfs.github.com/spec/v1\n', '\0'.repeat(16), 'some text, and nothing else']
    const told = refusals.map(text => () => tensorsOf(Buffer.from(text)))
    await expect(told[0]).rejects.toThrow(/git lfs pull/)
    await expect(told[1]).rejects.toThrow(/the length of a header, got zero/)
    await expect(told[2]).rejects.toThrow(/is no safetensors file/)
  })

  it('is told of hundreds of faults, the first of them one by one', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `"t${i}":{"dtype":"Q7",${TWO}}`)
    const bytes = safetensors(`{${names.join()}}`, new Uint8Array(2))
    const told = await tensorsOf(bytes)
    expect(told).toHaveLength(101)
  })

  it('may begin with blanks', async () => {
    const header = `  {"x":{"dtype":"U8",${TWO}}}`
    expect(await tensorsOf(safetensors(header, new Uint8Array(2)))).toHaveLength(1)
  })

  it('has texts and fields that look like what is refused', async () => {
    const header = `{"__metadata__":{"a":"\\"dtype\\": 0.0, \\"dtype\\""},"data_offsets":{"dtype":"U8",${TWO},"more":[1.5,{"dtype":-1}]}}`
    expect(await tensorsOf(safetensors(header, new Uint8Array(2)))).toHaveLength(1)
  })
})

it('any damage is told, or changes values alone', async () => {
  const array = npy(of('<f4', '(2, 2)'), new Uint8Array(16))
  const files = [
    [array, async (bytes: Uint8Array) => void readOne(bytes)],
    [
      zip([{ name: 'a.npy', content: array, isDeflated: true }]),
      async (bytes: Uint8Array) => void (await readZip(bytes)),
    ],
    [
      safetensors('{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', new Uint8Array(4)),
      async (bytes: Uint8Array) => void (await tensorsOf(bytes)),
    ],
  ] as const
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      damage,
      fc.nat(),
      fc.boolean(),
      async ([file, read], at, end, isCut) => {
        const bytes = Uint8Array.from(isCut ? file.subarray(0, end % file.length) : file)
        for (const [place, byte] of at) if (bytes.length > 0) bytes[place % bytes.length] = byte
        await read(bytes).catch(error => expect(error).toBeInstanceOf(FormatError))
      },
    ),
    { numRuns: 500 },
  )
})
