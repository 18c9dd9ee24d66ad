/**
 * Writes dist/browser: what `trialscan/web` and `trialscan/web/inline` are in a browser. The modules are those of Node.js, but
 * for those that know a disk or threads: `browser` in package.json names another for each of them (src/web).
 */

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { forBrowser, root, writeLicenses } from './bundled.mjs'

const dist = join(root, 'dist')
const out = join(dist, 'browser')
const core = join(root, 'build/release.wasm')

rmSync(out, { recursive: true, force: true })
mkdirSync(out)
copyFileSync(core, join(out, 'trialscan.wasm'))
const worker = await build({ ...forBrowser, outdir: out, entryPoints: { worker: 'dist/web/thread.js' } })
writeFileSync(
  join(dist, 'web/inlined-files.js'),
  `export const CORE = ${JSON.stringify(readFileSync(core, 'base64'))}
export const WORKER = ${JSON.stringify(readFileSync(join(out, 'worker.js'), 'utf8'))}
`,
)
const page = await build({
  ...forBrowser, outdir: out,
  entryPoints: { index: 'dist/web/index.js', inline: 'dist/web/inline.js' },
  splitting: true,
})
// What the files are made of, for test/web/build.test.ts.
writeFileSync(join(dist, 'web/metafile.json'), JSON.stringify({ page: page.metafile, worker: worker.metafile }))
writeLicenses(
  out,
  [page, worker].flatMap(({ metafile }) => Object.keys(metafile.inputs)),
)
