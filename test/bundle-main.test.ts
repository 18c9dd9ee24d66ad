/** How files of the bundle are loaded: compiled already where that is possible, and as ever elsewhere. */

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { PLAIN_TRIAL } from '../fixtures/corrupt.js'
import { CLI } from './cli/run.js'
import { ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('bundle-main')
const BUNDLE = join(ROOT, 'dist/bundle')

/** Says on standard error of each file of the bundle whether V8 took what was compiled. */
const WATCH = join(scratch, 'watch.cjs')
writeFileSync(
  WATCH,
  `const vm = require('node:vm')
  vm.Script = class extends vm.Script {
    constructor(text, options) {
      super(text, options)
      if (options?.filename) console.error(options.filename + ' ' + (this.cachedDataRejected === false))
    }
  }`,
)

/** What a scan prints, and of which files V8 took what was compiled. */
async function scanned(...flags: readonly string[]) {
  const args = [...flags, '-r', WATCH, CLI, 'scan', PLAIN_TRIAL, '--format', 'csv']
  const env = { ...process.env, NODE_OPTIONS: '' }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env })
  const lines = stderr
    .trimEnd()
    .split('\n')
    .map(line => line.split(' ') as [string, string])
  return { stdout, taken: Object.fromEntries(lines.map(([file, isTaken]) => [basename(file), isTaken === 'true'])) }
}

it('has all that a scan loads compiled, for the version that built it', async () => {
  const { taken } = await scanned()
  expect(Object.keys(taken).length).toBeGreaterThan(6)
  expect(Object.entries(taken).filter(([, isTaken]) => !isTaken)).toEqual([])
  for (const place of readdirSync(join(BUNDLE, 'code'))) {
    const compiled = readdirSync(join(BUNDLE, 'code', place))
    expect(readdirSync(BUNDLE)).toEqual(expect.arrayContaining(compiled))
  }
})

it('compiles the text where V8 has other flags', async () => {
  const { stdout, taken } = await scanned('--no-opt')
  expect(Object.values(taken)).not.toContain(true)
  expect(stdout).toBe((await scanned()).stdout)
})

it.each([
  ['by its own means', 'runInThisContext', 'require', false],
  ['by `require` in a version for which none are compiled', 'runInThisContext', 'withoutFolder', true],
  ['by `require` in a context with arrays of its own, as in Jest', 'runInNewContext', 'require', true],
])('loads files %s', async (_, run, given, isLeft) => {
  const text = `(function (require, module, __dirname) {${readFileSync(join(BUNDLE, 'main.cjs'), 'utf8').replace(/^#!.*/, '')}\n})`
  const script = `
    const { runInThisContext, runInNewContext } = require('node:vm')
    const withoutFolder = name => (name === 'node:fs' ? {} : require(name))
    const module = {}
    ${run}(${JSON.stringify(text)}, { process })(${given}, module, ${JSON.stringify(BUNDLE)})
    process.stdout.write(String(module.exports === ${given}))`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script])
  expect(stdout).toBe(String(isLeft))
})
