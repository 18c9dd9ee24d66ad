/** A catalog in columns: what is put in comes out, whatever it is, and what is alike is kept once. */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { int32Column } from '#dist/base/column.js'
import { FormatError, type GlobalStep } from '#dist/index.js'
import { Catalog } from '#dist/scan/catalog/catalog.js'
import { IndexColumns } from '#dist/scan/catalog/columns/index-columns.js'
import { NO_LIST, TensorLists } from '#dist/scan/catalog/columns/tensor-lists.js'
import { eventFilePath } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'

const step = (number: number) => number as GlobalStep
const place = (name: string, startByte = 0, byteLength = 100) => ({ name, startByte, byteLength })

it('a column holds what was put in, beyond what it began with', () => {
  const column = int32Column()
  for (let i = 0; i < 1000; i++) column.push(i * i)
  expect([column.length, column.at(0), column.at(999)]).toEqual([1000, 0, 998_001])
  expect([...column.numbers]).toEqual(Array.from({ length: 1000 }, (_, i) => i * i))
})

describe('lists of tensors', () => {
  const shape = { name: 'a', originalName: 'a', shape: [1, 2] }
  const lists = [
    { locations: [place('a')], shapes: [] },
    { locations: [place('a', 1)], shapes: [] },
    { locations: [place('a', 0, 101)], shapes: [] },
    { locations: [place('b')], shapes: [] },
    { locations: [{ ...place('a'), eventFile: 'events/x' }], shapes: [] },
    { locations: [place('a')], shapes: [shape] },
    { locations: [place('a')], shapes: [{ ...shape, originalName: 'b' }] },
    { locations: [place('a')], shapes: [{ ...shape, shape: [2, 1] }] },
    { locations: [], shapes: [shape] },
    { locations: [place('a'), place('a', 2 ** 40, 2 ** 41)], shapes: [] },
    { locations: [place('smdebug/reductions/mean/a'), place('a')], shapes: [] },
  ]

  it('are kept once each, and come out as they were', () => {
    const kept = new TensorLists()
    expect(kept.add([], [])).toBe(NO_LIST)
    const numbers = lists.map(({ locations, shapes }) => kept.add(locations, shapes))
    expect(new Set([NO_LIST, ...numbers]).size).toBe(1 + lists.length)
    const again = structuredClone(lists).map(({ locations, shapes }) => kept.add(locations, shapes))
    expect(again).toEqual(numbers)
    expect(kept.length).toBe(1 + lists.length)
    for (const [i, { locations, shapes }] of lists.entries()) {
      expect(kept.locations(numbers[i]!).map(one => ({ ...one }))).toEqual(locations)
      expect(kept.shapes(numbers[i]!)).toEqual(shapes)
    }
  })

  it('say of each tensor where its value, its reductions and its shape are', () => {
    const kept = new TensorLists()
    const locations = [place('a', 7), place('smdebug/reductions/mean/a', 8), place('b', 9), place('a', 10)]
    const tensors = kept.tensors(kept.add(locations, [shape]))
    expect([...tensors.keys()]).toEqual(['a', 'b'])
    const a = tensors.get('a')
    expect([a?.value?.startByte, a?.reductions.get('mean')?.startByte, a?.shape]).toEqual([10, 8, shape])
    expect([tensors.get('b')?.value?.startByte, tensors.get('b')?.shape]).toEqual([9, null])
  })

  it('of very many values answer as those of few do', () => {
    const kept = new TensorLists()
    const count = 70_000
    const random = uniform(7)
    const orders = [(i: number) => i, (i: number) => count - 1 - i]
    for (const order of orders) {
      const locations = Array.from({ length: count }, (_, i) => place(`layer_${order(i)}`, order(i) * 10, 10))
      const tensors = kept.tensors(kept.add(locations, []))
      expect(tensors).not.toBeInstanceOf(Map)
      expect(tensors.size).toBe(count)
      for (let i = 0; i < 1000; i++) {
        const number = Math.floor(random() * count)
        const { tensor, value, reductions, shape } = tensors.get(`layer_${number}`)!
        expect([tensor, value?.startByte, reductions.size, shape]).toEqual([`layer_${number}`, number * 10, 0, null])
      }
      expect([tensors.has('layer_x'), tensors.get(`layer_${count}`)]).toEqual([false, undefined])
      expect([...tensors.keys()].slice(0, 3)).toEqual([0, 1, 2].map(i => `layer_${order(i)}`))
      expect([...tensors].every(([name, { value }], i) => name === locations[i]!.name && value?.name === name)).toBe(
        true,
      )
    }
    // A name that comes twice is one tensor.
    const twice = Array.from({ length: count }, (_, i) => place(`layer_${i % (count - 1)}`, i, 10))
    const tensors = kept.tensors(kept.add(twice, []))
    expect([tensors.size, tensors.get('layer_0')?.value?.startByte]).toEqual([count - 1, count - 1])
  })
})

describe('index files', () => {
  const error = new FormatError('BadIndexFile', 'x', { url: 'x' })

  it('come out as they were put in', () => {
    const columns = new IndexColumns()
    const usual = {
      mode: 'TRAIN',
      modeStep: 3,
      eventFile: eventFilePath(5, 'w'),
      tensors: [place('a')],
      shapes: [],
    } as const
    const contents = [
      usual,
      { ...usual, eventFile: eventFilePath(6, 'w') },
      { ...usual, eventFile: eventFilePath(5, 'v') },
      { ...usual, eventFile: null, tensors: [] },
      { ...usual, eventFile: `./${usual.eventFile}`, mode: 'EVAL', modeStep: -1 },
      { ...usual, modeStep: 2 ** 50 },
    ] as const
    for (const content of contents) columns.add(step(5), 'w', content)
    const broken = columns.add(step(2 ** 50), 'v', error)
    for (const [row, content] of contents.entries()) {
      const { tensors, ...others } = columns.content(row) as typeof usual
      expect({ ...others, tensors: tensors.map(one => ({ ...one })) }).toEqual(content)
    }
    expect([columns.content(broken), columns.step(broken), columns.worker(broken)]).toEqual([error, 2 ** 50, 'v'])
  })

  it('stand in a catalog by step and worker, whatever the order in which they were read', async () => {
    const columns = new IndexColumns()
    const put = [3, 1, 2, 2 ** 40].flatMap(step =>
      ['worker_1', '/replica:0', 'worker_0'].map(worker => ({ step, worker })),
    )
    for (const { step: number, worker } of put) {
      const content = {
        mode: 'GLOBAL',
        modeStep: number,
        eventFile: 'events/x',
        tensors: [place('a')],
        shapes: [],
      } as const
      columns.add(step(number), worker, content)
    }
    const rows = Int32Array.from(put, (_, row) => row)
    const fault = put.findIndex(({ step, worker }) => step === 2 && worker === 'worker_0')
    const options = { numWorkers: null, isTornasole: false, ended: true, incompleteStepWindow: 1000 }
    const { workerSteps, byTensor } = await Catalog.of({ columns, rows, faults: new Map([[fault, error]]) }, options)
    const workers = ['/replica:0', 'worker_0', 'worker_1']
    const wanted = [1, 2, 3, 2 ** 40].flatMap(step => workers.map(worker => [step, worker]))
    expect([...workerSteps].map(({ step, worker }) => [step, worker])).toEqual(wanted)
    const at = workerSteps.before(2) + 1
    expect([workerSteps.at(at)?.error, workerSteps.at(at)?.tensors.size, workerSteps.at(at + 1)?.error]).toEqual([
      error,
      0,
      null,
    ])
    expect(byTensor.get('a')?.length).toBe(wanted.length - 1)
    expect(byTensor.get('a')?.globalSteps()).toEqual([1, 2, 3, 2 ** 40])
    expect([workerSteps.at(-1)?.step, workerSteps.at(wanted.length), workerSteps.stepAt(-1)]).toEqual([
      2 ** 40,
      undefined,
      undefined,
    ])
  })

  // Objects for each of them took a kilobyte.
  it('take few bytes each, though no two list the same', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const held = (): number => {
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const before = held()
    const count = 200_000
    const columns = new IndexColumns()
    for (let i = 0; i < count; i++) {
      const eventFile = eventFilePath(i, 'worker_0')
      columns.add(step(i), 'worker_0', {
        mode: 'TRAIN',
        modeStep: i,
        eventFile,
        tensors: [place('loss', i)],
        shapes: [],
      })
    }
    const rows = Int32Array.from({ length: count }, (_, row) => row)
    const options = { numWorkers: null, isTornasole: false, ended: true, incompleteStepWindow: 1000 }
    const { workerSteps, byTensor, steps } = await Catalog.of({ columns, rows, faults: new Map() }, options)
    expect(byTensor.get('loss')?.length).toBe(count)
    let bytes = 0
    for (const { tensors } of workerSteps) bytes += tensors.get('loss')?.value?.byteLength ?? 0
    expect([bytes, steps.length]).toEqual([100 * count, count])
    expect((held() - before) / count).toBeLessThan(300)
    expect(workerSteps.at(-1)?.eventFile).toBe(eventFilePath(count - 1, 'worker_0'))
  })
})
