/** Trials out of streams: through the library, the command line and numpy. */

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  npyChunks,
  type RecordStreamOptions,
  recordStream,
  type TensorData,
  verifyTrial,
} from '#dist/index.js'
import { CLI } from '../cli/run.js'
import { npy, of, safetensors, zip } from '../support/array-files.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('record')
let count = 0
const place = () => join(scratch, `${count++}`)

/** A line from an object, or bytes as they are. */
const stream = (...parts: readonly (object | string | Uint8Array)[]): Buffer =>
  Buffer.concat(
    parts.map(part => {
      if (part instanceof Uint8Array) return part
      return Buffer.from(typeof part === 'string' ? part : `${JSON.stringify(part)}\n`)
    }),
  )

async function recorded(input: Uint8Array, options?: RecordStreamOptions) {
  const path = place()
  const report = await recordStream([input], path, options)
  expect((await verifyTrial(path, { deep: true })).problems.filter(({ severity }) => severity !== 'note')).toEqual([])
  return { report, path, trial: await createTrial(path) }
}

function plain({ dtype, shape, data }: TensorData): readonly unknown[] {
  return [dtype, [...shape], Array.from(data as ArrayLike<unknown>)]
}

describe("a file of which an array can't be read", () => {
  const array = npy(of('<f4', '(2,)'), new Uint8Array(8))
  const archive = zip([
    { name: 'first.npy', content: array },
    { name: 'object.npy', content: npy(of('|O', '()'), new Uint8Array(8)) },
    { name: 'README.txt', content: Buffer.from('hello') },
    { name: 'sub/', content: Buffer.alloc(0) },
    { name: 'last.npy', content: array },
  ])

  it('.npz: gives all others, and tells of each', async () => {
    const line = { step: 0, bytes: archive.length }
    const { report, trial } = await recorded(stream(line, archive, { name: 'behind', value: 1 }))
    expect(trial.tensorNames()).toEqual(['first', 'last', 'behind'].sort())
    expect(report).toMatchObject({ savedTensors: 3, problemCount: 2 })
    expect(report.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^line 1: .*object\.npy, byte 0: .*"O"/),
      expect.stringMatching(/^line 1: .*README\.txt/),
    ])
  })

  it('gives all others where one has a name that is there', async () => {
    const whole = zip([
      { name: 'first.npy', content: array },
      { name: 'last.npy', content: array },
    ])
    const { report, trial } = await recorded(
      stream({ step: 0, name: 'first', value: 1 }, { bytes: whole.length, prefix: '' }, whole),
    )
    expect(trial.tensorNames()).toEqual(['first', 'last'])
    expect(report.problems).toHaveLength(1)
  })

  it('.safetensors: gives all others, behind 1 GiB too', async () => {
    const large = 2 ** 30 + 8
    const header = JSON.stringify({
      unknown: { dtype: 'F6_E3M2', shape: [16], data_offsets: [0, 12] },
      large: { dtype: 'U8', shape: [large], data_offsets: [12, 12 + large] },
      small: { dtype: 'F32', shape: [2], data_offsets: [12 + large, 20 + large] },
    })
    const directory = place()
    mkdirSync(directory)
    // A hole takes no place on the disk.
    writeFileSync(join(directory, 'x.safetensors'), safetensors(header))
    truncateSync(join(directory, 'x.safetensors'), 8 + header.length + 20 + large)
    const { report, trial } = await recorded(stream({ step: 0, file: 'x.safetensors' }), { directory })
    expect(trial.tensorNames()).toEqual(['small'])
    expect(report.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/tensor "unknown": expected one of/),
      expect.stringMatching(/at most 1073741824 bytes of "large"/),
    ])
  })
})

describe('a line', () => {
  it('has values of every kind', async () => {
    const { report, trial } = await recorded(
      stream(
        { step: 0, mode: 'train', mode_step: 7 },
        { name: 'one', value: 0.5 },
        '{"name": "odd", "value": [NaN, -Infinity, null, "Infinity", 1], "dtype": "float32"}\n',
        '\n{"name": "NaN \\" Infinity", "value": NaN}\r\n',
        { name: 'large', value: ['9007199254740993', -1], dtype: 'int64' },
        { name: 'flags', value: [[true], [false]] },
        { name: 'bits', value: [1, 0], dtype: 'bool' },
        { name: 'texts', value: [['NaN', 'ß']] },
        { name: 'none', value: [], dtype: 'string' },
        { name: 'shaped', value: [1, 2, 3, 4], shape: [2, 2], dtype: 'uint8', collection: ['mine', 'weights'] },
        { name: 'half', base64: Buffer.of(0, 60).toString('base64'), dtype: 'float16', shape: [] },
        { step: 3, tensors: { one: 1, two: { value: [1, 2], dtype: 'int16' } } },
      ),
    )
    expect(report).toMatchObject({ steps: 2, tensors: 12, problems: [], problemCount: 0, isAborted: false })
    expect(report).toMatchObject({ savedSteps: 2, savedTensors: 12 })
    const of = async (name: string, step = 0) => plain(await trial.tensor(name).value(step))
    expect(await of('one')).toEqual(['float64', [], [0.5]])
    expect(await of('odd')).toEqual(['float32', [5], [Number.NaN, -Infinity, Number.NaN, Infinity, 1]])
    expect(await of('NaN " Infinity')).toEqual(['float64', [], [Number.NaN]])
    expect(await of('large')).toEqual(['int64', [2], [9007199254740993n, -1n]])
    expect((await of('flags'))[2]).toEqual([1, 0])
    expect((await of('bits'))[2]).toEqual([1, 0])
    expect(await of('texts')).toEqual(['string', [1, 2], ['NaN', 'ß']])
    expect((await of('none'))[1]).toEqual([0])
    expect(await of('shaped')).toEqual(['uint8', [2, 2], [1, 2, 3, 4]])
    expect((await of('half')).slice(0, 2)).toEqual(['float16', []])
    expect(await of('two', 3)).toEqual(['int16', [2], [1, 2]])
    expect(trial.collection('mine').members).toEqual(['shaped'])
    expect(trial.modeStep(0)).toBe(7)
    expect(trial.mode(3)).toBe('TRAIN')
  })

  it('that is wrong is told, and all others are saved', async () => {
    const input = stream(
      { name: 'early', value: 1 },
      { step: 0, tensors: { a: 1, b: [[1], [2, 3]], c: 3 } },
      'Epoch 1\n',
      { nmae: 'x', value: 1 },
      { name: 'a', value: 2 },
      { name: 'h', value: 1, dtype: 'float16' },
      { name: 'i', value: [300], dtype: 'int8' },
      { name: 'f', file: 'none.npy' },
      { name: 'g', bytes: 4 },
      Buffer.from('wx\nz'),
      { step: 0, mode: 'EVAL', name: 'x', value: 1 },
      { step: 1, name: 'y', value: 1 },
      { step: 0, name: 'lost', value: 1 },
      { name: 'lost', value: 2 },
      { step: 2, name: 'z', dtype: 'float32', bytes: 8 },
      Buffer.from('short'),
    )
    const { report, trial } = await recorded(input, { directory: scratch })
    expect(report.problems.map(({ message }) => message.replace(scratch, ''))).toEqual([
      'line 1: expected a step, got none yet',
      'line 2: tensor b: expected arrays of 1 elements at depth 1, as the first, got one of 2',
      'line 3: expected a JSON object, got "Epoch 1"',
      expect.stringMatching(/^line 4: expected keys among step, .*, got "nmae"; did you mean name\?$/),
      'line 5: a: expected one value a step, got another at step 0',
      'line 6: expected base64, bytes or a file for float16, got a value',
      'line 7: tensor i: expected numbers that fit int8, got 300',
      'line 8: /none.npy: no such file or directory',
      'line 9: the bytes after line 9, byte 0: expected a .npy file, which begins with \\x93NUMPY, got "wx\\nz"',
      'line 10: expected mode GLOBAL, as step 0 has begun, got EVAL',
      'line 12: expected a step that was not written, got 0',
      'line 13: expected a step, got none since that of an earlier line was wrong',
      'line 14: expected 8 bytes after the line, got 5 up to the end of the input',
    ])
    expect(report.problems[12]).toMatchObject({ code: 'BadTensorLine', fields: { line: 14 } })
    expect([...trial.tensorNames()].sort()).toEqual(['a', 'c', 'y'])
    expect(trial.steps()).toEqual([0, 1])
  })

  it('ends the trial if its caller says so, with what came before', async () => {
    const path = place()
    const onProblem = (problem: Error) => {
      throw problem
    }
    const input = stream({ step: 0, name: 'a', value: 1 }, { step: 1, name: 'b', value: 1 }, 'x\n', {
      name: 'c',
      value: 1,
    })
    await expect(recordStream([input], path, { onProblem })).rejects.toThrow('line 3: expected a JSON object')
    const trial = await createTrial(path)
    expect([...trial.tensorNames()].sort()).toEqual(['a', 'b'])
    expect(readdirSync(path)).toContain('training_job_end.ts')
  })

  it('that nests arrays without measure is told', async () => {
    const nested = (depth: number, inner: string) => `${'['.repeat(depth)}${inner}${']'.repeat(depth)}`
    const path = place()
    const lines = [nested(254, '1'), nested(255, '1'), nested(100_000, ''), `[1, ${nested(100_000, '1')}]`]
    const text = lines.map((value, i) => `{"step": 0, "name": "x${i}", "value": ${value}}\n`).join('')
    const { problems, savedTensors } = await recordStream([text], path)
    expect(problems.map(({ message }) => message)).toEqual(
      [2, 3, 4].map(line => `line ${line}: expected at most 254 dimensions, got more`),
    )
    expect(savedTensors).toBe(1)
  })

  it('has its file as it is then, whatever was there before', async () => {
    const [path, file] = [place(), join(scratch, 'replaced.npy')]
    const input = async function* () {
      for (const step of [0, 1, 2]) {
        writeFileSync(`${file}.new`, Buffer.concat([...npyChunks(data([1], Float32Array.of(step)))]))
        renameSync(`${file}.new`, file)
        yield `${JSON.stringify({ step, name: 'x', file })}\n`
      }
    }
    expect((await recordStream(input(), path)).problems).toEqual([])
    const trial = await createTrial(path)
    for (const step of [0, 1, 2]) expect((await trial.tensor('x').value(step)).data).toEqual(Float32Array.of(step))
  })

  it('can come in pieces of any length', async () => {
    const bytes = Buffer.alloc(40, 7)
    const input = stream(
      { step: 0, name: 'a', dtype: 'uint8', bytes: 40 },
      bytes,
      { name: 'b', value: 'ß' },
      { step: 1, name: 'c', dtype: 'uint8', bytes: 0 },
      { name: 'd', value: 1 },
    )
    const lengths = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(lengths, async lengths => {
        const pieces: Uint8Array[] = []
        for (let at = 0, i = 0; at < input.length; i++) {
          const length = Math.max(i % 7, lengths[i % lengths.length]!)
          pieces.push(input.subarray(at, at + length))
          at += length
        }
        const path = place()
        expect(await recordStream(pieces, path)).toMatchObject({ steps: 2, tensors: 4, problemCount: 0 })
        expect(plain(await (await createTrial(path)).tensor('a').value(0))[2]).toEqual([...bytes])
      }),
      { numRuns: 15 },
    )
  })
})

describe('with little memory', () => {
  const memory = 4 << 20
  const half = memory / 2

  it('what is longer than its part of it is told, and all others are saved', async () => {
    const floats = (byteLength: number) => npy(of('<f4', `(${byteLength / 4},)`), new Uint8Array(byteLength))
    const whole = { dtype: 'float32', shape: [half / 4] }
    const file = join(scratch, 'too-long.npy')
    writeFileSync(file, floats(half + 4))
    const packed = zip([{ name: 'member.npy', content: floats(half + 4) }])
    const texts = npy(of('|S1', '(40000,)'), new Uint8Array(40_000).fill(65))
    const { report, trial } = await recorded(
      stream(
        { step: 0, name: 'first', bytes: half, ...whole },
        new Uint8Array(half),
        { name: 'long', bytes: half + 4, dtype: 'float32', shape: [half / 4 + 1] },
        new Uint8Array(half + 4),
        { name: 'file', file },
        { name: 'texts', bytes: texts.length },
        texts,
        { bytes: packed.length },
        packed,
        { name: 'last', value: 1 },
      ),
      { memory },
    )
    expect(trial.tensorNames()).toEqual(['first', 'last'])
    expect(report.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining(`line 2: expected at most ${half} bytes after a line`),
      expect.stringContaining(`expected at most ${half} bytes of elements`),
      expect.stringContaining('expected at most 32768 texts, got 40000'),
      expect.stringContaining(`line 5: expected at most ${half} bytes after a line`),
    ])
  })

  it('a line has at most a 32nd of it', async () => {
    const text = 'x'.repeat(memory / 32)
    const long = recordStream([stream({ step: 0, name: 'a', value: text })], place(), { memory })
    await expect(long).rejects.toThrow(`expected a line of at most ${memory / 32} bytes, got a longer one`)
    await expect(recordStream([], place(), { memory: 5 })).rejects.toThrow('expected memory to be bytes from 4 MiB')
  })

  it('a line that comes byte by byte takes no more than one that comes at once', async () => {
    const line = stream({ step: 0, name: 'a', value: 'y'.repeat(100_000) })
    const path = place()
    await recordStream(
      (function* () {
        for (const byte of line) yield Uint8Array.of(byte)
      })(),
      path,
      { memory },
    )
    expect((await (await createTrial(path)).tensor('a').value(0)).data).toEqual(['y'.repeat(100_000)])
  })
})

describe('a stream', () => {
  it('saves what a configuration says, or everything', async () => {
    const input = stream(
      ...Array.from({ length: 4 }, (_, step) => ({
        step,
        mode: 'EVAL',
        tensors: { 'fc.weight': step, 'gradient/fc.weight': step },
      })),
    )
    const { trial } = await recorded(input)
    expect(trial.tensor('gradient/fc.weight').steps()).toEqual([0, 1, 2, 3])
    expect(trial.collection('gradients').members).toEqual(['gradient/fc.weight'])
    const { trial: some } = await recorded(input, {
      includeCollections: ['weights', 'gradients'],
      saveConfig: { saveInterval: 2 },
    })
    expect(some.tensorNames()).toEqual(['fc.weight'])
    expect(some.tensor('fc.weight').steps()).toEqual([0, 2])
  })

  it('is of bytes', async () => {
    const message = /recordStream: expected a stream of bytes, or an array of Uint8Arrays or texts, got /
    for (const input of [7, 'text', null, {}, new Uint8Array(3), [7]]) {
      await expect(recordStream(input as never, place())).rejects.toThrow(message)
    }
  })

  it('is no faster read than it is written, and can be followed', async () => {
    const path = place()
    async function* input() {
      yield stream({ step: 0, name: 'a', value: 1 }, { step: 1 })
      for (const _ of Array(200)) {
        if (existsSync(join(path, 'index/000000000/000000000000_worker_0.json'))) break
        await new Promise(resolve => setTimeout(resolve, 10))
      }
      const trial = await createTrial(path)
      expect(trial.steps()).toEqual([0])
      expect(trial.loadedAllSteps).toBe(false)
      yield stream({ name: 'a', value: 2 })
    }
    await recordStream(input(), path)
    expect((await createTrial(path)).steps()).toEqual([0, 1])
  })
})

/** The command, with this as its input. */
function record(input: Uint8Array, ...args: readonly string[]) {
  return spawnSync(process.execPath, [CLI, 'record', ...args], { input, encoding: 'utf8' })
}

describe('trialscan record', () => {
  it('says what it has saved, and what not', async () => {
    const [path, file] = [place(), join(scratch, 'x.npy')]
    writeFileSync(file, Buffer.concat([...npyChunks(data([2], Float32Array.of(1, 2)))]))
    writeFileSync(join(scratch, 'config.json'), '{"HookParameters": {"save_interval": "2"}, "Tags": []}')
    const input = stream(...[0, 1, 2].map(step => ({ step, name: 'x', file: 'x.npy' })), {
      step: 4,
      name: 'y',
      value: {},
    })
    const options = ['--config', join(scratch, 'config.json'), '--files', scratch, '--worker', 'w', '--checksums']
    const { status, stdout, stderr } = record(input, '--out', path, ...options)
    expect([status, stdout]).toEqual([4, ''])
    expect(stderr).toMatch(/config.json: Tags means nothing here, and is ignored/)
    expect(stderr).toMatch(
      /line 4: expected numbers, texts.*\n.*saved 2 of 3 steps and 2 of 3 tensors in .*; the configuration leaves out 1 tensor\n/,
    )
    const trial = await createTrial(path)
    expect(trial.workers()).toEqual(['w'])
    expect(trial.tensor('x').steps()).toEqual([0, 2])
    const whole = record(stream({ step: 0, name: 'x', value: 1 }), '--out', place())
    expect(whole.stderr).toMatch(/^trialscan: saved 1 step and 1 tensor in \S+\n$/)
    for (const [config, message] of [
      ['none.json', /--config \S+none.json: no such file/],
      ['.', /--config \S+: expected a file, got a directory/],
    ] as const) {
      const { status, stderr } = record(input, '--out', place(), '--config', join(scratch, config))
      expect([status, stderr]).toEqual([3, expect.stringMatching(message)])
    }
    // The trial of a worker is written once.
    expect(record(input, '--out', path, '--worker', 'w').status).toBe(2)
    expect(record(stream('{"step":0,"name":"x","value":1}\nx\n'), '--out', place(), '--fail-fast').status).toBe(4)
  })

  it('names its options, not those of the library', () => {
    for (const [option, value, message] of [
      ['--num-workers', '0', 'a number of workers from 1 on, got 0'],
      ['--worker', 'a/b', `a name that can be part of a file's, got "a/b"`],
    ] as const) {
      const { status, stderr } = record(stream(), '--out', place(), option, value)
      const expected = `trialscan: expected ${option} to be ${message}\nSee trialscan record --help.\n`
      expect([status, stderr]).toEqual([2, expected])
    }
  })

  it('ends with the last whole step when it is interrupted', async () => {
    const path = place()
    const child = spawn(process.execPath, [CLI, 'record', '--out', path], { stdio: ['pipe', 'ignore', 'pipe'] })
    child.stdin.write(stream({ step: 0, name: 'a', value: 1 }, { step: 1, name: 'a', value: 2 }))
    const ended = new Promise(resolve => child.on('close', resolve))
    while (!existsSync(join(path, 'index/000000000/000000000000_worker_0.json'))) {
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    const trial = await createTrial(path)
    expect([trial.steps(), trial.loadedAllSteps]).toEqual([[0], true])
    expect((await verifyTrial(path, { deep: true })).ok).toBe(true)
  })

  it('is checked while it runs', async () => {
    const path = place()
    const recording = spawn(process.execPath, [CLI, 'record', '--out', path], { stdio: ['pipe', 'ignore', 'ignore'] })
    const save = (step: number, value: readonly number[]) =>
      recording.stdin.write(stream(JSON.stringify({ step, name: 'fc.weight', value }).replace('null', 'NaN'), '\n'))
    save(0, [1, 2])
    save(1, [1, Number.NaN])
    while (!existsSync(join(path, 'index/000000000/000000000000_worker_0.json'))) {
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    const checking = spawn(process.execPath, [CLI, 'check', path, '--rule', 'ExplodingTensor', '--follow'])
    const checked = new Promise(resolve => checking.on('close', resolve))
    // The next step ends the one with the fault.
    save(2, [1, 2])
    let found = ''
    for await (const text of checking.stdout.setEncoding('utf8')) {
      found += text
      if (!found.includes('\n')) continue
      expect(recording.exitCode).toBe(null)
      recording.stdin.end()
    }
    expect(JSON.parse(found)).toMatchObject({ rule: 'ExplodingTensor', step: 1, mode: 'GLOBAL', tensor: 'fc.weight' })
    expect(await checked).toBe(1)
  })
})

function data(shape: readonly number[], array: Float32Array): TensorData {
  const bytes = new Uint8Array(array.buffer)
  return { dtype: 'float32', shape, stride: [1], offset: 0, data: array, bytes } as unknown as TensorData
}

const PYTHON = '/usr/bin/python3'
const hasNumpy = existsSync(PYTHON) && spawnSync(PYTHON, ['-c', 'import numpy']).status === 0

describe.runIf(hasNumpy)('with numpy', () => {
  it('the example saves its training', async () => {
    const path = place()
    execFileSync(PYTHON, [join(ROOT, 'examples/record.py'), path, process.execPath, CLI], { stdio: 'pipe' })
    const trial = await createTrial(path)
    expect(trial.steps({ mode: 'TRAIN' }).length).toBe(50)
    expect([...trial.tensorNames()].sort()).toEqual(['gradient/linear.weight', 'linear.weight', 'loss'])
    const weight = Array.from((await trial.tensor('linear.weight').value(49)).data as Float64Array)
    for (const [i, value] of [1, -2, 0.5].entries()) expect(weight[i]).toBeCloseTo(value, 2)
  })

  it('what it writes is what is saved: all dtypes, orders and kinds of files', async () => {
    const program = `
import json, sys, numpy as np
d = sys.argv[1]; arrays = {}
for t in '?bBhHiIlLefdFD':
    for order in '<>':
        for shape in [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 1, 3)]:
            a = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - (0 if t in '?BHIL' else 2)).astype(np.dtype(t).newbyteorder(order))
            arrays[f'{t}{order}{shape}'] = a
            arrays[f'F {t}{order}{shape}'] = np.asfortranarray(a)
arrays['texts'] = np.array([['a', '\\u00df\\U0001d11e'], ['', 'b']])
arrays['bytes'] = np.array([b'x', b'yz'])
np.savez(d + '/a.npz', **arrays); np.savez_compressed(d + '/b.npz', **arrays)
print(json.dumps({k: [list(a.shape), [x.decode() if isinstance(x, bytes) else [x.real, x.imag] if isinstance(x, complex) else x for x in a.ravel().tolist()]] for k, a in arrays.items()}))
`
    const told = execFileSync(PYTHON, ['-c', program, scratch], { encoding: 'utf8', maxBuffer: 1 << 26 })
    const expected = Object.entries(JSON.parse(told) as Record<string, [number[], unknown[]]>)
    const input = stream({ step: 0, file: 'a.npz' }, { step: 1, prefix: 'b/', file: 'b.npz' })
    const { report, trial } = await recorded(input, { directory: scratch })
    expect([report.problems, report.tensors]).toEqual([[], 2 * expected.length])
    for (const [name, [shape, elements]] of expected) {
      for (const [step, prefix] of [
        [0, ''],
        [1, 'b/'],
      ] as const) {
        const value = await trial.tensor(`${prefix}${name}`).value(step)
        const flat = elements.flat().map(one => (typeof one === 'boolean' ? Number(one) : one))
        const got = Array.from(value.data as ArrayLike<unknown>, one => (typeof one === 'bigint' ? Number(one) : one))
        expect([name, [...value.shape], got]).toEqual([name, shape, flat])
      }
    }
  })
})
