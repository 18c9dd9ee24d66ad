/** Arrays and scalars of numpy in files of torch. test/torch-writes.long.test.ts has numpy itself write them. */

import { describe, expect, it } from 'vitest'
import { NPY, NPZ } from '#dist/format/checkpoint/npy.js'
import { TORCH } from '#dist/format/checkpoint/torch/format.js'
import { npy, zip } from '../../support/array-files.js'
import { fileOf } from '../../support/checkpoint-files.js'
import {
  BUILD,
  bytesOf,
  call,
  dict,
  EMPTY_TUPLE,
  global,
  int,
  NONE,
  type Piece,
  pickled,
  REDUCE,
  text,
  torchZip,
  tuple,
  uint32,
} from '../../support/pickles.js'

const around = { paths: ['file.pt'], open: () => Promise.reject(new Error('no other file')) }

async function read(values: Readonly<Record<string, Piece>>) {
  const file = torchZip({ 'data.pkl': pickled(dict(values)) })
  return { file, ...(await TORCH.read(fileOf(file), around)) }
}

function raw(bytes: Uint8Array): Piece {
  return bytesOf([0x42], uint32(bytes.length), bytes)
}

function dtype(kind: string, order = '<'): Piece {
  const state = tuple(int(3), text(order), NONE, NONE, NONE, int(-1), int(-1), int(0))
  return bytesOf(call('numpy', 'dtype', text(kind), [0x89], [0x88]), state, BUILD)
}

function array(shape: readonly number[], type: Piece, content: Piece, isFortran = false, module = 'numpy.core'): Piece {
  const empty = call(`${module}.multiarray`, '_reconstruct', global('numpy', 'ndarray'), tuple(int(0)), text('b'))
  return bytesOf(empty, tuple(int(1), tuple(...shape.map(int)), type, [isFortran ? 0x88 : 0x89], content), BUILD)
}

const SIX = new Uint8Array(Float32Array.of(0, 1, 2, 3, 4, 5).buffer)
/** As protocol 2 has bytes. */
const encoded = (bytes: Uint8Array) =>
  call('_codecs', 'encode', text(Buffer.from(bytes).toString('latin1')), text('latin1'))

describe('arrays of numpy', () => {
  it.each(['numpy.core', 'numpy._core'])('that are bytes of the pickle are read where they lie: %s', async module => {
    const { file, tensors, unread } = await read({ a: array([2, 3], dtype('f4'), raw(SIX), false, module) })
    const start = Buffer.from(file).indexOf(SIX)
    expect([tensors, unread]).toEqual([
      [{ name: 'a', dtype: 'float32', shape: [2, 3], blocks: [{ file: 'file.pt', start }] }],
      [],
    ])
  })

  it('in the order of Fortran have strides', async () => {
    const { tensors } = await read({ a: array([2, 3], dtype('f4'), raw(SIX), true) })
    expect(tensors[0]!.blocks[0]!.strides).toEqual([1, 2])
  })

  it('of protocol 2 are text, and become bytes in C order', async () => {
    const { tensors } = await read({
      a: array([6], dtype('f4'), encoded(SIX)),
      b: array([2, 3], dtype('f4'), encoded(SIX), true),
      c: array([2], dtype('u1', '|'), encoded(Uint8Array.of(200, 127))),
      d: array([0, 3], dtype('f8'), bytesOf(global('__builtin__', 'bytes'), EMPTY_TUPLE, REDUCE)),
    })
    expect(tensors.map(({ data }) => data)).toEqual([
      SIX,
      new Uint8Array(Float32Array.of(0, 2, 4, 1, 3, 5).buffer),
      Uint8Array.of(200, 127),
      undefined,
    ])
  })

  it('of protocol 5 are buffers', async () => {
    const buffer = (order: string) =>
      call('numpy._core.numeric', '_frombuffer', raw(SIX), dtype('f4'), tuple(int(2), int(3)), text(order))
    const { tensors } = await read({ a: buffer('C'), b: buffer('F') })
    expect(tensors.map(({ blocks }) => blocks[0]!.strides)).toEqual([undefined, [1, 2]])
  })

  it('of numpy 2.3 and protocol 5 may have the order of their axes besides', async () => {
    const twelve = new Uint8Array(Float32Array.from({ length: 12 }, (_, i) => i).buffer)
    const permuted = (content: Piece, ...axes: readonly number[]) =>
      call(
        'numpy._core.numeric',
        '_frombuffer',
        ...[content, dtype('f4'), tuple(int(2), int(2), int(3)), text('K'), tuple(...axes.map(int))],
      )
    // What numpy 2.4 writes of an array of shape [2, 3, 2] whose last two axes were swapped; and text, as it never does.
    const { tensors, unread } = await read({
      a: permuted(raw(twelve), 0, 2, 1),
      b: permuted(encoded(twelve), 1, 2, 0),
      c: permuted(raw(twelve), 0, 2, 2),
      d: permuted(raw(twelve), 1, 0),
    })
    expect(tensors).toMatchObject([
      { name: 'a', shape: [2, 3, 2], blocks: [{ strides: [6, 1, 3] }] },
      {
        name: 'b',
        shape: [2, 3, 2],
        data: new Uint8Array(Float32Array.of(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11).buffer),
      },
    ])
    expect(unread.map(({ error }) => error.message)).toEqual([
      expect.stringMatching(/unknown order of axes/),
      expect.stringMatching(/unknown order of axes/),
    ])
  })

  it.each<[string, Piece, RegExp]>([
    ['too few bytes', array([7], dtype('f4'), raw(SIX)), /expected 28 bytes of elements for shape \[7\], got 24/],
    ['too few characters', array([7], dtype('f4'), encoded(SIX)), /expected 28 bytes .*, got 24/],
    [
      'characters that are no bytes',
      array([2], dtype('u1'), call('_codecs', 'encode', text('ā'), text('latin1'))),
      /expected 2 bytes .*, got other text/,
    ],
    ['big-endian elements', array([6], dtype('f4', '>'), raw(SIX)), /got an array of numpy, big-endian/],
    ['a negative size', array([-6], dtype('f4'), raw(SIX)), /got an array of numpy without dtype, shape and elements/],
    ['a size that overflows', array(new Array(5).fill(2 ** 20), dtype('f4'), raw(SIX)), /can be counted/],
    [
      'no state',
      call('numpy.core.multiarray', '_reconstruct', global('numpy', 'ndarray'), tuple(int(0)), text('b')),
      /got an array of numpy without dtype/,
    ],
  ])('that can not be read are told: %s', async (_, value, message) => {
    const { tensors, unread } = await read({ a: value, b: array([6], dtype('f4'), raw(SIX)) })
    expect(tensors.map(({ name }) => name)).toEqual(['b'])
    expect(unread.map(({ error }) => error.message)).toEqual([expect.stringMatching(message)])
  })

  it('of texts and objects are no tensors', async () => {
    const { tensors, unread } = await read({
      texts: array([1], dtype('U1'), raw(new Uint8Array(4))),
      objects: array([1], dtype('O8', '|'), bytesOf([0x5d], NONE, [0x61])),
    })
    expect([tensors, unread]).toEqual([[], []])
  })

  it('of which one text makes thousands take no more memory than a bound', async () => {
    const megabytes = Buffer.alloc(1 << 20)
    const one = encoded(megabytes)
    const again = (i: number): Piece => (i === 0 ? bytesOf(one, [0x71, 0]) : [0x68, 0])
    const values = Array.from({ length: 100 }, (_, i) => [`a${i}`, array([1 << 20], dtype('u1'), again(i))] as const)
    const { tensors, unread } = await read(Object.fromEntries(values))
    expect([tensors.length, unread.length]).toEqual([64, 36])
    expect(unread[0]!.error.message).toMatch(/save it with pickle_protocol=4/)
  })
})

it('scalars of numpy are values', async () => {
  const scalar = (kind: string, bytes: Uint8Array) =>
    call('numpy.core.multiarray', 'scalar', dtype(kind), encoded(bytes))
  const { metadata } = await read({
    best: scalar('f8', new Uint8Array(Float64Array.of(0.25).buffer)),
    step: scalar('i8', new Uint8Array(BigInt64Array.of(-7n).buffer)),
    half: scalar('f2', Uint8Array.of(0, 0x3e)),
    done: scalar('b1', Uint8Array.of(1)),
    short: scalar('f8', Uint8Array.of(1)),
  })
  expect(Object.fromEntries(metadata!)).toEqual({
    format: 'torch.save, zip',
    best: '0.25',
    step: '-7',
    half: '1.5',
    done: 'true',
  })
})

it.each(["[('a', '<f4'), ('b]', '|S4', (1,))]", "'<M8[ns]'", "'<m8[25s]'", "'<U2'"])(
  'an array of %s in a file of numpy is whole, and of a kind that is not read',
  async descr => {
    const file = npy(`{'descr': ${descr}, 'fortran_order': False, 'shape': (1,), }`, new Uint8Array(8))
    const inArchive = await NPZ.read(fileOf(zip([{ name: 'x.npy', content: file }])), around)
    for (const { unread } of [inArchive, await NPY.read(fileOf(file, 'x.npy'), around)]) {
      expect(unread).toMatchObject([
        { name: 'x', dtype: descr.replace(/'<(.*)'$/, '$1'), error: { code: 'UnreadableDType' } },
      ])
    }
  },
)
