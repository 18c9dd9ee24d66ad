/**
 * Writes dist/browser: what `trialscan/web` and `trialscan/web/inline` are in a browser. The modules are those of Node.js, but
 * for those that know a disk or threads: `browser` in package.json names another for each of them (src/web).
 */

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { classNames, writeLicenses } from './bundled.mjs'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const out = join(dist, 'browser')
const core = join(root, 'build/release.wasm')

/** Modules of Node.js of which src/web/platform has what is used. */
const PLATFORM = /^node:(timers\/promises|async_hooks|os|path|path\/posix|url|crypto|child_process)$/

const inBrowser = {
  name: 'in-browser',
  setup({ onResolve, onLoad }) {
    // Messages are read, and none is written.
    onLoad({ filter: /[\\/]protobufjs[\\/]src[\\/]writer(_buffer)?\.js$/ }, () => ({ contents: 'exports._configure = () => {}' }))
    onResolve({ filter: PLATFORM }, () => ({ path: join(dist, 'web/platform.js'), sideEffects: false }))
    // What nobody uses of these is left out; test/web/build.test.ts holds that nothing is left.
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }))
  },
}

const common = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  minify: true,
  inject: [join(dist, 'web/globals.js')],
  pure: ['optionsOf'],
  plugins: [inBrowser, classNames],
  outdir: out,
  metafile: true,
  legalComments: 'none',
  logLevel: 'warning',
}

rmSync(out, { recursive: true, force: true })
mkdirSync(out)
copyFileSync(core, join(out, 'trialscan.wasm'))
const worker = await build({ ...common, entryPoints: { worker: 'dist/web/thread.js' } })
writeFileSync(
  join(dist, 'web/inlined-files.js'),
  `export const CORE = ${JSON.stringify(readFileSync(core, 'base64'))}
export const WORKER = ${JSON.stringify(readFileSync(join(out, 'worker.js'), 'utf8'))}
`,
)
const page = await build({
  ...common,
  entryPoints: { index: 'dist/web/index.js', inline: 'dist/web/inline.js' },
  splitting: true,
})
// What the files are made of, for test/web/build.test.ts.
writeFileSync(join(dist, 'web/metafile.json'), JSON.stringify({ page: page.metafile, worker: worker.metafile }))
writeLicenses(
  out,
  [page, worker].flatMap(({ metafile }) => Object.keys(metafile.inputs)),
)
