/** esbuild leaves `new URL(…, import.meta.url)` as it is: the two files go beside what it makes. */

import { copyFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'

const [source, out] = process.argv.slice(2)
await build({
  entryPoints: [join(source, 'app.js')],
  bundle: true,
  format: 'esm',
  splitting: true,
  outdir: out,
  target: 'es2022',
})
const { resolve } = createRequire(join(source, 'app.js'))
for (const file of ['worker.js', 'trialscan.wasm']) copyFileSync(resolve(`trialscan/web/${file}`), join(out, file))
