/**
 * Writes the types that are published: dist/bundle/index.d.ts, all in one file, and index.d.cts for CommonJS. TypeScript's
 * node16 takes no ES module's declarations in a CommonJS module as they are, so the latter says of each name that it has
 * the type it has in the former.
 */

import { writeFileSync } from 'node:fs'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'

const bundle = await rollup({ input: 'dist/index.d.ts', plugins: [dts()], external: /^[^./]/ })
await bundle.write({ file: 'dist/bundle/index.d.ts' })

const lines = Object.entries(await import('./dist/index.js')).flatMap(([name, value]) => {
  const declared = `export declare const ${name}: typeof types.${name}`
  const isClass = typeof value === 'function' && /^class\b/.test(String(value))
  return isClass ? [declared, `export type ${name} = types.${name}`] : [declared]
})
const from = "from './index.js' with { 'resolution-mode': 'import' }"
writeFileSync(
  'dist/bundle/index.d.cts',
  [`import type * as types ${from}`, `export type * ${from}`, ...lines, ''].join('\n'),
)
