/**
 * Writes the types that are published: index.d.ts, kernels.d.ts, tfjs.d.ts and web.d.ts in dist/bundle, with what they share in files beside
 * them, and a .d.cts of the first three for CommonJS. TypeScript's node16 takes no ES module's declarations in a CommonJS module as
 * they are, so a .d.cts says of each name that it has the type it has in the .d.ts. What is marked as internal is left out, and so is
 * all that only it refers to.
 */

import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'

const ENTRIES = ['index', 'kernels', 'tfjs']
const DECLARATIONS = 'dist/types'

rmSync(DECLARATIONS, { recursive: true, force: true })
const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'))
const options = ['--emitDeclarationOnly', '--stripInternal', '--declarationDir', DECLARATIONS]
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', ...options], { stdio: 'inherit' })

const input = {
  ...Object.fromEntries(ENTRIES.map(name => [name, `${DECLARATIONS}/${name}.d.ts`])),
  web: `${DECLARATIONS}/web/index.d.ts`,
}
// The compiler of the core has written the types of its exports, as seen from dist.
const core = {
  name: 'core',
  resolveId: id => (id.endsWith('/build/release.js') ? fileURLToPath(new URL('../build/release.d.ts', import.meta.url)) : null),
}
const bundle = await rollup({ input, plugins: [core, dts()], external: /^[^./]/ })
await bundle.write({ dir: 'dist/bundle', entryFileNames: '[name].d.ts', chunkFileNames: 'types.d.ts' })

for (const entry of ENTRIES) {
  const lines = Object.entries(await import(`../dist/${entry}.js`)).flatMap(([name, value]) => {
    const declared = `export declare const ${name}: typeof types.${name}`
    const isClass = typeof value === 'function' && /^class\b/.test(String(value))
    return isClass ? [declared, `export type ${name} = types.${name}`] : [declared]
  })
  const from = `from './${entry}.js' with { 'resolution-mode': 'import' }`
  writeFileSync(
    `dist/bundle/${entry}.d.cts`,
    [`import type * as types ${from}`, `export type * ${from}`, ...lines, ''].join('\n'),
  )
}
