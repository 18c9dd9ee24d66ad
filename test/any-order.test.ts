/** Event files whose steps lie in any order, with anything between: all that reads them reads what was saved. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, diff, type Trial } from '#dist/index.js'
import type { MeasureJob } from '#dist/scan/job/measure-job.js'
import { planMeasures, readingOrders } from '#dist/scan/job/plan/measure-plan.js'
import { DEFAULT_MEMORY } from '#dist/scan/job/plan/memory.js'
import { Inquiry } from '#dist/trial/measure/measure.js'
import { stateOf } from '#dist/trial/trial.js'
import { readValues } from '#dist/trial/values.js'
import { encodeEvent, frameRecord } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('any-order')
let count = 0
afterAll(closePools)

interface Saved {
  readonly tag: string
  readonly step: number
  /** Bytes that lie before it. */
  readonly gap: number
}

/** A run of one file, with records in the order in which they are given. What lies in a gap is never asked for. */
async function runOf(saved: readonly Saved[]): Promise<Trial> {
  const directory = join(scratch, `${count++}`)
  mkdirSync(directory)
  const record = (tag: string, step: number, values: readonly number[]) => {
    const tensor = { dtype: 'float32', shape: [values.length], values } as const
    return frameRecord(encodeEvent({ wallTime: 1, step, tag, tensor }), { checksum: 'true' })
  }
  const records = saved.flatMap(({ tag, step, gap }) => {
    const filler = gap === 0 ? [] : [record('filler', 1e6 + count++, new Array(gap >> 2).fill(1))]
    return [...filler, record(tag, step, elements(tag, step))]
  })
  writeFileSync(join(directory, 'events.out.tfevents.1.h'), Buffer.concat(records))
  return createTrial(directory, { requireCollections: false, threads: 0 })
}

/** What was saved of a tensor at a step. */
function elements(tag: string, step: number): readonly number[] {
  const of = tag.charCodeAt(0)
  return [step, of, -(step + 1) * of, of % 2 === 0 && step % 5 === 3 ? Number.NaN : 0.5]
}

const TAGS = ['a', 'b', 'c', 'd']
const arbitrary = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...TAGS), fc.nat(12)), { minLength: 2, maxLength: 24, selector: String })
  .chain(pairs => fc.tuple(fc.constant(pairs), fc.array(fc.constantFrom(0, 0, 40, 60_000, 70_000), pairArray(pairs))))
  .map(([pairs, gaps]) => pairs.map(([tag, step], i) => ({ tag, step, gap: gaps[i]! })))

function pairArray(pairs: readonly unknown[]) {
  return { minLength: pairs.length, maxLength: pairs.length }
}

const inOrder = (saved: readonly Saved[]) =>
  saved.toSorted((x, y) => x.step - y.step || x.tag.charCodeAt(0) - y.tag.charCodeAt(0))
const asked = /^[abcd]$/

describe('whatever the order of records, gaps and questions', () => {
  it('scan, values, measure and diff give what was saved', async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, fc.infiniteStream(fc.nat(99)), async (saved, chances) => {
        const chance = () => chances.next().value
        const [trial, sorted] = [await runOf(saved), await runOf(inOrder(saved))]
        const key = (tag: string, step: number) => `${tag} ${step}`
        const expected = new Map(saved.map(({ tag, step }) => [key(tag, step), elements(tag, step)]))

        const scanned = new Map<string, readonly number[]>()
        for await (const { tensor, step, reductions, error } of trial.scan({ tensors: asked.source, threads: 0 })) {
          expect(error).toBeUndefined()
          scanned.set(key(tensor!, step), [reductions.min as number, reductions.max as number])
        }
        const extremes = (values: readonly number[]) => [Math.min(...values), Math.max(...values)]
        expect(scanned).toEqual(new Map([...expected].map(([at, values]) => [at, extremes(values)])))

        const values = new Map<string, readonly number[]>()
        for await (const { tensor, step, value } of readValues(trial, { tensors: asked.source, threads: 0 })) {
          values.set(key(tensor!, step), [...(value!.data as Float32Array)])
        }
        expect(values).toEqual(expected)

        const inquiry = new Inquiry()
        const tensorOf = ({ tag, step }: Saved) => inquiry.atStep(stateOf(trial), step).get(tag)!
        const questions = saved
          .map((one, i) => ({
            one,
            other: saved[(i + 1 + (chance() % (saved.length - 1))) % saved.length]!,
            at: chance(),
          }))
          .sort((x, y) => x.at - y.at)
          .filter(({ at }) => at < 80)
          .map(({ one, other, at }) => ({
            one,
            other,
            value: tensorOf(one).value(),
            maximum: tensorOf(one).reduction('max'),
            isClose: at % 2 === 0 ? tensorOf(one).allclose(tensorOf(other), { equalNan: true }) : null,
          }))
        const stats = { records: 0, unread: 0, readBytes: 0, reads: 0, jobs: 0, threads: 0 }
        await inquiry.run({ threads: 0 }, stats)
        for (const { one, other, value, maximum, isClose } of questions) {
          const [mine, others] = [elements(one.tag, one.step), elements(other.tag, other.step)]
          expect([...(value.value.data as Float32Array)]).toEqual(mine)
          expect(maximum.value).toEqual(Math.max(...mine))
          if (isClose) expect(isClose.value).toBe(mine.every((number, i) => Object.is(number, others[i])))
        }

        const compared = await diff(trial, sorted, { tensors: asked.source, threads: 0 })
        expect(compared).toMatchObject({ divergence: null, problems: [], compared: saved.length, equal: saved.length })
        await Promise.all([trial.close(), sorted.close()])
      }),
      { numRuns: 60 },
    )
  })

  it('a plan reads each file from its beginning to its end, lane by lane', async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, fc.nat(2), async (saved, kind) => {
        let at = 0
        const places = saved.map(({ tag, step, gap }) => {
          at += gap
          const place = { store: 0, file: 'f', tag, step, startByte: at, byteLength: 100 }
          at += 100
          return place
        })
        // In any order of their own.
        places.sort((x, y) => ((x.step * 7 + x.startByte) % 13) - ((y.step * 7 + y.startByte) % 13))
        const series =
          kind === 0
            ? null
            : kind === 1
              ? Int32Array.from(places.keys())
              : Int32Array.from(places, ({ tag }) => TAGS.indexOf(tag))
        const context = {
          stores: [{ kind: 'local', root: '/r' }],
          checkLevel: 1,
          memory: DEFAULT_MEMORY,
          threads: 0,
          known: 3,
        } as const
        const orders = await readingOrders(places)
        const jobs: MeasureJob[] = [...planMeasures(places, series, [], orders, context)].map(({ job }) => job)
        const read = jobs.flatMap(({ batches, records }) => {
          return batches.flatMap(({ startByte, endByte, first, count }) => {
            const starts = [...records.startByte.subarray(first, first + count)]
            for (const start of starts) expect(start >= startByte && start + 100 <= endByte).toBe(true)
            expect(starts).toEqual(starts.toSorted((x, y) => x - y))
            return starts
          })
        })
        expect(read.toSorted((x, y) => x - y)).toEqual(
          places.map(({ startByte }) => startByte).toSorted((x, y) => x - y),
        )
        expect(read).toEqual(read.toSorted((x, y) => x - y))
      }),
      { numRuns: 200 },
    )
  })
})

it('a scalar that was added without a step is no damage, and a NaN before it is found', async () => {
  const trial = await runOf([
    { tag: 'd', step: 3, gap: 0 },
    { tag: 'a', step: 0, gap: 200 },
    { tag: 'b', step: 1, gap: 0 },
  ])
  const { path } = trial
  await trial.close()
  const { stdout, stderr, code } = await trialscan('check', path, '--rule', 'ExplodingTensor')
  expect(JSON.parse(stdout)).toMatchObject({ rule: 'ExplodingTensor', step: 3, tensor: 'd' })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^trialscan: verdict: failed; .*\n$/)])
})
