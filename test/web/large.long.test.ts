/** A trial of 1 GB in a page: no more memory than its threads may hold. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Made, makeLarge } from '../../fixtures/make.js'
import { WebTest } from '../support/browser-page.js'
import { hasChromium } from '../support/chromium.js'

/** What a thread may hold, in bytes. */
const MEMORY = 16 << 20
/** What five steps may take beyond what one takes: buffers that the browser has not yet collected. */
const MAX_GROWTH_BYTES = 200e6

describe.runIf(hasChromium)('a trial of 1 GB', () => {
  let test: WebTest
  let made: Made
  let directory: string

  beforeAll(async () => {
    test = await WebTest.start()
    directory = join(test.scratch, 'large')
    made = makeLarge(directory)
  })

  afterAll(() => test?.stop())

  it.each(['http', 'files'] as const)('is scanned from %s with bounded memory', async kind => {
    expect(made.tensorBytes).toBeGreaterThan(1e9)
    const page = await test.newPage()
    if (kind === 'files') await page.setInputFiles('input', directory)
    const run = async ([kind, url, memory, end]: readonly ['http' | 'files', string, number, number]) => {
      const trial = await tests.web.createTrial(kind === 'http' ? url : tests.pickedFiles())
      const startedAt = performance.now()
      let [rows, failed] = [0, 0]
      const steps = { only: trial.steps().slice(0, end) }
      for await (const { error } of trial.scan({ threads: 2, memory, steps, reductions: ['mean', 'max'] })) {
        rows++
        if (error !== undefined) failed++
      }
      return { rows, failed, seconds: (performance.now() - startedAt) / 1000 }
    }
    const scan = async (steps: number) => {
      const { rows, failed, seconds } = await page.evaluate(run, [kind, test.urlOf(directory), MEMORY, steps] as const)
      expect([rows, failed]).toEqual([made.tensors.length * steps, 0])
      const peak = await largestRenderer()
      console.log(`${steps} steps from ${kind}: ${seconds.toFixed(1)} s, ${(peak / 1e6).toFixed(0)} MB at most`)
      return peak
    }
    const one = await scan(1)
    expect(await scan(made.steps.length)).toBeLessThan(one + MAX_GROWTH_BYTES)
    await page.close()
  })

  /** The most memory that any renderer has had, in bytes. */
  async function largestRenderer(): Promise<number> {
    const session = await test.browser.newBrowserCDPSession()
    const { processInfo } = (await session.send('SystemInfo.getProcessInfo')) as {
      processInfo: { type: string; id: number }[]
    }
    const peaks = processInfo
      .filter(({ type }) => type === 'renderer')
      .map(({ id }) => Number(/VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, 'latin1'))![1]) * 1024)
    return Math.max(...peaks)
  }
})
