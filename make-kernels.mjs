/** Writes what `trialscan/kernels` is: the core's calls alone, in two files. */

import { build } from 'esbuild'
import { classNames } from './class-names.mjs'

await build({
  entryPoints: ['dist/kernels.js'],
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  outdir: 'dist/bundle',
  entryNames: '[name]',
  minify: true,
  plugins: [classNames],
  logLevel: 'warning',
})
