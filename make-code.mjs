/**
 * Writes dist/bundle/code: what V8 makes of the bundle's files while it opens and scans a trial, for the version that runs this.
 * bundle-main.cjs says what it is for.
 */

import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import vm from 'node:vm'

const BUNDLE = join(import.meta.dirname, 'dist/bundle')
const CODE = join(BUNDLE, 'code', `${process.arch}-${process.versions.v8}`)
const require = createRequire(import.meta.url)

/** One script a file, however often it is loaded: its functions are compiled in whichever run calls them. */
const scripts = new Map()
const { Script } = vm
vm.Script = function (text, options) {
  const name = basename(options?.filename ?? '')
  const script = scripts.get(name) ?? new Script(text, { ...options, cachedData: undefined })
  if (name !== '') scripts.set(name, script)
  return script
}

rmSync(CODE, { recursive: true, force: true })
// The folder is what tells that there is something for this version.
mkdirSync(CODE, { recursive: true })
const scratch = mkdtempSync(join(tmpdir(), 'trialscan-code-'))
try {
  const trial = join(scratch, 'trial')
  const { createWriter } = await import('./dist/index.js')
  const writer = await createWriter(trial, { saveConfig: { saveInterval: 1 } })
  for (let step = 0; step < 5; step++) {
    await writer.step()
    for (let i = 0; i < 50; i++) await writer.save(`layer${i}.weight`, Float32Array.from({ length: 256 }, Math.random))
  }
  await writer.close()

  const scan = (...options) => command('scan', trial, '--reductions', 'all', '--out', join(scratch, 'out'), ...options)
  await scan()
  await scan('--threads', '2', '--format', 'csv')
  const { createTrial } = loadedAnew('index.cjs')
  const opened = await createTrial(trial)
  for await (const _ of opened.scan());
  await opened.close()
  for (const [name, script] of scripts) writeFileSync(join(CODE, name), script.createCachedData())
} finally {
  rmSync(scratch, { recursive: true })
}

/** Runs a command as a process of its own would. */
async function command(...args) {
  process.argv = [process.execPath, join(BUNDLE, 'main.cjs'), ...args]
  loadedAnew('main.cjs')('./cli.cjs')
  await once(process, 'beforeExit')
  if (process.exitCode) throw new Error(`${args.join(' ')}: exit code ${process.exitCode}`)
}

function loadedAnew(file) {
  for (const path of Object.keys(require.cache)) delete require.cache[path]
  return require(join(BUNDLE, file))
}
