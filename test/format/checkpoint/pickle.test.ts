/** Pickles as data: nothing in them is called, and the hostile ones are looked at or refused. */

import childProcess from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { runPickle } from '#dist/format/checkpoint/pickle/machine.js'
import { FormatError, readPickle } from '#dist/index.js'
import {
  BUILD,
  bytesOf,
  call,
  dict,
  EMPTY_DICT,
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
  SETITEMS,
  text,
  tuple,
  uint32,
  uint64,
} from '../../support/pickles.js'

/** A pickle of 500 nested lists more than may be. */
const DEEP = pickled(new Uint8Array(1500).fill(0x5d), new Uint8Array(1499).fill(0x61))

/** 600 tuples; and 600 more, of which the inmost holds these. */
const HALF = new Uint8Array(600).fill(0x85)
const DEEP_AGAIN = pickled(NONE, HALF, [0x71, 0], [0x68, 0], HALF, [0x86])

describe('values', () => {
  it.each<[string, Piece[], unknown]>([
    ['None', [NONE], null],
    ['True', [[0x88]], true],
    ['False', [[0x89]], false],
    ['BININT1', [[0x4b, 200]], 200],
    ['BININT2', [[0x4d, 1, 2]], 513],
    ['BININT', [int(2 ** 31 - 1)], 2 ** 31 - 1],
    ['BININT below 0', [int(-5)], -5],
    ['LONG1 of no bytes', [[0x8a, 0]], 0],
    ['LONG1', [[0x8a, 1, 0xff]], -1],
    ['LONG1 of 2**40', [[0x8a, 6, 0, 0, 0, 0, 0, 1]], 2 ** 40],
    ['LONG1 of 2**53 - 1', [[0x8a, 7, 255, 255, 255, 255, 255, 255, 31]], 2 ** 53 - 1],
    ['LONG1 of 2**53', [[0x8a, 7, 0, 0, 0, 0, 0, 0, 32]], 2n ** 53n],
    ['LONG1 of 2**70', [[0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 64]], 2n ** 70n],
    ['LONG4', [[0x8b], uint32(9), [0, 0, 0, 0, 0, 0, 0, 0, 0xc0]], -(2n ** 70n)],
    ['BINFLOAT', [[0x47, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]], 1.5],
    ['BINUNICODE', [text('имя ✓')], 'имя ✓'],
    ['SHORT_BINUNICODE', [[0x8c, 2], 'ab'], 'ab'],
    ['BINUNICODE8', [[0x8d], uint64(2), 'ab'], 'ab'],
    ['SHORT_BINSTRING', [[0x55, 2, 0x61, 0xe9]], 'aé'],
    ['BINSTRING', [[0x54], uint32(1), 'a'], 'a'],
    ['SHORT_BINBYTES', [[0x43, 2, 1, 255]], new Uint8Array([1, 255])],
    ['BINBYTES', [[0x42], uint32(1), [7]], new Uint8Array([7])],
    ['BINBYTES8', [[0x8e], uint64(1), [7]], new Uint8Array([7])],
    ['BYTEARRAY8', [[0x96], uint64(1), [7]], new Uint8Array([7])],
    ['EMPTY_TUPLE', [EMPTY_TUPLE], { kind: 'tuple', items: [] }],
    ['TUPLE', [tuple(int(1), text('b'))], { kind: 'tuple', items: [1, 'b'] }],
    ['TUPLE1', [int(1), [0x85]], { kind: 'tuple', items: [1] }],
    ['TUPLE2', [int(1), int(2), [0x86]], { kind: 'tuple', items: [1, 2] }],
    ['TUPLE3', [int(1), int(2), int(3), [0x87]], { kind: 'tuple', items: [1, 2, 3] }],
    ['LIST', [MARK, int(1), [0x6c]], { kind: 'list', items: [1] }],
    ['APPEND', [EMPTY_LIST, int(1), [0x61], int(2), [0x61]], { kind: 'list', items: [1, 2] }],
    ['APPENDS', [list(int(1), int(2))], { kind: 'list', items: [1, 2] }],
    ['DICT', [MARK, int(1), int(2), [0x64]], { kind: 'dict', items: [[1, 2]] }],
    ['SETITEM', [EMPTY_DICT, int(1), NONE, [0x73]], { kind: 'dict', items: [[1, null]] }],
    ['EMPTY_SET and ADDITEMS', [[0x8f], MARK, int(1), [0x90]], { kind: 'set', items: [1] }],
    ['FROZENSET', [MARK, int(1), [0x91]], { kind: 'frozenset', items: [1] }],
    ['POP', [int(1), int(2), [0x30]], 1],
    ['POP of a mark', [int(1), MARK, [0x30]], 1],
    ['POP_MARK', [int(1), MARK, int(2), int(3), [0x31]], 1],
    ['FRAME', [[0x95], uint64(6), int(7)], 7],
    ['BINPUT and BINGET', [int(7), [0x71, 3], [0x30], [0x68, 3]], 7],
    ['LONG_BINPUT and LONG_BINGET', [int(7), [0x72], uint32(300), [0x30, 0x6a], uint32(300)], 7],
    ['MEMOIZE', [int(7), [0x94], int(8), [0x94], [0x30, 0x30], [0x68, 1]], 8],
    ['GLOBAL', [global('os', 'system')], { kind: 'global', module: 'os', name: 'system' }],
    ['STACK_GLOBAL', [text('os'), text('system'), [0x93]], { kind: 'global', module: 'os', name: 'system' }],
    ['BINPERSID', [text('id'), [0x51]], { kind: 'persistent', id: 'id' }],
  ])('%s', (_, pieces, value) => {
    expect(readPickle(pickled(...pieces))).toEqual(value)
  })

  it('has pairs for a dict, so that a key is a key', () => {
    const value = readPickle(pickled(dict({ __proto__x: NONE, constructor: int(1) })))
    expect(value).toEqual({
      kind: 'dict',
      items: [
        ['__proto__x', null],
        ['constructor', 1],
      ],
    })
    const polluting = bytesOf(EMPTY_DICT, MARK, text('__proto__'), dict({ isPolluted: int(1) }), SETITEMS)
    expect(readPickle(pickled(polluting))).toMatchObject({ items: [['__proto__', { kind: 'dict' }]] })
    expect(({} as Record<string, unknown>).isPolluted).toBeUndefined()
  })

  it('has a note for a call, with what was set in the object', () => {
    const callable = { kind: 'global', module: 'collections', name: 'OrderedDict' }
    const made = bytesOf(
      call('collections', 'OrderedDict'),
      MARK,
      text('a'),
      int(1),
      SETITEMS,
      dict({ b: NONE }),
      BUILD,
    )
    expect(readPickle(pickled(made))).toEqual({
      kind: 'call',
      callable,
      arguments: { kind: 'tuple', items: [] },
      state: { kind: 'dict', items: [['b', null]] },
      entries: [['a', 1]],
    })
    const appended = bytesOf(call('collections', 'deque'), int(1), [0x61], int(2), [0x61])
    expect(readPickle(pickled(appended))).toMatchObject({ items: [1, 2] })
    const withKeywords = bytesOf(global('a', 'B'), EMPTY_TUPLE, dict({ k: int(1) }), [0x92])
    expect(readPickle(pickled(withKeywords))).toMatchObject({ keywords: { items: [['k', 1]] } })
    expect(readPickle(pickled(global('a', 'B'), EMPTY_TUPLE, [0x81]))).toMatchObject({ kind: 'call' })
  })

  it('has one object where several values hold the same', () => {
    const value = readPickle(pickled(list(int(1)), [0x71, 0], [0x68, 0], [0x86])) as unknown as { items: unknown[] }
    expect(value.items[0]).toBe(value.items[1])
  })

  it('reads an OrderedDict of Python 2 as one of Python 3, whose entries many may share', () => {
    const pairs = list(list(text('a'), int(1)), tuple(text('b'), int(2)))
    const empty = call('collections', 'OrderedDict')
    const entries = bytesOf(MARK, text('a'), int(1), text('b'), int(2), SETITEMS)
    const value = readPickle(pickled(call('collections', 'OrderedDict', pairs)))
    expect(value).toEqual(readPickle(pickled(empty, entries)))
    const calls = Array.from({ length: 1000 }, () => call('collections', 'OrderedDict', [0x68, 0]))
    const thousandPairs = list(...Array.from({ length: 1000 }, (_, i) => tuple(int(i), NONE)))
    const pickle = runPickle(pickled(list(bytesOf(thousandPairs, [0x71, 0]), ...calls)))
    expect(pickle.nodeCount).toBeLessThan(10_000)
    expect(pickle.size(pickle.dictOf(pickle.link(pickle.root, 1000))!)).toBe(2000)
  })

  it('lets two lists grow in turn, in memory that grows with them', () => {
    const grow = bytesOf([0x68, 0], int(1), [0x61, 0x30, 0x68, 1], int(2), [0x61, 0x30])
    const turns = 20_000
    const grown = new Uint8Array(grow.length * turns)
    for (let i = 0; i < turns; i++) grown.set(grow, i * grow.length)
    const value = readPickle(pickled(EMPTY_LIST, [0x71, 0], EMPTY_LIST, [0x71, 1], grown, [0x86])) as unknown as {
      items: { items: number[] }[]
    }
    expect(value.items.map(({ items }) => [items.length, new Set(items).size])).toEqual([
      [turns, 1],
      [turns, 1],
    ])
  })
})

describe('refusals', () => {
  it.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(0), /byte 0: expected an opcode, got the end/],
    ['no STOP', bytesOf([0x80, 2], int(1)), /expected an opcode, got the end/],
    ['a protocol to come', pickled([0x80, 6], NONE), /a protocol up to 5, got 6/],
    ['INST', pickled('ios\nsystem\n'), /0x69 \(INST\)/],
    ['OBJ', pickled(MARK, [0x6f]), /0x6f \(OBJ\)/],
    ['EXT1', pickled([0x82, 1]), /0x82 \(EXT1\)/],
    ['PERSID', pickled('Pid\n'), /0x50 \(PERSID\)/],
    ['protocol 0', bytesOf('(S"a"\np0\n.'), /0x53 \(STRING\)/],
    ['NEXT_BUFFER', pickled([0x97]), /0x97 \(NEXT_BUFFER\)/],
    ['an unknown opcode', pickled([0xff]), /got 0xff/],
    ['an empty stack', pickled([0x30]), /expected 1 on the stack, got 0/],
    ['a stack that is empty above a mark', pickled(int(1), MARK, [0x85]), /expected 1 on the stack, got 0/],
    ['a mark that is missing', pickled([0x74]), /expected a mark, got none/],
    ['a mark left over', pickled(MARK, int(1)), /a mark left over, got 1/],
    ['values left over', pickled(int(1), int(2)), /one value on the stack, got 2/],
    ['marks without end', pickled(new Uint8Array(5000).fill(0x28)), /marks at most 1000 deep/],
    ['a memo that was not set', pickled([0x68, 9]), /an entry of the memo that was set, got number 9/],
    ['a memo beyond all', pickled(int(1), [0x72], uint32(2 ** 31)), /at most 10000000 entries/],
    ['a key without a value', pickled(EMPTY_DICT, MARK, int(1), SETITEMS), /a value for each key/],
    ['items in an integer', pickled(int(1), int(2), [0x61]), /expected a list or an object, got an integer/],
    ['keys in a list', pickled(EMPTY_LIST, int(1), int(2), [0x73]), /expected a dict or an object, got a list/],
    ['a state for a class', pickled(global('a', 'B'), EMPTY_DICT, BUILD), /expected an object for BUILD, got a\.B/],
    ['STACK_GLOBAL of numbers', pickled(int(1), int(2), [0x93]), /two texts for STACK_GLOBAL/],
    ['a frame beyond the end', pickled([0x95], uint64(1e6), NONE), /a frame within the/],
    ['a text beyond the end', pickled([0x58], uint32(100), 'ab'), /100 bytes, got 3/],
    ['a text of 2^62 bytes', pickled([0x8d], uint64(2 ** 62)), /at most 67108864 bytes of text/],
    ['an integer of 2 GiB', pickled([0x8b], uint32(2 ** 31)), /an integer of at most 1024 bytes/],
    ['text that is no UTF-8', pickled([0x58], uint32(1), [0xff]), /expected text in UTF-8/],
    ['a name that is no UTF-8', pickled('c', [0xff], '\nb\n'), /expected text in UTF-8/],
    ['a name without end', pickled('c', new Uint8Array(5000).fill(0x61)), /a line of at most 1024 bytes/],
    ['a list in itself', pickled(EMPTY_LIST, [0x71, 0, 0x68, 0, 0x61]), /do not hold themselves, got a cycle/],
    ['lists in lists in lists', DEEP, /nested at most 1000 deep/],
    ['what is deep only where it comes again', DEEP_AGAIN, /nested at most 1000 deep/],
  ])('%s', (_, bytes, message) => {
    expect(() => readPickle(bytes)).toThrow(message)
    expect(() => readPickle(bytes)).toThrow(FormatError)
  })
})

describe('hostile pickles', () => {
  const touched: string[] = []
  beforeAll(() => {
    for (const [name, module] of Object.entries({ fs, childProcess, net })) {
      for (const key of Object.keys(module) as never[]) {
        if (typeof module[key] !== 'function' || /^[A-Z]/.test(key)) continue
        vi.spyOn(module as unknown as Record<string, () => void>, key).mockImplementation(() => {
          touched.push(`${name}.${key}`)
        })
      }
    }
    syncBuiltinESMExports()
  })
  afterAll(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  const doubled = (times: number) =>
    bytesOf(list(int(1)), ...Array.from({ length: times }, (_, i) => bytesOf([0x71, i], [0x68, i], [0x86])))

  it.each<[string, Uint8Array]>([
    ['os.system', pickled(call('os', 'system', text('touch /tmp/owned')))],
    ['posix.system of STACK_GLOBAL', pickled(text('posix'), text('system'), [0x93], tuple(text('id')), REDUCE)],
    ['builtins.eval', pickled(call('builtins', 'eval', text('__import__("os").system("id")')))],
    ['exec under a getattr', pickled(call('builtins', 'getattr', global('builtins', 'exec'), text('__call__')))],
    ['subprocess.Popen with NEWOBJ', pickled(global('subprocess', 'Popen'), tuple(text('id')), [0x81])],
    ['NEWOBJ_EX', pickled(global('socket', 'create_connection'), EMPTY_TUPLE, dict({ address: text('x') }), [0x92])],
    ['a module that fetches', pickled(call('urllib.request', 'urlopen', text('http://localhost:1/')))],
    ['torch.load in a pickle', pickled(call('torch', 'load', text('/etc/passwd')))],
    ['a state with __setstate__', pickled(call('a', 'B'), dict({ __setstate__: global('os', 'system') }), BUILD)],
    ['a persistent id that is a call', pickled(call('os', 'system', text('id')), [0x51])],
    ['a call of a call', pickled(call('functools', 'partial', global('os', 'system')), tuple(text('id')), REDUCE)],
    ['a billion laughs', pickled(doubled(200))],
    ['keys of JavaScript', pickled(dict({ __proto__: NONE, toString: NONE, hasOwnProperty: NONE }))],
  ])('%s is data', (_, bytes) => {
    touched.length = 0
    expect(readPickle(bytes)).toBeTypeOf('object')
    expect(touched).toEqual([])
  })
})
