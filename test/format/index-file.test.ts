import { describe, expect, it } from 'vitest'
import { MODES } from '#dist/base/types.js'
import { type IndexFile, IndexFileReader, indexFileText, parseIndexFile } from '#dist/format/index-file.js'
import { eventFilePath } from '#dist/format/paths.js'

const URL = 'file:///trial/index/000000000/000000000000_worker_0.json'
const META = { mode: 'TRAIN', mode_step: 0, event_file_name: 'events/0/0_worker_0.tfevents' }
const TENSOR = { tensorname: 'fc.weight', start_idx: 0, length: 728 }
const SHAPE = { tensorname: 'fc.weight', originalname: 'fc/kernel', shape: [17, 9] }

function parse(value: unknown) {
  return parseIndexFile(JSON.stringify(value), URL)
}

it('reads the example of format.md', () => {
  expect(parse({ meta: META, tensor_payload: [TENSOR], shape_payload: [SHAPE] })).toEqual({
    mode: 'TRAIN',
    modeStep: 0,
    eventFile: 'events/0/0_worker_0.tfevents',
    tensors: [{ name: 'fc.weight', startByte: 0, byteLength: 728 }],
    shapes: [{ name: 'fc.weight', originalName: 'fc/kernel', shape: [17, 9] }],
  })
})

it('either payload may be missing, null or empty', () => {
  expect(parse({ meta: META, tensor_payload: [TENSOR] }).shapes).toEqual([])
  expect(parse({ meta: META, tensor_payload: [TENSOR], shape_payload: null }).shapes).toEqual([])
  const shapesOnly = parse({ meta: { mode: 'EVAL', mode_step: 3 }, shape_payload: [SHAPE], tensor_payload: [] })
  expect(shapesOnly).toMatchObject({ mode: 'EVAL', modeStep: 3, eventFile: null, tensors: [] })
})

it('a saved shape may be that of a scalar, and its tensor may have no other name', () => {
  const { shapes } = parse({ meta: META, shape_payload: [{ tensorname: 'loss', shape: [] }] })
  expect(shapes).toEqual([{ name: 'loss', originalName: 'loss', shape: [] }])
})

it('names that JavaScript has its own use for are names', () => {
  const text = `{"__proto__": {"meta": 1}, "meta": ${JSON.stringify(META)}, "tensor_payload": [
    {"tensorname": "__proto__", "start_idx": 0, "length": 1}, {"tensorname": "constructor", "start_idx": 1, "length": 1}]}`
  const file = parseIndexFile(text, URL)
  expect(file.tensors.map(tensor => tensor.name)).toEqual(['__proto__', 'constructor'])
  expect(Object.getPrototypeOf(file)).toBe(Object.prototype)
  expect(() => parseIndexFile('{"__proto__": {"meta": {}, "tensor_payload": []}}', URL)).toThrow('meta: expected')
})

describe('refuses', () => {
  it.each<[string, unknown, string]>([
    ['a list', [], 'expected an object, got a list of 0'],
    ['no meta', { tensor_payload: [TENSOR] }, 'meta: expected an object, got nothing'],
    ['meta null', { meta: null, tensor_payload: [TENSOR] }, 'meta: expected an object, got null'],
    ['no payload', { meta: META }, 'expected tensor_payload or shape_payload, got neither'],
    ['payload of another type', { meta: META, tensor_payload: {} }, 'tensor_payload: expected a list, got an object'],
    ['no mode', { meta: { ...META, mode: undefined }, tensor_payload: [] }, 'meta.mode: expected one of TRAIN'],
    ['unknown mode', { meta: { ...META, mode: 'train' }, tensor_payload: [] }, 'got "train"'],
    ['mode from a prototype', { meta: { ...META, mode: 'length' }, tensor_payload: [] }, 'got "length"'],
    ['mode_step', { meta: { ...META, mode_step: -2 }, tensor_payload: [] }, 'meta.mode_step: expected a whole number'],
    ['no event file', { meta: { ...META, event_file_name: null }, tensor_payload: [TENSOR] }, 'meta.event_file_name'],
    ['event file 7', { meta: { ...META, event_file_name: 7 }, tensor_payload: [TENSOR] }, 'expected a string, got 7'],
    ['entry', { meta: META, tensor_payload: ['x'] }, 'tensor_payload[0]: expected an object, got "x"'],
    ['name', { meta: META, tensor_payload: [{ ...TENSOR, tensorname: 5 }] }, 'tensor_payload[0].tensorname'],
    ['negative', { meta: META, tensor_payload: [TENSOR, { ...TENSOR, start_idx: -1 }] }, 'tensor_payload[1].start_idx'],
    ['fraction', { meta: META, tensor_payload: [{ ...TENSOR, length: 1.5 }] }, 'length: expected a whole number'],
    ['text', { meta: META, tensor_payload: [{ ...TENSOR, length: '728' }] }, 'got "728"'],
    ['unsafe', { meta: META, tensor_payload: [{ ...TENSOR, length: 2 ** 53 }] }, 'got 9007199254740992'],
    ['unsafe end', { meta: META, tensor_payload: [{ ...TENSOR, start_idx: 2 ** 53 - 1 }] }, 'an end below 2^53'],
    [
      'shape',
      { meta: META, shape_payload: [{ ...SHAPE, shape: undefined }] },
      'shape_payload[0].shape: expected a list',
    ],
    ['size', { meta: META, shape_payload: [{ ...SHAPE, shape: [1, -1] }] }, 'shape_payload[0].shape[1]'],
    ['original name', { meta: META, shape_payload: [{ ...SHAPE, originalname: {} }] }, 'originalname'],
  ])('%s', (_, value, message) => {
    expect(() => parse(value)).toThrow(
      expect.objectContaining({ code: 'BadIndexFile', url: URL, message: expect.stringContaining(message) }),
    )
  })

  it('a cut-off file at every length', () => {
    const text = JSON.stringify({ meta: META, tensor_payload: [TENSOR], shape_payload: [SHAPE] })
    for (let length = 0; length < text.length; length++) {
      expect(() => parseIndexFile(text.slice(0, length), URL)).toThrow(
        expect.objectContaining({ name: 'FormatError', code: 'BadIndexFile', url: URL }),
      )
    }
  })

  it('an event file outside the trial', () => {
    for (const event_file_name of ['../x', '/etc/passwd', 's3://b/k', 'a\0']) {
      expect(() => parse({ meta: { ...META, event_file_name }, tensor_payload: [] })).toThrow(
        expect.objectContaining({ code: 'UnsafePath', url: URL }),
      )
    }
  })
})

describe('a reader of many', () => {
  const head = (step: number, more = '') =>
    `{"meta": {"mode": "TRAIN", "mode_step": ${step}, "event_file_name": "events/0/${step}_worker_0.tfevents"}${more}`
  const tensor = '{"tensorname": "a", "start_idx": 0, "length": 20}'
  const rest = `, "tensor_payload": [${tensor}], "shape_payload": []}`

  it.each([
    ['the same payload', [head(0) + rest, head(1) + rest, head(7) + rest]],
    ['payloads in turn', [head(0) + rest, `${head(1)}, "tensor_payload": []}`, head(2) + rest]],
    ['another order', [`{"tensor_payload": [${tensor}], ${head(3).slice(1)}}`, head(4) + rest]],
    ['a meta behind the payload', [1, 2].map(step => `${head(0)}, "tensor_payload": [], ${head(step).slice(1)}}`)],
    [
      'an escaped meta behind it',
      [1, 2].map(step => `${head(0)}, "tensor_payload": [], ${head(step).slice(1).replace('meta', 'm\\u0065ta')}}`),
    ],
    ['more in the head', [head(0) + rest, head(1, ', "x": 1') + rest, head(2) + rest]],
    ['a payload named in the head', [head(0) + rest, head(1, `, "x": ", \\"tensor_payload\\""`) + rest]],
    ['no payload', ['{}', head(0) + rest]],
    ['a file cut off', [head(0) + rest, (head(1) + rest).slice(0, -1), head(2) + rest]],
    ['a broken head', [head(0) + rest, head(1).slice(3) + rest, head(2) + rest]],
    ['an event file elsewhere', [head(0) + rest, head(1).replace('events/0', '/etc') + rest]],
    ['no event file', [head(0) + rest, `{"meta": {"mode": "TRAIN", "mode_step": 1}${rest}`]],
    ['an unknown mode', [head(0) + rest, head(1).replace('TRAIN', 'DRIVE') + rest]],
  ])('reads each as if it were the only one: %s', (_, texts) => {
    const reader = new IndexFileReader()
    const outcome = (read: () => unknown) => {
      try {
        return read()
      } catch (error) {
        return String(error)
      }
    }
    for (const text of texts) {
      const read = outcome(() => reader.read(new TextEncoder().encode(text), URL))
      expect(read).toEqual(outcome(() => parseIndexFile(text, URL)))
    }
  })

  it('shares the lists of what is the same', () => {
    const reader = new IndexFileReader()
    const [first, second] = [0, 1].map(step => reader.read(new TextEncoder().encode(head(step) + rest), URL))
    expect(second!.tensors).toBe(first!.tensors)
    expect(second!.modeStep).toBe(1)
  })

  it('names a file that is no UTF-8', () => {
    expect(() => new IndexFileReader().read(Uint8Array.of(0x7b, 0xff), URL)).toThrow('expected UTF-8')
  })
})

describe('what is like the file before', () => {
  const worker = 'worker_0'
  const fileOf = (step: number): IndexFile => ({
    mode: 'EVAL',
    modeStep: step + 7,
    eventFile: eventFilePath(step, worker),
    tensors: [{ name: 'fc.weight', startByte: 0, byteLength: 728 }],
    shapes: [SHAPE].map(({ shape }) => ({ name: 'fc.weight', originalName: 'fc/kernel', shape })),
  })
  const first = Buffer.from(indexFileText(fileOf(41)))
  const next = Buffer.from(indexFileText(fileOf(42)))
  const reader = new IndexFileReader()
  const { tensors, shapes } = reader.read(first, URL)

  /** As a file longer than what the buffer holds of it would end. */
  const usual = (bytes: Buffer, step = 42, name = worker) =>
    reader.readUsual(Buffer.concat([bytes, next]), bytes.length, step, name)

  it('is read from its head', () => {
    const said = usual(next)!
    expect([said.mode, said.modeStep]).toEqual([1, 49])
    expect(said.listed.tensors).toBe(tensors)
    expect(said.listed.shapes).toBe(shapes)
  })

  it('is of the step and the worker of its name', () => {
    for (const [step, name] of [
      [41, worker],
      [42, 'worker_1'],
      [42, 'worker_'],
      [42, 'worker_00'],
    ] as const)
      expect(usual(next, step, name)).toBeNull()
  })

  it('is never anything else: a changed byte makes it another, or a file that says the same', () => {
    for (let at = 0; at < next.length; at++) {
      for (const byte of [0x20, 0x22, 0x2d, 0x2e, 0x30, 0x39, 0x5c, 0x65, next[at]! ^ 1]) {
        const bytes = Buffer.from(next)
        bytes[at] = byte
        const said = usual(bytes)
        if (said === null) continue
        const { mode, modeStep, listed } = { ...said, mode: MODES[said.mode]! }
        const eventFile = eventFilePath(42, worker)
        const { tensors, shapes } = listed
        expect(parseIndexFile(bytes.toString(), URL)).toEqual({ mode, modeStep, eventFile, tensors, shapes })
      }
    }
    for (let length = 0; length < next.length; length++) expect(usual(next.subarray(0, length))).toBeNull()
  })
})
