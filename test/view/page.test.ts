/** Reports in a browser: every view of each golden trial and of a hostile one, by pointer and by keyboard. */

import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, reportHtml, type Trial } from '#dist/index.js'
import { type Browser, hasChromium, launch, type Page } from '../support/chromium.js'
import { isRequired, ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeHostile } from './hostile.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const VIEWS = ['overview', 'layers', 'tensor'] as const
const scratch = scratchDirectory('page')
let browser: Browser
let page: Page
/** What went wrong in the page, and what it asked of any network. */
let wrong: string[]

beforeAll(async () => {
  if (!hasChromium && !isRequired('chromium')) return
  browser = await launch()
  page = await browser.newPage()
  page.on('console', message => wrong.push(`console: ${message.text()}`))
  page.on('pageerror', error => wrong.push(`error: ${error.message}`))
  page.on('request', request => {
    if (!/^(file|blob|data):/.test(request.url())) wrong.push(`request: ${request.url()}`)
  })
})

afterAll(() => browser?.close())

async function write(
  ...paths: readonly string[]
): Promise<{ readonly url: string; readonly trials: readonly Trial[] }> {
  const trials: Trial[] = []
  for (const path of paths) trials.push(await createTrial(path, { requireCollections: false, refresh: 'manual' }))
  const file = join(scratch, `${trials.map(({ name }) => name).join('-')}.html`)
  writeFileSync(file, (await reportHtml(trials)).html)
  return { url: pathToFileURL(file).href, trials }
}

async function open(url: string, view: string): Promise<void> {
  wrong = []
  await page.goto('about:blank')
  await page.goto(`${url}#${view}`)
  await page.waitForSelector('#report:not([aria-busy])')
}

const close = (trials: readonly Trial[]) => Promise.all(trials.map(trial => trial.close()))

describe.runIf(hasChromium || isRequired('chromium'))('a page', () => {
  it.each(readdirSync(TRIALS))('of %s shows every view, and nothing goes wrong', async name => {
    const { url, trials } = await write(join(TRIALS, name))
    for (const view of VIEWS) {
      await open(url, view)
      expect(wrong, view).toEqual([])
      expect(await page.textContent('nav a[aria-current]')).toBe(
        { overview: 'Overview', layers: 'Layers × steps', tensor: 'Tensors' }[view],
      )
      // Each picture is told to those who don't see it.
      const pictures = await page.locator('#view figure > svg, #view canvas, #view figure div > svg').all()
      for (const picture of pictures) expect((await picture.getAttribute('aria-label'))!.length).toBeGreaterThan(10)
      if (view === 'layers') expect(await page.locator('#view canvas').count()).toBeGreaterThan(0)
    }
    await close(trials)
  })

  it('tells in each cell the number of the scan, to whoever moves by keys', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const expected = new Map<string, number>()
    for await (const { tensor, step, reductions } of trials[0]!.scan({ collection: 'gradients', mode: 'TRAIN' }))
      expected.set(`${tensor} ${step}`, reductions.abs_mean as number)
    await open(url, 'layers')
    await page.locator('#view canvas').focus()
    const names = [...new Set([...expected.keys()].map(key => key.split(' ')[0]!))]
    const seen = new Set<string>()
    await page.keyboard.press('ArrowRight')
    for (let row = 0; row < names.length; row++) {
      await page.keyboard.press('Home')
      for (let step = 0; step < 9; step++) {
        const text = (await page.textContent('.readout'))!
        const [, name, number, value] = /^(\S+) · step (\d+) \(TRAIN \d+\): abs_mean (\S+)$/.exec(text)!
        expect(Number(value), text).toBe(expected.get(`${name} ${number}`))
        seen.add(`${name} ${number}`)
        await page.keyboard.press('ArrowRight')
      }
      await page.keyboard.press('ArrowDown')
    }
    expect(seen.size).toBe(expected.size)
    await page.keyboard.press('Enter')
    await page.waitForSelector('section.tensor')
    expect(await page.textContent('h2.name')).toBe(names.at(-1))
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('can be walked through by keys alone', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'overview')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#view canvas')
    expect(await page.evaluate('document.activeElement.id')).toBe('view')
    // Four fields, a term of the legend, the picture.
    for (let i = 0; i < 6; i++) await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('CANVAS')
    await page.goBack()
    await page.waitForSelector('section.overview')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('gives the numbers of a chart as CSV, as a scan has them', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const name = 'gradient/DeepSigmoid_inp.weight'
    await open(url, `tensor=${encodeURIComponent(name)}`)
    await page.selectOption('.controls select >> nth=0', 'l2')
    await page.evaluate(
      `navigator.clipboard.writeText = text => { globalThis.copied = text; return Promise.resolve() }`,
    )
    await page.click('figure .actions button >> nth=0')
    const rows = String(await page.evaluate('copied'))
      .trim()
      .split('\n')
    const expected: string[] = []
    for await (const { step, reductions } of trials[0]!.scan({ tensors: name, reductions: ['l2'] }))
      expected.push(`TRAIN,${step},${reductions.l2}`)
    expect(rows).toEqual(['line,step,value', ...expected])
    await close(trials)
  })

  it('of two trials shows both on one scale, and the largest differences first', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'), join(TRIALS, 'mlp-all-zero'))
    for (const view of VIEWS) {
      await open(url, view)
      expect(wrong, view).toEqual([])
    }
    await open(url, 'overview')
    expect(await page.locator('article h2 .badge').allTextContents()).toEqual(['A', 'B'])
    await close(trials)
  })

  it('runs nothing that a hostile trial is made of', async () => {
    writeHostile(join(scratch, 'hostile'))
    const { url, trials } = await write(join(scratch, 'hostile'))
    for (const view of VIEWS) {
      await open(url, view)
      expect(wrong, view).toEqual([])
      expect(await page.title()).toBe('hostile – trialscan')
      expect(await page.locator('img').count()).toBe(0)
    }
    // Marks that reorder a line are spelled out.
    await open(url, `tensor=${encodeURIComponent('gradient/\u202egnp.exe')}`)
    expect(await page.textContent('h2.name')).toBe('gradient/\\u{202e}gnp.exe')
    await close(trials)
  })
})
