/** Checkpoints in a real browser: golden answers by URL, from folders and from files, and what is wrong with others. */

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, verifyTrial } from '#dist/index.js'
import { WebTest } from '../support/browser-page.js'
import { CHECKPOINTS, FIXTURES, goldenPlaces, hasCheckpoints } from '../support/checkpoints.js'
import { hasChromium } from '../support/chromium.js'

describe.runIf(hasChromium && hasCheckpoints)('in Chromium', () => {
  let test: WebTest

  beforeAll(async () => {
    test = await WebTest.start()
    test.server.serve('checkpoints', CHECKPOINTS)
  })

  afterAll(() => test?.stop())

  const isFile = (place: string) => statSync(join(CHECKPOINTS, place)).isFile()
  const urlOf = (place: string) => `${test.server.url}checkpoints/${place}${isFile(place) ? '' : '/'}`

  describe.each(goldenPlaces())('$place', golden => {
    type Case = readonly [kind: 'http' | 'folder' | 'files' | 'file', url: string, threads: number]
    const differences = (...[kind, url, threads]: Case) =>
      test.page.evaluate(([kind, url, golden, threads]) => tests.differences(kind, url, golden, { threads }), [
        kind,
        url,
        golden,
        threads,
      ] as const)

    it('has the golden answers behind a URL', async () => {
      for (const threads of [0, 1]) expect(await differences('http', urlOf(golden.place), threads)).toEqual([])
    })

    it('has them in the page', async () => {
      const kind = isFile(golden.place) ? 'file' : 'folder'
      for (const threads of [0, 1]) expect(await differences(kind, urlOf(golden.place), threads)).toEqual([])
      if (kind === 'file') return
      await test.page.setInputFiles('input', join(CHECKPOINTS, golden.place))
      expect(await differences('files', '', 1)).toEqual([])
    })
  })

  it('has the digests of Node.js, and holds a checkpoint against a list', async () => {
    const lines: string[] = []
    const place = 'trials/torch-2.13/new-dtypes.pt'
    await verifyTrial(join(CHECKPOINTS, place), { onDigest: line => void lines.push(line) })
    expect(lines.length).toBeGreaterThan(10)
    for (const threads of [0, 1]) {
      const told = await test.page.evaluate(
        async ([url, list, threads]) => {
          const lines: string[] = []
          const onDigest = (line: string) => void lines.push(line)
          const { ok, stats } = await tests.web.verifyTrial(url, { threads, digests: list, onDigest })
          return { lines, ok, digests: stats.digests }
        },
        [urlOf(place), lines.join(''), threads] as const,
      )
      expect(told).toEqual({ lines, ok: true, digests: { equal: lines.length, of: lines.length } })
    }
  })

  const broken = hasCheckpoints ? readdirSync(join(CHECKPOINTS, 'trials/broken')) : []
  it.each(broken)('broken/%s: tells what Node.js tells', async name => {
    const place = join('trials/broken', name)
    const told = async (work: () => Promise<unknown>) => {
      try {
        return await work()
      } catch (error) {
        return (error as { readonly code: string }).code
      }
    }
    const problems = await told(async () => {
      const trial = await createTrial(join(CHECKPOINTS, place), { refresh: 'manual' })
      const codes = trial.problems.map(({ code }) => code)
      await trial.close()
      return codes
    })
    const verified = await told(async () => (await verifyTrial(join(CHECKPOINTS, place))).problemCounts)
    const there = await test.page.evaluate(async url => {
      const told = async (work: () => Promise<unknown>) => {
        try {
          return await work()
        } catch (error) {
          return (error as { readonly code: string }).code
        }
      }
      const problems = await told(async () => {
        const trial = await tests.web.createTrial(url, { refresh: 'manual' })
        return trial.problems.map(({ code }) => code)
      })
      return [problems, await told(async () => (await tests.web.verifyTrial(url)).problemCounts)]
    }, urlOf(place))
    expect(there).toEqual([problems, verified])
  })

  it('a file has its own name and step, by URL with a query, and as a file', async () => {
    const place = join('trials/st-run', 'step_000010.safetensors')
    const run = async (url: string) => {
      const [byUrl, file] = [await tests.web.createTrial(`${url}?signature=x`), await tests.placeOf('file', url)]
      const asFile = await tests.web.createTrial(file)
      return [byUrl, asFile].map(({ name, checkpoint }) => [name, checkpoint!.tensors, byUrl.steps()])
    }
    const told = await test.page.evaluate(run, urlOf(place))
    expect(told).toEqual(Array(2).fill(['step_000010.safetensors', expect.any(Number), [10]]))
  })

  it('an index behind a URL leads to its shards', async () => {
    const directory = join(FIXTURES, 'tuned')
    const names = await test.page.evaluate(
      async url => (await tests.web.createTrial(`${url}model.safetensors.index.json`)).tensorNames(),
      test.urlOf(directory),
    )
    const trial = await createTrial(directory)
    expect(names).toEqual(trial.tensorNames())
    await trial.close()
  })
})
