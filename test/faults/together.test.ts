/** Many scans at once in one process: of one trial and of several, one of them given up. The others don't notice. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, evaluate, type ScanOptions, type Trial } from '#dist/index.js'
import { AllZero } from '#dist/rules/builtin/all-zero.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { normals, uniform } from '../../fixtures/random.js'
import { bitsOf, ruleBits, scanBits, textBits, valueBits } from '../support/bits.js'
import { fixtureTrial } from '../support/golden.js'
import { isLong, part } from '../support/part.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('together')
const MIB = 1 << 20
let trials: Trial[]

beforeAll(async () => {
  const block = new Uint8Array(Float32Array.from(normals(200_000, 3)).buffer)
  const paths = ['a', 'b'].map((name, k) => {
    const writer = new TrialWriter(join(scratch, name), { numWorkers: 2, checksum: 'true' })
    for (let step = 0; step < 4; step++) {
      for (let worker = 0; worker < 2; worker++) {
        const tensors = Array.from({ length: 12 }, (_, i) => {
          const start = (i * 7 + step + worker + k) * 4096
          const data =
            i === 5 ? new Uint8Array(Buffer.concat(new Array(7).fill(block))) : block.subarray(start, start + 300_000)
          return { name: `weight${i}`, dtype: 'float32', shape: [data.length / 4], data } as const
        })
        writer.step({ step, mode: 'TRAIN', worker, tensors })
      }
    }
    writer.end()
    return join(scratch, name)
  })
  paths.push(fixtureTrial('cnn-raw-and-reductions').directory, fixtureTrial('workers-4').directory)
  trials = await Promise.all(paths.map(path => createTrial(path)))
})

afterAll(closePools)

/** Work of every kind, each with options of its own. */
const kinds: readonly ((trial: Trial, threads: number) => Promise<unknown>)[] = [
  (trial, threads) => scanBits(trial, { threads }),
  (trial, threads) => scanBits(trial, { threads, memory: 4 * MIB, checkLevel: 'full', reductions: ['l2', 'abs_mean'] }),
  (trial, threads) =>
    scanBits(trial, { threads, memory: 16 * MIB, steps: { from: 1, to: 3 }, tensors: ['5$', 'bias'] }),
  (trial, threads) => textBits(trial, 'csv', { threads, reductions: ['min', 'max'] }),
  (trial, threads) => textBits(trial, 'jsonl', { threads, memory: 8 * MIB, checkLevel: 'none' }),
  (trial, threads) => valueBits(trial, { threads }),
  (trial, threads) => ruleBits(trial, { threads, memory: 8 * MIB }),
]

describe.each(isLong ? [0, 1, 2] : [2])('on %d threads', threads => {
  const isQuick = threads === 2

  it.each(part([2, 8], count => isQuick && count === 8))('%d at once answer as each alone', async count => {
    const random = uniform(threads * 10 + count)
    for (let round = 0; round < (isLong ? 2 : 1); round++) {
      const work = Array.from({ length: count }, () => {
        const kind = kinds[Math.floor(random() * kinds.length)]!
        // Half of them on one trial.
        const trial = random() < 0.5 ? trials[round % trials.length]! : trials[Math.floor(random() * trials.length)]!
        return () => kind(trial, threads)
      })
      const alone: string[] = []
      for (const one of work) alone.push(bitsOf(await one()))
      const together = await Promise.all(work.map(one => one()))
      expect(together.map(bitsOf)).toEqual(alone)
    }
  })

  it.each(part([0, 1, 4, 16, 40], ms => isQuick && ms === 4))(
    'one that is aborted after %d ms leaves the others alone',
    async ms => {
      const [a, b] = trials as [Trial, Trial]
      const options: ScanOptions = { threads, checkLevel: 'full' }
      const [right, other] = [await scanBits(a, options), await scanBits(b, options)]
      const controller = new AbortController()
      const reason = new Error('enough')
      const aborted = rowsOf(a, { ...options, signal: controller.signal }).then(
        rows => rows.length,
        (error: unknown) => error,
      )
      const judged = evaluate(new AllZero(b, { tensor_regex: '.*' }), { threads, signal: controller.signal }).then(
        () => reason,
        (error: unknown) => error,
      )
      const rest = Promise.all([scanBits(a, options), scanBits(b, options)])
      setTimeout(() => controller.abort(reason), ms)
      expect([reason, right.length]).toContain(await aborted)
      expect(await judged).toBe(reason)
      expect(await rest).toEqual([right, other])
    },
  )

  it.each(part([threads], () => isQuick))('one that is left after some rows leaves the others alone', async () => {
    const [a, b] = trials as [Trial, Trial]
    const right = [await scanBits(a, { threads }), await textBits(b, 'csv', { threads })]
    for (const rows of [0, 1, 7, 30]) {
      const leave = async () => {
        let seen = 0
        for await (const _ of a.scan({ threads })) if (seen++ === rows) break
        for await (const _ of a.scan({ threads }).lines('jsonl')) break
      }
      const all = await Promise.all([leave(), scanBits(a, { threads }), textBits(b, 'csv', { threads }), leave()])
      expect(all.slice(1, 3)).toEqual(right)
    }
  })

  it.each(part([threads], () => isQuick))('one whose reader is slow holds up nobody', async () => {
    const [a, b] = trials as [Trial, Trial]
    const right = await scanBits(b, { threads })
    const slow = a.scan({ threads })[Symbol.asyncIterator]()
    await slow.next()
    // It is not read from here on, with jobs under way.
    expect(await scanBits(b, { threads })).toEqual(right)
    expect(await scanBits(a, { threads })).toEqual(await scanBits(a, { threads: 0 }))
    let rows = 1
    for (let next = await slow.next(); !next.done; next = await slow.next()) rows++
    expect(rows).toBe(96)
  })

  it.each(part([threads], () => isQuick))('a trial that is closed meanwhile costs its scan nothing', async () => {
    const right = await scanBits(trials[0]!, { threads })
    const trial = await createTrial(join(scratch, 'a'))
    const scanning = scanBits(trial, { threads })
    await new Promise(resolve => setTimeout(resolve, 3))
    await trial.close()
    expect(await scanning).toEqual(right)
  })
})

describe('closing the pools', () => {
  it('ends all that run on threads with one clear error, and nothing else', async () => {
    const [a, b] = trials as [Trial, Trial]
    const [right, other] = [await scanBits(a, { threads: 0 }), await scanBits(b, { threads: 0 })]
    let closed = 0
    for (const ms of [0, 10, 25]) {
      const failure = (error: unknown) => error
      const running = [
        scanBits(a, { threads: 1, checkLevel: 'full' }).catch(failure),
        scanBits(a, { threads: 2, checkLevel: 'full' }).catch(failure),
        evaluate(new AllZero(b, { tensor_regex: '.*' }), { threads: 2 }).then(() => right, failure),
      ]
      const inline = scanBits(b, { threads: 0 })
      await new Promise(resolve => setTimeout(resolve, ms))
      await closePools()
      for (const outcome of await Promise.all(running)) {
        // What was done by then, or had not got into a pool yet, is whole.
        if (outcome instanceof Error) {
          closed++
          expect(outcome).toMatchObject({ name: 'ThreadError', code: 'ThreadsClosed' })
        } else expect(outcome).toEqual(right)
      }
      expect(await inline).toEqual(other)
      expect(await scanBits(b, { threads: 2 })).toEqual(other)
    }
    expect(closed).toBeGreaterThan(2)
  })
})
