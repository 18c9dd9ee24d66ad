/** The pump: in order, bounded, lazy, and one failure is one failure. */

import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { EngineError, StoreError, ThreadError } from '#dist/base/errors.js'
import { pump, pumpAll } from '#dist/scan/runner/pump.js'

/** Work that ends when it is told to. */
class Works {
  readonly started: number[] = []
  readonly #ends = new Map<number, { resolve: (reply: string) => void; reject: (error: unknown) => void }>()

  readonly work = (plan: number): Promise<string> => {
    this.started.push(plan)
    return new Promise((resolve, reject) => this.#ends.set(plan, { resolve, reject }))
  }

  end(plan: number): void {
    this.#ends.get(plan)!.resolve(`reply ${plan}`)
  }

  fail(plan: number, error: unknown): void {
    this.#ends.get(plan)!.reject(error)
  }
}

const failed = () => new StoreError('Unavailable', 'not there', { url: 'file:///trial/a', retryable: false })

describe('the pump', () => {
  it('tells replies in the order of the plans, whatever order they come in', async () => {
    const works = new Works()
    const pumped = pump([0, 1, 2], works.work, { ahead: 3 })
    const first = pumped.next()
    works.end(2)
    works.end(1)
    works.end(0)
    expect((await first).value).toMatchObject({ plan: 0, reply: 'reply 0', error: null })
    expect((await pumped.next()).value).toMatchObject({ plan: 1, reply: 'reply 1' })
    expect((await pumped.next()).value).toMatchObject({ plan: 2, reply: 'reply 2' })
    expect(await pumped.next()).toEqual({ done: true, value: undefined })
  })

  it('has no more under way than it may, and makes no plan before its turn', async () => {
    const works = new Works()
    let planned = 0
    function* plans(): Generator<number> {
      for (; planned < 100; ) yield planned++
    }
    const pumped = pump(plans(), works.work, { ahead: 3 })
    for (let plan = 0; plan < 10; plan++) {
      const next = pumped.next()
      await setImmediate()
      expect(works.started).toEqual(Array.from({ length: plan + 3 }, (_, i) => i))
      expect(planned).toBe(plan + 3)
      works.end(plan)
      await next
    }
  })

  it('tells a failure in its place and goes on', async () => {
    const error = failed()
    const work = async (plan: number): Promise<number> => {
      if (plan % 2 === 1) throw error
      return plan
    }
    const told: unknown[] = []
    for await (const { plan, reply, error } of pump([0, 1, 2, 3], work, { ahead: 2 })) told.push([plan, reply, error])
    expect(told).toEqual([
      [0, 0, null],
      [1, null, error],
      [2, 2, null],
      [3, null, error],
    ])
  })

  it.each([
    ['no thread starts', new ThreadError('ThreadsNotStarted', 'none')],
    ['there is no core', new EngineError('none', {}, undefined, 'NoCore')],
  ])('ends where %s', async (_, error) => {
    const pumped = pump([0, 1], () => Promise.reject(error), { ahead: 1 })
    await expect(pumped.next()).rejects.toBe(error)
    expect((await pumped.next()).done).toBe(true)
  })

  it('ends with the reason of its signal', async () => {
    const aborter = new AbortController()
    const works = new Works()
    const pumped = pump([0, 1], works.work, { ahead: 2, signal: aborter.signal })
    const first = pumped.next()
    aborter.abort(new Error('enough'))
    works.end(0)
    await expect(first).rejects.toThrow('enough')
  })

  it('leaves what runs to itself when it is left, unless it is to settle', async () => {
    for (const settles of [false, true]) {
      const works = new Works()
      const pumped = pump([0, 1], works.work, { ahead: 2, settles })
      const first = pumped.next()
      works.end(0)
      await first
      let isLeft = false
      const left = pumped.return(undefined).then(() => {
        isLeft = true
      })
      await setImmediate()
      expect(isLeft).toBe(!settles)
      works.fail(1, failed())
      await left
    }
  })
})

describe('the pump of all', () => {
  it('throws the first failure in the order of the plans', async () => {
    const error = failed()
    const works = new Works()
    const replies: string[] = []
    const all = (async () => {
      for await (const reply of pumpAll([0, 1, 2], works.work, { ahead: 3 })) replies.push(reply)
    })()
    works.fail(2, new Error('a later one'))
    works.fail(1, error)
    works.end(0)
    await expect(all).rejects.toBe(error)
    expect(replies).toEqual(['reply 0'])
  })
})
