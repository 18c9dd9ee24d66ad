/** A trial of 1 GB in a page: no more memory than its threads may hold. */

import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Made, makeLarge } from '../../fixtures/make.js'
import { WebTest } from '../support/browser-page.js'
import { hasChromium, openAlone } from '../support/chromium.js'

/** Of memory, what a thread may hold, in bytes. */
const OPTIONS = { threads: 2, memory: 16 << 20 }
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

  it('is scanned from http with bounded memory', async ({ onTestFinished }) => {
    await isBounded('http', async steps => {
      const page = `<script type="module" src="page.js"></script><script type="module">
        const scanned = tests.scan('${test.urlOf(directory)}', ${steps}, ${JSON.stringify(OPTIONS)})
        const report = await scanned.then(JSON.stringify, String)
        await fetch('/report', { method: 'POST', body: report })
      </script>`
      writeFileSync(join(test.scratch, 'alone.html'), page)
      const reported = test.server.report()
      const browser = openAlone(`${test.server.url}page/alone.html`, join(test.scratch, `profile-${steps}`))
      onTestFinished(async () => {
        process.kill(-browser.pid!, 'SIGKILL')
        await once(browser, 'exit')
      })
      return { scanned: JSON.parse(await reported), peak: largest(renderersIn(browser.pid!)) }
    })
  })

  it('is scanned from files with bounded memory', async () => {
    const page = await test.newPage()
    await page.setInputFiles('input', directory)
    const session = await test.browser.newBrowserCDPSession()
    await isBounded('files', async steps => {
      const scanned = await page.evaluate(([steps, options]) => tests.scan(tests.pickedFiles(), steps, options), [
        steps,
        OPTIONS,
      ] as const)
      const { processInfo } = (await session.send('SystemInfo.getProcessInfo')) as {
        processInfo: { type: string; id: number }[]
      }
      return { scanned, peak: largest(processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id)) }
    })
    await page.close()
  })

  type Measured = { readonly scanned: Awaited<ReturnType<typeof tests.scan>>; readonly peak: number }

  async function isBounded(kind: string, measure: (steps: number) => Promise<Measured>): Promise<void> {
    expect(made.tensorBytes).toBeGreaterThan(1e9)
    const peakOf = async (steps: number): Promise<number> => {
      const { scanned, peak } = await measure(steps)
      expect([scanned.rows, scanned.failed]).toEqual([made.tensors.length * steps, 0])
      console.log(`${steps} steps from ${kind}: ${scanned.seconds.toFixed(1)} s, ${(peak / 1e6).toFixed(0)} MB at most`)
      return peak
    }
    const one = await peakOf(1)
    expect(await peakOf(made.steps.length)).toBeLessThan(one + MAX_GROWTH_BYTES)
  }
})

/** The renderers of a Chromium in a process group of its own. */
function renderersIn(group: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(id => {
      const stat = readIfThere(`/proc/${id}/stat`)
      return Number(stat.split(') ').at(-1)!.split(' ')[2]) === group
    })
    .filter(id => readIfThere(`/proc/${id}/cmdline`).includes('--type=renderer'))
}

/** A process may have ended since it was listed. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** The most memory that any of the processes has had, in bytes. */
function largest(ids: readonly number[]): number {
  return Math.max(
    ...ids.map(id => Number(/VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, 'latin1'))![1]) * 1024),
  )
}
