/** What a report tells of samples: their classes, where they lie, and the elements of small tensors. */

import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { namesInFirst } from '#dist/compare/names/tensor-map.js'
import { createTrial, embed, reportHtml, type Trial } from '#dist/index.js'
import { placedAway } from '#dist/view/samples/away.js'
import { placedByAll } from '#dist/view/samples/embed.js'
import { pca, seeded, tsne } from '#dist/view/samples/projections.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeSamples } from './samples.js'

const scratch = scratchDirectory('samples')
const xgb = join(ROOT, 'fixtures/trials/xgb-cancer')
const trials: Trial[] = []
afterAll(() => Promise.all(trials.map(trial => trial.close())))

async function open(path: string): Promise<Trial> {
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual' })
  trials.push(trial)
  return trial
}

// biome-ignore lint/suspicious/noExplicitAny: what a page is given is JSON.
type Data = any
const dataOf = (html: string): Data =>
  JSON.parse(/<script id="data" type="application\/json">(.*?)<\/script>/s.exec(html)![1]!)

const ROWS = 3
/** Two clusters far from each other, three samples each of a class, in ten dimensions. */
const clusters = (each = 20) => {
  const random = seeded(7)
  return Array.from({ length: ROWS * each }, (_, i) =>
    Array.from({ length: 10 }, (_, axis) => (axis === i % ROWS ? 20 : 0) + random()),
  )
}

/** The share of points whose nearest neighbour is of the same cluster. */
function purity(points: readonly (readonly [number, number])[]): number {
  const same = points.filter(([x, y], i) => {
    const others = points.map(([a, b], j) => (i === j ? Number.POSITIVE_INFINITY : Math.hypot(a - x, b - y)))
    return others.indexOf(Math.min(...others)) % ROWS === i % ROWS
  })
  return same.length / points.length
}

describe('projections', () => {
  it.each([
    ['PCA', pca],
    ['t-SNE', tsne],
    ['UMAP', (rows: number[][]) => embed(rows, { method: 'umap' })],
  ] as const)('%s keeps clusters apart, and comes to the same each time', async (_, project) => {
    const rows = clusters()
    const points = await project(rows)
    expect(points).toHaveLength(rows.length)
    expect(points.flat().every(Number.isFinite)).toBe(true)
    expect(purity(points)).toBe(1)
    expect(await project(rows)).toEqual(points)
  })

  it('PCA has the distances of the plane that points lie in', () => {
    const random = seeded(3)
    const plane = Array.from({ length: 30 }, () => [10 * random(), random()] as const)
    // Turned into five dimensions, and moved.
    const rows = plane.map(([a, b]) => [a * 0.6 + 5, a * 0.8 - 2, b * 0.8, -b * 0.6 + 1, 3])
    const points = pca(rows)
    for (const i of [0, 7, 12]) {
      for (const j of [3, 20]) {
        const [p, q] = [points[i]!, points[j]!]
        const distance = Math.hypot(p[0] - q[0], p[1] - q[1])
        expect(distance).toBeCloseTo(Math.hypot(plane[i]![0] - plane[j]![0], plane[i]![1] - plane[j]![1]), 6)
      }
    }
  })

  it.each([2, 3, 4])('of %i points are points', count => {
    const rows = clusters().slice(0, count)
    for (const points of [pca(rows), tsne(rows)]) {
      expect(points).toHaveLength(count)
      expect(points.flat().every(Number.isFinite)).toBe(true)
    }
  })

  it('are a call of the library, with a perplexity and iterations, for arrays and for values', async () => {
    const rows = clusters(5)
    expect(await embed(rows)).toEqual(tsne(rows))
    expect(await embed(rows, { method: 'pca' })).toEqual(pca(rows))
    expect(await embed(rows, { perplexity: 3, iterations: 100 })).toEqual(tsne(rows, 3, 100))
    expect(await embed({ data: Float64Array.from(rows.flat()), shape: [15, 10] })).toEqual(tsne(rows))
    for (const [values, options, message] of [
      [rows, { method: 'mds' }, /tsne, umap, pca/],
      [rows, { perplexity: 0 }, /a number from 1 on/],
      [[[1], [Number.NaN]], {}, /finite numbers/],
      [{ data: [1, 2], shape: [2] }, {}, /first axis is that of the samples/],
    ] as const) {
      expect(await rejectionOf(embed(values as never, options as never))).toHaveProperty(
        'message',
        expect.stringMatching(message),
      )
    }
  })

  it('on a thread come to what they are on this one, and end where they are aborted', async () => {
    const rows = Array.from({ length: 12 }, (_, i) => Float64Array.of(i, (i * 7) % 5, i % 3))
    expect(await placedAway(rows, { iterations: 5 })).toEqual(await placedByAll(rows, { iterations: 5 }))
    const reason = new Error('enough')
    const controller = new AbortController()
    const placing = placedAway(rows, { iterations: 100_000 }, controller.signal)
    controller.abort(reason)
    await expect(placing).rejects.toBe(reason)
    await expect(placedAway(rows, {}, controller.signal)).rejects.toBe(reason)
  })

  it('of the same point many times are finite', () => {
    const rows = Array.from({ length: 12 }, () => [1, 2, 3])
    expect(tsne(rows).flat().every(Number.isFinite)).toBe(true)
  })
})

describe('classes', () => {
  it('count how each label was predicted, at each step', async () => {
    const trial = await open(xgb)
    const [{ classes, steps }] = dataOf((await reportHtml(trial)).html).trials
    expect(classes).toMatchObject({ labels: 'labels', predictions: 'predictions', classes: [0, 1] })
    expect(classes.steps.map(({ step }: Data) => steps[step])).toEqual(trial.steps())
    for (const { step, counts } of classes.steps) {
      const [labels, predictions] = await Promise.all(
        ['labels', 'predictions'].map(async name =>
          Array.from((await trial.tensor(name).value(steps[step])).data as Float32Array, Math.round),
        ),
      )
      const expected = [0, 0, 0, 0]
      for (const [i, label] of labels!.entries()) expected[label * 2 + predictions![i]!]!++
      expect(counts).toEqual(expected)
    }
  })

  it('are those of the largest of several numbers, of each label', async () => {
    const directory = join(scratch, 'classes')
    writeSamples(directory)
    const [{ classes }] = dataOf((await reportHtml(await open(directory))).html).trials
    // Labels 0, 1, 2, 0; predicted 0, 1, 1, 2.
    expect(classes.classes).toEqual([0, 1, 2])
    expect(classes.steps[0].counts).toEqual([1, 0, 1, 0, 1, 0, 0, 1, 0])
  })

  it.each([
    ['several numbers', [9, 0, Number.NaN, Number.NaN, 5, Number.NaN, 0, 9]],
    ['one number', [0.2, Number.NaN, Number.POSITIVE_INFINITY, 0.9]],
  ])('of a sample with %s that are not finite are none', async (name, predictions) => {
    const directory = join(scratch, name)
    writeSamples(directory, { labels: [0, 1, 0, 1], predictions })
    const [{ classes }] = dataOf((await reportHtml(await open(directory))).html).trials
    expect(classes.classes).toEqual([0, 1])
    expect(classes.steps[0]).toMatchObject({ counts: [1, 0, 0, 1], undecided: 2 })
  })

  it('of a regression are residuals', async () => {
    const directory = join(scratch, 'regression')
    writeSamples(directory, { labels: [0.5, 1.25, 2], predictions: [1, 1, 2.5] })
    const [{ classes }] = dataOf((await reportHtml(await open(directory))).html).trials
    expect(classes.classes).toBeNull()
    expect(classes.steps[0]).toMatchObject({ labels: [0.5, 1.25, 2], residuals: [0.5, -0.25, 0.5] })
  })

  it('of many samples: some are shown, the error is that of all', async () => {
    const directory = join(scratch, 'many-samples')
    const labels = Array.from({ length: 3000 }, (_, i) => i + 0.5)
    writeSamples(directory, { labels, predictions: labels.map((label, i) => label + (i < 2000 ? 0 : 3)) })
    const [{ classes }] = dataOf((await reportHtml(await open(directory))).html).trials
    const [{ residuals, error, decided }] = classes.steps
    expect([residuals.length, error, decided]).toEqual([2000, Math.sqrt(3), 3000])
  })
})

it('classes and embeddings of many steps have all of those of evaluation, and say what is left out', async () => {
  const directory = join(scratch, 'many-steps')
  const writer = new TrialWriter(directory)
  const float = (name: string, shape: readonly number[], values: readonly number[]) => ({
    name,
    dtype: 'float32' as const,
    shape,
    values,
  })
  for (let step = 0; step < 90; step++) {
    const mode = step % 10 === 9 ? 'EVAL' : 'TRAIN'
    const tensors = [
      float('labels', [4], [0, 1, 1, 0]),
      float('predictions', [4], [0.2, 0.8, 0.9, 0.1]),
      float('bottleneck', [4, 2], [0, 1, step, 2, 3, 5, 1, 1]),
    ]
    writer.step({ step, mode, modeStep: step, tensors })
  }
  writer.end()
  const [{ classes, embedding, ridges, mode, modes }] = dataOf(
    (await reportHtml(await open(directory), { embed: 'bottleneck' })).html,
  ).trials
  const evaluations = (steps: readonly number[]) => steps.filter(step => modes[mode[step]] === 'EVAL').length
  for (const [{ steps, thinned }, most] of [
    [classes, 60],
    [embedding, 24],
  ]) {
    expect(steps).toHaveLength(most)
    expect(evaluations(steps.map(({ step }: Data) => step))).toBe(9)
    expect(thinned).toEqual([
      { mode: 'TRAIN', kept: most - 9, of: 81 },
      { mode: 'EVAL', kept: 9, of: 9 },
    ])
  }
  for (const { steps } of ridges) expect(evaluations(steps)).toBe(9)
})

it('units of a tanh are counted where an output is NaN, and not where all are', async () => {
  const directory = join(scratch, 'tanh')
  const writer = new TrialWriter(directory)
  const nan = Number.NaN
  const tensor = (name: string, values: readonly number[]) =>
    ({ name, dtype: 'float32', shape: [2, 2], values }) as const
  writer.step({
    step: 0,
    tensors: [tensor('tanh0_output_0', [nan, 0, 1, -0.5]), tensor('tanh1_output_0', [nan, nan, nan, nan])],
  })
  writer.end()
  const [{ units }] = dataOf((await reportHtml(await open(directory))).html).trials
  expect(units).toMatchObject([{ tensor: 'tanh0_output_0', isOff: 'saturated', units: 2 }])
})

it('trees with a column of more than 1000 nodes are left out', async () => {
  const directory = join(scratch, 'long-column')
  const writer = new TrialWriter(directory)
  for (const [step, length] of [1000, 1001].entries()) {
    const tensor = (name: string, values: readonly number[]) =>
      ({ name: `trees/${name}`, dtype: 'float32', shape: [values.length], values }) as const
    const short = ['ID', 'Feature', 'Split', 'Yes', 'No', 'Gain'].map(name => tensor(name, [0]))
    writer.step({ step, tensors: [...short, tensor('Cover', new Array<number>(length).fill(1))] })
  }
  writer.end()
  const [{ trees }] = dataOf((await reportHtml(await open(directory))).html).trials
  expect(trees.map(({ step }: Data) => step)).toEqual([0])
})

describe('an embedding', () => {
  let embedding: Data
  let directory: string
  beforeAll(async () => {
    directory = join(scratch, 'embedding')
    writeSamples(directory)
    const { html } = await reportHtml(await open(directory), { embed: 'bottleneck' })
    embedding = dataOf(html).trials[0].embedding
  })

  it('has the samples of each step, their labels, and images beside reconstructions', () => {
    expect(embedding).toMatchObject({
      tensor: 'bottleneck_output_0',
      labels: 'labels',
      images: 'Net_input_0',
      reconstructions: 'Net_output_0',
    })
    expect(embedding.steps).toHaveLength(2)
    for (const { points, labels, images, reconstructions } of embedding.steps) {
      for (const method of ['tsne', 'umap', 'pca']) expect(points[method]).toHaveLength(4)
      expect(labels).toEqual([0, 1, 2, 0])
      expect(images).toMatchObject({ count: 4, height: 2, width: 3 })
      // From each image's least element to its largest.
      expect([...inflateRawSync(Buffer.from(images.pixels.base64, 'base64')).subarray(0, 6)]).toEqual([
        0, 51, 102, 153, 204, 255,
      ])
      expect(reconstructions.count).toBe(4)
    }
  })

  it("has images whose channels come last, and the model's predictions beside them", async () => {
    const place = join(scratch, 'channels-last')
    const writer = new TrialWriter(place)
    // Of two channels, the first of which is shown; the other is noise.
    const values = Array.from({ length: 2 * 5 * 3 * 2 }, (_, i) => (i % 2 === 0 ? i : -i))
    const images = { dtype: 'float32', shape: [2, 5, 3, 2], values } as const
    const points = { name: 'points', dtype: 'float32', shape: [2, 2], values: [0, 1, 2, 3] } as const
    writer.step({ step: 0, tensors: [points, { name: 'inputs', ...images }, { name: 'predictions', ...images }] })
    writer.end()
    const { html } = await reportHtml(await open(place), { embed: 'points' })
    const { steps, ...names } = dataOf(html).trials[0].embedding
    expect(names).toMatchObject({ images: 'inputs', reconstructions: 'predictions' })
    for (const { width, height, pixels } of [steps[0].images, steps[0].reconstructions]) {
      expect({ width, height }).toEqual({ width: 3, height: 5 })
      const grey = [...inflateRawSync(Buffer.from(pixels.base64, 'base64'))]
      expect(grey.slice(0, 15)).toEqual(Array.from({ length: 15 }, (_, i) => Math.floor((i * 255) / 14)))
    }
  })

  it('finds what the autoencoder notebook names, and places samples of several steps together', async () => {
    const place = join(scratch, 'notebook')
    const writer = new TrialWriter(place)
    const float = (name: string, shape: readonly number[], value: (i: number) => number) => ({
      name,
      dtype: 'float32' as const,
      shape,
      values: Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => value(i)),
    })
    for (let step = 0; step < 3; step++) {
      writer.step({
        step,
        mode: 'EVAL',
        modeStep: step,
        tensors: [
          float('convolutionalautoencoder0_input_1', [6], i => i % 3),
          float('convolutionalautoencoder0_hybridsequential0_dense0_output_0', [6, 2], i =>
            i < 2 ? 1 : i * (step + 1),
          ),
          float('convolutionalautoencoder0_hybridsequential0_input_0', [6, 1, 4, 4], i => i),
          float('convolutionalautoencoder0_hybridsequential0_output_0', [6, 2], i => i),
          float('l2loss0_input_1', [6, 1, 4, 4], i => i),
          float('l2loss0_input_0', [6, 1, 4, 4], i => i + step),
        ],
      })
    }
    writer.end()
    const asked = { embed: 'convolutionalautoencoder0_hybridsequential0_dense0_output_0' }
    const of = async (options = {}) =>
      dataOf((await reportHtml(await open(place), { ...asked, ...options })).html).trials[0].embedding
    const { steps, ...names } = await of()
    expect(names).toMatchObject({
      labels: 'convolutionalautoencoder0_input_1',
      images: 'l2loss0_input_1',
      reconstructions: 'l2loss0_input_0',
    })
    expect(steps.map(({ pool, points }: Data) => [pool, points.tsne.length])).toEqual([
      [{ samples: 18, steps: 3 }, 6],
      [{ samples: 18, steps: 3 }, 6],
      [{ samples: 18, steps: 3 }, 6],
    ])
    // Samples that are the same at every step lie at the same point.
    for (const { points } of steps) expect(points.pca[0]).toEqual(steps[0].points.pca[0])
    const other = await of({ perplexity: 2, iterations: 50 })
    expect(other.steps[0].points.tsne).not.toEqual(steps[0].points.tsne)
  })

  it.each([
    [{ embed: 'nosuch' }, /no tensor is called "nosuch"/],
    [{ embed: 'Net_' }, /there are "Net_input_0", "Net_output_0"/],
    [{ embed: 'loss' }, /has no samples to show as points: its shape is \[1\]/],
    [{ labels: 'labels' }, /expected embed beside labels/],
  ])('of %j is refused', async (options, message) => {
    const trial = await open(directory)
    expect(((await rejectionOf(reportHtml(trial, options))) as Error).message).toMatch(message)
  })
})

describe('the elements of small tensors', () => {
  it('are there to the last bit, at the last step among others', async () => {
    const trial = await open(join(ROOT, 'fixtures/trials/cnn-raw-and-reductions'))
    const [view] = dataOf((await reportHtml(trial)).html).trials
    const ofWeight = view.elements.filter(
      ({ series }: Data) => view.tensors[view.series[series].tensor].name === 'CNN_fc1.weight',
    )
    expect(ofWeight.map(({ step }: Data) => view.steps[step])).toContain(trial.steps().at(-1))
    for (const { step, shape, numbers } of ofWeight) {
      const value = await trial.tensor('CNN_fc1.weight').value(view.steps[step])
      expect(shape).toEqual(value.shape)
      const bytes = inflateRawSync(Buffer.from(numbers.base64, 'base64'))
      const joined = Buffer.alloc(bytes.length)
      for (let i = 0; i < numbers.length; i++)
        for (let b = 0; b < 4; b++) joined[i * 4 + b] = bytes[b * numbers.length + i]!
      expect(joined).toEqual(Buffer.from(value.bytes))
    }
  })
})

describe('a map of tensors', () => {
  it('has names, and patterns with groups', () => {
    const first = ['module.fc.weight', 'module.fc.bias', 'loss', 'other']
    const names = namesInFirst({ 'module\\.(.*)': 'net/$1', loss: 'Loss:0' }, first)
    expect([...names]).toEqual([
      ['net/fc.weight', 'module.fc.weight'],
      ['net/fc.bias', 'module.fc.bias'],
      ['Loss:0', 'loss'],
    ])
    expect(() => namesInFirst({ '(': 'x' }, first)).toThrow(/expected a name or a pattern in the map, got "\("/)
  })

  it('gives the tensors of the second trial the names of the first', async () => {
    const [one, other] = ['one', 'other'].map(name => join(scratch, name))
    for (const [path, prefix] of [
      [one!, 'module.'],
      [other!, 'net.'],
    ] as const) {
      const writer = new TrialWriter(path)
      writer.step({ step: 0, tensors: [{ name: `${prefix}fc.weight`, dtype: 'float32', shape: [2], values: [1, 2] }] })
      writer.end()
    }
    const { html } = await reportHtml([await open(one!), await open(other!)], { map: { 'module\\.(.*)': 'net.$1' } })
    expect(dataOf(html).trials.map(({ tensors }: Data) => tensors[0].name)).toEqual([
      'module.fc.weight',
      'module.fc.weight',
    ])
  })
})
