/** The site as `npm run site` builds it: no dead link, and in Chromium its pages, the app and the examples that it opens. */

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { hasChromium, launch } from './support/chromium.js'
import { isRequired, ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'
import { StaticServer } from './support/static-server.js'

const site = join(scratchDirectory('site'), 'site')

beforeAll(() => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/make-site.mjs'), site], { stdio: 'pipe' })
}, 900_000)

/** The links of the pages to files and places that are not there. */
function deadLinks(): string[] {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.html'))
  const textOf = new Map(pages.map(page => [join(site, page), readFileSync(join(site, page), 'utf8')]))
  return pages.flatMap(page => {
    const from = join(site, page)
    const links = [...textOf.get(from)!.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, link]) =>
      link!.replaceAll('&amp;', '&'),
    )
    return links.flatMap(link => {
      const { protocol, pathname, hash } = new URL(link, pathToFileURL(from))
      if (protocol !== 'file:') return []
      const to = fileURLToPath(`file://${pathname}`)
      const place = decodeURIComponent(hash.slice(1))
      const isThere = existsSync(to) && (place === '' || !textOf.has(to) || textOf.get(to)!.includes(`id="${place}"`))
      return isThere ? [] : [`${page}: ${link}`]
    })
  })
}

it('has each document and each module, and no dead link', () => {
  for (const file of readdirSync(join(ROOT, 'docs')).filter(file => file.endsWith('.md')))
    expect(existsSync(join(site, 'docs', file.replace(/md$/, 'html'))), file).toBe(true)
  const modules = ['', '_kernels', '_tfjs', '_web'].map(name => `trialscan${name}.html`)
  expect(readdirSync(join(site, 'modules'))).toEqual(expect.arrayContaining(modules))
  expect(deadLinks()).toEqual([])
})

describe.runIf(hasChromium || isRequired('chromium'))('in a browser', () => {
  it('leads to the app with its examples, and asks nothing of others', async () => {
    // In a folder, as GitHub's pages are.
    const server = await StaticServer.start({ project: site })
    const browser = await launch()
    try {
      const wrong: string[] = []
      const page = await browser.newPage()
      page.on('pageerror', error => wrong.push(error.message))
      page.on('request', request => {
        if (!request.url().startsWith(server.url) && !/^(blob|data):/.test(request.url())) wrong.push(request.url())
      })
      for (const [example, verdict] of [
        ['a training that does not learn', 'VanishingGradient at step 0'],
        ['checkpoints with a NaN', 'ExplodingTensor at step 20'],
      ] as const) {
        await page.goto(`${server.url}project/docs/report.html`)
        expect(await page.textContent('h1')).toBe('A page about a training')
        await page.click(`a:text-is("Example: ${example}")`)
        await page.waitForSelector(`.verdict:has-text("${verdict}")`, { timeout: 120_000 })
      }
      expect(wrong).toEqual([])
    } finally {
      await browser.close()
      await server.stop()
    }
  })
})
