/** One script, without modules and without files beside it. */

import { join } from 'node:path'
import { build } from 'esbuild'

const [source, out] = process.argv.slice(2)
await build({
  entryPoints: [join(source, 'inline/app.js')],
  bundle: true,
  format: 'iife',
  outfile: join(out, 'app.js'),
  target: 'es2022',
  logOverride: { 'empty-import-meta': 'silent' },
})
