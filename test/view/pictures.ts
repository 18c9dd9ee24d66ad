/**
 * Writes pictures of the views of reports and of a server: `npx tsx test/view/pictures.ts [DIRECTORY]`, to be looked at; docs/pictures has most of them.
 * Some are of trials that lie beside the project.
 */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createTrial, reportHtml, serveTrials } from '#dist/index.js'
import { launch } from '../support/chromium.js'
import { ROOT } from '../support/golden.js'

const directory = resolve(process.argv[2] ?? join(ROOT, '.pictures'))
const PLACES = [join(ROOT, 'fixtures/trials'), join(ROOT, '../shared/trials')]
const trial = (name: string) => PLACES.map(place => join(place, name)).find(existsSync)

const PICTURES = [
  ['overview', ['mlp-vanishing'], 'overview', 'light', {}],
  ['layers', ['mlp-vanishing'], 'layers', 'light', {}],
  ['distributions', ['mlp-vanishing'], 'distributions', 'light', {}],
  ['tensor', ['mlp-vanishing'], 'tensor=gradient%2FDeepSigmoid_hidden.7.weight', 'light', {}],
  ['compared', ['mlp-vanishing', 'mlp-all-zero'], 'overview', 'light', {}],
  ['compared-layers', ['mlp-vanishing', 'mlp-all-zero'], 'layers', 'light', {}],
  ['units', ['cnn-dead-relu'], 'units', 'light', {}],
  ['classes', ['cnn-good'], 'classes', 'light', {}],
  ['features', ['xgb-cancer'], 'boosting', 'light', {}],
  ['embedding', ['autoencoder'], 'embedding', 'light', { embed: 'bottleneck_output' }],
  ['xgboost-dark', ['xgb-cancer'], 'overview', 'dark', {}],
] as const

mkdirSync(directory, { recursive: true })
const scratch = mkdtempSync(join(tmpdir(), 'trialscan-pictures-'))
const browser = await launch()
const page = await browser.newPage()
await page.setViewportSize({ width: 1200, height: 800 })

async function shoot(url: string, name: string): Promise<void> {
  await page.goto(url)
  await page.waitForSelector('#report:not([aria-busy])')
  const ms = name === 'live' || name === 'trials' ? 2000 : 100
  await page.evaluate(`new Promise(resolve => setTimeout(resolve, ${ms}))`)
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true })
}

for (const [name, names, view, colorScheme, options] of PICTURES) {
  const paths = names.map(trial).filter(path => path !== undefined)
  if (paths.length < names.length) continue
  const trials = await Promise.all(paths.map(path => createTrial(path, { requireCollections: false })))
  const file = join(scratch, `${name}.html`)
  writeFileSync(file, (await reportHtml(trials, options)).html)
  for (const trial of trials) await trial.close()
  await page.emulateMedia({ colorScheme })
  await shoot(`${pathToFileURL(file).href}#${view}`, name)
}
await page.emulateMedia({ colorScheme: 'light' })
const served = ['workers-running', 'mlp-vanishing', 'mlp-all-zero', 'xgb-cancer']
  .map(trial)
  .filter(path => path !== undefined)
const server = await serveTrials(served, { port: 0 })
await shoot(`${server.url}/`, 'trials')
await shoot(`${server.url}/trials/workers-running`, 'live')
await server.close()
await browser.close()
rmSync(scratch, { recursive: true })
