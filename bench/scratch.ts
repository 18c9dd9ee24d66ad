/** A directory of this run for inputs that others must read, made when it is needed and removed in the end. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let directory: string | undefined
let files = 0

/** A path in it; an existing one if the name was asked for before. */
export function scratchPath(name: string): string {
  directory ??= mkdtempSync(join(tmpdir(), 'trialscan-bench-'))
  return join(directory, name)
}

/** A new file with these bytes. */
export function scratchFile(bytes: Uint8Array): string {
  const path = scratchPath(`input-${files++}`)
  writeFileSync(path, bytes)
  return path
}

export function removeScratch(): void {
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  directory = undefined
}

// Also when it was interrupted.
process.once('exit', removeScratch)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
