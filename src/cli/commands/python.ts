/** `trialscan python`: prints the package's trialscan.py. */

import { readFile } from 'node:fs/promises'
import { EXIT } from '../exit.js'
import { writeTo } from '../output.js'
import { PACKAGE } from '../version.js'

/** @returns the exit code */
export async function python(): Promise<number> {
  const text = await readFile(new URL('python/trialscan.py', PACKAGE), 'utf8')
  await writeTo(undefined, output => output.write(text))
  return EXIT.ok
}
