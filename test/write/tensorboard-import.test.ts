/** Runs of TensorBoard as trials. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  createWriter,
  exportTensorBoard,
  importTensorBoard,
  REDUCTIONS,
  type ScanOptions,
  type Trial,
  UsageError,
  verifyTrial,
} from '#dist/index.js'
import { encodeEvent, frameRecord, type ValueSpec } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { encodeProto, runsBelow } from '../support/tensorboard.js'

const scratch = scratchDirectory('tensorboard-import')
let count = 0
const place = () => join(scratch, `${count++}`)
const TRIALS = join(ROOT, 'fixtures/trials')
const opened = (path: string) => createTrial(path, { requireCollections: false, threads: 0 })

async function imported(logs: string) {
  const [source, out] = [await opened(logs), place()]
  const report = await importTensorBoard(source, out)
  const { problems } = await verifyTrial(out, { deep: true })
  expect(problems).toEqual([])
  return { source, report, out, trial: await createTrial(out, { threads: 0 }) }
}

/** A log directory, of values by run and step, in their order. */
function logs(runs: Readonly<Record<string, readonly (readonly [step: number, value: ValueSpec])[]>>): string {
  const directory = place()
  for (const [run, events] of Object.entries(runs)) {
    const path = join(directory, run, 'events.out.tfevents.1700000000.host')
    mkdirSync(dirname(path), { recursive: true })
    const payloads = [
      encodeEvent({ wallTime: 1_700_000_000, step: 0, fileVersion: 'brain.Event:2' }),
      ...events.map(([step, value]) => encodeEvent({ wallTime: 1_700_000_000.25 + step, step, values: [value] })),
    ]
    writeFileSync(path, Buffer.concat(payloads.map(payload => frameRecord(payload, { checksum: 'true' }))))
  }
  return directory
}

const scalar = (tag: string, simpleValue: number): ValueSpec => ({ tag, simpleValue })

/** All that a scan says, by worker, step and tensor. */
async function rowsOf(trial: Trial): Promise<Map<string, Record<string, unknown>>> {
  const rows = new Map<string, Record<string, unknown>>()
  for await (const { worker, mode, step, tensor, reductions, wallTime, error } of trial.scan({ wallTimes: true })) {
    expect(error).toBeUndefined()
    rows.set(`${worker} ${step} ${tensor}`, { mode, wallTime, ...reductions })
  }
  return rows
}

describe('a trial that was exported', () => {
  it.each(['mlp-vanishing', 'workers-4', 'workers-tf-devices'])(
    '%s comes back with its steps, modes, workers, wall times and numbers',
    async name => {
      const directory = place()
      const original = await opened(join(TRIALS, name))
      const exported = await exportTensorBoard(original, directory)
      const { trial, report, source } = await imported(directory)
      expect(report.problemCount).toBe(0)
      expect(report.tensors).toBe(exported.runs.reduce((sum, run) => sum + run.scalars + run.histograms, 0))
      expect(trial.workersWithData()).toEqual(original.workersWithData())
      expect(trial.modes()).toEqual(original.modes())
      expect(trial.steps({ mode: 'TRAIN' })).toEqual(
        original.steps({ mode: 'TRAIN' }).map(step => original.globalStep('TRAIN', step)),
      )
      const [wanted, found] = [await rowsOf(original), await rowsOf(trial)]
      let scalars = 0
      for (const [key, { mode, wallTime, ...numbers }] of wanted) {
        const row = found.get(key)!
        expect([row.mode, row.wallTime]).toEqual([mode, wallTime])
        const isScalar = row.prod !== undefined
        if (isScalar) scalars++
        for (const name of isScalar ? REDUCTIONS : (['min', 'max', 'mean', 'std', 'l2'] as const)) {
          // TensorBoard's numbers are float32, and those of a histogram come from its sums.
          const [a, b] = [row[name] as number, numbers[name] as number]
          expect(Math.abs(a - b)).toBeLessThanOrEqual(1e-6 * Math.max(Math.abs(b), numbers.abs_max as number))
        }
      }
      expect(scalars).toBe(exported.runs.reduce((sum, run) => sum + run.scalars, 0))
      for (const one of [original, source, trial]) await one.close()
    },
  )

  it('can be exported again', async () => {
    const [first, second] = [place(), place()]
    const original = await opened(join(TRIALS, 'mlp-vanishing'))
    await exportTensorBoard(original, first)
    const { trial } = await imported(first)
    await exportTensorBoard(trial, second, { collection: ['scalars', 'histograms'] })
    const shown = (directory: string) =>
      [...runsBelow(directory)].map(([run, events]) => {
        const values = events.flatMap(({ step, wall_time, summary }) => {
          return (summary?.value ?? []).map(({ tag, simple_value, histo }) => {
            const { bucket, min, max, num, sum, sum_squares } = histo ?? {}
            const sums = [sum, sum_squares].map(number => number?.toPrecision(12))
            return [tag, step, wall_time, simple_value, bucket, min, max, num, ...sums].join()
          })
        })
        return [run, values.sort()]
      })
    expect(shown(second)).toEqual(shown(first))
    await original.close()
    await trial.close()
  })
})

describe('histograms without sums', () => {
  it('keep what is known of them, and nothing else, however often they are exported and imported', async () => {
    const plugins = [['histograms', '']] as const
    const tensor = { dtype: 'float64', shape: [2, 3], values: [-2, 0, 3, 0, 5, 4] } as const
    const histogram = { min: -2, max: 5, num: 7, sum: 0, sumSquares: 0, bucketLimit: [0, 5], bucket: [3, 4] }
    const empty = { dtype: 'float64', shape: [0, 3], values: [] } as const
    const first = await imported(
      logs({
        run: [
          [0, { tag: 'new', plugins, tensor }],
          [0, { tag: 'old', histogram }],
          [1, { tag: 'empty', plugins, tensor: empty }],
        ],
      }),
    )
    expect(first.report.problems).toEqual([])
    const directory = place()
    await exportTensorBoard(first.trial, directory)
    const second = await imported(directory)
    for (const { trial } of [first, second]) {
      for (const name of ['new', 'old']) {
        expect(Object.fromEntries(await trial.tensor(name).reductionValues(0))).toEqual({ min: -2, max: 5 })
        const { data } = await trial.tensor(`${name}/histogram`).value(0)
        expect([...(data as Float64Array)]).toEqual([-2, 0, 3, 0, 5, 4])
      }
    }
    for (const { source, trial } of [first, second]) await Promise.all([source.close(), trial.close()])
  })
})

describe('runs', () => {
  it('are workers, by their directories', async () => {
    const { trial, report } = await imported(
      logs({
        '.': [[0, scalar('loss', 1)]],
        train: [[0, scalar('loss', 2)]],
        'a/b': [[0, scalar('loss', 3)]],
        a_b: [[0, scalar('loss', 4)]],
        '平均 ⊗': [[0, scalar('loss', 5)]],
        [`long/${'x'.repeat(120)}/${'y'.repeat(120)}`]: [[0, scalar('loss', 6)]],
      }),
    )
    const loss = trial.tensor('loss')
    const found = await Promise.all(
      report.runs.map(async ({ run, worker }) => [run.slice(0, 10), (await loss.value(0, { worker })).data[0]]),
    )
    expect(Object.fromEntries(found)).toEqual({
      '.': 1,
      train: 2,
      'a/b': 3,
      a_b: 4,
      '平均 ⊗': 5,
      'long/xxxxx': 6,
    })
    expect(trial.workers()).toHaveLength(6)
    expect(trial.workers()).toEqual(expect.arrayContaining(['worker_0', 'train', 'a_b', 'a_b_2', '平均 ⊗']))
    await trial.close()
  })

  it('are modes of a worker, unless they share a step', async () => {
    const { report, trial } = await imported(
      logs({
        TRAIN: [
          [0, scalar('x', 1)],
          [2, scalar('x', 2)],
        ],
        EVAL: [[1, scalar('x', 3)]],
        'other/TRAIN': [[5, scalar('x', 4)]],
        'other/EVAL': [[5, scalar('x', 5)]],
      }),
    )
    expect(report.runs.map(({ run, worker, mode }) => `${run}: ${worker} ${mode}`).sort()).toEqual([
      'EVAL: worker_0 EVAL',
      'TRAIN: worker_0 TRAIN',
      'other/EVAL: other EVAL',
      'other/TRAIN: other_TRAIN GLOBAL',
    ])
    expect(trial.steps({ mode: 'TRAIN', showIncompleteSteps: true })).toEqual([0, 2])
    await trial.close()
  })

  it('keep tensors, texts and names; the last of a step counts', async () => {
    const tensor = { dtype: 'int64', shape: [2, 2], values: [1n, -2n, 3n, 2n ** 62n] } as const
    const { trial, report } = await imported(
      logs({
        run: [
          [3, scalar('a/π/../b', 0.5)],
          [3, { tag: 'matrix', tensor }],
          [3, { tag: 'text', tensor: { dtype: 'string', shape: [2], strings: ['é', ''] } }],
          [3, { tag: 'png', tensor: { dtype: 'string', shape: [1], strings: [Uint8Array.of(0x89, 0x50)] } }],
          [1, scalar('x', 1)],
          [1, scalar('x', 2)],
        ],
      }),
    )
    expect(report.problems.map(({ code }) => code)).toEqual(['BadText'])
    expect(trial.steps()).toEqual([1, 3])
    expect((await trial.tensor('x').value(1)).data).toEqual(Float32Array.of(2))
    expect((await trial.tensor('a/π/../b').value(3)).data).toEqual(Float32Array.of(0.5))
    const matrix = await trial.tensor('matrix').value(3)
    expect([matrix.shape, [...(matrix.data as BigInt64Array)]]).toEqual([
      [2, 2],
      [1n, -2n, 3n, 2n ** 62n],
    ])
    expect((await trial.tensor('text').value(3)).data).toEqual(['é', ''])
    expect([...trial.collection('scalars').members].sort()).toEqual(['a/π/../b', 'x'])
    await trial.close()
  })

  it('lose what is damaged, and nothing else', async () => {
    const directory = logs({ run: [0, 1, 2].map(step => [step, scalar('x', step)] as const) })
    const path = join(directory, 'run/events.out.tfevents.1700000000.host')
    writeFileSync(path, readFileSync(path).subarray(0, -10))
    const { report, trial } = await imported(directory)
    expect(report.problems.map(({ code }) => code)).toEqual(['TruncatedRecord'])
    expect(trial.steps()).toEqual([0, 1])
    await trial.close()
    const { code, stderr } = await trialscan('import', directory, '--out', place())
    expect(code).toBe(4)
    expect(stderr).toContain('1 run, 2 steps, 2 tensors, in ')
  })
})

describe('what is refused', () => {
  it('is a trial, a place that has one, and an option that is none', async () => {
    const trial = await opened(join(TRIALS, 'mlp-vanishing'))
    await expect(importTensorBoard(trial, place())).rejects.toThrow(/expected event files of TensorBoard, got a trial/)
    await trial.close()
    const runs = await opened(logs({ run: [[0, scalar('x', 1)]] }))
    const out = place()
    await importTensorBoard(runs, out)
    await expect(importTensorBoard(runs, out)).rejects.toThrow(UsageError)
    await expect(importTensorBoard(runs, place(), { worker: 'a' } as never)).rejects.toThrow(/did you mean workers/)
    await runs.close()
  })
})

describe('trialscan import', () => {
  it('tells what a trial has no place for', async () => {
    const directory = logs({ TRAIN: [[0, scalar('loss', 1)]] })
    const image = { height: 1, width: 1, colorspace: 1, encoded_image_string: new Uint8Array(1 << 20) }
    const events = [
      { graph_def: new Uint8Array(3 << 20) },
      { step: 0, summary: { value: [{ tag: 'in/image/0', image }] } },
      {
        step: 1,
        summary: {
          value: [
            { tag: 'in/image/0', image },
            { tag: 'in/image/1', image },
          ],
        },
      },
    ]
    const records = events.map(event => frameRecord(encodeProto(event), { checksum: 'true' }))
    writeFileSync(join(directory, 'TRAIN/events.out.tfevents.1700000001.host'), Buffer.concat(records))
    const { report } = await imported(directory)
    expect(report.leftOut).toEqual([
      { kind: 'graph', count: 1, tags: [] },
      { kind: 'image', count: 3, tags: ['in/image/0', 'in/image/1'] },
    ])
    const { code, stderr } = await trialscan('import', join(directory, 'TRAIN'), '--out', place())
    expect([code, stderr.replace(/, in .*/, '')]).toEqual([
      0,
      'trialscan: 1 graph left out\ntrialscan: 3 images left out: in/image/0, in/image/1\ntrialscan: 1 run, 1 step, 1 tensor\n',
    ])
  })

  it('takes no images and sounds that are tensors of bytes for damage', async () => {
    const tensor = (...strings: (string | Uint8Array)[]) =>
      ({ dtype: 'string', shape: [strings.length], strings }) as const
    const png = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
    const wav = Buffer.from('RIFF\x84\xff\0\0WAVEfmt \x80', 'latin1')
    const directory = logs({
      run: [
        [0, scalar('loss', 1)],
        [0, { tag: 'digits', tensor: tensor('28', '28', png, png) }],
        [1, { tag: 'digits', tensor: tensor('28', '28', png) }],
        [1, { tag: 'speech', tensor: { ...tensor(wav, 'a'), shape: [1, 2] } }],
      ],
    })
    const { code, stderr } = await trialscan('import', directory, '--out', place())
    expect([code, stderr.replace(/, in .*/, '')]).toEqual([
      0,
      'trialscan: 2 images left out: digits\ntrialscan: 1 audio clip left out: speech\ntrialscan: 1 run, 1 step, 1 tensor\n',
    ])
  })

  it('takes a run that is called like a mode for one of it', async () => {
    const directory = logs({ EVAL: [[3, scalar('loss', 1)]], other: [[3, scalar('loss', 1)]] })
    const of = async (path: string) => (await imported(path)).report.runs
    expect(await of(join(directory, 'EVAL'))).toEqual([{ run: '.', worker: 'worker_0', mode: 'EVAL' }])
    expect(await of(join(directory, 'other'))).toEqual([{ run: '.', worker: 'worker_0', mode: 'GLOBAL' }])
  })

  it('says where there is nothing to import', async () => {
    const [empty, hollow, out] = [place(), logs({ run: [] }), place()]
    mkdirSync(empty)
    for (const [path, message] of [
      [empty, /expected runs of TensorBoard, with event files named events.out.tfevents.…, got none/],
      [hollow, /its event files hold no scalars, histograms or tensors, so that no trial was written/],
    ] as const) {
      const { code, stderr } = await trialscan('import', path, '--out', out)
      expect([code, stderr]).toEqual([5, expect.stringMatching(message)])
    }
  })

  it('writes a trial, of what is selected', async () => {
    const directory = logs({
      a: [[0, scalar('loss', 1)]],
      b: [
        [0, scalar('loss', 2)],
        [7, scalar('acc', 3)],
      ],
    })
    const out = place()
    const { code, stderr, stdout } = await trialscan(
      ...['import', directory, '--out', out, '--worker', 'b', '--steps', '5:', '--checksums'],
    )
    expect([code, stdout, stderr]).toEqual([0, '', `trialscan: 1 run, 1 step, 1 tensor, in ${out}\n`])
    const trial = await createTrial(out)
    expect([trial.workersWithData(), trial.steps({ showIncompleteSteps: true }), trial.tensorNames()]).toEqual([
      ['b'],
      [7],
      ['acc'],
    ])
    await trial.close()
  })
})

it('reductions that were computed elsewhere are saved as the hook saves its own', async () => {
  const path = place()
  await using writer = await createWriter(path, { saveConfig: { saveInterval: 1 } })
  await writer.step()
  await writer.saveReductions('w', { mean: 0.5, abs_max: 2 }, { timestamp: 1_700_000_000 })
  expect(() => writer.saveReductions('v', { median: 1 } as never)).toThrow(
    /expected one of min, max, .*abs_l2, got "median"/,
  )
  expect(() => writer.saveReductions('v', {})).toThrow(UsageError)
  expect(() => writer.saveReductions('w', { mean: 1 })).toThrow(/expected one value a step/)
  await writer.close()
  const trial = await createTrial(path)
  for await (const row of trial.scan({ wallTimes: true })) {
    expect(row).toMatchObject({
      tensor: 'w',
      saved: true,
      reductions: { mean: 0.5, abs_max: 2 },
      wallTime: 1_700_000_000,
    })
  }
  await trial.close()
})

describe('an import', () => {
  it('takes nothing whose checksums are wrong for granted', async () => {
    const directory = logs({
      train: [
        [1, scalar('a', 1)],
        [2, scalar('a', 2)],
        [3, scalar('a', 3)],
      ],
    })
    const path = join(directory, 'train/events.out.tfevents.1700000000.host')
    const bytes = readFileSync(path)
    // Within the number of the second record.
    bytes[bytes.length - 6]! ^= 1
    writeFileSync(path, bytes)
    for (const options of [undefined, { checkLevel: undefined }]) {
      const report = await importTensorBoard(await opened(directory), place(), options)
      expect([report.tensors, report.problemCount]).toEqual([2, 1])
      expect(report.problems[0]).toMatchObject({ code: 'BadPayloadChecksum' })
    }
    const asked = await importTensorBoard(await opened(directory), place(), { checkLevel: 'minimal' })
    expect([asked.tensors, asked.problemCount]).toEqual([3, 0])
  })

  it('that fails leaves a trial that has not ended', async () => {
    const directory = logs({ train: [1, 2, 3].map(step => [step, scalar('a', step)] as const) })
    const stop = new AbortController()
    const source = await opened(directory)
    const out = place()
    const real = source.scan.bind(source)
    source.scan = (options?: ScanOptions) => {
      const scan = real(options)
      const rows = scan[Symbol.asyncIterator].bind(scan)
      scan[Symbol.asyncIterator] = async function* () {
        for await (const row of rows()) {
          if (row.step === 3) stop.abort(new Error('enough'))
          yield row
        }
      }
      return scan
    }
    await expect(importTensorBoard(source, out, { signal: stop.signal })).rejects.toThrow('enough')
    const left = await createTrial(out, { refresh: 'manual' })
    expect(left.loadedAllSteps).toBe(false)
    expect((await verifyTrial(out)).problems).toEqual([])
  })

  it('is refused where something is already, the runs themselves included', async () => {
    const directory = logs({ 'train/a': [[1, scalar('a', 1)]] })
    for (const [from, to] of [
      [join(directory, 'train/a'), directory],
      [directory, join(TRIALS, 'workers-4')],
    ] as const) {
      const { code, stderr } = await trialscan('import', from, '--out', to)
      expect(code).toBe(2)
      expect(stderr).toMatch(/expected a new or an empty directory, got one that has \w+ in it/)
    }
    await expect(importTensorBoard(directory as never, place())).rejects.toThrow(
      /importTensorBoard: expected a trial, as createTrial opens it, got "/,
    )
  })
})
