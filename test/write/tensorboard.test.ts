/** Trials as runs of TensorBoard: read back by our reader, and decoded by protobufjs as TensorBoard's own definitions say. */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  createWriter,
  exportTensorBoard,
  readValues,
  type TensorBoardOptions,
  type Trial,
  UsageError,
  verifyTrial,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import {
  decodeProto,
  type ProtoEvent,
  type ProtoValue,
  payloadsOf,
  pixelsOf,
  runsBelow,
} from '../support/tensorboard.js'

const scratch = scratchDirectory('tensorboard')
let count = 0
const place = () => join(scratch, `${count++}`)
const TRIALS = join(ROOT, 'fixtures/trials')

const opened = (path: string) => createTrial(path, { requireCollections: false, threads: 0 })

async function exported(trial: Trial | string, options?: TensorBoardOptions) {
  const directory = place()
  const source = typeof trial === 'string' ? await opened(trial) : trial
  const report = await exportTensorBoard(source, directory, options)
  await source.close()
  return { report, directory, runs: runsBelow(directory) }
}

/** The values of an exported run by tag and step. */
function valuesOf(events: readonly ProtoEvent[]): Map<string, ProtoValue & { readonly wallTime: number }> {
  const values = new Map<string, ProtoValue & { readonly wallTime: number }>()
  for (const { wall_time: wallTime = 0, step = 0, summary } of events) {
    for (const value of summary?.value ?? []) {
      expect(values.has(`${step} ${value.tag}`)).toBe(false)
      values.set(`${step} ${value.tag}`, { ...value, wallTime })
    }
  }
  return values
}

/** What smdebug's event files of a trial say, by file, record by record. */
function sourceEvents(path: string): Map<string, ProtoEvent> {
  const events = new Map<string, ProtoEvent>()
  for (const file of readdirSync(join(path, 'events'), { recursive: true }) as string[]) {
    if (!file.endsWith('.tfevents')) continue
    for (const payload of payloadsOf(readFileSync(join(path, 'events', file)))) {
      const event = decodeProto(payload)
      events.set(`${event.step ?? 0} ${event.summary!.value[0]!.tag}`, event)
    }
  }
  return events
}

async function expectSound(directory: string): Promise<void> {
  const { ok, problems } = await verifyTrial(directory, { deep: true })
  expect(problems).toEqual([])
  expect(ok).toBe(true)
}

describe('a trial that smdebug wrote', () => {
  const path = join(TRIALS, 'mlp-vanishing')

  it('has a run for each mode, with every number and when it was written', async () => {
    const { report, directory, runs } = await exported(path)
    expect([...runs.keys()]).toEqual(['EVAL', 'TRAIN'])
    expect(report).toMatchObject({ leftOutCount: 0, problems: [], problemCount: 0 })
    const source = sourceEvents(path)
    const trial = await opened(path)
    for await (const { tensor, step, mode, value } of readValues(trial)) {
      const { wallTime, ...found } = valuesOf(runs.get(mode)!).get(`${step} ${tensor}`)!
      expect(wallTime).toBe(source.get(`${step} ${tensor}`)!.wall_time)
      const elements = [...(value!.data as Float32Array)]
      if (elements.length === 1) {
        expect([found.value, found.simple_value]).toEqual(['simple_value', Math.fround(elements[0]!)])
        continue
      }
      const { histo } = found
      expect(histo.num).toBe(elements.length)
      expect([histo.min, histo.max]).toEqual([Math.min(...elements), Math.max(...elements)])
      expect(histo.sum).toBeCloseTo(
        elements.reduce((sum, x) => sum + x, 0),
        10,
      )
      expect(histo.sum_squares).toBeCloseTo(
        elements.reduce((sum, x) => sum + x * x, 0),
        10,
      )
      expect(histo.bucket).toEqual(countsIn(elements, histo.bucket_limit))
    }
    expect(
      report.runs.map(({ run, worker, mode, scalars, histograms }) => [run, worker, mode, scalars, histograms]),
    ).toEqual([
      ['TRAIN', 'worker_0', 'TRAIN', expect.any(Number), expect.any(Number)],
      ['EVAL', 'worker_0', 'EVAL', expect.any(Number), expect.any(Number)],
    ])
    for (const { path, byteLength } of report.runs) {
      const bytes = readFileSync(join(directory, path))
      expect(bytes.length).toBe(byteLength)
      const [first] = payloadsOf(bytes).map(decodeProto)
      expect(first).toMatchObject({ file_version: 'brain.Event:2' })
      expect(path).toMatch(new RegExp(`/events\\.out\\.tfevents\\.${Math.floor(first!.wall_time!)}\\.`))
    }
    await trial.close()
    await expectSound(directory)
  })

  it('is read back by our own reader as it was', async () => {
    const { directory } = await exported(path)
    const [source, copy] = [await opened(path), await opened(directory)]
    const names = ['min', 'max', 'mean', 'sum', 'l2'] as const
    const rows = new Map<string, unknown>()
    for await (const row of copy.scan({ reductions: names })) {
      rows.set(`${row.worker} ${row.step} ${row.tensor}`, row.reductions)
    }
    let seen = 0
    for await (const { mode, step, tensor, reductions } of source.scan({ reductions: names })) {
      const found = rows.get(`${mode} ${step} ${tensor}`) as Record<string, number>
      for (const name of names) expect(found[name]! / (reductions[name] as number)).toBeCloseTo(1, 6)
      seen++
    }
    expect(seen).toBe(rows.size)
    await source.close()
    await copy.close()
  })

  it('is exported byte for byte the same each time', async () => {
    const [first, second] = [await exported(path), await exported(path)]
    for (const { path } of first.report.runs) {
      expect(readFileSync(join(second.directory, path))).toEqual(readFileSync(join(first.directory, path)))
    }
  })
})

/** How many elements are in each bucket, one by one. Those of negative numbers end with their limit, all others before it. */
function countsIn(elements: readonly number[], limits: readonly number[]): number[] {
  const counts = limits.map(() => 0)
  for (const element of elements)
    counts[
      limits.findIndex((limit, i) => element < limit || (limit < 0 && element === limit) || i === limits.length - 1)
    ]!++
  return counts
}

describe('histograms', () => {
  const histogram = async (values: readonly number[], dtype: 'float32' | 'float64' | 'int64' = 'float64') => {
    const path = place()
    await using writer = await createWriter(path)
    await writer.step({ saveAll: true })
    await writer.save('x', [...values], { dtype })
    await writer.close()
    const { runs, report } = await exported(path)
    return { histo: runs.get('GLOBAL') && valuesOf(runs.get('GLOBAL')!).get('0 x')?.histo, report }
  }

  it('are of finite elements', async () => {
    const { histo } = await histogram([1, Number.NaN, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    expect(histo).toMatchObject({ num: 2, sum: -1, sum_squares: 5 })
    // Beside infinities the sketch tells where they end.
    expect([histo!.min! / -2, histo!.max!].map(x => Math.round(x * 8) / 8)).toEqual([1, 1])
  })

  it('are left out where there is none', async () => {
    const { histo, report } = await histogram([Number.NaN, Number.POSITIVE_INFINITY])
    expect([histo, report.leftOutCount, report.runs]).toEqual([undefined, 1, []])
  })

  it('have one bucket around 0', async () => {
    const elements = [0, 0, -1e-30, 1e-12, 0.5, -3, 2]
    const { histo } = await histogram(elements)
    const near = histo!.bucket_limit.findIndex(limit => limit > 0)
    expect(histo!.bucket[near]).toBe(4)
    expect(histo!.bucket_limit[near]).toBeGreaterThan(1e-7)
    expect(histo!.bucket).toEqual(countsIn(elements, histo!.bucket_limit))
  })

  it('hold what is far from 1', async () => {
    for (const elements of [
      [1e-300, 2e-300],
      [1e300, -1e300],
      [0, 0],
      [Number.MAX_VALUE, 0],
      [2e-308, -2e-308],
    ]) {
      const { histo } = await histogram(elements)
      expect([histo!.min ?? 0, histo!.max ?? 0]).toEqual([Math.min(...elements), Math.max(...elements)])
      expect(histo!.bucket.reduce((sum, count) => sum + count, 0)).toBe(2)
      const limits = [...histo!.bucket_limit]
      expect(limits).toEqual([...limits].sort((a, b) => a - b))
    }
  })

  it('have a bucket for each small whole number', async () => {
    const { histo } = await histogram([1, 1, 2, 3, 3, 3], 'int64')
    const counts = histo!.bucket.filter(count => count > 0)
    expect(counts).toEqual([2, 1, 3])
  })
})

describe('names and places', () => {
  it('has runs by worker and mode, also of devices', async () => {
    const { runs } = await exported(join(TRIALS, 'workers-tf-devices'))
    expect([...runs.keys()]).toEqual([
      '_replica-0_task-0_device-GPU-0/EVAL',
      '_replica-0_task-0_device-GPU-0/TRAIN',
      '_replica-0_task-0_device-GPU-1/EVAL',
      '_replica-0_task-0_device-GPU-1/TRAIN',
    ])
  })

  it('has nested runs of runs, and their histograms as they were', async () => {
    const { directory } = await exported(join(TRIALS, 'workers-4'))
    const again = await exported(directory)
    expect([...again.runs.keys()]).toContain('worker_3/TRAIN/GLOBAL')
    const [first, second] = [runsBelow(directory).get('worker_1/TRAIN')!, again.runs.get('worker_1/TRAIN/GLOBAL')!]
    const [values, copies] = [valuesOf(first), valuesOf(second)]
    expect([...copies.keys()]).toEqual([...values.keys()])
    for (const [key, { value, simple_value, histo, wallTime }] of values) {
      const copy = copies.get(key)!
      expect([copy.value, copy.simple_value, copy.wallTime]).toEqual([value, simple_value, wallTime])
      if (value !== 'histo') continue
      expect(copy.histo.bucket).toEqual(histo.bucket)
      expect(copy.histo.bucket_limit.slice(0, -1)).toEqual(histo.bucket_limit.slice(0, -1))
      expect(copy.histo.sum_squares! / histo.sum_squares!).toBeCloseTo(1, 12)
    }
  })

  it('keeps names, whatever they are', async () => {
    const names = ['a/b/c', '../../escape', 'π ⊗ 平均\n', 'x'.repeat(4096), ' ', '{"a":1}']
    const path = place()
    const source = new TrialWriter(path)
    const one = (name: string, i: number) => ({ name, dtype: 'float32', shape: [], values: [i] }) as const
    source.step({ step: 7, tensors: names.map(one) })
    const { directory, runs } = await exported(path)
    expect([...valuesOf(runs.get('GLOBAL')!)].map(([key, { simple_value }]) => [key, simple_value])).toEqual(
      names.map((name, i) => [`7 ${name}`, i]),
    )
    expect(readdirSync(directory)).toEqual(['GLOBAL'])
    await expectSound(directory)
  })

  it('keeps apart what has one name, and is not the same', async () => {
    const path = place()
    await using writer = await createWriter(path)
    await writer.record(0, { x: [1, 2], 'x/mean': 7 })
    await writer.record(1, { x: [3], 'x/mean': 8 })
    await writer.close()
    const { runs } = await exported(path, { reductions: ['mean'] })
    const values = [...valuesOf(runs.get('GLOBAL')!)].map(([key, { value, simple_value }]) => [
      key,
      value,
      simple_value,
    ])
    expect(values).toEqual([
      ['0 x', 'histo', undefined],
      ['0 x/mean', 'simple_value', 1.5],
      ['0 x/mean/scalar', 'simple_value', 7],
      ['0 x/mean/mean', 'simple_value', 7],
      ['1 x/scalar', 'simple_value', 3],
      ['1 x/mean', 'simple_value', 3],
      ['1 x/mean/scalar', 'simple_value', 8],
      ['1 x/mean/mean', 'simple_value', 8],
    ])
  })

  it('has when each record was written', async () => {
    const path = place()
    const source = new TrialWriter(path, { wallTime: (step, record) => 1_600_000_000.5 + 10 * step + record })
    const tensors = ['a', 'b'].map(name => ({ name, dtype: 'float64', shape: [], values: [1] }) as const)
    source.step({ step: 0, mode: 'TRAIN', tensors })
    source.step({ step: 3, mode: 'EVAL', modeStep: 0, tensors })
    const { runs } = await exported(path)
    const times = [...runs].map(([run, events]) => [run, events.map(({ wall_time }) => wall_time)])
    expect(times).toEqual([
      ['EVAL', [1_600_000_030.5, 1_600_000_030.5, 1_600_000_031.5]],
      ['TRAIN', [1_600_000_000.5, 1_600_000_000.5, 1_600_000_001.5]],
    ])
  })
})

describe('what is exported', () => {
  it('is what the options select', async () => {
    const { report, runs } = await exported(join(TRIALS, 'mlp-vanishing'), {
      collection: 'losses',
      mode: 'TRAIN',
      steps: { from: 0, to: 50 },
      histograms: false,
    })
    expect([...runs.keys()]).toEqual(['TRAIN'])
    const tags = new Set([...valuesOf(runs.get('TRAIN')!).values()].map(({ tag }) => tag))
    expect([...tags]).toEqual(['CrossEntropyLoss_output_0'])
    expect(report.runs[0]).toMatchObject({ histograms: 0 })
  })

  it('is reductions over the steps, as asked', async () => {
    const path = join(TRIALS, 'mlp-vanishing')
    const names = ['abs_mean', 'nan_count', 'p50'] as const
    const { runs } = await exported(path, { mode: 'TRAIN', reductions: names, histograms: false })
    const values = valuesOf(runs.get('TRAIN')!)
    const trial = await opened(path)
    for await (const { tensor, step, reductions } of trial.scan({ mode: 'TRAIN', reductions: names })) {
      for (const name of names) {
        expect(values.get(`${step} ${tensor}/${name}`)!.simple_value).toBe(Math.fround(reductions[name] as number))
      }
    }
    await trial.close()
  })

  it('is saved reductions, where there is nothing else', async () => {
    const path = place()
    const reductionConfig = { reductions: ['mean', 'max'] } as const
    await using writer = await createWriter(path, { saveAll: true, saveConfig: { saveInterval: 1 }, reductionConfig })
    await writer.step()
    await writer.save('w', [1, 2, 6])
    await writer.close()
    const { runs } = await exported(path)
    const found = [...valuesOf(runs.get('GLOBAL')!)].map(([key, { simple_value }]) => [key, simple_value])
    expect(found).toEqual([
      ['0 w/max', 6],
      ['0 w/mean', 3],
    ])
  })

  it('is images, where shapes allow', async () => {
    const path = place()
    await using writer = await createWriter(path)
    const save = (name: string, shape: readonly number[], data: Uint8Array | Float32Array) =>
      writer.save(name, data, { shape })
    await writer.step({ saveAll: true })
    await save('grey', [2, 3], Uint8Array.of(0, 50, 100, 150, 200, 255))
    await save(
      'rgb',
      [2, 2, 3],
      Float32Array.from({ length: 12 }, (_, i) => i / 11),
    )
    await save(
      'first',
      [3, 2, 2],
      Uint8Array.from({ length: 12 }, (_, i) => i),
    )
    await save(
      'stack',
      [5, 2, 2],
      Float32Array.from({ length: 20 }, (_, i) => 10 - i),
    )
    await save('row', [1, 9], new Float32Array(9))
    await save('deep', [2, 2, 2, 2, 2], new Float32Array(32))
    await writer.close()
    const { report, runs } = await exported(path, { images: true, histograms: false })
    expect(report.runs[0]).toMatchObject({ scalars: 0, histograms: 0, images: 6 })
    const found = [...valuesOf(runs.get('GLOBAL')!).values()].map(({ tag, image }) => {
      const { height, width, colorspace, encoded_image_string: png } = image
      return [tag, height, width, colorspace, pixelsOf(png)]
    })
    expect(found).toEqual([
      ['grey/image/0', 2, 3, 1, [0, 50, 100, 150, 200, 255]],
      ['rgb/image/0', 2, 2, 3, Array.from({ length: 12 }, (_, i) => Math.round((255 * i) / 11))],
      ['first/image/0', 2, 2, 3, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]],
      ...[0, 1, 2].map(i => [`stack/image/${i}`, 2, 2, 1, [255, 170, 85, 0]]),
    ])
  })

  it('is every dtype that is a number', async () => {
    const { report, directory } = await exported(join(TRIALS, 'dtypes'))
    expect(report.problemCount).toBe(0)
    expect(report.leftOutCount).toBeGreaterThan(0)
    await expectSound(directory)
  })

  it('is all but what can not be read, which is told', async () => {
    const path = place()
    const source = new TrialWriter(path)
    source.step({ step: 0, tensors: [{ name: 'a', dtype: 'float32', shape: [], values: [1] }] })
    source.step({ step: 1, tensors: [{ name: 'a', dtype: 'float32', shape: [], values: [2] }] })
    const file = join(path, 'events/000000000001/000000000001_worker_0.tfevents')
    writeFileSync(file, readFileSync(file).subarray(0, 20))
    const { report, runs } = await exported(path)
    expect([...valuesOf(runs.get('GLOBAL')!).keys()]).toEqual(['0 a'])
    expect(report.problems.map(({ code }) => code)).toEqual(['TruncatedRecord'])
    const { code, stderr } = await trialscan('export', path, '--tensorboard', place())
    expect(code).toBe(4)
    expect(stderr).toContain('000000000001_worker_0.tfevents')
    expect(stderr).toContain('1 run, 1 scalar, 0 histograms')
  })
})

describe('where it goes', () => {
  it('tells a file that is not there once, and how many tensors lie in it', async () => {
    const path = place()
    const source = new TrialWriter(path)
    const tensors = ['a', 'b', 'c'].map(name => ({ name, dtype: 'float32' as const, shape: [], values: [1] }))
    source.step({ step: 0, tensors })
    source.step({ step: 1, tensors })
    rmSync(join(path, 'events/000000000001/000000000001_worker_0.tfevents'))
    const { report } = await exported(path)
    expect(report.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/000000000001_worker_0.tfevents: .* \(needed for 3 tensors\)$/),
    ])
    expect(report.problemCount).toBe(1)
  })

  it('never replaces a run', async () => {
    const { directory, report } = await exported(join(TRIALS, 'mlp-vanishing'))
    const before = readFileSync(join(directory, report.runs[0]!.path))
    const trial = await opened(join(TRIALS, 'mlp-vanishing'))
    await expect(exportTensorBoard(trial, directory)).rejects.toThrow(/expected no run there yet, got one/)
    await trial.close()
    expect(readFileSync(join(directory, report.runs[0]!.path))).toEqual(before)
    expect(readdirSync(join(directory, 'TRAIN'))).toHaveLength(1)
  })

  it('leaves nothing if it fails', async () => {
    const directory = place()
    mkdirSync(join(directory, 'EVAL'), { recursive: true })
    writeFileSync(join(directory, 'EVAL/events.out.tfevents.1'), '')
    const trial = await opened(join(TRIALS, 'mlp-vanishing'))
    await expect(exportTensorBoard(trial, directory)).rejects.toThrow('EVAL/events.out.tfevents.1')
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(exportTensorBoard(trial, place(), { signal })).rejects.toThrow('enough')
    await trial.close()
    const left = readdirSync(directory, { recursive: true }) as string[]
    expect(left.filter(path => path.includes('tfevents'))).toEqual(['EVAL/events.out.tfevents.1'])
  })

  it('refuses what is no number, and what is no option', async () => {
    const trial = await opened(join(TRIALS, 'mlp-vanishing'))
    await expect(exportTensorBoard(trial, place(), { reductions: ['histogram'] })).rejects.toThrow(UsageError)
    await expect(exportTensorBoard(trial, place(), { reductions: ['men' as never] })).rejects.toThrow(/did you mean/)
    await trial.close()
  })
})

describe('trialscan export', () => {
  it('writes runs, and says what', async () => {
    const directory = place()
    const { code, stderr, stdout } = await trialscan(
      ...[
        'export',
        join(TRIALS, 'mlp-vanishing'),
        '--tensorboard',
        directory,
        '--reductions',
        'mean',
        '--mode',
        'train',
      ],
    )
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/^trialscan: 1 run, [\d,]+ scalars, [\d,]+ histograms, [\d.]+ KB, in /)
    expect([...runsBelow(directory).keys()]).toEqual(['TRAIN'])
  })

  it('says why there is nothing to export', async () => {
    const [empty, texts, directory] = [place(), place(), place()]
    await (await createWriter(empty)).close()
    const writer = await createWriter(texts)
    await writer.record(0, { words: ['a', 'b'] })
    await writer.close()
    for (const [path, options, expected] of [
      [empty, [], `trialscan: ${empty} has no tensors to export\n`],
      [texts, [], /^trialscan: 1 left out: texts, .*\ntrialscan: nothing was exported\n$/],
      [
        texts,
        ['--tensor', 'loss'],
        /^trialscan: nothing is there: no tensor of trial .* matches "loss".*; the trial has 1 tensor.*\n$/,
      ],
    ] as const) {
      const { code, stderr } = await trialscan('export', path, '--tensorboard', directory, ...options)
      expect([code, stderr]).toEqual([5, typeof expected === 'string' ? expected : expect.stringMatching(expected)])
    }
    expect(existsSync(directory)).toBe(false)
  })

  it('names the run that is there by its path', async () => {
    const [path, directory] = [join(TRIALS, 'mlp-vanishing'), place()]
    await trialscan('export', path, '--tensorboard', directory, '--steps', '0')
    const { code, stderr } = await trialscan('export', path, '--tensorboard', directory, '--steps', '0')
    expect([code, stderr.startsWith(`trialscan: ${directory}/TRAIN/events.out.tfevents.`)]).toEqual([2, true])
  })

  it('does not write into the trial', async () => {
    const path = place()
    mkdirSync(path)
    execFileSync('cp', ['-r', `${join(TRIALS, 'mlp-vanishing')}/.`, path])
    const { code, stderr } = await trialscan('export', path, '--tensorboard', join(path, 'tensorboard'))
    expect(code).toBe(2)
    expect(stderr).toContain('expected --tensorboard to be a directory outside of the trial')
  })
})
