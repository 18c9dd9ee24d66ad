/** The formats, apart from the processes they are printed by. */

import { stripVTControlCharacters } from 'node:util'
import pc from 'picocolors'
import { describe, expect, it, vi } from 'vitest'
import { blocks, histogram, sparkline } from '#dist/cli/format/bars.js'
import { excerpt } from '#dist/cli/format/excerpt.js'
import { rowLines } from '#dist/cli/format/lines.js'
import { bytesText, complexText, countText, jsonNumber, plainNumber, shortNumber } from '#dist/cli/format/number.js'
import { tableFormat } from '#dist/cli/format/table.js'
import { colorsFor, columns, safe, safeJson, widthOf } from '#dist/cli/terminal.js'
import {
  type DType,
  type FailedRow,
  FormatError,
  type GlobalStep,
  type ModeStep,
  momentsOf,
  type SavedRow,
  type TensorData,
  type ValueRow,
} from '#dist/index.js'
import { npyChunks, npyHeader } from '#dist/table/npy.js'

const ROW: ValueRow = {
  tensor: 'fc.weight',
  step: 12 as GlobalStep,
  mode: 'TRAIN',
  modeStep: 10 as ModeStep,
  worker: 'worker_0',
  dtype: 'float32',
  shape: [3, 5],
  reductions: { min: -0, mean: 0.1, max: Number.POSITIVE_INFINITY, std: Number.NaN },
  saved: false,
  moments: momentsOf('float32', new Float64Array(34)),
}
const NASTY = 'a\n\x1b[31m\u202e\x9b,"b\\'
const FAILED: FailedRow = {
  ...ROW,
  dtype: null,
  shape: null,
  reductions: {},
  error: new FormatError('TruncatedRecord', 'file:///t/e%20f: short', { url: 'file:///t/e%20f', offset: 7 }),
}

function valueFrom(dtype: DType, shape: readonly number[], data: TensorData['data']): TensorData {
  let size = 1
  const stride = shape.map(() => 0)
  for (let i = shape.length - 1; i >= 0; i--) {
    stride[i] = size
    size *= shape[i]!
  }
  const bytes = Array.isArray(data) ? new Uint8Array() : new Uint8Array((data as Float32Array).buffer)
  return { dtype, shape, stride, offset: 0, data, bytes } as TensorData
}

it.each([[40], [80], [120]])('an excerpt fits a terminal of %d columns', lineWidth => {
  for (const shape of [[60], [12, 12], [2, 3, 12]]) {
    const count = shape.reduce((product, size) => product * size, 1)
    const stride = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1))
    const data = Float32Array.from({ length: count }, (_, i) => -1.00001 - i / 7)
    const value = {
      dtype: 'float32',
      shape,
      stride,
      data,
      bytes: new Uint8Array(data.buffer),
    } as unknown as TensorData
    const lines = excerpt(value, lineWidth).split('\n')
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(lineWidth)
    expect(lines.join(' ').match(/-\d+(\.\d+)?/g)?.length).toBe(count)
  }
})

describe('jsonl', () => {
  const format = rowLines('jsonl', ['min', 'mean', 'max', 'std'], false)

  it('has the keys in their order, and numbers that read back the same', () => {
    expect(format.line(ROW)).toBe(
      '{"tensor":"fc.weight","step":12,"mode":"TRAIN","mode_step":10,"worker":"worker_0","dtype":"float32",' +
        '"shape":[3,5],"min":-0,"mean":0.1,"max":"Infinity","std":"NaN"}\n',
    )
  })

  it('has all digits of 64-bit integers', () => {
    const exact = { min: -9007199254740993n, max: 2n ** 63n - 1n, abs_min: 0n, abs_max: 2n ** 63n }
    const line = format.line({ ...ROW, dtype: 'int64', reductions: { min: -9007199254740992, max: 2 ** 63 }, exact })
    expect(line).toContain('"min":-9007199254740993,"max":9223372036854775807')
  })

  it('has complex numbers as objects, and leaves out what there is not', () => {
    const line = format.line({ ...ROW, dtype: 'complex64', reductions: { mean: { re: 1.5, im: Number.NaN } } })
    expect(JSON.parse(line)).toEqual({ ...JSON.parse(line), mean: { re: 1.5, im: 'NaN' } })
    expect(Object.keys(JSON.parse(line))).toEqual([
      ...['tensor', 'step', 'mode', 'mode_step', 'worker', 'dtype', 'shape', 'mean'],
    ])
  })

  it('says what was saved, and what could not be read', () => {
    const { moments: _, ...row } = ROW
    const saved: SavedRow = { ...row, dtype: null, shape: null, saved: true, reductions: { mean: 1 } }
    expect(JSON.parse(format.line(saved))).toMatchObject({ dtype: null, shape: null, mean: 1, saved: true })
    expect(JSON.parse(format.line(FAILED))).toEqual({
      ...{ tensor: 'fc.weight', step: 12, mode: 'TRAIN', mode_step: 10, worker: 'worker_0' },
      error: { code: 'TruncatedRecord', message: '/t/e f: short', file: '/t/e f', offset: 7 },
    })
    const partly = JSON.parse(format.line({ ...saved, error: FAILED.error })) as object
    expect(Object.keys(partly).slice(5)).toEqual(['dtype', 'shape', 'mean', 'saved', 'error'])
  })

  it('keeps names intact, on a terminal too, but shows nothing raw there', () => {
    for (const onTerminal of [false, true]) {
      const line = rowLines('jsonl', [], onTerminal).line({ ...ROW, tensor: NASTY })
      expect((JSON.parse(line) as { tensor: string }).tensor).toBe(NASTY)
      expect(line.match(/\n/g)).toHaveLength(1)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      if (onTerminal) expect(line.trimEnd()).toMatch(/^[^\x00-\x1f\x7f-\x9f\u202e]*$/)
    }
  })
})

describe('csv', () => {
  const format = rowLines('csv', ['min', 'mean', 'max', 'std'], false)

  it('has a header and a line a row', () => {
    expect(format.head).toBe(
      'tensor,step,mode,mode_step,worker,dtype,shape,min,mean,max,std,saved,error_code,error_message\n',
    )
    expect(format.line(ROW)).toBe('fc.weight,12,TRAIN,10,worker_0,float32,3x5,-0,0.1,Infinity,NaN,false,,\n')
    expect(format.line(FAILED)).toBe('fc.weight,12,TRAIN,10,worker_0,,,,,,,false,TruncatedRecord,/t/e f: short\n')
  })

  it('quotes as RFC 4180 says', () => {
    expect(rowLines('csv', [], false).line({ ...ROW, tensor: 'a"b,\nc', shape: [] })).toBe(
      '"a""b,\nc",12,TRAIN,10,worker_0,float32,scalar,false,,\n',
    )
    expect(rowLines('csv', [], true).line({ ...ROW, tensor: 'a\nb' })).toMatch(/^"a\\nb",/)
  })
})

describe('table', () => {
  const scope = { names: ['fc.weight', 'x'], workers: ['worker_0'], modes: ['TRAIN'], lastStep: 99 }
  const plain = colorsFor(null)

  it('is aligned from the first row on', () => {
    const format = tableFormat(['min', 'abs_variance'], scope, plain)
    const lines = [format.head, format.line({ ...ROW, reductions: { min: 1 / 3, abs_variance: -1.23456789e-12 } })]
    expect(lines[0]).toMatch(/^step {2}mode {6}tensor {5}dtype {7}shape {18}min {2}abs_variance\n$/)
    expect(lines[1]).toMatch(/ 0\.333333 {2}-1\.23457e-12\n$/)
    expect(lines[0]!.length).toBe(lines[1]!.length)
  })

  it('shows the worker only where there are several, and no control characters', () => {
    const format = tableFormat(['min'], { ...scope, workers: ['a', 'b'], modes: [] }, plain)
    expect(format.head).toMatch(/^step {2}worker {2}tensor/)
    expect(format.line({ ...ROW, tensor: NASTY })).toContain('a\\n\\x1b[31m\\u202e\\x9b,"b\\')
    expect(format.line(FAILED)).toContain('TruncatedRecord: /t/e f: short')
    expect(format.line({ ...FAILED, tensor: null })).toContain('(all of the step)')
  })
})

describe('numbers', () => {
  it.each([
    [0, '0'],
    [-0, '-0'],
    [1 / 3, '0.333333'],
    [123456.7, '123457'],
    [-1234567, '-1234567'],
    [1e20, '1e+20'],
    [1.2e-7, '1.2e-7'],
    [5e-324, '4.94066e-324'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [2n ** 63n, '9.22337e+18'],
    [-5n, '-5'],
  ])('%s is shown as %s', (value, text) => expect(shortNumber(value)).toBe(text))

  it('reads back the same', () => {
    for (const value of [-0, 0.1, 5e-324, 1.7976931348623157e308, 1e21, -123456789.125]) {
      expect(Object.is(Number(plainNumber(value)), value)).toBe(true)
      expect(Object.is(JSON.parse(jsonNumber(value)), value)).toBe(true)
    }
    expect([Number.NaN, -Infinity].map(jsonNumber)).toEqual(['"NaN"', '"-Infinity"'])
    expect(complexText({ re: 1.5, im: -2 })).toBe('1.5-2j')
    expect(complexText({ re: -0, im: Number.NaN })).toBe('-0+NaNj')
    expect([0, 999, 1000, 2.5e9].map(bytesText)).toEqual(['0 B', '999 B', '1.0 KB', '2.5 GB'])
  })

  it('are counts with commas between thousands, which takes no Intl', () => {
    const counts = [0, 12, 999, 1000, 12345, 999999, 1234567, 2 ** 53 - 1, -1, -999, -1000]
    const expected = counts.map(count => count.toLocaleString('en-US'))
    const spy = vi.spyOn(Number.prototype, 'toLocaleString')
    expect(counts.map(countText)).toEqual(expected)
    expect(spy).not.toHaveBeenCalled()
    spy.mockRestore()
    expect([1e22, 1234.5].map(countText)).toEqual(['10,000,000,000,000,000,000,000', '1,234.5'])
  })
})

describe('terminal', () => {
  it('spells out what could do harm', () => {
    expect(safe('plain näme 日本')).toBe('plain näme 日本')
    expect(safe('\x1b]0;x\x07\r\t\u2028\u200f\u{e0041}\ud800')).toBe(
      '\\x1b]0;x\\x07\\r\\t\\u2028\\u200f\\u{e0041}\\ud800',
    )
    expect(JSON.parse(safeJson(JSON.stringify(NASTY)))).toBe(NASTY)
  })

  it('aligns wide characters', () => {
    expect(['abc', '日本', 'e\u0301'].map(widthOf)).toEqual([3, 4, 1])
    expect(
      columns(
        [
          ['日本', '1'],
          ['a', '22'],
        ],
        [1],
      ),
    ).toBe('日本   1\na     22\n')
  })

  it('aligns what is coloured', () => {
    const { dim } = pc.createColors(true)
    const table = columns(
      [
        [dim('file'), dim('n')],
        ['events/a', '22'],
      ],
      [1],
    )
    expect(stripVTControlCharacters(table)).toBe('file       n\nevents/a  22\n')
    expect(table).not.toBe(stripVTControlCharacters(table))
  })
})

describe('npy', () => {
  it('has a header of whole 64 bytes', () => {
    for (const shape of [[], [7], [3, 5], new Array<number>(30).fill(1), new Array<number>(254).fill(2 ** 48)]) {
      const header = Buffer.from(npyHeader('<f4', shape))
      expect(header.subarray(0, 8).toString('latin1')).toBe('\x93NUMPY\x01\x00')
      expect(header.length % 64).toBe(0)
      expect(header.readUInt16LE(8)).toBe(header.length - 10)
      const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`
      expect(header.toString('latin1', 10)).toMatch(/}\x20*\n$/)
      expect(header.toString('latin1', 10).trimEnd()).toBe(
        `{'descr': '<f4', 'fortran_order': False, 'shape': ${tuple}, }`,
      )
    }
  })

  it('has bools that numpy knows', () => {
    const value = { ...valueFrom('bool', [3], Uint8Array.of(0, 1, 1)), bytes: Uint8Array.of(0, 1, 255) }
    expect(Buffer.concat([...npyChunks(value)]).subarray(-3)).toEqual(Buffer.of(0, 1, 1))
  })

  it('takes version 2.0 for a header beyond 64 KiB', () => {
    const header = Buffer.from(npyHeader('<f4', new Array(30_000).fill(1)))
    expect([header[6], header.readUInt32LE(8), header.length % 64]).toEqual([2, header.length - 12, 0])
  })

  it('widens bfloat16, and pads strings', () => {
    const bytesOf = (value: TensorData) => Buffer.concat([...npyChunks(value)])
    const bfloat = bytesOf({ ...valueFrom('bfloat16', [2], Float32Array.of(1, -2)), bytes: new Uint8Array(4) })
    expect(bfloat.subarray(-8).equals(Buffer.from(Float32Array.of(1, -2).buffer))).toBe(true)
    expect(bfloat.toString('latin1')).toContain("'<f4'")
    const strings = bytesOf(valueFrom('string', [2], ['a😀', '']))
    expect(strings.toString('latin1')).toContain("'<U2'")
    expect(strings.subarray(-16).equals(Buffer.from(Uint32Array.of(0x61, 0x1f600, 0, 0).buffer))).toBe(true)
  })
})

describe('excerpt', () => {
  it('nests brackets and cuts long axes', () => {
    expect(excerpt(valueFrom('float32', [], Float32Array.of(0.5)))).toBe('0.5')
    expect(excerpt(valueFrom('float32', [0, 3], new Float32Array()))).toBe('[]')
    expect(excerpt(valueFrom('int64', [2, 2], BigInt64Array.of(1n, -20n, 3n, 4n)))).toBe('[[  1 -20]\n [  3   4]]')
    expect(excerpt(valueFrom('bool', [2], Uint8Array.of(0, 1)))).toBe('[false  true]')
    expect(excerpt(valueFrom('complex64', [1], Float32Array.of(1, -2)))).toBe('[1-2j]')
    expect(excerpt(valueFrom('string', [1], ['a\x1b"']))).toBe('["a\\u001b\\""]')
    const ramp = Float32Array.from({ length: 1000 }, (_, i) => i)
    expect(excerpt(valueFrom('float32', [1000], ramp))).toBe('[  0   1   2 … 997 998 999]')
    expect(excerpt(valueFrom('float32', [20, 50], ramp)).split('\n')).toHaveLength(7)
  })

  it('stays small, whatever the rank', () => {
    const shape = new Array<number>(16).fill(2)
    const text = excerpt(valueFrom('uint8', shape, new Uint8Array(2 ** 16)))
    expect(text.match(/\b0\b/g)!.length).toBeLessThanOrEqual(400)
    expect(excerpt(valueFrom('uint8', new Array(254).fill(1), Uint8Array.of(7)))).toContain('7')
  })
})

describe('bars', () => {
  it('counts finite values only', () => {
    const value = valueFrom('float64', [5], Float64Array.of(-1e308, 1e308, 1e308, Number.NaN, Number.NEGATIVE_INFINITY))
    expect(histogram(value, 4)).toEqual({ min: -1e308, max: 1e308, counts: [1, 0, 0, 2] })
    expect(histogram(valueFrom('complex64', [1], Float32Array.of(3, 4)), 2)).toEqual({ min: 5, max: 5, counts: [1, 0] })
    expect(histogram(valueFrom('float32', [1], Float32Array.of(Number.NaN)), 2)).toBeNull()
    expect(blocks([0, 1, 8])).toBe(' ▁█')
    expect(sparkline([0, 1, Number.NaN, undefined, 2])).toBe('▁▅!·█')
  })
})
