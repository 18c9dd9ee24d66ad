/** A directory for what the tests of a file write. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A new directory, which is removed after the last test of the file. */
export function scratchDirectory(label: string): string {
  const directory = mkdtempSync(join(tmpdir(), `trialscan-${label}-`))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}
