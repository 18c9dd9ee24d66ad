/** The rules of the tree: import order, and who alone may import what. See ARCHITECTURE.md. */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './support/golden.js'

/** Stages in import order: a file imports from its own stage or an earlier one. */
const STAGES = [
  'errors.ts',
  'types.ts',
  'options.ts',
  'store',
  'format',
  'plan.ts',
  'engine',
  'pool',
  'trial',
  'rule',
  'index.ts',
  'cli',
]

/** Who alone may import a module. */
const SOLE_IMPORTERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^@aws-sdk\//, /^store\/s3\.ts$/],
  [/^valibot$/, /^options\.ts$/],
  [/^piscina$/, /^pool\//],
  [/^@assemblyscript\/loader$/, /^engine\//],
  [/^node:fs/, /^(store\/local(-\w+)?|engine\/module)\.ts$|^cli\//],
  [/^re2js$/, /^format\/pattern\.ts$/],
  [/^(commander|picocolors|cli-progress)$/, /^cli\//],
  [/^node:(process|tty|readline)/, /^cli\//],
]

const SOURCE = join(ROOT, 'src')
const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .map(path => path.replaceAll('\\', '/'))
  .filter(path => path.endsWith('.ts'))

describe.each(files)('src/%s', file => {
  const text = readFileSync(join(SOURCE, file), 'utf8')
  const imports = [...text.matchAll(/(?:from|import\(|^import)\s*'([^']+)'/gm)].map(([, name]) => name!)

  it('imports only from its own stage or an earlier one', () => {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = posix.normalize(posix.join(posix.dirname(file), name.replace(/\.js$/, '.ts')))
      expect(files, `${file} imports ${name}`).toContain(target)
      if (stageOf(file) === 'cli' && stageOf(target) !== 'cli') expect(target).toBe('index.ts')
      expect(STAGES.indexOf(stageOf(target)), `${file} imports ${target}`).toBeLessThanOrEqual(
        STAGES.indexOf(stageOf(file)),
      )
    }
  })

  it('imports what only others may not', () => {
    for (const name of imports) {
      for (const [module, importers] of SOLE_IMPORTERS) {
        if (module.test(name)) expect(file, `${file} imports ${name}`).toMatch(importers)
      }
    }
  })

  it('leaves WebAssembly to the engine, and console and process to the command line', () => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    // A type crosses the pool as the thread's data; the values are made in the engine alone.
    if (!file.startsWith('engine/')) expect(code).not.toMatch(/\bnew WebAssembly\b|WebAssembly\.(?!Module\b)/)
    if (!file.startsWith('cli/')) expect(code).not.toMatch(/\bconsole\.|\bprocess\./)
  })
})

it('knows the stage of every source file', () => {
  for (const file of files) expect(STAGES, file).toContain(stageOf(file))
})

it('keeps the layers of the core in order', () => {
  const order = ['status', 'layout', 'arena', 'dtype', 'wire', 'crc32c-tables', 'crc32c', 'tfrecord', 'event']
  const core = join(ROOT, 'assembly')
  for (const [i, name] of order.entries()) {
    const text = readFileSync(join(core, `${name}.ts`), 'utf8')
    for (const [, target] of text.matchAll(/from '([^']+)'/g)) {
      const path = relative(core, join(dirname(join(core, `${name}.ts`)), target!)).replaceAll('\\', '/')
      expect(order.slice(0, i), `assembly/${name}.ts imports ${target}`).toContain(path)
    }
  }
})

function stageOf(file: string): string {
  return file.split('/')[0]!
}
