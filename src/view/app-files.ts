/** The files of the app, a page that opens trials in the browser: scripts/make-app.mjs writes them. */

import { fileURLToPath } from 'node:url'
import { readFileIfThere } from '../storage/local/file.js'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  wasm: 'application/wasm',
  txt: 'text/plain; charset=utf-8',
}

export interface AppFile {
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** A file of the app; null if there is none of that name. */
export function appFile(name: string): AppFile | null {
  const type = TYPES[/^[\w-]+\.(\w+)$/.exec(name)?.[1] ?? '']
  const bytes =
    type === undefined ? null : readFileIfThere(fileURLToPath(new URL(`../../dist/app/${name}`, import.meta.url)))
  return bytes === null ? null : { type: type!, bytes: new Uint8Array(bytes) }
}
