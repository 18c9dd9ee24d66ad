/** The examples of the documentation are run, against a trial that holds what they name. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { TrialWriter } from '../fixtures/event-writer.js'
import { ROOT } from './support/golden.js'

// Within the package, so that its own name and its types are found.
const scratch = mkdtempSync(join(ROOT, 'test', '.docs-'))

const trial = join(scratch, 'trial')

beforeAll(() => {
  const writer = new TrialWriter(trial)
  for (const [modeStep, step] of [0, 50, 100].entries()) {
    const tensors = ['fc.weight', 'fc.bias', 'gradient/fc.weight', 'loss', 'relu_output_0'].map(
      name => ({ name, dtype: 'float32', shape: [2], values: [step, 1] }) as const,
    )
    writer.step({ step, mode: 'TRAIN', modeStep, tensors })
  }
  writer.end()
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const pages = readdirSync(join(ROOT, 'docs'))
  .filter(name => name.endsWith('.md'))
  .map(name => `docs/${name}`)

function exampleOf(page: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const blocks = [...text.matchAll(/^```ts( run)?\n([\s\S]*?)^```$/gm)]
  // Of the README every example is run, of the pages those that say so.
  return blocks.flatMap(([, run, code]) => (run || page === 'README.md' ? [code!] : [])).join('\n')
}

it.each(['README.md', ...pages].filter(page => exampleOf(page) !== ''))('%s', async page => {
  const code = exampleOf(page)
    .replaceAll("'/data/my-training'", JSON.stringify(trial))
    .replaceAll("'trialscan'", JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href))
  const file = join(scratch, `${page.replaceAll('/', '-')}.ts`)
  writeFileSync(file, `${code}\nexport {}\n`)
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    await expect(import(/* @vite-ignore */ pathToFileURL(file).href)).resolves.toBeDefined()
  } finally {
    log.mockRestore()
  }
})
