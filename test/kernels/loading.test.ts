/** What `trialscan/kernels` loads: files and bytes are counted, since times depend on who else is busy. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import * as kernels from '#dist/kernels.js'
import { ROOT } from '../support/golden.js'

const entry = join(ROOT, 'dist/bundle/kernels.js')

/** The files that are loaded with one, and the modules of Node.js and packages that they name. */
function loadedWith(file: string, found = { files: new Set<string>(), modules: new Set<string>() }) {
  if (found.files.has(file)) return found
  found.files.add(file)
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/\b(?:import|from)\s+"([^"]+)"/g)) {
    if (name!.startsWith('.')) loadedWith(join(dirname(file), name!), found)
    else found.modules.add(name!)
  }
  return found
}

it('is two files of 130 kB, comments included, no package and no module of Node.js', () => {
  const { files, modules } = loadedWith(entry)
  expect(files.size).toBeLessThanOrEqual(2)
  expect([...files].reduce((bytes, file) => bytes + readFileSync(file).length, 0)).toBeLessThan(132_000)
  expect([...modules]).toEqual([])
})

/** What Node.js has loaded of its own once a file is imported. */
function builtinsWith(file: string): string[] {
  const code = `await import(${JSON.stringify(pathToFileURL(file).href)})\nconsole.log(JSON.stringify(process.moduleLoadList))`
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }),
  ) as string[]
}

it('loads nothing of Node.js that another module would not', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-kernels-'))
  const plain = join(scratch, 'plain.mjs')
  writeFileSync(plain, 'import.meta.url\n')
  const bare = new Set(builtinsWith(plain))
  rmSync(scratch, { recursive: true })
  expect(builtinsWith(entry).filter(name => !bare.has(name))).toEqual([])
})

it('exports these names', () => {
  expect(Object.keys(kernels).sort()).toEqual([
    'Distribution',
    'EngineError',
    'FormatError',
    'Moments',
    'QueryError',
    'REDUCTIONS',
    'ReductionUndefined',
    'ThreadError',
    'TrialscanError',
    'UsageError',
    'allclose',
    'allocate',
    'along',
    'crc32c',
    'crc32cCombine',
    'createEngine',
    'decodeEvent',
    'difference',
    'distribution',
    'histogram',
    'maskedCrc32c',
    'mergeMoments',
    'moments',
    'momentsOf',
    'percentiles',
    'readTFRecords',
    'reduce',
  ])
})
