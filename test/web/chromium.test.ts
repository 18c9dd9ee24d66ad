/** trialscan/web in a real browser: the answers of golden trials over HTTP and from folders, and what goes wrong. */

import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, verifyTrial } from '#dist/index.js'
import type { GoldenBits } from '../support/bits.js'
import { WebTest } from '../support/browser-page.js'
import { hasChromium } from '../support/chromium.js'
import { fixtureTrial, fixtureTrials, isRequired, ROOT } from '../support/golden.js'
import { GOLDEN_BITS } from '../support/golden-bits.js'
import { isLong, part } from '../support/part.js'

const QUICK = ['plain', 'workers-4', 'edge-dtypes']
const PLAIN = fixtureTrial('plain').directory

it('has Chromium where it is required', () => {
  if (isRequired('chromium')) expect(hasChromium).toBe(true)
})

describe.runIf(hasChromium)('in Chromium', () => {
  const golden = JSON.parse(readFileSync(GOLDEN_BITS, 'utf8')) as Record<string, GoldenBits>
  let test: WebTest

  beforeAll(async () => {
    test = await WebTest.start()
  })

  afterEach(() => test.server.breakWith(null))
  afterAll(() => test?.stop())

  describe.each(part(fixtureTrials(), ({ name }) => QUICK.includes(name)))('$name', ({ name, directory }) => {
    it.each([0, 2])('answers the same bits over HTTP at threads %i', async threads => {
      const run = ([url, threads]: readonly [string, number]) => tests.bits('http', url, { threads })
      expect(await test.page.evaluate(run, [test.urlOf(directory), threads] as const)).toEqual(golden[name])
    })

    it.each([0, 2])('answers the same bits from a folder at threads %i', async threads => {
      const run = ([url, threads]: readonly [string, number]) => tests.bits('folder', url, { threads })
      expect(await test.page.evaluate(run, [test.urlOf(directory), threads] as const)).toEqual(golden[name])
    })

    it.each([0, 1])('answers the same bits from files that were picked at threads %i', async threads => {
      await test.page.setInputFiles('input', directory)
      expect(await test.page.evaluate(threads => tests.bits('files', '', { threads }), threads)).toEqual(golden[name])
    })

    it('verifies as Node.js does', async () => {
      const { problemCounts, noteCounts, stats } = await verifyTrial(directory, { deep: true })
      const there = await test.page.evaluate(async url => {
        const { problemCounts, noteCounts, stats } = await tests.web.verifyTrial(url, { deep: true, threads: 1 })
        return { problemCounts, noteCounts, records: stats.records, readBytes: stats.readBytes }
      }, test.urlOf(directory))
      expect(there).toEqual({ problemCounts, noteCounts, records: stats.records, readBytes: stats.readBytes })
    })
  })

  if (isLong) return

  /** The rows of a scan in the page: the codes of their errors, and the requests. */
  const scan = (url: string, threads = 0) =>
    test.page.evaluate(
      async ([url, threads]) => {
        const trial = await tests.web.createTrial(url, { refresh: 'manual' })
        const codes: (string | null)[] = []
        for await (const { error } of trial.scan({ threads, checkLevel: 'full' })) codes.push(error?.code ?? null)
        return { codes, traffic: trial.traffic }
      },
      [url, threads] as const,
    )
  const FINE = Array<null>(15).fill(null)

  it('has values with all of their methods', async () => {
    const told = await test.page.evaluate(async url => {
      const trial = await tests.web.createTrial(url, { refresh: 'manual' })
      const value = await trial.tensor('fc.weight').value(1, { mode: 'TRAIN' })
      const slice = value.slice(1, [null, null, -2])
      return [value.toNested(), slice.toNested(), slice.item(0), Array.from(slice.bytes), slice.toNdarray().get(0)]
    }, test.urlOf(PLAIN))
    const trial = await createTrial(PLAIN)
    const value = await trial.tensor('fc.weight').value(1, { mode: 'TRAIN' })
    const slice = value.slice(1, [null, null, -2])
    expect(slice.shape).toEqual([3])
    expect(told).toEqual([value.toNested(), slice.toNested(), slice.item(0), Array.from(slice.bytes), slice.item(0)])
    await trial.close()
  })

  it("works where code may not be made of text, but for ndarray's", async () => {
    test.server.policy = "script-src 'self' 'wasm-unsafe-eval'"
    const page = await test.newPage().finally(() => {
      test.server.policy = null
    })
    const run = ([url, threads]: readonly [string, number]) => tests.bits('http', url, { threads })
    for (const threads of [0, 2]) {
      expect(await page.evaluate(run, [test.urlOf(PLAIN), threads] as const)).toEqual(golden.plain)
    }
    const told = await page.evaluate(async url => {
      const trial = await tests.web.createTrial(url, { refresh: 'manual' })
      const value = await trial.tensor('fc.weight').value(1, { mode: 'TRAIN' })
      const slice = value.slice(1, [null, null, -2])
      try {
        return [slice.shape, slice.toNdarray().shape]
      } catch (error) {
        return [slice.shape, (error as Error).name, (error as Error).message]
      }
    }, test.urlOf(PLAIN))
    expect(told).toEqual([[3], 'UsageError', expect.stringMatching(/^value\.toNdarray: expected .*'unsafe-eval'/)])
    await page.close()
  })

  describe('over HTTP', () => {
    it('counts what it asks for', async () => {
      const { codes, traffic } = await scan(test.urlOf(PLAIN))
      expect(codes).toEqual(FINE)
      // Three index files, three event files, one of collections.
      expect(traffic).toMatchObject({ getRequests: 7, retries: 0 })
      expect(traffic.listRequests).toBeGreaterThan(0)
    })

    it('takes a listing, with URLs of files that lie elsewhere', async () => {
      const count = await test.page.evaluate(async url => {
        const lines = (await (await fetch(`${url}listing.txt`)).text()).trim().split('\n')
        const listing = lines.map(line => ({ path: line.slice(2), url: `${url}${line.slice(2)}?signature=1` }))
        const trial = await tests.web.createTrial('http://localhost:1/nobody/', { listing })
        let count = 0
        for await (const { error } of trial.scan({ threads: 1 })) if (error === undefined) count++
        return count
      }, test.urlOf(PLAIN))
      expect(count).toBe(15)
    })

    it('takes a listing of S3, page by page', async () => {
      test.server.s3 = { directory: PLAIN, pageLength: 3 }
      const count = await test.page.evaluate(async url => {
        const listing = `${url}bucket?list-type=2&prefix=${encodeURIComponent('some/trial/')}`
        const trial = await tests.web.createTrial(`${url}fixtures/generated/plain/`, { listing })
        return trial.steps().length
      }, test.server.url)
      expect(count).toBe(3)
    })

    it.each([0, 1])('repeats what fails for a while, at threads %i', async threads => {
      test.server.breakWith({ on: /tfevents/, status: 503, times: 2 })
      const { codes, traffic } = await scan(test.urlOf(PLAIN), threads)
      expect(codes).toEqual(FINE)
      expect(traffic.retries).toBe(2)
    })

    it('goes on where an answer breaks off', async () => {
      test.server.breakWith({ on: /tfevents/, breaksOff: true, times: 2 })
      const { codes, traffic } = await scan(test.urlOf(PLAIN))
      expect(codes).toEqual(FINE)
      expect(traffic.retries).toBe(2)
    })

    it.each([
      ['does not answer Range requests', { on: /tfevents/, whole: true }, 'Unavailable'],
      ['has other files than it lists', { on: /tfevents/, status: 404 }, 'NotFound'],
      ['refuses', { on: /tfevents/, status: 403 }, 'Denied'],
    ] as const)('says so in each row when a server %s', async (_, fault, code) => {
      test.server.breakWith(fault)
      expect((await scan(test.urlOf(PLAIN))).codes).toEqual(Array(15).fill(code))
    })

    it('says what a server without Range lacks', async () => {
      test.server.breakWith({ on: /tfevents/, whole: true })
      const run = async (url: string) => {
        const tensor = (await tests.web.createTrial(url)).tensor('loss')
        return tests.failure(() => tensor.value(0))
      }
      const told = await test.page.evaluate(run, test.urlOf(PLAIN))
      expect(told).toMatchObject({ name: 'StoreError', message: expect.stringContaining('does not answer Range') })
    })

    it('notices by its ETag that a file is another one', async () => {
      test.server.breakWith({ on: /tfevents/, after: 1, etag: '"another"' })
      const run = async (url: string) => {
        const tensor = (await tests.web.createTrial(url)).tensor('loss')
        await tensor.value(0)
        return tests.failure(() => tensor.value(0))
      }
      expect(await test.page.evaluate(run, test.urlOf(PLAIN))).toMatchObject({
        name: 'FormatError',
        code: 'ObjectChanged',
      })
    })

    it('refuses a trial without a listing', async () => {
      test.server.breakWith({ on: /listing/, status: 404 })
      const run = (url: string) => tests.failure(() => tests.web.createTrial(url))
      expect(await test.page.evaluate(run, test.urlOf(PLAIN))).toMatchObject({
        name: 'StoreError',
        code: 'NotFound',
        message: expect.stringContaining('listing.txt'),
      })
    })

    it('refuses a listing that leads out of the trial, and a URL that is none', async () => {
      const run = async (url: string) => [
        await tests.failure(() => tests.web.createTrial(url, { listing: ['../secret'] })),
        await tests.failure(() => tests.web.createTrial('s3://bucket/prefix')),
        await tests.failure(() => tests.web.createTrial(url, { indexCache: 'file' } as never)),
      ]
      for (const told of await test.page.evaluate(run, test.urlOf(PLAIN))) expect(told).toMatchObject({ code: 'Usage' })
    })
  })

  describe('files', () => {
    it('says in each row that a file was changed after it was picked', async () => {
      const copy = join(test.scratch, 'changing')
      cpSync(PLAIN, copy, { recursive: true })
      await test.page.setInputFiles('input', copy)
      const open = async () => {
        Object.assign(globalThis, { opened: await tests.web.createTrial(tests.pickedFiles()) })
      }
      await test.page.evaluate(open, null)
      for (const step of ['0', '1', '2'].map(step => step.padStart(12, '0'))) {
        appendFileSync(join(copy, `events/${step}/${step}_worker_0.tfevents`), 'x')
      }
      const codes = async (threads: number) => {
        const { opened } = globalThis as unknown as { opened: Awaited<ReturnType<typeof tests.web.createTrial>> }
        const codes: unknown[] = []
        for await (const { error } of opened.scan({ threads })) codes.push(error?.code)
        return codes
      }
      for (const threads of [0, 1]) {
        expect(await test.page.evaluate(codes, threads)).toEqual(Array(15).fill('ObjectChanged'))
      }
    })

    it('refuses what is no trial', async () => {
      const run = async (url: string) => [
        await tests.failure(async () => tests.web.createTrial(await tests.folderOf(url))),
        await tests.failure(() => tests.web.createTrial([])),
        await tests.failure(() => tests.web.createTrial(null as never)),
        await tests.failure(() => tests.web.createTrial([new File([], 'a')], { listing: [] })),
      ]
      const [noTrial, ...wrong] = await test.page.evaluate(run, test.urlOf(join(PLAIN, 'collections')))
      expect(noTrial).toMatchObject({ code: 'MissingCollectionFiles' })
      for (const told of wrong) expect(told).toMatchObject({ code: 'Usage' })
    })
  })

  it('runs the example of docs/web.md', async () => {
    const [, example] = /^```html\n(.*?)^```$/ms.exec(readFileSync(join(ROOT, 'docs/web.md'), 'utf8'))!
    const page = example!
      .replace('./node_modules/trialscan/dist/browser/index.js', '/browser/index.js')
      .replace('https://example.org/trials/my-training/', test.urlOf(fixtureTrial('mlp-vanishing').directory))
    writeFileSync(join(test.scratch, 'example.html'), page)
    const tab = await test.browser.newPage()
    await tab.goto(`${test.server.url}page/example.html`)
    const text = () => tab.evaluate(() => document.querySelector('pre')?.textContent ?? '', null)
    await expect.poll(text, { timeout: 30_000 }).toMatch(/^VanishingGradient at \d+: /m)
    expect(await text()).toMatch(/^\S+ at 0: \d/m)
    await tab.close()
  })

  it('matches patterns, which need an engine of their own', async () => {
    const run = async (url: string) => {
      const trial = await tests.web.createTrial(url)
      return [trial.tensorNames(), trial.tensorNames({ regex: '(?i)^[L-Z]' })]
    }
    const [all, some] = await test.page.evaluate(run, test.urlOf(PLAIN))
    expect(some).toEqual(all!.filter(name => /^[l-z]/i.test(name)))
  })

  describe('threads', () => {
    it('are given up where their code does not load', async () => {
      test.server.breakWith({ on: /worker\.js/, status: 404 })
      const page = await test.newPage()
      const run = async (url: string) => {
        const trial = await tests.web.createTrial(url)
        return tests.failure(async () => {
          for await (const _ of trial.scan({ threads: 2 }));
        })
      }
      const told = await page.evaluate(run, test.urlOf(PLAIN))
      expect(told).toMatchObject({ name: 'ThreadError', code: 'ThreadsNotStarted' })
      await page.close()
    })

    it('end with the work that is aborted, and serve the next', async () => {
      const run = async (url: string) => {
        const trial = await tests.web.createTrial(url)
        const controller = new AbortController()
        const aborted = await tests.failure(async () => {
          const scan = trial.scan({ threads: 1, signal: controller.signal })
          for await (const _ of scan) controller.abort(new Error('mine'))
        })
        let count = 0
        for await (const { error } of trial.scan({ threads: 1 })) if (error === undefined) count++
        await tests.web.closePools()
        for await (const { error } of trial.scan({ threads: 1 })) if (error === undefined) count++
        return [aborted, count]
      }
      expect(await test.page.evaluate(run, test.urlOf(PLAIN))).toEqual(['not ours: Error: mine', 30])
    })

    it('are gone with their tab, and ask for nothing more', async () => {
      const session = await test.browser.newBrowserCDPSession()
      /** Seconds of processor time that each renderer has had, by the ids of the processes. */
      const renderers = async (): Promise<ReadonlyMap<number, number>> => {
        type Process = { readonly type: string; readonly id: number; readonly cpuTime: number }
        const { processInfo } = (await session.send('SystemInfo.getProcessInfo')) as { processInfo: readonly Process[] }
        return new Map(processInfo.flatMap(({ type, id, cpuTime }) => (type === 'renderer' ? [[id, cpuTime]] : [])))
      }
      const page = await test.newPage()
      await page.evaluate(async url => {
        const trial = await tests.web.createTrial(url)
        void (async () => {
          for (;;) for await (const _ of trial.scan({ threads: 2 }));
        })()
      }, test.urlOf(PLAIN))
      const { requests } = test.server
      await expect.poll(() => test.server.requests, { timeout: 20_000 }).toBeGreaterThan(requests + 20)
      // A page's threads run in its renderer: the one that is busy now.
      const before = await renderers()
      await new Promise(resolve => setTimeout(resolve, 500))
      const spent = [...(await renderers())].map(([id, seconds]) => ({ id, seconds: seconds - (before.get(id) ?? 0) }))
      const [ours] = spent.sort((a, b) => b.seconds - a.seconds)
      expect(ours!.seconds).toBeGreaterThan(0.05)
      await page.close()
      await expect.poll(async () => [...(await renderers()).keys()], { timeout: 20_000 }).not.toContain(ours!.id)
      await expect.poll(() => test.server.underWay, { timeout: 20_000 }).toBe(0)
      const after = test.server.requests
      await new Promise(resolve => setTimeout(resolve, 500))
      expect(test.server.requests).toBe(after)
    })
  })
})
