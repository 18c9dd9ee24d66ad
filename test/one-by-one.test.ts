/**
 * Values, reductions and shapes that are asked for one by one, as a loop over steps does: what that costs (instances of the
 * core, reads and bytes, counted and not timed), what is remembered and when it is forgotten, and that answers are those
 * of a scan.
 */

import { cpSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { allclose, createTrial, EngineError, REDUCTIONS, type ReductionBase, type Trial } from '#dist/index.js'
import { MAX_REMEMBERED, Remembered } from '#dist/scan/catalog/remembered.js'
import { InlineRunner } from '#dist/scan/runner/inline.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { eventFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { bitsOf } from './support/bits.js'
import { fixtureTrial } from './support/golden.js'
import { rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('one-by-one')
const BASES = ['min', 'max', 'mean', 'std', 'variance', 'sum', 'prod', 'l1', 'l2'] as const
const steps = Array.from({ length: 10 }, (_, step) => step)
let directory: string
let count = 0

/** Ten steps of a small tensor and a larger one. */
function write(to: string, first = 0): void {
  const writer = new TrialWriter(to)
  for (const step of steps) {
    const values = Array.from({ length: 25_000 }, (_, i) => Math.sin(first + step + i))
    writer.step({
      step,
      tensors: [
        { name: 'small', dtype: 'float32', shape: [4], values: values.slice(0, 4), reductions: { l1: 7 + step } },
        { name: 'large', dtype: 'float32', shape: [values.length], values },
        { name: 'saved', reductions: { mean: step, max: 2, l2: 5 } },
      ],
    })
  }
  writer.end()
}

beforeAll(() => write(join(scratch, 'trial')))

afterEach(() => vi.restoreAllMocks())

/** A trial of its own. */
async function open(): Promise<Trial> {
  directory = join(scratch, String(count++))
  cpSync(join(scratch, 'trial'), directory, { recursive: true })
  return createTrial(directory)
}

interface Cost {
  readonly instances: number
  readonly jobs: number
  readonly reads: number
  readonly bytes: number
}

/** What the calls of a loop cost. */
async function cost(work: () => Promise<unknown>): Promise<Cost> {
  const { Instance } = WebAssembly
  let instances = 0
  WebAssembly.Instance = new Proxy(Instance, {
    construct(target, args, to) {
      instances++
      return Reflect.construct(target, args, to)
    },
  })
  const read = vi.spyOn(LocalStore.prototype, 'readInto')
  const run = vi.spyOn(InlineRunner.prototype, 'run')
  try {
    await work()
    const bytes = read.mock.results.reduce((sum, { value }) => sum + (value as number), 0)
    return { instances, jobs: run.mock.calls.length, reads: read.mock.calls.length, bytes }
  } finally {
    WebAssembly.Instance = Instance
    read.mockRestore()
    run.mockRestore()
  }
}

async function eachStep(call: (step: number) => Promise<unknown>): Promise<void> {
  for (const step of steps) await call(step)
}

describe('values that are asked for together', () => {
  it('fail one by one', async () => {
    const trial = await open()
    const path = join(directory, eventFilePath(3, 'worker_0'))
    writeFileSync(path, readFileSync(path).subarray(0, 40))
    const settled = await Promise.allSettled(steps.map(step => trial.tensor('small').value(step)))
    expect(settled.map(({ status }) => status)).toEqual(steps.map(step => (step === 3 ? 'rejected' : 'fulfilled')))
    expect(settled[3]).toMatchObject({ reason: { code: 'TruncatedRecord', fields: { tensor: 'small' } } })
  })

  it('may each unfold to the limit', async () => {
    const dir = join(scratch, 'unfolded')
    const writer = new TrialWriter(dir)
    const tensors = ['a', 'b', 'c'].map(name => {
      return { name, dtype: 'float32', shape: [1000], values: [1, 2], place: 'packed' } as const
    })
    writer.step({ step: 0, tensors })
    writer.end()
    const trial = await createTrial(dir)
    const read = (unfoldLimit: number) =>
      Promise.all(['a', 'b', 'c'].map(name => trial.tensor(name).value(0, { unfoldLimit })))
    expect((await read(4000)).map(({ data }) => data.length)).toEqual([1000, 1000, 1000])
    expect(await rejectionOf(read(3999))).toMatchObject({ code: 'ValueTooLarge' })
  })

  it('are read alone once their job has failed as a whole', async () => {
    const trial = await open()
    const expected = await trial.tensor('small').values()
    const run = vi.spyOn(InlineRunner.prototype, 'run')
    run.mockRejectedValueOnce(new EngineError('broken')).mockRejectedValueOnce(new EngineError('broken'))
    const values = await Promise.all(steps.map(step => trial.tensor('small').value(step)))
    expect(new Map(values.map((value, step) => [step, value]))).toEqual(expected)
    expect(run).toHaveBeenCalledTimes(2 + steps.length)
  })
})

describe('reductions that are asked for together', () => {
  const ask = (trial: Trial) => steps.map(step => trial.tensor('large').reductionValue(step, 'mean'))

  it('fail one by one', async () => {
    const trial = await open()
    const expected = await Promise.all(ask(trial))
    await trial.close()
    const path = join(directory, eventFilePath(3, 'worker_0'))
    writeFileSync(path, readFileSync(path).subarray(0, 40))
    const settled = await Promise.allSettled(ask(trial))
    expect(settled.map(one => (one.status === 'fulfilled' ? one.value : 'rejected'))).toEqual(
      expected.map((mean, step) => (step === 3 ? 'rejected' : mean)),
    )
    expect(settled[3]).toMatchObject({ reason: { code: 'TruncatedRecord', fields: { tensor: 'large' } } })
  })

  it('are read in smaller jobs once theirs has failed as a whole', async () => {
    const trial = await open()
    const expected = await Promise.all(ask(trial))
    await trial.close()
    const run = vi.spyOn(InlineRunner.prototype, 'run')
    // Twice as one job, and twice its first half, which is then halved.
    for (let i = 0; i < 4; i++) run.mockRejectedValueOnce(new EngineError('broken'))
    expect(await Promise.all(ask(trial))).toEqual(expected)
    expect(run).toHaveBeenCalledTimes(4 + 3)
  })

  it('in jobs that all fail fail alone', async () => {
    const trial = await open()
    vi.spyOn(InlineRunner.prototype, 'run').mockRejectedValue(new EngineError('broken'))
    const settled = await Promise.allSettled(ask(trial))
    for (const [step, one] of settled.entries())
      expect(one).toMatchObject({ reason: { code: 'Engine', fields: { step } } })
  })
})

describe('a loop', () => {
  it.each(['small', 'large'])(
    'over reductions of a %s tensor makes no instance, and reads what value reads',
    async name => {
      const tensor = (await open()).tensor(name)
      await tensor.value(0)
      const ofValue = await cost(() => eachStep(step => tensor.value(step)))
      expect(ofValue).toMatchObject({ instances: 0, jobs: 10, reads: 10 })
      expect(await cost(() => eachStep(step => tensor.reductionValue(step, 'mean')))).toEqual(ofValue)
    },
  )

  it('over shapes, saved reductions and values that are compared makes none either', async () => {
    const trial = await open()
    const [large, saved] = [trial.tensor('large'), trial.tensor('saved')]
    const first = await large.value(0)
    allclose(first, first)
    expect(await cost(() => eachStep(step => large.shape(step)))).toMatchObject({ instances: 0, jobs: 10 })
    expect(await cost(() => eachStep(step => saved.reductionValues(step)))).toMatchObject({ instances: 0, jobs: 10 })
    const compared = cost(() => eachStep(async step => allclose(first, await large.value(step))))
    expect(await compared).toMatchObject({ instances: 0, jobs: 10, reads: 10 })
  })

  it('whose values are asked for together makes one job of them', async () => {
    const trial = await open()
    const [small, large] = [trial.tensor('small'), trial.tensor('large')]
    const one = []
    for (const step of steps) one.push(await small.value(step), await large.value(step))
    const together = () => Promise.all(steps.flatMap(step => [small.value(step), large.value(step)]))
    expect(await cost(together)).toMatchObject({ instances: 0, jobs: 1, reads: 10 })
    expect(await together()).toEqual(one)
  })

  it('makes one instance in the life of a process', async () => {
    const { execFileSync } = await import('node:child_process')
    const script = `
      let instances = 0
      WebAssembly.Instance = new Proxy(WebAssembly.Instance, {
        construct(...all) { instances++; return Reflect.construct(...all) },
      })
      const { allclose, createTrial, mergeMoments } = await import('#dist/index.js')
      const trial = await createTrial(${JSON.stringify(join(scratch, 'trial'))})
      const tensor = trial.tensor('large')
      for (const step of tensor.steps()) {
        await tensor.reductionValue(step, 'mean')
        await tensor.shape(step)
        allclose(await tensor.value(step), await tensor.value(step))
        for await (const { moments } of trial.scan({ tensors: 'large', steps: { from: step, to: step + 1 } })) mergeMoments([moments])
      }
      console.log(instances)`
    const stdout = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect(Number(stdout)).toBe(1)
  })

  it('over reductions asked for at once reads them at once, in the order of the files', async () => {
    const tensor = (await open()).tensor('small')
    const asked = cost(() => Promise.all(steps.flatMap(step => BASES.map(name => tensor.reductionValue(step, name)))))
    // The l1 of each step was saved, which is a record of its own.
    expect(await asked).toMatchObject({ instances: 0, jobs: 1, reads: 10 })
  })

  it('of several lanes at once reads a step of all of them at once', async () => {
    const trial = await open()
    const lanes = ['small', 'large'].map(async name => {
      for (const step of steps) await trial.tensor(name).reductionValue(step, 'max')
    })
    expect(await cost(() => Promise.all(lanes))).toMatchObject({ jobs: 10 })
  })
})

describe('what was asked for once', () => {
  it('is remembered: with a small tensor all of its reductions, of a large one those that were computed', async () => {
    const trial = await open()
    const [small, large] = [trial.tensor('small'), trial.tensor('large')]
    const ask = (name: ReductionBase, abs = false) =>
      eachStep(async step => {
        await small.reductionValue(step, name, { abs })
        await large.reductionValue(step, name, { abs })
      })
    expect(await cost(() => ask('mean'))).toMatchObject({ jobs: 20, reads: 20 })
    expect(await cost(() => ask('mean'))).toEqual({ instances: 0, jobs: 0, reads: 0, bytes: 0 })
    expect(await cost(() => ask('sum'))).toMatchObject({ jobs: 0 })
    expect(await cost(() => ask('max'))).toMatchObject({ jobs: 10, reads: 10 })
    expect(await cost(() => ask('max', true))).toMatchObject({ jobs: 0 })
  })

  it('is remembered where it was saved', async () => {
    const saved = (await open()).tensor('saved')
    expect(await cost(() => eachStep(step => saved.reductionValues(step)))).toMatchObject({ jobs: 10 })
    expect(await cost(() => eachStep(step => saved.reductionValues(step)))).toMatchObject({ jobs: 0 })
    expect(await cost(() => saved.reductionValue(3, 'max'))).toMatchObject({ jobs: 0 })
    expect([await saved.reductionValue(3, 'max'), await saved.reductionValue(3, 'mean')]).toEqual([2, 3])
  })

  it('is not what another check level told', async () => {
    const tensor = (await open()).tensor('small')
    await tensor.reductionValue(0, 'mean')
    expect(await cost(() => tensor.reductionValue(0, 'mean', { checkLevel: 'full' }))).toMatchObject({ jobs: 1 })
    expect(await cost(() => tensor.reductionValue(0, 'mean', { checkLevel: 'full' }))).toMatchObject({ jobs: 0 })
  })

  it('is forgotten when its file has changed, and with the trial', async () => {
    const trial = await open()
    const tensor = trial.tensor('large')
    const ask = () => Promise.all(steps.map(step => tensor.reductionValue(step, 'mean')))
    const before = await ask()
    // The same lengths at the same places, so that the index files are the same.
    write(directory, 5)
    const after = await ask()
    expect(after).toEqual([...before.slice(5), ...after.slice(5)])
    expect(after).not.toEqual(before)
    await trial.close()
    expect(await cost(ask)).toMatchObject({ jobs: 1 })
  })

  it('is no error: what could not be read is read again', async () => {
    const trial = await open()
    const tensor = trial.tensor('large')
    const path = join(directory, 'events/000000000004/000000000004_worker_0.tfevents')
    renameSync(path, `${path}.away`)
    expect(await rejectionOf(tensor.reductionValue(4, 'mean'))).toMatchObject({ code: 'TensorUnavailableForStep' })
    renameSync(`${path}.away`, path)
    const mean = await tensor.reductionValue(4, 'mean')
    expect(mean).toBe((await rowsOf(trial, { tensors: 'large', steps: { from: 4, to: 5 } }))[0]!.reductions.mean)
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, 1000))
    expect(await rejectionOf(tensor.reductionValue(4, 'mean'))).toMatchObject({ name: 'FormatError' })
    writeFileSync(path, bytes)
    expect(await tensor.reductionValue(4, 'mean')).toBe(mean)
  })

  it('leaves others on the thread their turns', async () => {
    const tensor = (await open()).tensor('small')
    await tensor.reductionValue(0, 'mean')
    let isOver = false
    setTimeout(() => {
      isOver = true
    }, 20)
    let calls = 0
    while (!isOver && calls < 1_000_000) {
      await tensor.reductionValue(0, 'mean')
      calls++
    }
    expect(isOver).toBe(true)
  })

  it('is bounded: what was asked for last stays', () => {
    const remembered = new Remembered()
    const stamp = Float64Array.of(1, 2, Number.NaN)
    for (let i = 0; i < MAX_REMEMBERED; i++) remembered.set(String(i), stamp, { mean: i })
    expect(remembered.get('0', stamp.slice())).toEqual({ mean: 0 })
    remembered.set('one more', stamp, { mean: -1 })
    expect(remembered.get('0', stamp)).toEqual({ mean: 0 })
    expect(remembered.get('1', stamp)).toBeUndefined()
    expect(remembered.get('2', stamp)).toEqual({ mean: 2 })
    expect(remembered.get('2', Float64Array.of(1, 3, Number.NaN))).toBeUndefined()
    expect(remembered.get('2', stamp)).toBeUndefined()
  })

  it('forgets the eldest, one by one, also once it has forgotten all', () => {
    const remembered = new Remembered()
    const stamp = Float64Array.of(1, 2, 3)
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 3 * MAX_REMEMBERED; i++) {
        remembered.set(String(i), stamp, { mean: i })
        // Every tenth is asked for again, so that it outlives its neighbours.
        const asked = i - MAX_REMEMBERED / 2
        if (asked >= 0 && asked % 10 === 0) remembered.get(String(asked), stamp)
      }
      const last = 3 * MAX_REMEMBERED - 1
      const known = Array.from({ length: last + 1 }, (_, i) => i).filter(i => remembered.get(String(i), stamp))
      expect(known).toHaveLength(MAX_REMEMBERED)
      // What was asked for last: of those that were asked for again, the last so many, else the last that were told.
      const isAgain = (i: number): boolean => i % 10 === 0 && i + MAX_REMEMBERED / 2 <= last
      const askedAt = (i: number): number => (isAgain(i) ? i + MAX_REMEMBERED / 2 + 0.5 : i)
      const all = Array.from({ length: last + 1 }, (_, i) => i).sort((a, b) => askedAt(b) - askedAt(a))
      expect(new Set(known)).toEqual(new Set(all.slice(0, MAX_REMEMBERED)))
      remembered.clear()
      expect(remembered.get(String(last), stamp)).toBeUndefined()
    }
  })
})

describe('the event file of a call', () => {
  const eventFile = (): string => join(directory, eventFilePath(0, 'worker_0'))

  it.runIf(process.platform === 'linux')('is closed with the call', async () => {
    const opened = (): number =>
      readdirSync('/proc/self/fd').filter(file => {
        try {
          return readlinkSync(`/proc/self/fd/${file}`) === eventFile()
        } catch {
          return false // the listing's own
        }
      }).length
    const trial = await open()
    await trial.tensor('small').value(0)
    expect(opened()).toBe(0)
    await trial.tensor('large').reductionValue(0, 'mean')
    expect(opened()).toBe(0)
    await Promise.all([trial.tensor('small').value(0), trial.tensor('large').value(0)])
    expect(opened()).toBe(0)
  })

  it('is the one of that name at each call', async () => {
    const trial = await open()
    const tensor = trial.tensor('small')
    const before = await tensor.value(0)
    const other = join(scratch, `other-${count}`)
    write(other, 1)
    renameSync(join(other, eventFilePath(0, 'worker_0')), eventFile())
    const after = await tensor.value(0)
    expect([before.data[0], after.data[0]]).toEqual([0, Math.fround(Math.sin(1))])
    expect(await tensor.reductionValue(0, 'max')).toBe(Math.max(...(after.data as Float32Array)))
    writeFileSync(eventFile(), '')
    await expect(tensor.value(0)).rejects.toMatchObject({ name: 'FormatError' })
    rmSync(eventFile())
    await expect(tensor.value(0)).rejects.toMatchObject({ name: 'TensorUnavailableForStep' })
  })
})

describe.each(['edge-dtypes', 'cnn-raw-and-reductions', 'dtypes', 'workers-4'])('of %s', name => {
  it('the answers one by one are those of a scan, to the last bit, also when they are asked for again', async () => {
    const trial = await createTrial(fixtureTrial(name).directory, { requireCollections: false })
    const asked: [unknown, () => Promise<unknown>][] = []
    for (const row of await rowsOf(trial)) {
      if (row.tensor === null || row.error) continue
      const tensor = trial.tensor(row.tensor)
      const isSaved = row.saved ? new Set<string>() : new Set((await savedAt(trial, row.tensor, row)).keys())
      for (const reduction of REDUCTIONS) {
        const value = row.reductions[reduction]
        if (value === undefined || isSaved.has(reduction)) continue
        const abs = reduction.startsWith('abs_')
        const base = (abs ? reduction.slice(4) : reduction) as ReductionBase
        asked.push([value, () => tensor.reductionValue(row.step, base, { abs, worker: row.worker })])
      }
    }
    expect(asked.length).toBeGreaterThan(20)
    for (const [, call] of asked) await call()
    const [wanted, got]: [string[], string[]] = [[], []]
    for (const [value, call] of asked) {
      wanted.push(bitsOf(value))
      got.push(bitsOf(await call()))
    }
    expect(got).toEqual(wanted)
  })
})

function savedAt(trial: Trial, tensor: string, { step, worker }: { step: number; worker: string }) {
  return trial.tensor(tensor).reductionValues(step, { worker })
}
