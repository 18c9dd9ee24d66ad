/** Writes dist/app: a static page that opens a trial in the browser (src/web/app). dist/web and dist/view are built before. */

import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { forBrowser, licensesOf, root } from './bundled.mjs'

const out = join(root, 'dist/app')
const source = join(root, 'src/web/app')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

rmSync(out, { recursive: true, force: true })
mkdirSync(out)
copyFileSync(join(root, 'build/release.wasm'), join(out, 'trialscan.wasm'))
copyFileSync(join(source, 'index.html'), join(out, 'index.html'))
const { metafile } = await build({
  ...forBrowser,
  outdir: out,
  splitting: true,
  define: { VERSION: JSON.stringify(version) },
  entryPoints: {
    app: 'dist/web/app/main.js',
    reader: 'dist/web/app/reader.js',
    worker: 'dist/web/thread.js',
  },
})
await build({ ...forBrowser, inject: [], outdir: out, entryPoints: [join(source, 'app.css')] })
// What the page loads before a trial is opened, for test/web/app.test.ts.
writeFileSync(join(root, 'dist/web/app/metafile.json'), JSON.stringify(metafile))
writeFileSync(join(out, 'licenses.txt'), licensesOf(Object.keys(metafile.inputs)))

const files = readdirSync(out).sort()
const digest = createHash('sha256')
for (const file of files) digest.update(file).update(readFileSync(join(out, file)))
await build({
  ...forBrowser,
  inject: [],
  outdir: out,
  format: 'iife',
  define: { FILES: JSON.stringify(files), DIGEST: JSON.stringify(digest.digest('hex').slice(0, 16)) },
  entryPoints: ['dist/web/app/service-worker.js'],
})
