/** A user's page, built by each bundler and run in Chromium. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { WebTest } from '../support/browser-page.js'
import { hasChromium } from '../support/chromium.js'
import { fixtureTrial, ROOT } from '../support/golden.js'

const PLAIN = fixtureTrial('plain').directory

describe.runIf(hasChromium)('a page', () => {
  let test: WebTest
  let source: string
  let expected: string[]

  beforeAll(async () => {
    test = await WebTest.start()
    // A project of a user: the package is installed in it.
    source = join(test.scratch, 'project')
    cpSync(join(ROOT, 'test/web/projects'), source, { recursive: true })
    writeFileSync(join(source, 'package.json'), '{ "type": "module" }')
    mkdirSync(join(source, 'node_modules'))
    symlinkSync(ROOT, join(source, 'node_modules/trialscan'))
    for (const name of ['esbuild', 'vite', 'webpack']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(source, 'node_modules', name))
    }
    const trial = await createTrial(PLAIN)
    expected = []
    for await (const { tensor, step, reductions } of trial.scan({ reductions: ['mean'] })) {
      expected.push(`${tensor} ${step} ${reductions?.mean}`)
    }
    await trial.close()
  })

  afterAll(() => test?.stop())

  it.each(['esbuild', 'vite', 'webpack', 'inline'])('built by %s scans a trial on a thread', async bundler => {
    const out = join(test.scratch, bundler)
    mkdirSync(out)
    await promisify(execFile)(process.execPath, [join(source, bundler, 'build.mjs'), source, out])
    const type = bundler === 'inline' ? '' : 'type="module"'
    writeFileSync(join(out, 'index.html'), `<!doctype html><script ${type} src="app.js"></script>`)
    const page = await test.browser.newPage()
    const errors: string[] = []
    page.on('pageerror', error => errors.push(error.message))
    await page.goto(`${test.server.url}page/${bundler}/index.html?trial=${test.urlOf(PLAIN)}`)
    await expect
      .poll(async () => errors.length > 0 || (await page.evaluate(() => document.title, null)) !== '')
      .toBe(true)
    expect(errors).toEqual([])
    expect(JSON.parse(await page.evaluate(() => document.title, null))).toEqual(expected)
    await page.close()
  })
})
