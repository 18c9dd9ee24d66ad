/** The examples of the documentation are run, against a trial that holds what they name. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { TrialWriter } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
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
    .replaceAll('/data/my-training', JSON.stringify(trial).slice(1, -1))
    .replaceAll("'./my-run'", JSON.stringify(join(scratch, 'my-run')))
    .replaceAll("'trialscan/kernels'", JSON.stringify(pathToFileURL(join(ROOT, 'dist/kernels.js')).href))
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

const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples/README.md',
  'bench/README.md',
  ...pages,
  ...readdirSync(join(ROOT, 'docs/design')).map(name => `docs/design/${name}`),
]

it.each(PAGES)('every file that %s links to is there', page => {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, target]) => target!)
  expect(targets.filter(target => !existsSync(join(ROOT, dirname(page), target)))).toEqual([])
})

it.each(PAGES)('every section that %s links to is there', page => {
  const links = readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(((?:[\w./-]+\.md)?)#([^)\s]+)\)/g)
  const missing = [...links].filter(
    ([, target, section]) => !sectionsOf(join(dirname(page), target || basename(page))).has(section!),
  )
  expect(missing.map(([link]) => link)).toEqual([])
})

it('the start page leads to every page', () => {
  const text = readFileSync(join(ROOT, 'docs/README.md'), 'utf8')
  for (const page of pages) {
    if (page !== 'docs/README.md') expect(text).toContain(`(${page.slice('docs/'.length)})`)
  }
})

it('the README shows what check prints', async () => {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [shown] = /^mlp-vanishing: [\s\S]*?(?=^```$)/m.exec(text)!
  const { stdout } = await trialscan('check', join(ROOT, 'fixtures/trials/mlp-vanishing'), '--format', 'table')
  let from = 0
  for (const line of shown.split('\n').filter(line => line.trim() !== '…')) {
    const at = stdout.indexOf(line, from)
    expect(at, line).toBeGreaterThanOrEqual(from)
    from = at + line.length
  }
})

it('the exit codes of docs/cli.md are those of --help', async () => {
  const text = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')
  const { stdout } = await trialscan('--help')
  const [, codes] = stdout.split('Exit codes:')
  const told = [...codes!.matchAll(/^ {2}(\d[\d, ]*?) {2}/gm)].map(([, code]) => code!.trim())
  expect([...text.matchAll(/^\| (\d[\d, ]*?) \|/gm)].map(([, code]) => code!)).toEqual(told)
})

/** The anchors that GitHub gives the headings of a page. */
function sectionsOf(page: string): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  return new Set(
    Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading]) =>
      heading!
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    ),
  )
}
