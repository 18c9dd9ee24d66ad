/** What trialscan/web is made of: no more than a page can afford, and nothing of Node.js. */

import { getEventListeners } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Metafile } from 'esbuild'
import { describe, expect, it } from 'vitest'
import * as node from '#dist/index.js'
import * as web from '#dist/web/index.js'
import { createHash, normalize, setTimeout } from '#dist/web/platform.js'
import { ROOT } from '../support/golden.js'

const built = JSON.parse(readFileSync(join(ROOT, 'dist/web/metafile.json'), 'utf8')) as Record<
  'page' | 'worker',
  Metafile
>

/** What a file imports before it runs, and what that imports. */
function loadedWith({ outputs }: Metafile, file: string): string[] {
  const loaded = new Set([file])
  for (const one of loaded) {
    for (const { path, kind } of outputs[one]!.imports) if (kind === 'import-statement') loaded.add(path)
  }
  return [...loaded]
}

const app = JSON.parse(readFileSync(join(ROOT, 'dist/web/app/metafile.json'), 'utf8')) as Metafile

const compressed = (files: readonly string[]): number =>
  files.reduce((sum, file) => sum + gzipSync(readFileSync(join(ROOT, file)), { level: 9 }).length, 0)

describe('trialscan/web', () => {
  // Records behind damage (the walk of verify) take 10 of them, readPickle 5, checkpoints' store and names 6, files of their own 3, digests and SHA-256 3, checks of arguments 1, shards that vanish beside others 1, ranks that are missing and files that were not written 2, sums along an axis in registers and rows as views of columns 2; the parser of listings that S3 answers 4 of the thread's.
  it('takes at most 223 kB before a trial is opened, and as much once its threads have started', () => {
    const page = loadedWith(built.page, 'dist/browser/index.js')
    expect(compressed([...page, 'dist/browser/trialscan.wasm'])).toBeLessThan(223_000)
    expect(compressed(['dist/browser/worker.js'])).toBeLessThan(83_500)
  })

  it.each(['page', 'worker'] as const)(
    'imports nothing of Node.js in its %s, and no package but those it needs',
    kind => {
      const { inputs, outputs } = built[kind]
      for (const [file, { imports }] of Object.entries(outputs)) {
        for (const { path } of imports) expect(path, file).toMatch(/^dist\/browser\//)
      }
      const packages = Object.keys(inputs).map(file => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1])
      const known = [
        '@assemblyscript/loader',
        '@noble/hashes',
        '@rgrove/parse-xml',
        'iota-array',
        'is-buffer',
        'long',
        'ndarray',
        'protobufjs',
        're2js',
        'valibot',
      ]
      expect(known).toEqual(expect.arrayContaining([...new Set(packages)].filter(name => name !== undefined)))
    },
  )

  it('names nothing that only Node.js has', () => {
    for (const file of Object.keys({ ...built.page.outputs, ...built.worker.outputs })) {
      const text = readFileSync(join(ROOT, file), 'utf8')
      expect(text, file).not.toMatch(/\bfrom\s*"node:|\bimport\("node:|\brequire\("node:/)
    }
  })

  it('keeps the names of classes, by which rules and errors are called', () => {
    const texts = Object.keys(built.page.outputs).map(file => readFileSync(join(ROOT, file), 'utf8'))
    const kept = new Set(texts.flatMap(text => [...text.matchAll(/static name="(\w+)"/g)].map(([, name]) => name)))
    const classes = Object.entries(web).filter(
      ([, value]) => typeof value === 'function' && /^class\b/.test(value.toString()),
    )
    expect(classes.length).toBeGreaterThan(30)
    for (const [name] of classes) expect(kept, name).toContain(name)
  })

  it('has the names of trialscan, but for what needs a disk, S3 or processes', () => {
    const missing = Object.keys(node).filter(name => !(name in web))
    expect(missing.sort()).toEqual([
      'DIFFERENCE_COLUMNS',
      'DifferenceTable',
      'OutputFile',
      'PlanPlace',
      'TrialWriter',
      'commandAction',
      'compareDigests',
      'copyTrial',
      'createWriter',
      'createWriterFromJson',
      'debugOutput',
      'diff',
      'diffWorkers',
      'embed',
      'estimateFleet',
      'exportTensorBoard',
      'findTrials',
      'fleetStatus',
      'histograms',
      'importTensorBoard',
      'maxThreads',
      'mergedTable',
      'npyChunks',
      'parseActions',
      'parseColumns',
      'parseHookConfig',
      'parseWhere',
      'pickleStructure',
      'planFleet',
      'readValues',
      'recordStream',
      'reindexTrial',
      'repairTrial',
      'reportHtml',
      'runShard',
      'serveTrials',
      'shardName',
      'tableBytes',
      'tensorboardOutput',
      'traceNonFinite',
      'trialFiles',
      'trialFingerprint',
      'trialOverview',
    ])
    expect(Object.keys(web).filter(name => !(name in node))).toEqual(['loadCore'])
  })
})

describe('the app', () => {
  const files = readdirSync(join(ROOT, 'dist/app'))

  it('takes at most 200 kB before a trial is opened, and 550 with all that it keeps to be opened without a network', () => {
    const page = [...loadedWith(app, 'dist/app/app.js'), 'dist/app/app.css', 'dist/app/index.html']
    expect(compressed(page)).toBeLessThan(200_000)
    expect(compressed(files.map(file => `dist/app/${file}`))).toBeLessThan(550_000)
  })

  it('keeps each of its files, and needs nothing of Node.js', () => {
    const worker = readFileSync(join(ROOT, 'dist/app/service-worker.js'), 'utf8')
    for (const file of files.filter(file => file !== 'service-worker.js')) expect(worker).toContain(`"${file}"`)
    for (const { imports } of Object.values(app.outputs)) {
      for (const { path } of imports) expect(path).toMatch(/^dist\/app\//)
    }
  })

  it('has a policy that lets it run and ask nothing but its own', () => {
    const html = readFileSync(join(ROOT, 'dist/app/index.html'), 'utf8')
    expect(html).toContain("default-src 'none'; script-src 'self'; worker-src 'self'")
    expect(html).toContain("connect-src 'self'; base-uri 'none'; form-action 'self'")
    expect(html.replace(/placeholder="[^"]*"/, '')).not.toMatch(/https?:/)
  })
})

describe('what stands in for Node.js', () => {
  it.each([0, 1, 3, 54, 55, 56, 63, 64, 65, 119, 120, 1000])('digests %i bytes as node:crypto', async length => {
    const { createHash: reference } = await import('node:crypto')
    const text = 'aä€'.repeat(length).slice(0, length)
    expect(createHash('sha256').update(text).digest('hex')).toBe(reference('sha256').update(text).digest('hex'))
  })

  it.each([[1], [63, 1], [64, 64, 3], [5, 60, 130], [0, 200]])(
    'digests pieces of %j bytes as one',
    async (...lengths) => {
      const { createHash: reference } = await import('node:crypto')
      const [one, other] = [createHash('sha256'), reference('sha256')]
      for (const [i, length] of lengths.entries()) {
        const piece = new Uint8Array(length).fill(i + 1)
        one.update(piece)
        other.update(piece)
      }
      expect(one.digest('hex')).toBe(other.digest('hex'))
    },
  )

  it.each(['a/b/../c', '', './a', 'a//b/', '/../a', 'a/..', '/', '../a/..', 'a/../..', './', '../', 'a/../'])(
    'makes of %j the path that node:path makes',
    async path => {
      const { normalize: reference } = await import('node:path/posix')
      expect(normalize(path)).toBe(reference(path))
    },
  )

  it('waits without leaving a listener at the signal, and not at all at an aborted signal', async () => {
    const controller = new AbortController()
    const { signal } = controller
    for (let i = 0; i < 3; i++) await setTimeout(1, undefined, { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    const waiting = setTimeout(60_000, undefined, { signal })
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(setTimeout(60_000, undefined, { signal })).rejects.toThrow('enough')
  })
})
