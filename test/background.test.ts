/**
 * A trial of a running job keeps up with it by itself: loops that only ask getters end, nothing keeps the process alive,
 * what is held still stays as it is, and many open trials cost next to nothing.
 */

import { execFile } from 'node:child_process'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  AllZero,
  createTrial,
  evaluate,
  noRefresh,
  type RefreshMode,
  Rule,
  refresh,
  StoreError,
  type Trial,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { DirectoryWatcher } from '#dist/storage/local/watcher.js'
import { type Plot, watchAutoencoder } from '../examples/autoencoder-notebook.js'
import { type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { LiveWriter } from './support/live-writer.js'
import { whenLong } from './support/part.js'
import { rejectionOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const run = promisify(execFile)
const scratch = scratchDirectory('background')
const writers: LiveWriter[] = []
const trials: Trial[] = []
let count = 0

/** A job that runs, with a step, and its trial. */
async function start(mode: RefreshMode = 'auto'): Promise<{ writer: LiveWriter; directory: string; trial: Trial }> {
  const directory = join(scratch, String(count++))
  const writer = await LiveWriter.start(directory)
  writers.push(writer)
  await writer.step(0)
  const trial = await createTrial(directory, { refresh: mode })
  trials.push(trial)
  return { writer, directory, trial }
}

/** Asks getters until they say so, as a notebook does. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10)
}

afterEach(async () => {
  vi.restoreAllMocks()
  for (const writer of writers.splice(0)) writer.stop()
  for (const trial of trials.splice(0)) await trial.close()
})

describe('a loop that only asks getters', () => {
  it('ends when the job has', async () => {
    const { writer, trial } = await start()
    const seen: number[] = []
    void writer
      .step(1)
      .then(() => sleep(200))
      .then(() => writer.step(2))
      .then(() => writer.end())
    while (!trial.loadedAllSteps) {
      for (const step of trial.steps()) if (!seen.includes(step)) seen.push(step)
      await sleep(20)
    }
    expect([...new Set([...seen, ...trial.steps()])]).toEqual([0, 1, 2])
    expect(trial.tensor('loss').steps()).toEqual([0, 1, 2])
  })

  it('ends by looking again where the platform tells of nothing', async () => {
    vi.spyOn(LocalStore.prototype, 'watch').mockReturnValue({ changed: () => new Promise(() => {}), close() {} })
    const { writer, trial } = await start()
    await sleep(200)
    await writer.end()
    await until(() => trial.loadedAllSteps)
  })

  it.each(['value', 'shape', 'reductionValue', 'hasPassedStep', 'waitForSteps'] as const)(
    'ends where all it awaits is %s of what is known already',
    async call => {
      const { writer, trial } = await start()
      const loss = trial.tensor('loss')
      const asks = {
        value: () => loss.value(0),
        shape: () => loss.shape(0),
        reductionValue: () => loss.reductionValue(0, 'max'),
        hasPassedStep: () => trial.hasPassedStep(0),
        waitForSteps: () => trial.waitForSteps([0]),
      }
      const ended = writer.end()
      while (!trial.loadedAllSteps) await asks[call]()
      await ended
    },
  )

  it('that never awaits sees one state', async () => {
    const { writer, trial } = await start()
    await writer.step(1)
    await writer.end()
    const states = new Set<string>()
    for (const at = performance.now(); performance.now() - at < 300; ) {
      states.add(JSON.stringify([trial.steps(), trial.loadedAllSteps, trial.tensor('loss').steps()]))
    }
    expect(states.size).toBe(1)
    await until(() => trial.loadedAllSteps)
    expect(trial.steps()).toEqual([0, 1])
  })

  it('goes on for ever with refresh: manual, unless it refreshes', async () => {
    const { writer, trial } = await start('manual')
    await writer.step(1)
    await writer.end()
    await sleep(300)
    expect([trial.loadedAllSteps, trial.steps()]).toEqual([false, [0]])
    expect(await trial.refresh()).toBe(true)
    expect([trial.loadedAllSteps, trial.steps()]).toEqual([true, [0, 1]])
    expect(await rejectionOf(createTrial(scratch, { refresh: 'never' as 'manual' }))).toMatchObject({
      name: 'UsageError',
    })
  })

  it('is that of the autoencoder notebook, which ends', async () => {
    const directory = join(scratch, String(count++))
    const writer = await LiveWriter.start(directory)
    writers.push(writer)
    const fill = (size: number, value: number): number[] => Array(size).fill(value)
    const step = (global: number, modeStep: number): Promise<void> => {
      const float = { dtype: 'float32' as const }
      const tensors: StepTensor[] = [
        { name: 'convolutionalautoencoder0_input_1', ...float, shape: [2], values: [modeStep, 9] },
        {
          name: 'convolutionalautoencoder0_hybridsequential0_dense0_output_0',
          ...float,
          shape: [2, 3],
          values: [1, 2, 3, 4, 5, global],
        },
        { name: 'l2loss0_input_1', ...float, shape: [2, 1, 4, 4], values: fill(32, global) },
        ...(modeStep === 1
          ? []
          : [{ name: 'l2loss0_input_0', ...float, shape: [2, 1, 4, 4], values: fill(32, -global) }]),
      ]
      return writer.do({ do: 'step', step: global, workers: [0], mode: 'EVAL', modeStep, tensors })
    }
    const plots: Plot[] = []
    const lines: string[] = []
    const loop = watchAutoencoder(directory, plot => plots.push({ ...plot, labels: [...plot.labels] }), {
      waitMs: 20,
      pauseMs: 20,
      print: line => lines.push(line),
    })
    await sleep(100)
    await step(5, 0)
    while (plots.length < 1) await sleep(10)
    await writer.do({ do: 'step', step: 6, workers: [0], mode: 'TRAIN', modeStep: 0 })
    await step(7, 1)
    await step(9, 2)
    await writer.end()
    await loop
    expect(plots.map(({ step }) => step)).toEqual([0, 2])
    expect(plots.at(-1)).toMatchObject({ input: fill(16, 9), output: fill(16, -9) })
    expect(plots[0]!.tensors.slice(0, 2)).toEqual([
      [1, 2, 3],
      [4, 5, 5],
    ])
    expect(lines[0]).toBe('Waiting for tensors to become available...')
    expect(lines.slice(-2)).toEqual(['Tensor unavailable for step 1', 'Done'])
  })
})

describe('the process', () => {
  it('ends when it has nothing else to do, also with many running trials open', async () => {
    const { directory } = await start()
    const script = `
      const { createTrial } = await import('#dist/index.js')
      const trials = []
      for (let i = 0; i < 3; i++) trials.push(await createTrial(${JSON.stringify(directory)}))
      // Long enough that watchers and timers are there.
      await new Promise(done => setTimeout(done, 300))
      console.log(trials.map(trial => trial.loadedAllSteps).join())`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 })
    expect(stdout.trim()).toBe('false,false,false')
  })

  it('keeps no watcher and no timer of a trial that is closed, has ended, or is nobody’s any more', async () => {
    const made: DirectoryWatcher[] = []
    const { watch } = LocalStore.prototype
    vi.spyOn(LocalStore.prototype, 'watch').mockImplementation(function (this: LocalStore, directories) {
      const watcher = watch.call(this, directories) as DirectoryWatcher
      made.push(watcher)
      return watcher
    })
    const close = vi.spyOn(DirectoryWatcher.prototype, 'close')
    const list = vi.spyOn(LocalStore.prototype, 'list')
    const closed = await start()
    const ended = await start()
    await until(() => made.length === 2)
    expect(close).not.toHaveBeenCalled()
    await closed.trial.close()
    expect(close.mock.contexts).toHaveLength(1)
    await ended.writer.end()
    await until(() => ended.trial.loadedAllSteps)
    await until(() => close.mock.calls.length === 2)
    expect(new Set(close.mock.contexts)).toEqual(new Set(made))
    list.mockClear()
    await closed.writer.step(1)
    await sleep(300)
    expect(list).not.toHaveBeenCalled()
    // A trial that has ended when it is opened has none.
    await createTrial(ended.directory)
    await sleep(200)
    expect(made).toHaveLength(2)
  })

  it.each(whenLong)('lets go of a trial that nobody has any more', async () => {
    const { directory } = await start('manual')
    const script = `
      const { createTrial } = await import('#dist/index.js')
      const { LocalStore } = await import('#dist/storage/local/local-store.js')
      let looks = 0
      const { list } = LocalStore.prototype
      LocalStore.prototype.list = function (...all) { looks++; return list.apply(this, all) }
      await (async () => { await createTrial(${JSON.stringify(directory)}) })()
      await new Promise(done => setTimeout(done, 300))
      gc()
      await new Promise(done => setTimeout(done, 10))
      gc()
      looks = 0
      await new Promise(done => setTimeout(done, 2500))
      console.log(looks)`
    const { stdout } = await run(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
      timeout: 30_000,
    })
    expect(stdout.trim()).toBe('0')
  })

  it.skipIf(!existsSync('/proc/self/fd'))(
    'opens a hundred running trials at the cost of few descriptors and looks',
    async () => {
      const { directory } = await start('manual')
      const descriptors = (): number => readdirSync('/proc/self/fd').length
      const warm = await createTrial(directory)
      await sleep(200)
      const before = descriptors()
      const list = vi.spyOn(LocalStore.prototype, 'list')
      const openedAt = performance.now()
      const hundred = await Promise.all(Array.from({ length: 100 }, () => createTrial(directory)))
      list.mockClear()
      await sleep(1000)
      // A listing that is under way has one.
      expect(descriptors() - before).toBeLessThanOrEqual(8)
      // A listing each since the watchers are there, and one every two seconds.
      const looks = 1 + Math.floor((performance.now() - openedAt) / 2000)
      expect(list.mock.calls.length).toBeLessThanOrEqual(101 * looks)
      await Promise.all([warm, ...hundred].map(trial => trial.close()))
    },
  )
})

describe('while a trial is held still', () => {
  it('nothing changes for the work within, however deep, of several trials; others go on', async () => {
    const [a, b] = [await start(), await start()]
    const both = [a.trial, b.trial]
    const seen: string[] = []
    const see = (): void => void seen.push(JSON.stringify(both.map(trial => [trial.steps(), trial.loadedAllSteps])))
    await noRefresh(both, async () => {
      see()
      await a.writer.step(1)
      await noRefresh(b.trial, async () => {
        await b.writer.step(1)
        await b.writer.end()
        await sleep(300)
        see()
      })
      await sleep(200)
      see()
      expect(await rejectionOf(a.trial.tensor('loss').value(1))).toMatchObject({ name: 'StepNotYetAvailable' })
      // On purpose, for a while: what was found stays.
      await refresh(a.trial, async () => expect((await a.trial.tensor('loss').value(1)).data[0]).toBe(1))
      expect([a.trial.steps(), b.trial.steps()]).toEqual([[0, 1], [0]])
    })
    expect(new Set(seen)).toEqual(
      new Set([
        JSON.stringify([
          [[0], false],
          [[0], false],
        ]),
      ]),
    )
    await until(() => b.trial.loadedAllSteps && a.trial.steps().length === 2)
    await a.writer.step(2)
    await until(() => a.trial.steps().length === 3)
  })

  it('evaluate of what is there now judges no step that comes meanwhile', async () => {
    const { writer, trial } = await start()
    const judged: number[] = []
    class Slow extends Rule {
      override async invokeAtStep(step: number): Promise<boolean> {
        judged.push(step)
        await writer.step(step + 1)
        await sleep(300)
        return false
      }
    }
    const { complete } = await evaluate(new Slow(trial), { follow: false })
    expect([judged, complete]).toEqual([[0], false])
    await until(() => trial.steps().length === 2)
  })
})

it('several trials are refreshed at once', async () => {
  const [a, b] = [await start('manual'), await start('manual')]
  expect(await refresh([a.trial, b.trial])).toBe(false)
  await b.writer.step(1)
  expect(await refresh([a.trial, b.trial])).toBe(true)
  expect([a.trial.steps(), b.trial.steps()]).toEqual([[0], [0, 1]])
  await a.writer.step(1)
  expect(await refresh([a.trial, b.trial], () => a.trial.steps())).toEqual([0, 1])
  expect(await rejectionOf(refresh('a' as unknown as Trial))).toMatchObject({ name: 'UsageError' })
})

it('one load at a time: looks in the background and on purpose share it, and none is in vain', async () => {
  const { writer, trial } = await start()
  let [underWay, most] = [0, 0]
  const { list } = LocalStore.prototype
  vi.spyOn(LocalStore.prototype, 'list').mockImplementation(async function (this: LocalStore, path, options) {
    if (path.startsWith('index')) most = Math.max(most, ++underWay)
    await sleep(20)
    const found = await list.call(this, path, options)
    if (path.startsWith('index')) underWay--
    return found
  })
  for (let step = 1; step < 6; step++) {
    await writer.step(step)
    await Promise.all([trial.refresh(), trial.refresh(), sleep(30)])
    expect(trial.steps()).toHaveLength(step + 1)
  }
  expect(most).toBe(1)
})

it('an error in the background is one of the problems until a look succeeds, and of the next refresh', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  const { writer, trial, directory } = await start()
  const failing = vi
    .spyOn(LocalStore.prototype, 'list')
    .mockRejectedValue(new StoreError('Denied', 'permission denied', { url: directory }))
  await until(() => trial.problems.length > 0)
  expect(trial.problems).toMatchObject([{ code: 'Denied' }])
  expect(await rejectionOf(trial.refresh())).toMatchObject({ code: 'Denied' })
  expect([trial.steps(), (await trial.tensor('loss').value(0)).data[0]]).toEqual([[0], 0])
  failing.mockRejectedValue(new TypeError('a bug'))
  await writer.step(1)
  await until(() => trial.problems[0]?.code === 'Engine')
  failing.mockRestore()
  await writer.step(2)
  await until(() => trial.problems.length === 0)
  expect(trial.steps()).toEqual([0, 1, 2])
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})

it.each(['auto', 'manual'] as const)(
  'rule.invoke finds a step that was written after the trial was opened: %s',
  async mode => {
    const { writer, trial } = await start(mode)
    await writer.step(1)
    const seen: unknown[] = []
    class Seeing extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('loss', [step])
      }
      override async invokeAtStep(step: number): Promise<boolean> {
        seen.push((await this.reqTensors.get()[0]!.value(step)).data[0])
        return false
      }
    }
    await new Seeing(trial).invoke(1, { timeoutMs: 5000 })
    void writer.step(2)
    await new AllZero(trial, { tensor_regex: ['loss'] }).invoke(2, { timeoutMs: 5000 })
    expect([seen, trial.steps()]).toEqual([[1], [0, 1, 2]])
  },
)

it('directories that come later are watched, and of many only those that are written to', async () => {
  const directory = join(scratch, String(count++))
  const writer = new TrialWriter(directory)
  const tensors: StepTensor[] = [{ name: 'loss', dtype: 'float32', shape: [1], values: [1] }]
  for (let step = 0; step < 30_000; step += 1000) writer.step({ step, tensors })
  const watcher = new LocalStore({ kind: 'local', root: directory }).watch(['index', ''])
  const change = watcher.changed()
  writer.step({ step: 31_000, tensors })
  await change
  // In the directory that has just come, by a name that is no directory's.
  await sleep(100)
  const next = watcher.changed().then(() => watcher.changed())
  writer.step({ step: 31_001, tensors })
  await next
  watcher.close()
  renameSync(directory, `${directory}.away`)
})
