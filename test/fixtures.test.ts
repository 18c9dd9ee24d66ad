/** The fixtures are what they say: written as smdebug writes, legal in every form, and golden apart from src. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { copyTrial, corruptions, PLAIN_TENSORS, PLAIN_TRIAL } from '../fixtures/corrupt.js'
import {
  bfloat16Bits,
  collectionsFileText,
  DTYPES,
  type DTypeName,
  elementBytes,
  encodeEvent,
  eventFilePath,
  float16Bits,
  frameRecord,
  type IndexFile,
  indexFilePath,
  indexFileText,
  type ModeName,
  type TensorSpec,
  TrialWriter,
} from '../fixtures/event-writer.js'
import { elementValues, exactReductions, float16Value, type GoldenTrial, nearestDouble } from '../fixtures/golden.js'
import { makeLarge, makeMany, makeSteps, resNet50 } from '../fixtures/make.js'
import { GENERATED, makeSmall, REAL, WIRE_FORMS } from '../fixtures/small.js'
import { decodeEvent, type FrameView, readFrames, type TensorView, type ValueView } from './support/event-schema.js'
import { part } from './support/part.js'
import { scratchDirectory } from './support/scratch.js'

const FIXTURES = join(import.meta.dirname, '../fixtures')
const SHARED = join(import.meta.dirname, '../../shared/trials')
const MODES: readonly ModeName[] = ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL']

const scratch = scratchDirectory('fixtures')

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter(path => statSync(join(dir, path)).isFile())
    .sort()
}

/** All files of a tree by their digests. */
function digests(dir: string): Record<string, string> {
  const digest = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(dir, path)))
      .digest('hex')
  return Object.fromEntries(filesBelow(dir).map(path => [path, digest(path)]))
}

function indexFiles(trial: string): { path: string; text: string; index: IndexFile }[] {
  return filesBelow(join(trial, 'index'))
    .filter(path => path.endsWith('.json'))
    .map(path => {
      const text = readFileSync(join(trial, 'index', path), 'utf8')
      return { path, text, index: JSON.parse(text) as IndexFile }
    })
}

function golden(name: string): GoldenTrial {
  return JSON.parse(readFileSync(join(FIXTURES, 'expected', `${name}.json`), 'utf8')) as GoldenTrial
}

const dtypeNames = new Map(Object.entries(DTYPES).map(([name, { number }]) => [number, name as DTypeName]))

/** The tensor_content that a TensorProto stands for, by protobufjs's reading of it. */
function contentOf(tensor: TensorView): { dtype: DTypeName; content: Uint8Array } {
  const dtype = dtypeNames.get(tensor.dtype)!
  const typed = Object.values(tensor.typed)[0]
  if (typed === undefined) return { dtype, content: tensor.content }
  const { parts } = DTYPES[dtype]
  const count = tensor.shape.reduce((product, size) => product * size, parts)
  const values = [...typed]
  while (values.length < count) values.push(...values.slice(-parts))
  if (dtype === 'float16' || dtype === 'bfloat16') return { dtype, content: elementBytes('uint16', values) }
  return { dtype, content: elementBytes(dtype, values) }
}

const trials = [
  ...Object.keys(GENERATED).map(name => ({ name, dir: join(FIXTURES, 'generated', name) })),
  ...Object.keys(REAL).map(name => ({ name, dir: join(FIXTURES, 'trials', name) })),
]

describe.each(trials)('fixture $name', ({ name, dir }) => {
  test('every record decodes and is what the index file says', () => {
    const eventFiles = filesBelow(join(dir, 'events'))
    expect(eventFiles.length).toBeGreaterThan(0)
    const framesByFile = new Map<string, FrameView[]>()
    for (const path of eventFiles) {
      const step = Number(/(\d+)_/.exec(path)![1])
      const frames = readFrames(readFileSync(join(dir, 'events', path)))
      framesByFile.set(`events/${path}`, frames)
      for (const frame of frames) {
        expect(frame.lengthCrcHolds).toBe(true)
        expect(frame.payloadCrc).not.toBe('wrong')
        const event = decodeEvent(frame.payload)
        if (event.fileVersion === '') expect(event.step).toBe(BigInt(step))
        else expect(event.values).toEqual([])
      }
    }
    for (const { index } of indexFiles(dir)) {
      for (const { tensorname, start_idx, length } of index.tensor_payload) {
        const frame = framesByFile.get(index.meta.event_file_name!)!.find(({ startByte }) => startByte === start_idx)!
        expect(frame.byteLength).toBe(length)
        const values = decodeEvent(frame.payload).values.filter(({ tag }) => tag === tensorname)
        expect(values).toHaveLength(1)
        const [{ mode, modeStep }] = values as [ValueView]
        expect(mode === undefined ? index.meta.mode : MODES[mode - 1]).toBe(index.meta.mode)
        expect(modeStep ?? index.meta.mode_step).toBe(index.meta.mode_step)
      }
    }
  })

  test('the golden file says what protobufjs reads', () => {
    const { tensors, mode_and_mode_step } = golden(name)
    let entries = 0
    for (const { path, index } of indexFiles(dir)) {
      const [, digits, worker] = /(\d+)_([^/]*)\.json$/.exec(path)!
      const step = String(Number(digits))
      expect(mode_and_mode_step[step]).toEqual([index.meta.mode, index.meta.mode_step])
      const bytes =
        index.meta.event_file_name === undefined ? undefined : readFileSync(join(dir, index.meta.event_file_name))
      // The last entry of a name counts: the hook writes a scalar such as the learning rate several times.
      const lastEntries = new Map(index.tensor_payload.map(entry => [entry.tensorname, entry]))
      for (const { tensorname, start_idx, length } of lastEntries.values()) {
        if (/^smdebug\/reductions\//.test(tensorname)) continue
        const payload = bytes!.subarray(start_idx + 12, start_idx + length - 4)
        const value = decodeEvent(payload).values.find(({ tag }) => tag === tensorname)!
        const workers = tensors[tensorname]![step]!
        const entry = workers[worker!] ?? workers[Object.keys(workers).find(known => escaped(known) === worker)!]!
        entries++
        if (value.tensor === undefined) {
          expect(entry.reductions![0]).toBe(value.simpleValue)
          continue
        }
        expect(value.tensor.shape).toEqual(entry.shape)
        if (entry.strings !== undefined) {
          const strings = value.tensor.strings.map(text => new TextDecoder().decode(text))
          while (strings.length < entry.strings.length) strings.push(strings.at(-1)!)
          expect(strings).toEqual(entry.strings)
          continue
        }
        const { dtype, content } = contentOf(value.tensor)
        expect(dtype).toBe(entry.dtype)
        expect(createHash('sha256').update(content).digest('hex')).toBe(entry.sha256)
      }
    }
    const withValue = Object.values(tensors).flatMap(bySteps =>
      Object.values(bySteps).flatMap(workers => Object.values(workers).filter(({ dtype }) => dtype !== undefined)),
    )
    if (name !== 'tornasole-2019') expect(entries).toBe(withValue.length)
  })
})

function escaped(worker: string): string {
  return worker.replaceAll('/', '_').replaceAll(':', '-')
}

describe('event-writer', () => {
  const real = Object.keys(REAL).map(name => ({ name, dir: join(FIXTURES, 'trials', name) }))
  if (existsSync(SHARED)) real.push({ name: '../shared dtypes', dir: join(SHARED, 'dtypes') })

  test.each(real)('writes the event files of $name byte for byte', ({ dir }) => {
    for (const path of filesBelow(join(dir, 'events'))) {
      const file = readFileSync(join(dir, 'events', path))
      const frames = readFrames(file)
      // A short payload's constant could be its true checksum only by chance.
      const checksum = frames[0]!.payloadCrc === 'true' ? 'true' : 'constant'
      const again = frames.map(({ payload }) => {
        const { wallTime, step, values } = decodeEvent(payload)
        const { tag, plugins, tensor } = values[0]!
        const spec: TensorSpec = {
          dtype: dtypeNames.get(tensor!.dtype) ?? 'string',
          shape: tensor!.shape,
          ...(tensor!.strings.length > 0 ? { strings: tensor!.strings } : { content: tensor!.content }),
        }
        const [mode, modeStep] = [MODES[values[0]!.mode! - 1]!, values[0]!.modeStep!]
        const isHook = plugins.length === 2
        const metadata = isHook ? { mode, modeStep } : { plugins: plugins.map(p => [p.name, p.content] as const) }
        return frameRecord(encodeEvent({ wallTime, step, tag, tensor: spec, ...metadata }), { checksum })
      })
      expect(Buffer.concat(again).equals(file)).toBe(true)
    }
  })

  test.each(real)('writes the index and collections files of $name byte for byte', ({ dir }) => {
    for (const { text, index } of indexFiles(dir)) expect(indexFileText(index)).toBe(text)
    if (!existsSync(join(dir, 'collections'))) return
    for (const path of filesBelow(join(dir, 'collections'))) {
      const text = readFileSync(join(dir, 'collections', path), 'utf8')
      const { collections, _meta } = JSON.parse(text) as {
        collections: Record<string, Record<string, unknown>>
        _meta: { num_workers: number }
      }
      const specs = Object.entries(collections).map(([name, collection]) => [
        name,
        {
          includeRegex: collection.include_regex,
          tensorNames: collection.tensor_names,
          reductionConfig: collection.reduction_config,
          saveConfig: collection.save_config,
          saveHistogram: collection.save_histogram,
        },
      ])
      expect(collectionsFileText(Object.fromEntries(specs), _meta.num_workers) === text, path).toBe(true)
    }
  })

  test.each(WIRE_FORMS.map(form => ({ form })))('protobufjs reads the same from the form $form', ({ form }) => {
    const values = [
      {
        tag: 'a',
        mode: 'EVAL',
        modeStep: 300,
        tensor: { dtype: 'int64', shape: [3, 1], values: [-5n, 1n << 62n, 0n] },
      },
      { tag: 'b', simpleValue: 0, nodeName: 'node' },
      { tag: 'c', tensor: { dtype: 'string', shape: [2], strings: ['', 'ß'] }, plugins: [['scalars', '']] },
      {
        tag: 'd',
        histogram: { min: 1, max: 2, num: 3, sum: 4, sumSquares: 5, bucketLimit: [1, 2], bucket: [0, 3] },
      },
      { tag: 'e', tensor: { dtype: 'complex64', shape: [2], values: [1, 2, 3, 4], place: 'mixed' } },
    ] as const
    const event = { wallTime: 1.5, step: 2 ** 40, values }
    const natural = decodeEvent(encodeEvent(event))
    expect(natural.values.map(({ tag }) => tag)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(natural.values[0]).toMatchObject({ mode: 2, modeStep: 300 })
    expect(natural.values[3]!.histogram).toEqual(values[3].histogram)
    expect(decodeEvent(encodeEvent(event, form))).toEqual(natural)
  })

  test('names its files as the hook does', () => {
    expect(eventFilePath(123456, '/replica:0/task:0/device:GPU:1')).toBe(
      'events/000000123456/000000123456__replica-0_task-0_device-GPU-1.tfevents',
    )
    expect(indexFilePath(123456, 'worker_0')).toBe('index/000000123/000000123456_worker_0.json')
  })

  test('rounds to float16 and bfloat16', () => {
    for (let bits = 0; bits < 65536; bits++) {
      const value = float16Value(bits)
      if (Number.isNaN(value)) continue
      expect(float16Bits(value)).toBe(bits)
    }
    // Ties to even, and what lies beyond.
    expect(float16Bits(1 + 2 ** -11)).toBe(0x3c00)
    expect(float16Bits(1 + 3 * 2 ** -11)).toBe(0x3c02)
    expect(float16Bits(65519.99)).toBe(0x7bff)
    expect(float16Bits(65520)).toBe(0x7c00)
    expect(float16Bits(2 ** -25)).toBe(0)
    expect(bfloat16Bits(1 + 2 ** -8)).toBe(0x3f80)
    expect(bfloat16Bits(1 + 3 * 2 ** -8)).toBe(0x3f82)
    expect(bfloat16Bits(-Infinity)).toBe(0xff80)
  })

  test('streams a large event file', () => {
    const dir = join(scratch, 'stream')
    const data = new Uint8Array(3_000_000).fill(7)
    const writer = new TrialWriter(dir)
    const tensors = ['a', 'b'].map(name => ({ name, dtype: 'uint8' as const, shape: [3_000_000], data }))
    const { tensor_payload } = writer.step({ step: 0, tensors })
    const file = readFileSync(join(dir, eventFilePath(0, 'worker_0')))
    expect(file.length).toBe(tensor_payload[1]!.start_idx + tensor_payload[1]!.length)
    expect(decodeEvent(file.subarray(tensor_payload[1]!.start_idx + 12, -4)).values[0]!.tag).toBe('b')
  })
})

describe('golden', () => {
  test('rounds to the nearest double, ties to even', () => {
    expect(nearestDouble(1n, 3n, 0)).toBe(1 / 3)
    expect(nearestDouble(-2n, 3n, 0)).toBe(-2 / 3)
    expect(nearestDouble((1n << 53n) + 1n, 1n, 0)).toBe(2 ** 53)
    expect(nearestDouble((1n << 53n) + 3n, 1n, 0)).toBe(2 ** 53 + 4)
    expect(nearestDouble(1n, 1n, -1074)).toBe(5e-324)
    expect(nearestDouble(1n, 1n, -1075)).toBe(0)
    expect(nearestDouble(3n, 2n, -1074)).toBe(1e-323)
    expect(nearestDouble((1n << 53n) - 1n, 1n, 971)).toBe(Number.MAX_VALUE)
    expect(nearestDouble((1n << 54n) - 1n, 1n, 970)).toBe(Infinity)
  })

  test.each(Object.keys(REAL).filter(name => name !== 'tornasole-2019'))('agrees with the answers to %s', name => {
    const { tensors } = golden(name)
    const dir = join(FIXTURES, 'trials', name)
    let compared = 0
    for (const { path, index } of indexFiles(dir)) {
      const [, digits, worker] = /(\d+)_([^/]*)\.json$/.exec(path)!
      const bytes = readFileSync(join(dir, index.meta.event_file_name!))
      for (const { tensorname, start_idx, length } of index.tensor_payload) {
        const workers = tensors[tensorname]?.[Number(digits)]
        const expected = workers?.[worker!]?.reductions
        // A few large tensors would take most of the time.
        if (expected === undefined || length > 20_000) continue
        const tensor = decodeEvent(bytes.subarray(start_idx + 12, start_idx + length - 4)).values[0]!.tensor!
        const { dtype, content } = contentOf(tensor)
        const got = exactReductions(elementValues(dtype, content))
        const off = expected.map(Number).filter((want, i) => {
          const value = got[i]!
          return !(Object.is(value, want) || value === want || Math.abs(value - want) <= 4e-16 * Math.abs(want))
        })
        expect(off, tensorname).toEqual([])
        compared++
      }
    }
    if (name !== 'workers-tf-devices') expect(compared).toBeGreaterThan(0)
  })
})

describe('make', () => {
  test('makes the small fixtures again, bit for bit', () => {
    const root = join(scratch, 'small')
    makeSmall(root, existsSync(SHARED) ? SHARED : undefined)
    for (const part of existsSync(SHARED) ? ['generated', 'trials', 'expected'] : ['generated']) {
      expect(digests(join(root, part))).toEqual(digests(join(FIXTURES, part)))
    }
  })

  test('knows ResNet-50', () => {
    const parameters = resNet50()
    expect(parameters).toHaveLength(161)
    expect(new Set(parameters.map(({ name }) => name)).size).toBe(161)
    expect(parameters.reduce((sum, { shape }) => sum + shape.reduce((count, size) => count * size, 1), 0)).toBe(
      25_557_032,
    )
  })

  test.each(part(['float32', 'float64', 'float16', 'int8'] as const, dtype => dtype === 'int8'))(
    'makes the same sound %s trial twice',
    dtype => {
      const options = { dtype, scale: 0.01, steps: 2, workers: 2, checksum: 'true' } as const
      const [first, second] = [join(scratch, `${dtype}-1`), join(scratch, `${dtype}-2`)]
      const made = makeLarge(first, options)
      makeLarge(second, options)
      expect(digests(first)).toEqual(digests(second))
      expect(made.tensors).toHaveLength(322)
      expect(indexFiles(first)).toHaveLength(4)
      let tensorBytes = 0
      for (const { index } of indexFiles(first)) {
        const bytes = readFileSync(join(first, index.meta.event_file_name!))
        expect(readFrames(bytes).every(({ payloadCrc }) => payloadCrc === 'true')).toBe(true)
        for (const { start_idx, length } of index.tensor_payload) {
          const { tensor } = decodeEvent(bytes.subarray(start_idx + 12, start_idx + length - 4)).values[0]!
          tensorBytes += tensor!.content.length
        }
      }
      expect(tensorBytes).toBe(made.tensorBytes)
      const other = join(scratch, `${dtype}-3`)
      makeLarge(other, { ...options, seed: 2 })
      expect(digests(other)).not.toEqual(digests(first))
    },
  )

  test('makes many small tensors and many steps', () => {
    const many = makeMany(join(scratch, 'many'), { steps: 3 })
    expect(many).toMatchObject({ steps: [0, 1, 2], tensorBytes: 3 * 201 * 256 * 4 })
    const steps = makeSteps(join(scratch, 'steps'), { steps: 5 })
    expect(steps).toMatchObject({ steps: [0, 1, 2, 3, 4], tensorBytes: 5 * 3 * 4 })
  })
})

describe('corruptions', () => {
  test('have names of their own', () => {
    expect(new Set(corruptions.map(({ name }) => name)).size).toBe(corruptions.length)
  })

  test.each(corruptions.map(corruption => ({ ...corruption })))(
    '$name changes a plain trial',
    ({ name, apply, expect: expected }) => {
      const dir = join(scratch, 'corrupt', name.replaceAll(' ', '-'))
      copyTrial(PLAIN_TRIAL, dir)
      const before = digests(dir)
      apply(dir)
      for (const tensor of expected.tensors) expect(PLAIN_TENSORS).toContain(tensor)
      if (name === 'directory that is not there') expect(existsSync(dir)).toBe(false)
      else if (name === 'event file is a link to itself') expect(() => digests(dir)).toThrow(/ELOOP/)
      else if (name === 'event file unreadable')
        expect(statSync(join(dir, eventFilePath(1, 'worker_0'))).mode & 0o777).toBe(0)
      else expect(digests(dir)).not.toEqual(before)
    },
  )
})
