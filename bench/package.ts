/** trialscan as its package offers it: the files that a user's Node.js would load. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface Manifest {
  readonly bin: { readonly trialscan: string }
  readonly exports: { readonly '.': { readonly default: string } }
  readonly devDependencies: Readonly<Record<string, string>>
}

const root = new URL('../', import.meta.url)

export const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest

export const COMMAND = fileURLToPath(new URL(manifest.bin.trialscan, root))

/** The URL of the library. */
export const LIBRARY = new URL(manifest.exports['.'].default, root).href
