/** Trainings that save to S3, to a server that is as slow, and fails as, a real one can't be asked to. */

import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createTrial,
  createWriter,
  type TrialWriter,
  UsageError,
  verifyTrial,
  type WriterOptions,
} from '#dist/index.js'
import { answerLost, FaultyS3, failWith } from '../support/faulty-s3.js'

const PATH = 's3://bucket/trial'

let s3: FaultyS3
beforeEach(async () => {
  s3 = await FaultyS3.start()
})
afterEach(() => s3.stop())

const begin = (options: WriterOptions = {}): Promise<TrialWriter> => {
  return createWriter(PATH, { saveConfig: { saveInterval: 1 }, s3: s3.options, ...options })
}

async function expectSteps(steps: readonly number[]): Promise<void> {
  const report = await verifyTrial(PATH, { deep: true, s3: s3.options, threads: 0 })
  expect(report.problems).toEqual([])
  const trial = await createTrial(PATH, { s3: s3.options, threads: 0 })
  expect(trial.steps()).toEqual(steps)
  for (const step of steps) expect((await trial.tensor('x').value(step)).data[0]).toBe(step)
  await trial.close()
}

/** Saves a step. */
async function save(writer: TrialWriter): Promise<number> {
  const step = await writer.step()
  await writer.save('x', step)
  return step
}

describe('two writers of one worker', () => {
  it('at once: one has it, and the others are refused', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 6 }, () => begin()))
    const [writer, ...more] = tries.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    expect(more).toEqual([])
    for (const one of tries) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(UsageError)
    await save(writer!)
    await writer!.close()
    await expectSteps([0])
  })

  it('the second is refused after the first has ended without a word, and told what can be done; another worker is not', async () => {
    const first = await begin({ numWorkers: 2 })
    await save(first)
    await first.flush()
    // As after a crash: nobody closes it.
    const before = new Map(s3.objects)
    await expect(begin({ numWorkers: 2 })).rejects.toThrow(
      /^s3:\/\/bucket\/trial: expected no part of worker_0 yet, got one: write to another place, or as another worker$/,
    )
    expect(s3.objects).toEqual(before)
    const second = await begin({ worker: 'worker_1', numWorkers: 2 })
    await save(second)
    await second.close()
    await expectSteps([0])
  })
})

describe('a writer whose first request has lost its answer', () => {
  it('is told that it may have begun itself, and what can be done', async () => {
    let isLeft = true
    s3.writeFaultOf = what => {
      if (what !== 'PUT' || !isLeft) return undefined
      isLeft = false
      return answerLost
    }
    const path = `${PATH}/collections/000000000/worker_0_collections.json`
    const message = `${path}: it is there after 2 attempts to write it, one of which may have done so although it seemed to fail: if no other writer has begun here, remove it`
    await expect(begin()).rejects.toThrow(message)
    s3.objects.clear()
    const writer = await begin()
    await save(writer)
    await writer.close()
    await expectSteps([0])
  })
})

describe('a store that is slower than the training', () => {
  /** A writer of two steps that are being written for as long as it is held. */
  const held = async (options: WriterOptions) => {
    const writer = await begin(options)
    const waiting: (() => void)[] = []
    s3.writeFaultOf = () => (_, serve) => waiting.push(serve)
    for (let i = 0; i < 2; i++) await save(writer)
    const release = () => {
      s3.writeFaultOf = undefined
      for (const serve of waiting) serve()
    }
    return { writer, release }
  }

  it('is waited for', async () => {
    const { writer, release } = await held({})
    const step = save(writer)
    expect(await Promise.race([step, sleep(60, 'still waiting')])).toBe('still waiting')
    release()
    expect(await step).toBe(2)
    await writer.close()
    expect(writer.droppedSteps).toEqual([])
    await expectSteps([0, 1, 2])
  })

  it('makes it drop steps, if it is told so, and say which', async () => {
    const { writer, release } = await held({ whenSlow: 'drop' })
    for (const step of [2, 3]) {
      expect(await save(writer)).toBe(step)
      expect(writer.shouldSave('y')).toBe(false)
    }
    expect(writer.droppedSteps).toEqual([2, 3])
    release()
    await writer.flush()
    expect(await save(writer)).toBe(4)
    await writer.close()
    expect(writer.droppedSteps).toEqual([2, 3])
    await expectSteps([0, 1, 4])
  })
})

it('a store that takes 100 ms for each request: what waits to be written is bounded, however much is saved', async () => {
  s3.writeFaultOf = () => (_, serve) => void setTimeout(serve, 100)
  const writer = await begin({ queueByteLength: 4 << 20 })
  const arrived = (): number => {
    const parts = [...s3.uploads.values()].flatMap(upload => [...upload.values()])
    return [...s3.objects.values(), ...parts].reduce((sum, { length }) => sum + length, 0)
  }
  const [long, short] = [new Float32Array(1 << 19), new Float32Array(1 << 14)]
  let [saved, most] = [0, 0]
  for (let step = 0; step < 8; step++) {
    await writer.step()
    for (let i = 0; i < 4; i++) await writer.save(`long${i}`, long)
    for (let i = 0; i < 64; i++) await writer.save(`short${i}`, short)
    saved += 4 * long.byteLength + 64 * short.byteLength
    most = Math.max(most, saved - arrived())
  }
  await writer.close()
  expect(saved - arrived()).toBeLessThanOrEqual(0)
  // Two steps that have ended, and the one that is saved.
  expect(most).toBeLessThan((3 * saved) / 8 + (1 << 20))
})

describe('a store that refuses', () => {
  it('ends the training, with the reason', async () => {
    const writer = await begin()
    await save(writer)
    await writer.flush()
    s3.writeFaultOf = () => failWith(403, 'AccessDenied')
    await expect(
      (async () => {
        for (let i = 0; i < 4; i++) await save(writer)
      })(),
    ).rejects.toThrow(/s3:\/\/bucket\/trial\/.*denied/i)
    await expect(writer.close()).rejects.toThrow(/denied/i)
    await expectSteps([0])
  })

  it('lets it go on without being saved, if it is told so, and says why', async () => {
    const writer = await begin({ whenFailing: 'stop' })
    await save(writer)
    await writer.flush()
    s3.writeFaultOf = () => failWith(403, 'AccessDenied')
    for (let i = 0; i < 4; i++) await save(writer)
    await writer.close()
    expect(writer.failure).toMatchObject({ name: 'StoreError', code: 'Denied' })
    expect(writer.shouldSave('x')).toBe(false)
    await expectSteps([0])
  })
})
