/** A page in Chromium with trialscan/web, served beside the fixtures. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlePage } from './bundle-page.js'
import { type Browser, launch, type Page } from './chromium.js'
import { ROOT } from './golden.js'
import { StaticServer } from './static-server.js'

export class WebTest {
  readonly scratch = mkdtempSync(join(tmpdir(), 'trialscan-web-'))
  readonly server: StaticServer
  readonly browser: Browser
  page: Page

  private constructor(server: StaticServer, browser: Browser, page: Page) {
    this.server = server
    this.browser = browser
    this.page = page
  }

  static async start(): Promise<WebTest> {
    const server = await StaticServer.start({
      browser: join(ROOT, 'dist/browser'),
      fixtures: join(ROOT, 'fixtures'),
    })
    const browser = await launch()
    const test = new WebTest(server, browser, await browser.newPage())
    await bundlePage(join(test.scratch, 'page.js'))
    server.serve('page', test.scratch)
    await test.page.goto(server.url)
    return test
  }

  /** The URL of a trial among the fixtures, or in the scratch directory. */
  urlOf(directory: string): string {
    const fixtures = join(ROOT, 'fixtures')
    const [root, name] = directory.startsWith(fixtures) ? [fixtures, 'fixtures'] : [this.scratch, 'page']
    return `${this.server.url}${name}${directory.slice(root.length)}/`
  }

  async newPage(): Promise<Page> {
    const page = await this.browser.newPage()
    await page.goto(this.server.url)
    return page
  }

  async stop(): Promise<void> {
    await this.browser.close()
    await this.server.stop()
    rmSync(this.scratch, { recursive: true, force: true })
  }
}
