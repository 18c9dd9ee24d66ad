/**
 * Workers that are in different modes at one global step, as where only rank 0 evaluates: each counts the steps of a mode for
 * itself. What a trial answers is held against the plainest reading of what was written.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type GlobalStep, type Mode, type Trial, TrialscanError } from '#dist/index.js'
import { Catalog } from '#dist/scan/catalog/catalog.js'
import { IndexColumns } from '#dist/scan/catalog/columns/index-columns.js'
import { indexFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { uniform } from '../fixtures/random.js'
import { trialscan } from './cli/run.js'
import { isLong, part } from './support/part.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('modes-apart')
let count = 0

/** What a worker wrote at a global step. */
interface Written {
  readonly step: number
  readonly worker: string
  readonly mode: Mode
  readonly modeStep: number
  readonly tensors: readonly string[]
  /** Its index file can't be read. */
  readonly isBroken?: boolean
}

interface Layout {
  readonly written: readonly Written[]
  readonly numWorkers: number
  readonly ended: boolean
  readonly hasIndex: boolean
}

const MODES = ['GLOBAL', 'TRAIN', 'EVAL', 'PREDICT'] as const
const LETTERS = { T: 'TRAIN', E: 'EVAL', P: 'PREDICT', G: 'GLOBAL' } as const
const TENSORS = ['loss', 'accuracy'] as const

/** T, E, P: a step of that mode, numbered as the hook does; G: of none; `.`: nothing written; `!` behind: a broken index. */
function layoutOf(
  workers: readonly string[],
  { ended = true, hasIndex = true, resumedAt = -1 }: Partial<Omit<Layout, 'written'>> & { resumedAt?: number } = {},
): Layout {
  const written = workers.flatMap((steps, rank) => {
    const counts = new Map<string, number>()
    return [...steps.matchAll(/([TEPG.])(!?)/g)].flatMap(([, letter, broken], step): Written[] => {
      if (step === resumedAt) counts.clear()
      if (letter === '.') return []
      const mode = LETTERS[letter as keyof typeof LETTERS]
      const modeStep = mode === 'GLOBAL' ? step : (counts.get(mode) ?? 0)
      counts.set(mode, modeStep + 1)
      const tensors = mode === 'EVAL' ? TENSORS : (step + rank) % 3 === 2 ? ['loss', `of_${rank}`] : ['loss']
      return [{ step, worker: `worker_${rank}`, mode, modeStep, tensors, isBroken: broken === '!' }]
    })
  })
  return { written, numWorkers: workers.length, ended, hasIndex }
}

function write({ written, numWorkers, ended, hasIndex }: Layout): string {
  const directory = join(scratch, String(count++))
  const writer = new TrialWriter(directory, { numWorkers })
  for (const one of written) {
    const { step, mode, modeStep, worker } = one
    const tensors = one.tensors.map(name => ({
      name,
      dtype: 'float32' as const,
      shape: [1 + Number(worker.slice(7)), 1],
      values: Array.from({ length: 1 + Number(worker.slice(7)) }, () => numberIn(one, name)),
    }))
    writer.step({ step, mode, modeStep, worker, tensors })
    const index = join(directory, indexFilePath(step, worker))
    if (one.isBroken) writeFileSync(index, readFileSync(index).subarray(0, 30))
  }
  if (ended) writer.end()
  if (!hasIndex) rmSync(join(directory, 'index'), { recursive: true })
  return directory
}

/** No two records have the same. */
function numberIn({ step, worker }: Written, tensor: string): number {
  return step * 1000 + Number(worker.slice(7)) * 10 + tensor.length
}

/** The plainest reading of a layout: every answer is searched for in the list of what was written. */
class Oracle {
  readonly #layout: Layout
  readonly #written: readonly Written[]

  constructor(layout: Layout) {
    this.#layout = layout
    this.#written = layout.written.map((one): Written => {
      if (!one.isBroken) return one
      const others = layout.written.filter(other => other.step === one.step && !other.isBroken)
      const agree = others.length > 0 && others.every(({ mode, modeStep }) => same(mode, modeStep, others[0]!))
      const { mode, modeStep } = agree ? others[0]! : { mode: 'GLOBAL' as const, modeStep: one.step }
      return { ...one, mode, modeStep, tensors: [] }
    })
  }

  numbers(mode: Mode, tensor?: string): number[] {
    const own = this.#written.filter(one => mode === 'GLOBAL' || one.mode === mode)
    const having = own.filter(({ tensors }) => tensor === undefined || tensors.includes(tensor))
    return ascending(having.map(one => (mode === 'GLOBAL' ? one.step : one.modeStep)))
  }

  modes(): Mode[] {
    return [...new Set(this.#written.map(({ mode }) => mode))].filter(mode => mode !== 'GLOBAL').sort()
  }

  at(number: number, mode: Mode): Written[] {
    return this.#written.filter(one => (mode === 'GLOBAL' ? one.step === number : same(mode, number, one)))
  }

  isComplete(number: number, mode: Mode): boolean {
    const first = Math.min(...this.at(number, mode).map(({ step }) => step))
    if (this.#layout.ended) return first < Number.POSITIVE_INFINITY
    const workersAt = (step: number) => new Set(this.at(step, 'GLOBAL').map(({ worker }) => worker)).size
    const isPassed = this.numbers('GLOBAL').some(step => step >= first && workersAt(step) === this.#layout.numWorkers)
    if (mode === 'GLOBAL' || !isPassed) return isPassed
    const ofMode = this.#written.filter(one => one.mode === mode)
    const begun = ofMode.filter(({ step }) => step < first).map(({ worker }) => worker)
    return begun.every(worker => ofMode.some(one => one.worker === worker && one.modeStep >= number))
  }

  state(number: number, mode: Mode): string {
    if (this.at(number, mode).length > 0) return this.isComplete(number, mode) ? 'AVAILABLE' : 'NOT_YET_AVAILABLE'
    const isPassed = this.numbers(mode).some(other => other > number && this.isComplete(other, mode))
    return this.#layout.ended || isPassed ? 'UNAVAILABLE' : 'NOT_YET_AVAILABLE'
  }

  /** Whether a worker, or any, may still write what others have. */
  awaits(number: number, mode: Mode, worker?: string): boolean {
    const isKnown = worker === undefined || Number(worker.slice(7)) < this.#layout.numWorkers
    const hasWritten = this.at(number, mode).some(one => one.worker === worker)
    return !this.isComplete(number, mode) && isKnown && !hasWritten
  }

  /** The record that is meant, or the code of the error. */
  record(tensor: string, number: number, mode: Mode, worker?: string): Written | string {
    const at = this.at(number, mode)
    if (at.length === 0) return this.state(number, mode) === 'UNAVAILABLE' ? 'StepUnavailable' : 'StepNotYetAvailable'
    const all = at.filter(({ tensors }) => tensors.includes(tensor))
    const own = all.filter(one => worker === undefined || one.worker === worker)
    const first = own.map(({ worker }) => worker).sort()[0]
    const found = own.findLast(one => one.worker === first && one.step === Math.max(...stepsOf(own, first)))
    if (found) return found
    const steps = at.map(({ step }) => step)
    const broken = this.#written.find(
      one => one.isBroken && steps.includes(one.step) && (worker ?? one.worker) === one.worker,
    )
    if (broken) return 'BadIndexFile'
    if (this.awaits(number, mode, worker)) return 'StepNotYetAvailable'
    return worker !== undefined && all.length > 0 ? 'InvalidWorker' : 'TensorUnavailableForStep'
  }
}

function same(mode: Mode, modeStep: number, one: Written): boolean {
  return one.mode === mode && one.modeStep === modeStep
}

function stepsOf(written: readonly Written[], worker: string | undefined): number[] {
  return written.filter(one => one.worker === worker).map(({ step }) => step)
}

function ascending(numbers: Iterable<number>): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

async function codeOr<T>(work: () => Promise<T> | T): Promise<T | string> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof TrialscanError)) throw error
    return error.code
  }
}

/** Asks everything that there is to ask, and compares. */
async function compare(layout: Layout): Promise<Trial> {
  const oracle = new Oracle(layout)
  const trial = await createTrial(write(layout))
  const names = [...new Set(layout.written.filter(({ isBroken }) => !isBroken).flatMap(({ tensors }) => tensors))]
  const workers = [...new Set(layout.written.map(({ worker }) => worker))].sort()
  const complete = (mode: Mode, numbers: readonly number[]) => numbers.filter(step => oracle.isComplete(step, mode))
  const absent = (step: number, mode: Mode, worker: string) =>
    oracle.awaits(step, mode, worker) ? 'StepNotYetAvailable' : 'InvalidWorker'
  expect([trial.modes(), trial.tensorNames()]).toEqual([oracle.modes(), names.sort()])
  for (const mode of MODES) {
    const numbers = oracle.numbers(mode)
    expect(trial.steps({ mode, showIncompleteSteps: true })).toEqual(numbers)
    expect(trial.steps({ mode })).toEqual(complete(mode, numbers))
    const ofMode = layout.written.filter(one => !one.isBroken && (mode === 'GLOBAL' || one.mode === mode))
    expect(trial.tensorNames({ mode })).toEqual([...new Set(ofMode.flatMap(({ tensors }) => tensors))].sort())
    for (let step = 0; step <= Math.max(...oracle.numbers('GLOBAL')) + 1; step++) {
      const at = oracle.at(step, mode)
      const place = `${mode} ${step}`
      expect(await trial.hasPassedStep(step, mode), place).toBe(oracle.state(step, mode))
      const told = await codeOr(() => trial.tensorNames({ step, mode }))
      if (at.length > 0) expect(told, place).toEqual([...new Set(at.flatMap(({ tensors }) => tensors))].sort())
      else expect(told, place).toMatch(/^Step/)
      for (const worker of [undefined, ...workers, 'worker_9']) {
        const own = at.filter(one => (worker ?? at.map(({ worker }) => worker).sort()[0]) === one.worker)
        const global = await codeOr(() => trial.globalStep(mode, step, worker === undefined ? {} : { worker }))
        if (own.length > 0) expect(global, place).toBe(Math.max(...own.map(({ step }) => step)))
        else expect(global, place).toBe(at.length > 0 ? absent(step, mode, worker!) : oracle.record('', step, mode))
        if (mode !== 'GLOBAL') continue
        const options = worker === undefined ? {} : { worker }
        const modeStep = await codeOr(() => [trial.mode(step, options), trial.modeStep(step, options)])
        const [first] = worker === undefined ? [...at.filter(({ isBroken }) => !isBroken), ...at] : own
        if (at.length === 0) expect(modeStep, place).toBe(oracle.record('', step, mode))
        else if (first === undefined) expect(modeStep, place).toBe(absent(step, mode, worker!))
        else if (first.isBroken && worker !== undefined) expect(modeStep, place).toBe('BadIndexFile')
        else expect(modeStep, place).toEqual([first.mode, first.modeStep])
      }
    }
    for (const name of names) await compareTensor(trial, oracle, name, mode, workers)
  }
  return trial
}

async function compareTensor(trial: Trial, oracle: Oracle, name: string, mode: Mode, workers: readonly string[]) {
  const tensor = trial.tensor(name)
  const numbers = oracle.numbers(mode, name)
  const complete = numbers.filter(step => oracle.isComplete(step, mode))
  expect(tensor.steps({ mode, showIncompleteSteps: true })).toEqual(numbers)
  expect(tensor.steps({ mode })).toEqual(complete)
  expect(tensor.prevSteps(3, 2, mode)).toEqual(complete.filter(step => step <= 3).slice(-2))
  expect(tensor.prevSteps(3, undefined, mode)).toEqual(complete.filter(step => step <= 3))
  for (const worker of [undefined, ...workers, 'worker_9']) {
    const options = { mode, ...(worker !== undefined && { worker }) }
    const place = `${name} of ${worker}`
    for (let step = 0; step <= Math.max(...oracle.numbers('GLOBAL')) + 1; step++) {
      const record = oracle.record(name, step, mode, worker)
      const at = `${place} at ${mode} ${step}`
      if (typeof record === 'string') {
        expect(await codeOr(() => tensor.value(step, options)), at).toBe(record)
        expect(await codeOr(() => tensor.reductionValue(step, 'max', options)), at).toBe(record)
        expect(await codeOr(() => tensor.reductionValues(step, options)), at).toBe(record)
        expect(await codeOr(() => tensor.shape(step, options)), at).toBe(record)
      } else {
        expect((await tensor.value(step, options)).data[0], at).toBe(numberIn(record, name))
        expect(await tensor.reductionValue(step, 'max', options), at).toBe(numberIn(record, name))
        expect(await tensor.shape(step, options), at).toEqual([1 + Number(record.worker.slice(7)), 1])
        const having = oracle.at(step, mode).filter(({ tensors }) => tensors.includes(name))
        expect(tensor.workers(step, { mode }), at).toEqual([...new Set(having.map(({ worker }) => worker))].sort())
      }
    }
    const records = complete.flatMap(step => {
      const record = oracle.record(name, step, mode, worker)
      return typeof record === 'string' ? [] : [[step, record] as const]
    })
    const values = [...(await tensor.values(options))].map(([step, { data }]) => [step, data[0]])
    expect(values, place).toEqual(records.map(([step, record]) => [step, numberIn(record, name)]))
    const shapes = records.map(([step, { worker }]) => [step, [1 + Number(worker.slice(7)), 1]])
    expect([...(await tensor.shapes(options))], place).toEqual(shapes)
  }
}

describe('one worker evaluates while the other trains', () => {
  const layout = layoutOf(['TTETT', 'TTTTT'])

  it('gives each worker its own steps', async () => {
    const trial = await compare(layout)
    const loss = trial.tensor('loss')
    const value = async (step: number, mode: Mode, worker: string) =>
      (await loss.value(step, { mode, worker })).data[0]! as number
    expect(await value(2, 'TRAIN', 'worker_0')).toBe(numberIn(layout.written[3]!, 'loss'))
    expect(await value(2, 'TRAIN', 'worker_1')).toBe(numberIn(layout.written[7]!, 'loss'))
    await expect(value(0, 'EVAL', 'worker_1')).rejects.toMatchObject({
      code: 'InvalidWorker',
      fields: { known: ['worker_0'] },
    })
    expect([trial.modes(), trial.steps({ mode: 'TRAIN' }), trial.steps({ mode: 'EVAL' })]).toEqual([
      ['EVAL', 'TRAIN'],
      [0, 1, 2, 3, 4],
      [0],
    ])
    expect([trial.mode(2), trial.mode(2, { worker: 'worker_1' })]).toEqual(['EVAL', 'TRAIN'])
    expect([trial.modeStep(4), trial.modeStep(4, { worker: 'worker_1' })]).toEqual([3, 4])
    expect([trial.globalStep('TRAIN', 2), trial.globalStep('TRAIN', 2, { worker: 'worker_1' })]).toEqual([3, 2])
  })

  it('agrees with the rows of a scan', async () => {
    const trial = await createTrial(write(layout))
    for await (const { tensor, step, mode, modeStep, worker, reductions } of trial.scan({ reductions: ['max'] })) {
      expect([trial.mode(step, { worker }), trial.modeStep(step, { worker })]).toEqual([mode, modeStep])
      expect(trial.globalStep(mode, modeStep, { worker })).toBe(step)
      const at = trial.tensor(tensor!)
      expect((await at.value(modeStep, { mode, worker })).data[0]).toBe(reductions.max)
      expect((await at.value(step, { worker })).data[0]).toBe(reductions.max)
    }
  })

  it('waits, while the job runs, for the worker that is behind in a mode', async () => {
    const trial = await compare({ ...layout, ended: false })
    expect([trial.steps(), trial.steps({ mode: 'TRAIN' }), trial.steps({ mode: 'EVAL' })]).toEqual([
      [0, 1, 2, 3, 4],
      [0, 1, 2, 3],
      [0],
    ])
    const waiting = trial.waitForSteps([4], { mode: 'TRAIN', timeoutMs: 0 })
    await expect(waiting).rejects.toThrow('steps 4 (written by worker_1 only)')
  })

  it('follows both modes', async () => {
    const trial = await createTrial(write(layout))
    const followed = async (mode: Mode) => {
      const steps: number[] = []
      for await (const step of trial.follow({ mode })) steps.push(step)
      return steps
    }
    expect(await followed('TRAIN')).toEqual([0, 1, 2, 3, 4])
    expect(await followed('EVAL')).toEqual([2])
    expect(await followed('PREDICT')).toEqual([])
  })
})

describe('the command line, where only worker_0 evaluates', () => {
  const directory = write(layoutOf(['TTETT', 'TTTTT']))

  it('ls has the global steps of all workers', async () => {
    const { stdout } = await trialscan('ls', directory, '--json')
    const { steps } = JSON.parse(stdout)
    expect(steps.TRAIN).toMatchObject({ numbers: [0, 1, 2, 3, 4], global_numbers: [0, 1, 2, 3, 4] })
    expect(steps.EVAL).toMatchObject({ numbers: [0], global_numbers: [2] })
  })

  it.each([
    ['0:3', [], '1 step of TRAIN: mode steps 2 are global steps 3; for'],
    ['3:5', [], null],
    ['0:3', ['--worker', 'worker_0'], '1 step of TRAIN: mode steps 2 are global steps 3; for'],
    ['0:3', ['--worker', 'worker_1'], null],
  ])('scan --mode TRAIN --steps %s %j says what it leaves out', async (steps, more, left) => {
    const { stderr } = await trialscan('scan', directory, '--mode', 'TRAIN', '--steps', steps, ...more)
    if (left === null) expect(stderr).toBe('')
    else expect(stderr).toContain(left)
  })
})

describe('an index file with a fault', () => {
  const meta = (worker: string, step: number, directory: string, change: Record<string, unknown>) => {
    const path = join(directory, indexFilePath(step, worker))
    const file = JSON.parse(readFileSync(path, 'utf8'))
    writeFileSync(path, JSON.stringify({ ...file, ...change, meta: { ...file.meta, ...(change.meta as object) } }))
  }

  it.each([
    ['no event file', { meta: { event_file_name: '' } }, 'UnsafePath'],
    ['an event file outside the trial', { meta: { event_file_name: '../x' } }, 'UnsafePath'],
    ['a place that is none', { tensor_payload: [{ tensorname: 'loss', start_idx: -1, length: 1 }] }, 'BadIndexFile'],
  ])('keeps its mode and step: %s', async (_, change, code) => {
    const directory = write(layoutOf(['TTETT', 'TTTTT']))
    meta('worker_0', 2, directory, change)
    const trial = await createTrial(directory)
    expect([trial.modes(), trial.steps({ mode: 'EVAL' }), trial.mode(2), trial.modeStep(2)]).toEqual([
      ['EVAL', 'TRAIN'],
      [0],
      'EVAL',
      0,
    ])
    expect([trial.mode(2, { worker: 'worker_0' }), trial.globalStep('EVAL', 0, { worker: 'worker_0' })]).toEqual([
      'EVAL',
      2,
    ])
    await expect(trial.tensor('loss').value(0, { mode: 'EVAL' })).rejects.toMatchObject({ code })
    expect(trial.problems).toMatchObject([{ code }])
  })

  it('is none where no event file is needed', async () => {
    const directory = write(layoutOf(['TTETT', 'TTTTT']))
    const shapes = [{ tensorname: 'loss', originalname: 'loss', shape: [4] }]
    meta('worker_0', 2, directory, { meta: { event_file_name: '' }, tensor_payload: [], shape_payload: shapes })
    const trial = await createTrial(directory)
    expect([trial.problems, trial.steps({ mode: 'EVAL' })]).toEqual([[], [0]])
    expect(await trial.tensor('loss').shape(0, { mode: 'EVAL' })).toEqual([4])
  })
})

it('what is complete once remains so, whatever is written next', async () => {
  const random = uniform(7)
  for (let round = 0; round < 60; round++) {
    const numWorkers = 2 + below(random, 2)
    const { written } = layoutOf(Array.from({ length: numWorkers }, () => letters(random, 8)))
    const known = new Map<Mode, readonly number[]>()
    // Each worker writes in the order of its steps, and none waits for another.
    const left = Array.from({ length: numWorkers }, (_, rank) => written.filter(one => one.worker === `worker_${rank}`))
    const columns = new IndexColumns()
    while (left.some(own => own.length > 0)) {
      const { step, mode, modeStep, worker } = pick(
        random,
        left.filter(own => own.length > 0),
      ).shift()!
      columns.add(step as GlobalStep, worker, { mode, modeStep, eventFile: null, tensors: [], shapes: [] })
      const rows = Int32Array.from({ length: columns.length }, (_, row) => row)
      const completeness = { numWorkers, ended: false, incompleteStepWindow: 1000 }
      const { steps } = await Catalog.of({ columns, rows, faults: new Map() }, { ...completeness, isTornasole: false })
      for (const mode of MODES) {
        const complete = steps.numbers(mode, false)
        expect(complete).toEqual(expect.arrayContaining([...(known.get(mode) ?? [])]))
        known.set(mode, complete)
      }
    }
  }
})

describe('whatever the workers do', () => {
  const layouts: readonly {
    readonly name: string
    readonly workers: readonly string[]
    readonly resumedAt?: number
  }[] = [
    { name: 'each is in a mode of its own', workers: ['TTTT', 'EEEE'] },
    { name: 'one evaluates at first', workers: ['EETTTT', 'TTTTTT'] },
    { name: 'three take turns', workers: ['TTETTET', 'TETTTTT', 'TTTTPPT'] },
    { name: 'one of three stops', workers: ['TTTTTT', 'TTT...', 'TTETET'] },
    { name: 'one leaves steps out', workers: ['T.T.TE', 'TTTTTE'] },
    { name: 'one knows no modes', workers: ['GGGG', 'TTET'] },
    { name: 'a training is resumed', workers: ['TTTTTT', 'TTETTT'], resumedAt: 3 },
    { name: 'a training is resumed by one', workers: ['TTT...TTT', 'TTETTTTTE'], resumedAt: 6 },
    { name: 'an index file is broken, and the others agree', workers: ['TTTT!TT', 'TTTTTT', 'TTTTT.'] },
    { name: 'an index file is broken, and the others do not agree', workers: ['TT!TT', 'TTTE', 'TETT'] },
    { name: 'the index files of one are broken', workers: ['TTET', 'T!T!T!T!'] },
    { name: 'all index files of a step are broken', workers: ['TT!T', 'TT!E'] },
    { name: 'the first is behind', workers: ['TTE...', 'TTTTTT'] },
  ]

  describe.each([
    ['an ended job', true, true],
    ['a running job', false, true],
    ['an ended job without index', true, false],
    ['a running job without index', false, false],
  ])('%s', (_, ended, hasIndex) => {
    // Quick: some of each, others of the others.
    const turn = 2 * Number(ended) + Number(hasIndex)
    it.each(part(layouts, (_, i) => i % 13 === 3 * turn))('$name', async ({ workers, resumedAt = -1 }) => {
      const given = hasIndex ? workers : workers.map(letters => letters.replaceAll('!', ''))
      await compare(layoutOf(given, { ended, hasIndex, resumedAt }))
    })
  })

  it('holds for random ones', async () => {
    const random = uniform(1)
    for (let round = 0; round < (isLong ? 8 : 1); round++) {
      const workers = Array.from({ length: 1 + below(random, 3) }, () => letters(random, 7, '!'))
      const options = { ended: below(random, 2) === 0, resumedAt: below(random, 2) === 0 ? 4 : -1 }
      await compare(layoutOf(['TETT', ...workers], options))
    }
  })
})

/** Mostly training. */
function letters(random: () => number, length: number, broken = ''): string {
  return Array.from({ length }, () => {
    const letter = pick(random, ['T', 'T', 'T', 'E', 'E', 'P', 'G', '.'])
    return letter !== '.' && below(random, 8) === 0 ? letter + broken : letter
  }).join('')
}

function below(random: () => number, limit: number): number {
  return Math.floor(random() * limit)
}

function pick<T>(random: () => number, of: readonly T[]): T {
  return of[below(random, of.length)]!
}
