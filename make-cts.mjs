/**
 * Writes dist/index.d.cts: the types for CommonJS under TypeScript's node16, which takes no ES module's declarations as they
 * are. Types are those of index.d.ts, and so is the type of each value.
 */

import { writeFileSync } from 'node:fs'

const own = "import('./index.js', { with: { 'resolution-mode': 'import' } })"
const lines = Object.entries(await import('./dist/index.js')).flatMap(([name, value]) => {
  const declared = `export declare const ${name}: typeof ${own}.${name}`
  const isClass = typeof value === 'function' && /^class\b/.test(String(value))
  return isClass ? [declared, `export type ${name} = ${own}.${name}`] : [declared]
})
const types = "export type * from './index.js' with { 'resolution-mode': 'import' }"
writeFileSync('dist/index.d.cts', [types, ...lines, ''].join('\n'))
