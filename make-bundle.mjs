/** Writes dist/bundle: the package on Node.js, in few files that load fast. */

import { rmSync } from 'node:fs'
import { build } from 'esbuild'
import { classNames } from './class-names.mjs'

const common = {
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  outdir: 'dist/bundle',
  entryNames: '[name]',
  minify: true,
  plugins: [classNames],
  logLevel: 'warning',
}
const modules = { ...common, format: 'esm', splitting: true }

rmSync('dist/bundle', { recursive: true, force: true })
await build({ ...modules, entryPoints: ['dist/index.js', 'dist/cli/main.js'] })
// The core's calls alone, in two files that share nothing with the others: from the sources, so that enums become numbers.
await build({ ...modules, entryPoints: ['src/kernels.ts'] })
// CommonJS: see src/runner/thread-entry.cts.
await build({
  ...common,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  entryPoints: ['dist/runner/thread-entry.cjs'],
  define: { 'import.meta.url': 'moduleUrl' },
  banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href" },
})
