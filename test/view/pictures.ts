/**
 * Writes pictures of a report's views: `npx tsx test/view/pictures.ts [DIRECTORY]`. Six of them, to be looked at; docs/pictures has four.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createTrial, reportHtml } from '#dist/index.js'
import { launch } from '../support/chromium.js'
import { ROOT } from '../support/golden.js'

const directory = resolve(process.argv[2] ?? join(ROOT, '.pictures'))
const trial = (name: string) => join(ROOT, 'fixtures/trials', name)

const PICTURES = [
  ['overview', ['mlp-vanishing'], 'overview', 'light'],
  ['layers', ['mlp-vanishing'], 'layers', 'light'],
  ['tensor', ['mlp-vanishing'], 'tensor=gradient%2FDeepSigmoid_hidden.7.weight', 'light'],
  ['compared', ['mlp-vanishing', 'mlp-all-zero'], 'overview', 'light'],
  ['compared-layers', ['mlp-vanishing', 'mlp-all-zero'], 'layers', 'light'],
  ['xgboost-dark', ['xgb-cancer'], 'overview', 'dark'],
] as const

mkdirSync(directory, { recursive: true })
const scratch = mkdtempSync(join(tmpdir(), 'trialscan-pictures-'))
const browser = await launch()
const page = await browser.newPage()
await page.setViewportSize({ width: 1200, height: 800 })
for (const [name, names, view, colorScheme] of PICTURES) {
  const trials = await Promise.all(names.map(name => createTrial(trial(name), { requireCollections: false })))
  const file = join(scratch, `${name}.html`)
  writeFileSync(file, (await reportHtml(trials)).html)
  for (const trial of trials) await trial.close()
  await page.emulateMedia({ colorScheme })
  await page.goto(`${pathToFileURL(file).href}#${view}`)
  await page.waitForSelector('#report:not([aria-busy])')
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true })
}
await browser.close()
rmSync(scratch, { recursive: true })
