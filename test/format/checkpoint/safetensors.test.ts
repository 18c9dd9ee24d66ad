/** Headers of safetensors files: what is refused, with its offset, and that everything else is still read. */

import { describe, expect, it } from 'vitest'
import { FormatError } from '#dist/base/errors.js'
import { withoutBareNumbers } from '#dist/format/checkpoint/beside.js'
import { jsonKeys } from '#dist/format/checkpoint/safetensors/json-keys.js'
import { headerLength, parseHeader } from '#dist/format/checkpoint/safetensors/safetensors-header.js'
import { parseShardIndex } from '#dist/format/checkpoint/safetensors/shards.js'
import { counting, safetensors, withHeader } from '../../../fixtures/checkpoint-writer.js'

/** What a file comes to: the names that can be read, those that can't, and what is wrong with the whole. */
async function read(bytes: Uint8Array) {
  const length = headerLength(bytes.subarray(0, 64), 'x', bytes.length)
  const { tensors, unread, problems } = await parseHeader(bytes.subarray(8, 8 + length), 'x', bytes.length)
  return {
    names: tensors.map(({ name }) => name),
    unread: unread.map(({ name, error }) => [name, error.code]),
    problems: problems.map(({ message }) => message),
  }
}

const entry = (begin: number, end: number, shape = [(end - begin) / 4], dtype = 'F32') => ({
  dtype,
  shape,
  data_offsets: [begin, end],
})
const file = (header: object, data = 8): Uint8Array => withHeader(JSON.stringify(header), new Uint8Array(data))

it('reads what the reference writes, with blanks before and behind, and tensors of no bytes', async () => {
  const padded = withHeader(
    `  {"a":${JSON.stringify(entry(0, 8))},"e":${JSON.stringify(entry(8, 8, [0, 3]))}}   `,
    new Uint8Array(8),
  )
  expect(await read(padded)).toEqual({ names: ['a', 'e'], unread: [], problems: [] })
  expect(await read(safetensors([]))).toEqual({ names: [], unread: [], problems: [] })
})

describe('a file that can not be read at all', () => {
  it.each([
    ['fewer than eight bytes', new Uint8Array(5), /byte 5: expected a safetensors file.*got 5 bytes/],
    ['a length of zero', new Uint8Array(16), /expected the length of a header, got zero/],
    ['a length beyond the limit', Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 1, 0), /at most 100000000 bytes/],
    ['a length beyond the file', Uint8Array.of(99, 0, 0, 0, 0, 0, 0, 0, 123), /expected a header of 99 bytes, got 1/],
    ['no UTF-8', withHeader(Uint8Array.of(0x7b, 0xff, 0xff, 0x7d)), /byte 8: expected a header in UTF-8/],
    ['no JSON', withHeader('{"a":'), /byte 8: expected a header in JSON/],
    ['a list', withHeader('[1]'), /expected a header that is an object/],
  ])('%s', async (_, bytes, message) => {
    await expect(read(bytes)).rejects.toThrow(message)
    await expect(read(bytes)).rejects.toThrow(FormatError)
  })
})

describe('one tensor that can not be read costs no other', () => {
  it.each<readonly [string, object, readonly (readonly string[])[]]>([
    ['an overlap', { a: entry(0, 8), b: entry(4, 8) }, [['b', 'BadSafetensors']]],
    ['an end before its begin', { a: entry(0, 8), b: entry(8, 4, [1]) }, [['b', 'BadSafetensors']]],
    ['a size that is not that of its shape', { a: entry(0, 8), b: entry(8, 12, [2]) }, [['b', 'BadSafetensors']]],
    ['a count that no number holds', { a: entry(0, 8), b: entry(8, 8, [2, 2 ** 60]) }, [['b', 'BadSafetensors']]],
    [
      'a shape that is none',
      { a: entry(0, 8), b: { dtype: 'F32', shape: [-1], data_offsets: [8, 8] } },
      [['b', 'BadSafetensors']],
    ],
    ['no object', { a: entry(0, 8), b: 5 }, [['b', 'BadSafetensors']]],
    [
      'a file that ends before it and one without elements',
      { a: entry(16, 16, [0]), b: entry(0, 16) },
      [['b', 'TruncatedFile']],
    ],
    ['a file that ends before it', { a: entry(0, 8), b: entry(8, 16) }, [['b', 'TruncatedFile']]],
    ['a dtype that nobody knows', { a: entry(0, 4), b: entry(4, 8, [1], 'Q7') }, [['b', 'UnreadableDType']]],
    [
      'F6, which is listed',
      { a: entry(0, 5 * 4 - 12), b: { dtype: 'F6_E2M3', shape: [4], data_offsets: [8, 11] } },
      [['b', 'UnreadableDType']],
    ],
  ])('%s', async (_, header, unread) => {
    const data = (header as { b: { dtype?: string } }).b.dtype === 'F6_E2M3' ? 11 : 8
    const found = await read(file(header, data))
    expect(found.names).toEqual(['a'])
    expect(found.unread).toEqual(unread)
    expect(found.problems).toEqual([])
  })

  it('a gap, and bytes behind the last, are told with their place', async () => {
    const bytes = file({ a: entry(0, 4), b: entry(8, 12) }, 20)
    const start = bytes.length - 20
    const { names, problems } = await read(bytes)
    expect(names).toEqual(['a', 'b'])
    expect(problems).toEqual([
      `x, byte ${start + 4}: expected tensor "b", got a gap of 4 bytes`,
      expect.stringContaining(`x, byte ${start + 12}: expected the end of the file, got 8 bytes more`),
    ])
  })

  it('of very many faults the first are told, and how many more there are', async () => {
    const header = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`t${i}`, entry(0, 8)]))
    const bytes = file(header)
    const { names, unread, problems } = await read(bytes)
    expect(names).toEqual(['t0'])
    expect(unread).toEqual(Array.from({ length: 4999 }, (_, i) => [`t${i + 1}`, 'BadSafetensors']))
    expect(problems).toEqual([])
    const errors = new Set(
      (await parseHeader(bytes.subarray(8, -8), 'x', bytes.length)).unread.map(({ error }) => error),
    )
    expect(errors.size).toBe(101)
    expect([...errors].at(-1)!.message).toBe(
      'x, tensors "t101" to "t4999": expected tensors that can be read, got 4899 faults more of this kind (BadSafetensors)',
    )
  })
})

it('takes any name', async () => {
  const names = ['__proto__', '../../etc/passwd', 'x'.repeat(4096), 'constructor', '', '\u0000', 'имя "q"']
  const bytes = safetensors(names.map(name => counting(name, [1])))
  const found = await read(bytes)
  expect(found.names).toEqual(names)
  expect(({} as { dtype?: string }).dtype).toBeUndefined()
})

describe('a header of very many tensors, which is parsed in pieces', () => {
  const COUNT = 40_000
  /** A text, a name and an entry that look as if a piece ended there. */
  const odd = { text: '}, {"a":{}},', nested: JSON.stringify({ a: {}, b: {} }) }
  const names = Array.from({ length: COUNT }, (_, i) => (i % 1000 === 0 ? `"},"${i}` : `layers.${i}.weight`))
  const header: Record<string, object> = { __metadata__: odd }
  for (const [i, name] of names.entries()) header[name] = { ...entry(4 * i, 4 * i + 4), extra: { a: {}, b: [{}, {}] } }
  const text = JSON.stringify(header)
  const whole = withHeader(text, new Uint8Array(4 * COUNT))

  it('is read as a whole one', async () => {
    expect(text.length).toBeGreaterThan(2 << 20)
    expect(await read(whole)).toEqual({ names, unread: [], problems: [] })
    const parsed = await parseHeader(new TextEncoder().encode(text), 'x', whole.length)
    expect(parsed.metadata).toEqual(new Map(Object.entries(odd)))
    // In the order of the bytes, whatever that of the header.
    const reversed = JSON.stringify(Object.fromEntries(Object.entries(header).reverse()))
    expect((await read(withHeader(reversed, new Uint8Array(4 * COUNT)))).names).toEqual(names)
  })

  it('of a name that comes again the last counts', async () => {
    const twice = `{"layers.1.weight":${JSON.stringify(entry(0, 4))},${text.slice(1)}`
    expect(await read(withHeader(twice, new Uint8Array(4 * COUNT)))).toEqual({ names, unread: [], problems: [] })
  })

  it.each([
    ['a comma at the end', `${text.slice(0, -1)},}`],
    ['a comma too many', text.replace('"layers.30001.weight"', ',"layers.30001.weight"')],
    ['an end too soon', text.slice(0, -1)],
    ['more behind it', `${text}}`],
    ['an end in between', text.replace('},"layers.30001.weight"', '}},"layers.30001.weight"')],
    ['no object', `[${text}]`],
  ])('with %s is none', async (_, damaged) => {
    await expect(read(withHeader(damaged, new Uint8Array(4 * COUNT)))).rejects.toThrow(
      /expected a header (in JSON|that is)/,
    )
  })
})

it('any mutation of a header is read or refused by a FormatError, and what is read lies in the file', async () => {
  const whole = safetensors([counting('a', [2, 3]), counting('b', [5], 'F64'), counting('c', [], 'I32')], {
    format: 'pt',
  })
  let state = 12345
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  for (let i = 0; i < 20_000; i++) {
    let bytes: Uint8Array = whole.slice()
    for (let edits = 1 + random(3); edits > 0; edits--) {
      const at = random(Math.min(bytes.length, 320))
      const kind = random(4)
      if (kind === 0) bytes[at] = random(256)
      else if (kind === 1) bytes = bytes.subarray(0, at)
      else if (kind === 2)
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.from('0123456789{}[],:"'.charAt(random(17))),
          bytes.subarray(at),
        ])
      else bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(8))])
      if (bytes.length === 0) break
    }
    try {
      const length = headerLength(bytes.subarray(0, 64), 'x', bytes.length)
      const { tensors } = await parseHeader(bytes.subarray(8, 8 + length), 'x', bytes.length)
      let filled = 8 + length
      for (const { begin, end } of tensors) {
        if (end > begin && begin < filled)
          throw new Error(`overlap in ${JSON.stringify(Buffer.from(bytes).toString('latin1'))}`)
        if (end > bytes.length || end < begin) throw new Error('outside of the file')
        filled = Math.max(filled, end)
      }
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
    }
  }
})

it('any mutation of an index is read or refused by a FormatError', () => {
  const whole = JSON.stringify({
    metadata: { total_size: 12 },
    weight_map: { a: 'x-00001-of-00002.safetensors', b: 'y.safetensors' },
  })
  let state = 99
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  for (let i = 0; i < 20_000; i++) {
    const at = random(whole.length)
    const mark = '{}[]":,0.\\/n'.charAt(random(12))
    const text = whole.slice(0, at) + (random(2) ? mark : '') + whole.slice(at + random(3))
    try {
      for (const shard of parseShardIndex(text, 'x').shards) expect(shard).not.toMatch(/[/\\\0]/)
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
    }
  }
})

it('finds keys that come twice in one object', () => {
  const text = '{"a": {"x": 1, "x": 2}, "b\\"": [{"a": 1}], "a" : 3, "c": "a", "d\\\\": {"c": 1}}'
  expect([...jsonKeys(text)].filter(({ isAgain }) => isAgain)).toEqual([
    { key: 'x', at: 15, within: 'a', isAgain: true },
    { key: 'a', at: 43, within: null, isAgain: true },
  ])
})

it('has no limit to the length of a text, where patterns run out of stack', () => {
  const long = 'a\\n'.repeat(5_000_000)
  const keys = [...jsonKeys(`{"${long}": 1, "b": {"b": "${long}", "b": 2}}`)]
  expect(keys.filter(({ isAgain }) => isAgain)).toMatchObject([{ key: 'b', within: 'b' }])
  expect(withoutBareNumbers(`{"${long}": NaN, "b": "NaN", "c": -Infinity`)).toBe(
    `{"${long}": "NaN", "b": "NaN", "c": "-Infinity"`,
  )
})
