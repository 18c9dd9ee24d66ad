/**
 * Programs that tests run in processes of their own, compiled once a run: with tsx each of some dozen processes would take half a
 * second more.
 */

import { join } from 'node:path'
import { buildSync } from 'esbuild'

const root = join(import.meta.dirname, '..')
const programs = ['live-writer', 'disturber']

/** Called by Vitest before the first test. */
export default function setup(): void {
  buildSync({
    entryPoints: programs.map(name => join(root, `test/support/${name}.ts`)),
    outdir: join(root, 'dist/programs'),
    bundle: true,
    packages: 'external',
    external: ['#dist/*'],
    platform: 'node',
    format: 'esm',
    sourcemap: 'inline',
  })
}
