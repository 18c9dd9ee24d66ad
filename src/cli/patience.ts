/** V8 of Node.js 20 told to wait with compiling, for commands whose threads run for about a second. */

import { setFlagsFromString } from 'node:v8'

/**
 * V8 11, of Node.js 20, soon compiles functions that run a few thousand times and are done by then, which took a seventh of the CPU time of comparing two runs of
 * 1 GB, and a fifteenth of that of judging one. This has it wait for about twice as long. Later versions wait by themselves, and don't know the flag.
 */
const PATIENCE = '--interrupt-budget=300000'

export function waitWithCompiling(): void {
  if (process.versions.v8.startsWith('11.')) setFlagsFromString(PATIENCE)
}
