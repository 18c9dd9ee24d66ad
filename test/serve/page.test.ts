/** Pages of a server in a browser: live, listed, compared, and hostile. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, reportHtml, serveTrials, type TrialServer, trialOverview } from '#dist/index.js'
import { safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { type Browser, hasChromium, launch, type Page } from '../support/chromium.js'
import { isRequired, ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { scratchDirectory } from '../support/scratch.js'
import { dataOf } from '../view/data.js'
import { writeHostile, writeHostileCheckpoint } from '../view/hostile.js'
import { writeSamples } from '../view/samples.js'

const trialPath = (name: string) => join(ROOT, 'fixtures/trials', name)
const scratch = scratchDirectory('serve-page')
let browser: Browser
let page: Page
/** What went wrong in the page, and what it asked of others. */
let wrong: string[] = []
let server: TrialServer
const writers: LiveWriter[] = []
/** The first cell of a map. */
const CORNER = `(({ left, top, width }) => [left + width / 2, top + 2])(document.querySelector('#view canvas').getBoundingClientRect())`

interface Listed {
  readonly id: string
  readonly loss: { readonly lines: readonly object[] }
}

beforeAll(async () => {
  if (!hasChromium && !isRequired('chromium')) return
  browser = await launch()
  page = await browser.newPage()
  page.on('console', message => wrong.push(`console: ${message.text()}`))
  page.on('pageerror', error => wrong.push(`error: ${error.message}`))
  page.on('request', request => {
    if (!request.url().startsWith(server.url) && !/^(blob|data|about):/.test(request.url()))
      wrong.push(`request: ${request.url()}`)
  })
})
afterAll(() => browser?.close())
afterEach(async () => {
  await page.goto('about:blank')
  await server.close()
  for (const writer of writers.splice(0)) writer.stop()
})

async function open(paths: readonly string[], path: string): Promise<void> {
  wrong = []
  server = await serveTrials(paths, { port: 0, version: '1' })
  await go(path)
}

async function go(path: string): Promise<void> {
  await page.goto('about:blank')
  await page.goto(server.url + path)
  await page.waitForSelector('#report:not([aria-busy])')
}

describe.runIf(hasChromium || isRequired('chromium'))('a served page', () => {
  it('sees each step of a growing training, and its end', async () => {
    const directory = join(scratch, 'live')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    await open([directory], '/')
    await page.waitForSelector('.live:text-is("live: 1 steps")')
    for (let step = 1; step < 6; step++) {
      await writer.step(step, 0)
      await page.waitForSelector(`.live:text-is("live: ${step + 1} steps")`, { timeout: 60_000 })
      // The chart has it, too: it was read.
      await page.waitForSelector(`.facts dd:text-is("0 – ${step}")`, {
        state: 'attached',
        timeout: 60_000,
      })
    }
    // Nothing was asked anew but what is shown.
    expect(await page.locator('.overview svg').count()).toBeGreaterThan(0)
    await writer.end()
    await page.waitForSelector('.live:text-is("ended after 6 steps")')
    expect(wrong).toEqual([])
  })

  it('is one of nine, and all of them are told of steps: a browser has six connections to a server', async () => {
    const directory = join(scratch, 'tabs')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    await open([directory, trialPath('mlp-vanishing')], '/')
    const context = await browser.newContext()
    const tabs: Page[] = []
    for (let i = 0; i < 9; i++) {
      const tab = await context.newPage()
      tabs.push(tab)
      await tab.goto(`${server.url}/trials/${i % 2 === 0 ? 'tabs' : 'mlp-vanishing'}`)
      await tab.waitForSelector('#report:not([aria-busy])')
    }
    await writer.step(1, 0)
    for (const i of [0, 2, 8]) await tabs[i]!.waitForSelector('.live:text-is("live: 2 steps")')
    await tabs[1]!.waitForSelector('.live:text-is("ended after 15 steps")')
    // The tab that listened for all has gone.
    await tabs[0]!.close()
    await writer.step(2, 0)
    await tabs[8]!.waitForSelector('.live:text-is("live: 3 steps")')
    await context.close()
  })

  it('leaves alone what somebody looks at while it grows', async () => {
    const directory = join(scratch, 'looked-at')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    await open([directory], '/#layers')
    await page.fill('input[type=search]', 'loss')
    await page.focus('input[type=search]')
    await writer.step(1, 0)
    await page.waitForSelector('.live:text-is("live: 2 steps")')
    await page.keyboard.type('x')
    await expect.poll(() => page.inputValue('input[type=search]')).toBe('lossx')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('INPUT')
    expect(wrong).toEqual([])
  })

  it('keeps the focus on what can be done with the chosen trials while the list changes', async () => {
    const directory = join(scratch, 'focused')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    await open([directory, trialPath('mlp-vanishing')], '/')
    for (const name of ['focused', 'mlp-vanishing']) await page.check(`input[aria-label="Compare ${name}"]`)
    for (const [step, text] of ['Compare', 'Clear'].entries()) {
      await page.focus(`.losses button:text-is("${text}")`)
      await writer.step(step + 1, 0)
      await page.waitForSelector(`tr:has-text("focused") td[data-name=steps]:text-is("${step + 2}")`, {
        timeout: 60_000,
      })
      expect(await page.evaluate('document.activeElement.textContent')).toBe(text)
    }
    expect(wrong).toEqual([])
  })

  it('keeps the focus in the units of a growing training, and leaves out answers that come late', async () => {
    const directory = join(scratch, 'focused-units')
    const writer = new TrialWriter(directory)
    const values = Array.from({ length: 100 }, (_, i) => i % 2)
    const step = (step: number) =>
      writer.step({ step, tensors: [{ name: 'relu0_output_0', dtype: 'float32', shape: [1, 100], values }] })
    step(0)
    await open([directory], '/#units')
    await page.focus('.units button:text-is("Draw all 100")')
    step(1)
    await page.waitForSelector('.units .note:has-text("at step 1")', { timeout: 60_000 })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Draw all 100')
    // The first answer from now on is held back.
    await page.evaluate(`{
      const own = fetch
      globalThis.fetch = (...all) => {
        const answer = own(...all)
        if (globalThis.goOn || !String(all[0]).endsWith('/view/units')) return answer
        return new Promise(resolve => { globalThis.goOn = () => resolve(answer) })
      }
    }`)
    await page.keyboard.press('Enter')
    step(2)
    await page.waitForSelector('.units .note:has-text("at step 2")', { timeout: 60_000 })
    expect(await page.evaluate('document.activeElement.tagName')).toBe('CANVAS')
    expect(await page.locator('.units button:text-is("Draw all 100")').count()).toBe(0)
    // The late answer is there, and the page had time to draw it.
    await page.evaluate('goOn(); new Promise(resolve => setTimeout(resolve, 300))')
    expect(await page.textContent('.units .note')).toContain('at step 2')
    expect(wrong).toEqual([])
  })

  it('has the numbers of the scan, read when they are looked at', async () => {
    await open([trialPath('mlp-vanishing')], '/#layers')
    await page.locator('#view canvas').focus()
    await page.keyboard.press('ArrowRight')
    const text = (await page.textContent('.readout'))!
    const [, tensor, step, value] = /^(\S+) · step (\d+) \(TRAIN \d+\): abs_mean (\S+)$/.exec(text)!
    const query = `tensor=${encodeURIComponent(`^${tensor}$`)}&steps=${step}&reductions=abs_mean&format=json`
    const [row] = await (await fetch(`${server.url}/api/trials/mlp-vanishing/scan?${query}`)).json()
    expect(Number(value!.replaceAll('−', '-'))).toBe(row.abs_mean)
    await page.keyboard.press('Enter')
    await page.waitForSelector('.distribution svg')
    await page.waitForSelector('.elements')
    expect(wrong).toEqual([])
  })

  it('shows findings as the rules come to them', async () => {
    await open([trialPath('mlp-vanishing')], '/')
    await page.waitForSelector('.verdict.bad:has-text("VanishingGradient at step 0")')
    expect(wrong).toEqual([])
  })

  it('has the distributions of all gradients', async () => {
    await open([trialPath('mlp-vanishing')], '/#distributions')
    await page.waitForSelector('.panel p:has-text("% ≤ 0, variance")')
    expect(await page.locator('.panel').count()).toBe(20)
    expect(wrong).toEqual([])
  })

  it('computes embeddings and classes when they are asked for', async () => {
    const directory = join(scratch, 'samples')
    writeSamples(directory)
    await open([directory], '/#classes')
    await page.waitForSelector('.confusion')
    await go('/#embedding')
    await page.fill('.controls input', 'bottleneck_output_0')
    await page.keyboard.press('Tab')
    await page.waitForSelector('.embedding svg circle')
    expect(await page.locator('.pairs canvas').count()).toBe(8)
    expect(wrong).toEqual([])
  })

  it('keeps the picture of an embedding until the next one is computed', async () => {
    const directory = join(scratch, 'pool')
    const writer = new TrialWriter(directory)
    const numbers = (factor: number) => Array.from({ length: 150 }, (_, i) => (i * factor) % 101)
    for (const step of [0, 1]) {
      const tensors = [
        { name: 'code_output_0', dtype: 'float32', shape: [50, 3], values: numbers(7919 + step) },
        { name: 'other_output_0', dtype: 'float32', shape: [50, 3], values: numbers(104_729) },
      ] as const
      writer.step({ step, tensors })
    }
    writer.end()
    await open([directory], '/#embedding')
    // Bottlenecks come first.
    await page.click('.actions button')
    await page.waitForSelector('.embedding svg')
    const said = '50 samples a step, those of all steps placed together'
    expect(await page.textContent('#view article .muted')).toContain(`code_output_0, ${said}`)
    await page.evaluate(
      `{ const own = fetch; globalThis.fetch = (...all) => new Promise(resolve => { globalThis.goOn = () => resolve(own(...all)) }) }`,
    )
    await page.click('.actions button:text-is("other_output_0")')
    await page.waitForSelector('[role=status]:has-text("Points are computed …")')
    expect(await page.getAttribute('.embedding svg', 'aria-label')).toContain('code_output_0')
    await page.evaluate('goOn()')
    await page.waitForSelector('.embedding svg[aria-label*="other_output_0"]')
    expect(await page.textContent('#view')).not.toContain('undefined')
    expect(wrong).toEqual([])
  })

  it('has the trees, and how many outputs of units are off', async () => {
    await open([trialPath('xgb-cancer'), trialPath('mlp-all-zero')], '/trials/xgb-cancer#boosting')
    await page.waitForSelector('.trees .note:has-text("The tree at step 30: 3 leaves, 2 deep.")')
    await go('/trials/mlp-all-zero#units')
    const { html } = await reportHtml(await createTrial(trialPath('mlp-all-zero'), { refresh: 'manual' }))
    const [{ units }] = dataOf(html).trials as unknown as [{ readonly units: readonly { readonly tensor: string }[] }]
    const names = await page.locator('.units h4').allTextContents()
    expect(names).toHaveLength(Math.min(6, units.length))
    expect(units.map(({ tensor }) => tensor)).toEqual(expect.arrayContaining(names))
    expect(wrong).toEqual([])
  })

  it('keeps the visible part of a map of units while the training grows', async () => {
    const directory = join(scratch, 'units')
    const writer = new TrialWriter(directory)
    const values = Array.from({ length: 100 }, (_, i) => i % 2)
    const step = (step: number) =>
      writer.step({ step, tensors: [{ name: 'relu0_output_0', dtype: 'float32', shape: [1, 100], values }] })
    for (let i = 0; i < 10; i++) step(i)
    await open([directory], '/#units')
    const first = async () => {
      await page.mouse.move(0, 0)
      await page.mouse.move(...((await page.evaluate(CORNER)) as [number, number]))
      return page.textContent('.units .readout')
    }
    await page.focus('.units canvas')
    for (const key of ['+', '+', '+']) await page.keyboard.press(key)
    const before = await first()
    expect(before).toMatch(/^unit [1-9]\d* · step [1-9]: /)
    step(10)
    await page.waitForSelector('.units .note:has-text("at step 10")', { timeout: 60_000 })
    await expect.poll(first, { timeout: 60_000 }).toBe(before)
    expect(wrong).toEqual([])
  })

  it('lists many trials: searched, sorted, compared', async () => {
    const names = ['mlp-vanishing', 'mlp-all-zero', 'workers-4', 'dtypes']
    await open([...names.map(trialPath), join(scratch, 'nothing-there')], '/')
    await page.waitForSelector('tr:has-text("workers-4") >> text=ended')
    const shown = () => page.locator('.trials tbody a').allTextContents()
    expect(await shown()).toEqual(['dtypes', 'mlp-all-zero', 'mlp-vanishing', 'nothing-there', 'workers-4'])
    await page.waitForSelector('tr:has-text("nothing-there") >> text=can’t be read')
    await page.click('th button:text("Tensors")')
    expect((await shown()).at(-1)).toBe('dtypes')
    await page.fill('input[type=search]', 'mlp')
    expect((await shown()).sort()).toEqual(['mlp-all-zero', 'mlp-vanishing'])
    await page.fill('input[type=search]', 'no such text')
    await page.waitForSelector('p:text-is("None of 5 trials has this text in its name, its path or its first cause.")')
    expect(await page.locator('.trials').isVisible()).toBe(false)
    await page.fill('input[type=search]', 'mlp')
    for (const name of ['mlp-vanishing', 'mlp-all-zero']) await page.check(`input[aria-label="Compare ${name}"]`)
    await page.click('button:text-is("Compare")')
    await page.waitForSelector('article h2:has-text("Compared")', { timeout: 60_000 })
    expect(await page.locator('article h2 .badge').allTextContents()).toEqual(['A', 'B', 'A', 'B'])
    await page.click('a.back')
    await page.waitForSelector('.trials')
    // What can't be opened is told.
    expect(wrong.filter(one => !one.includes('502'))).toEqual([])
  })

  it('lists the loss, the last change and the verdict of each, and has the losses of several in one chart', async () => {
    const names = ['mlp-vanishing', 'mlp-all-zero', 'workers-4']
    await open(names.map(trialPath), '/')
    for (const name of names) await page.waitForSelector(`tr:has-text("${name}") .spark`, { timeout: 60_000 })
    const listed = (await (await fetch(`${server.url}/api/trials`)).json()) as Listed[]
    for (const { id, loss } of listed) {
      const trial = await createTrial(trialPath(id), { refresh: 'manual' })
      const { losses } = await trialOverview(trial)
      expect(loss.lines, id).toEqual(losses.map(({ mode, steps, values }) => ({ mode, steps, values })))
      await trial.close()
    }
    expect(await page.locator('.trials time').count()).toBe(3)
    await page.waitForSelector('tr:has-text("mlp-vanishing") .cause:has-text("VanishingGradient")', { timeout: 60_000 })
    const places = async () =>
      page.evaluate(
        `JSON.stringify([...document.querySelectorAll('tr')].map(row => row.getBoundingClientRect()).map(({ x, y, width, height }) => [x, y + scrollY, width, height]))`,
      )
    const before = await places()
    for (const name of names) await page.check(`input[aria-label="Compare ${name}"]`)
    await page.waitForSelector('svg[aria-label="The losses of 3 trials over the steps."]')
    // The list stays where it is, and the chart can be seen.
    expect(await places()).toBe(before)
    expect(await page.locator('.losses h4').isVisible()).toBe(true)
    const digits = (await page.locator('.spark span').allTextContents()).map(
      text => text.replace(/^0?[.]?0*|[.]/g, '').length,
    )
    expect(digits).toEqual([4, 4, 4])
    expect((await page.locator('.legend li').allTextContents()).map(text => text.split(' ')[0])).toEqual([
      ...['mlp-vanishing', 'mlp-vanishing', 'mlp-all-zero', 'mlp-all-zero', 'workers-4', 'workers-4'],
    ])
    expect(await page.getAttribute('button:text-is("Compare")', 'disabled')).toBe('')
    await page.click('button:text-is("Clear")')
    expect(await page.locator('.losses *').count()).toBe(0)
    expect(await page.locator('.trials input:checked').count()).toBe(0)
    expect(wrong).toEqual([])
  })

  it('keeps the columns of the list in place, tells where trials lie, and draws the finite part of a loss', async () => {
    const directory = join(scratch, 'lost')
    const writer = new TrialWriter(directory)
    for (const [step, value] of [1, Number.NaN, Number.NaN].entries())
      writer.step({ step, tensors: [{ name: 'loss', dtype: 'float32', shape: [1], values: [value] }] })
    writer.end()
    await open([trialPath('workers-4'), directory], '/')
    const columns = () =>
      page.evaluate(`JSON.stringify([...document.querySelectorAll('th')].map(one => one.getBoundingClientRect().left))`)
    await page.waitForSelector('.trials tbody tr')
    const before = await columns()
    for (const name of ['lost', 'workers-4'])
      await page.waitForSelector(`tr:has-text("${name}") .spark`, { timeout: 60_000 })
    await page.waitForSelector('tr:has-text("workers-4") .cause', { timeout: 60_000 })
    expect(await columns()).toBe(before)
    const roots = () => page.locator('td:first-child .muted').allTextContents()
    expect(await roots()).toEqual([`${scratch}/`, `${join(ROOT, 'fixtures/trials')}/`])
    expect(await page.locator('td.loss > .muted').allTextContents()).toEqual(['loss', 'loss TRAIN'])
    // A finite value, and two that are not.
    const parts = `[...document.querySelector('tr:has(a[href$=lost])').querySelectorAll('.spark path')].map(one => one.getAttribute('d').split('M').length - 1)`
    expect(await page.evaluate(parts)).toEqual([2, 1])
    await page.setViewportSize({ width: 390, height: 844 })
    const lines = (await page.evaluate(
      `[...document.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')].filter(cell => cell.offsetWidth > 0).map(cell => Math.round(cell.getBoundingClientRect().top - row.getBoundingClientRect().top)))`,
    )) as number[][]
    // The name, the state and the age, the loss and the steps, the verdict.
    for (const [name, state, loss, age, steps] of lines) {
      expect([state, age, steps]).toEqual([name, name, loss])
      expect(loss).toBeGreaterThan(name!)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
    await page.goto('about:blank')
    await server.close()
    await open([trialPath('workers-4'), trialPath('mlp-all-zero')], '/')
    await page.waitForSelector('tr:has-text("mlp-all-zero")')
    expect(await roots()).toEqual([])
    expect(wrong).toEqual([])
  })

  it('shows what differs once it is known, but no other number than the reader chose', async () => {
    const names = ['before', 'after']
    for (const [i, name] of names.entries()) {
      const tensors = ['one', 'two'].map(layer => tensorOf(`${layer}.weight`, 'F32', [2], [1, i]))
      writeFile(join(scratch, name, 'model.safetensors'), safetensors(tensors))
    }
    await open(
      names.map(name => join(scratch, name)),
      '/',
    )
    const context = await browser.newContext()
    // The comparison is held back.
    await context.addInitScript(
      `{
        const request = fetch, held = []
        globalThis.goOn = () => { globalThis.fetch = request; for (const go of held) go() }
        globalThis.fetch = (...all) => String(all[0]).startsWith('/api/compare/') ? new Promise(resolve => { held.push(() => resolve(request(...all))) }) : request(...all)
      }`,
    )
    const tab = await context.newPage()
    const show = async (view: string) => {
      await tab.goto('about:blank')
      await tab.goto(`${server.url}/compare/${names.join('/')}#${view}`)
      await tab.waitForSelector('#report:not([aria-busy])')
    }
    const statistic = '.controls label:has-text("Show") select'
    const drawn = () =>
      tab.evaluate(
        `[...document.querySelectorAll('#view canvas')].map(one => one.getAttribute('aria-label').split(' ')[0])`,
      )
    await show('layers')
    expect([await tab.inputValue(statistic), (await drawn()) as string[]]).toEqual(['l2', ['l2', 'l2', 'How']])
    // The reader types: the picture is drawn again, and is still of what the field says.
    await tab.focus('.controls input')
    await tab.evaluate(`document.querySelector('#view canvas').id = 'old'; goOn()`)
    await expect.poll(() => tab.locator('#old').count(), { timeout: 60_000 }).toBe(0)
    expect([await tab.inputValue(statistic), (await drawn()) as string[]]).toEqual(['l2', ['l2', 'l2', 'How']])
    await tab.click('nav a:text-is("Overview")')
    await tab.click('nav a:text-is("Layers × steps")')
    await tab.waitForSelector('canvas[aria-label^="difference "]')
    expect(await tab.inputValue(statistic)).toBe('difference')
    // The reader chooses what came first.
    await show('layers')
    for (const name of ['std', 'l2']) await tab.selectOption(statistic, name)
    await tab.click('nav a:text-is("Overview")')
    await tab.waitForSelector('section.overview')
    await tab.evaluate('goOn()')
    await tab.waitForSelector('.verdict:has-text("The runs first differ at step 0, in ")', { timeout: 60_000 })
    await tab.click('nav a:text-is("Layers × steps")')
    await tab.waitForSelector('#view canvas')
    expect([await tab.inputValue(statistic), (await drawn()) as string[]]).toEqual(['l2', ['l2', 'l2', 'How']])
    await context.close()
  })

  it('compares two trials as a report of them does', async () => {
    const names = ['mlp-vanishing', 'mlp-all-zero']
    await open(names.map(trialPath), `/compare/${names.join('/')}`)
    await page.waitForSelector('.verdict:has-text("The runs first differ at step 0, in ")', { timeout: 60_000 })
    const trials = await Promise.all(names.map(name => createTrial(trialPath(name), { refresh: 'manual' })))
    const { html } = await reportHtml(trials)
    for (const trial of trials) await trial.close()
    const { comparison } = dataOf(html) as unknown as { readonly comparison: { readonly verdict: string } }
    expect(await page.textContent('.verdict')).toBe(comparison.verdict)
    const ofServer = async () => [
      await page.locator('.scores td').allTextContents(),
      await page.locator('.changed :is(th, td)').allTextContents(),
    ]
    await page.waitForSelector('.changed')
    const served = await ofServer()
    const file = join(scratch, 'pair.html')
    writeFileSync(file, html)
    await page.goto('about:blank')
    await page.goto(pathToFileURL(file).href)
    await page.waitForSelector('.changed')
    expect(served).toEqual(await ofServer())
    await go(`/compare/${names.join('/')}#layers?show=difference&kind=all`)
    await expect
      .poll(() => page.locator('option:text-is("difference")').count(), { timeout: 60_000 })
      .toBeGreaterThan(0)
    expect(wrong.filter(one => !one.includes('file:'))).toEqual([])
  })

  it('can be walked through by keys alone', async () => {
    await open([trialPath('mlp-vanishing'), trialPath('workers-4')], '/')
    await page.waitForSelector('tr:has-text("workers-4")')
    await page.focus('input[type=search]')
    for (let i = 0; i < 30; i++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate('document.activeElement.textContent')) === 'mlp-vanishing') break
    }
    await page.keyboard.press('Enter')
    await page.waitForSelector('section.overview')
    expect(wrong).toEqual([])
  })

  it.each([
    ['hostile', writeHostile, 'ended'],
    ['hostile-checkpoint', writeHostileCheckpoint, 'running'],
  ])('runs nothing that a %s is made of', async (name, make, state) => {
    make(join(scratch, name))
    await open([join(scratch, name), trialPath('dtypes')], '/')
    await page.waitForSelector(`tr:has-text("${name}") >> text=${state}`)
    for (const view of [
      'overview',
      'layers',
      'tensor',
      'embedding',
      `tensor=${encodeURIComponent('weight\u0000\u001b[31m\n\u2028')}`,
    ]) {
      await go(`/trials/${name}#${view}`)
      expect(await page.title()).toBe(`${name} – trialscan`)
      expect(await page.locator('img').count()).toBe(0)
    }
    expect(wrong).toEqual([])
  })
})
