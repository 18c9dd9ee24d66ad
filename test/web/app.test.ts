/** The app in Chromium, from a static host: what is picked, dropped and named, and what is none of it. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { serveTrials } from '#dist/index.js'
import { type Browser, type BrowserContext, hasChromium, launch, type Page } from '../support/chromium.js'
import { isRequired, ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { scratchDirectory } from '../support/scratch.js'
import { StaticServer } from '../support/static-server.js'
import { writeHostile } from '../view/hostile.js'

const FIXTURES = join(ROOT, 'fixtures')
const VANISHING = join(FIXTURES, 'trials/mlp-vanishing')
const RUN = join(FIXTURES, 'checkpoints/run')
const scratch = scratchDirectory('app')
let server: StaticServer
let browser: Browser
let context: BrowserContext
let page: Page
/** What went wrong in the page, and what it asked of others, or sent. */
let wrong: string[]

beforeAll(async () => {
  if (!hasChromium && !isRequired('chromium')) return
  server = await StaticServer.start({ app: join(ROOT, 'dist/app'), fixtures: FIXTURES, scratch })
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
})
beforeEach(async () => {
  if (browser === undefined) return
  wrong = []
  context = await browser.newContext()
  // Its dialog is the browser's own: no test can answer it.
  await context.addInitScript('delete globalThis.showDirectoryPicker')
  page = await context.newPage()
  page.on('console', message => wrong.push(`console: ${message.text()}`))
  page.on('pageerror', error => wrong.push(`error: ${error.message}`))
  context.on('request', request => {
    if (request.method() !== 'GET') wrong.push(`${request.method()} ${request.url()}`)
    if (!request.url().startsWith(server.url) && !/^(blob|data):/.test(request.url())) wrong.push(request.url())
  })
})
afterEach(() => context?.close())

/** The verdict, once rules have judged all there is. */
const judged = (shown = page) =>
  expect.poll(() => shown.textContent('#view .verdict'), { timeout: 60_000 }).toMatch(/^(?!Not judged|.*so far, in)/)
const start = () => page.goto(`${server.url}app/index.html`)
const isOpen = () => page.waitForSelector('#report nav a[aria-current]')
const urlOf = (directory: string) => `${server.url}fixtures${directory.slice(FIXTURES.length)}`

async function openUrl(url: string): Promise<void> {
  await page.goto(`${server.url}app/index.html?open=${encodeURIComponent(url)}`)
}

/** Opens a view by its tab. */
async function openView(shown: Page, name: string): Promise<void> {
  await shown.evaluate(`document.querySelector('#view').firstElementChild.dataset.old = ''`)
  await shown.click(`nav a:text-is("${name}")`)
  await shown.waitForSelector('#view > :not([data-old])')
}

/** The text of a view that changes no more. */
async function settled(shown: Page): Promise<string | null> {
  for (
    let [before, now] = ['', await shown.textContent('#view')];
    ;
    [before, now] = [now!, await shown.textContent('#view')]
  ) {
    if (now === before) return now
    await new Promise(resolve => setTimeout(resolve, 1000))
  }
}

describe.runIf(hasChromium || isRequired('chromium'))('the app', () => {
  it.each([
    ['a trial', VANISHING],
    ['a run of checkpoints', RUN],
    ['a trial of XGBoost', join(FIXTURES, 'trials/xgb-cancer')],
  ])('shows of %s behind a URL what serve shows', async (_, directory) => {
    await openUrl(`${urlOf(directory)}/`)
    await isOpen()
    const served = await serveTrials(directory, { port: 0 })
    const other = await browser.newPage()
    try {
      await other.goto(served.url)
      for (const shown of [page, other]) await judged(shown)
      const tabs = await page.locator('nav a').allTextContents()
      expect(tabs).toEqual(await other.locator('nav a').allTextContents())
      for (const tab of [...tabs.filter(tab => tab !== 'Embedding').slice(1), tabs[0]!]) {
        for (const shown of [page, other]) await openView(shown, tab)
        const expected = await settled(other)
        await expect.poll(() => page.textContent('#view'), { timeout: 60_000 }).toBe(expected)
      }
    } finally {
      await other.close()
      await served.close()
    }
    expect(wrong).toEqual([])
  })

  it('opens a folder and a file that somebody picks, and uploads nothing', async () => {
    for (const [field, picked, heading] of [
      ['#folder', VANISHING, 'mlp-vanishing'],
      ['#folder', RUN, 'run'],
      ['#files', join(FIXTURES, 'checkpoints/base/model.safetensors'), 'model.safetensors'],
    ] as const) {
      await start()
      await page.setInputFiles(field, picked)
      await isOpen()
      expect(await page.textContent('h1')).toBe(heading)
      expect(await page.title()).toBe(`${heading} – trialscan`)
      await judged()
    }
    expect(wrong).toEqual([])
  })

  it('opens what is dropped: a file, or a folder where the browser hands it out', async () => {
    await start()
    const bytes = [...readFileSync(join(FIXTURES, 'checkpoints/base/model.safetensors'))]
    await page.evaluate(`{
      const dropped = new DataTransfer()
      dropped.items.add(new File([Uint8Array.from(${JSON.stringify(bytes)})], 'model.safetensors'))
      document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: dropped }))
    }`)
    await isOpen()
    expect(await page.textContent('h1')).toBe('model.safetensors')

    await start()
    await page.evaluate(`(async () => {
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('my-run', { create: true })
      const writable = await (await folder.getFileHandle('model.safetensors', { create: true })).createWritable()
      await writable.write(Uint8Array.from(${JSON.stringify(bytes)}))
      await writable.close()
      DataTransferItem.prototype.getAsFileSystemHandle = async () => folder
      const dropped = new DataTransfer()
      dropped.items.add(new File([], 'my-run'))
      document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: dropped }))
    })()`)
    await isOpen()
    expect(await page.textContent('h1')).toBe('my-run')
    expect(wrong).toEqual([])
  })

  it('says of a folder that is no trial what is in it and what it would take, and offers those below', async () => {
    const folder = join(scratch, 'none')
    mkdirSync(folder)
    for (const name of ['notes.txt', '<img src=x onerror=alert(1)>.csv']) writeFileSync(join(folder, name), '')
    await start()
    await page.setInputFiles('#folder', folder)
    expect(await page.textContent('[role=alert]')).toMatch(
      /^none can’t be opened.*expected a trial: files under collections.*notes\.txt/,
    )
    expect(await page.locator('[role=alert] img').count()).toBe(0)

    await page.setInputFiles('#folder', join(FIXTURES, 'trials'))
    await page.waitForSelector('[role=alert] h2:text-is("Which one in trials?")')
    await page.click('button:text-is("workers-4")')
    await isOpen()
    expect(await page.textContent('h1')).toBe('workers-4')
    expect(wrong).toEqual([])
  })

  it('says of a URL with nothing behind it what is missing, and keeps it in its field', async () => {
    await openUrl(`${server.url}fixtures/nothing/`)
    expect(await page.textContent('[role=alert]')).toMatch(
      /listing\.txt: no such file \(HTTP status 404\).*find \. -type f/,
    )
    expect(await page.inputValue('#url')).toBe(`${server.url}fixtures/nothing/`)
    await page.fill('#url', 's3://bucket/trial')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[role=alert]:has-text("expected an http:// or https:// URL")')
  })

  it('opens without a network once it was loaded', async () => {
    await start()
    await expect
      .poll(() => page.evaluate('navigator.serviceWorker.controller !== null'), { timeout: 60_000 })
      .toBe(true)
    await context.setOffline(true)
    await page.reload()
    await page.setInputFiles('#folder', VANISHING)
    await isOpen()
    await judged()
    await openView(page, 'Embedding')
  })

  it('opens again from a host that redirects index.html, and without a network', async () => {
    server.hasCleanUrls = true
    try {
      await page.goto(`${server.url}app/`)
      await expect
        .poll(() => page.evaluate('navigator.serviceWorker.controller !== null'), { timeout: 60_000 })
        .toBe(true)
      await page.reload()
      await page.waitForSelector('#pick-folder')
      await context.setOffline(true)
      await page.reload()
      await page.setInputFiles('#folder', VANISHING)
      await isOpen()
    } finally {
      server.hasCleanUrls = false
    }
  })

  it('sees a training behind a URL grow', async () => {
    const writer = await LiveWriter.start(join(scratch, 'live'), 1)
    try {
      await writer.step(0, 0)
      await openUrl(`${server.url}scratch/live/`)
      await page.waitForSelector('.live:text-is("live: 1 steps")')
      await writer.step(1, 0)
      await page.waitForSelector('.live:text-is("live: 2 steps")', { timeout: 60_000 })
      await writer.end()
      await page.waitForSelector('.live:text-is("ended after 2 steps")', { timeout: 60_000 })
    } finally {
      writer.stop()
    }
    expect(wrong).toEqual([])
  })

  it('lets no name of a hostile trial do anything, and its page ask nothing of others', async () => {
    const hostile = join(scratch, 'hostile')
    writeHostile(hostile)
    await start()
    await page.setInputFiles('#folder', hostile)
    await isOpen()
    await judged()
    for (const tab of (await page.locator('nav a').allTextContents()).slice(1)) await openView(page, tab)
    expect(wrong).toEqual([])
    expect(await page.title()).toBe('hostile – trialscan')
    const asked = await page.evaluate(`fetch('http://127.0.0.1:9/').catch(error => String(error))`)
    expect(asked).toContain('Failed to fetch')
    expect(wrong.join()).toContain('Content Security Policy')
  })

  it('is worked by keyboard, has names for all, and is never wider than the screen', async () => {
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 800 })
      await start()
      const isWider = 'document.documentElement.scrollWidth > innerWidth'
      expect(await page.evaluate(isWider), `${width}`).toBe(false)
    }
    const names: unknown[] = []
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press('Tab')
      names.push(
        await page.evaluate(`document.activeElement.labels?.[0]?.textContent || document.activeElement.textContent`),
      )
    }
    expect(names).toEqual([
      'Choose a folder',
      'Choose files',
      'Or the URL of a trial or a checkpoint',
      'Open',
      'Licences',
    ])
    await page.focus('button:text-is("Choose a folder")')
    await page.evaluate(`document.getElementById('folder').onclick = event => {
      event.preventDefault()
      document.title = 'asked'
    }`)
    await page.keyboard.press('Enter')
    await expect.poll(() => page.title(), { timeout: 60_000 }).toBe('asked')
    await page.setInputFiles('#folder', VANISHING)
    await isOpen()
    // Who can't see it is where the page begins.
    expect(await page.evaluate('document.activeElement.id')).toBe('view')
  })
})
