/** The command line under a shell: with limits, redirections and pipes. */

import { spawn } from 'node:child_process'
import { CLI, type Outcome, outcomeOf } from '../cli/run.js'

/**
 * Runs a line of bash in which `trialscan` is the built command. Its arguments are `$1`, `$2`, …
 */
export function shell(line: string, args: readonly string[] = [], cwd?: string): Promise<Outcome> {
  const script = `trialscan() { ${JSON.stringify(process.execPath)} ${JSON.stringify(CLI)} "$@"; }; ${line}`
  const child = spawn('bash', ['-c', script, 'bash', ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  return outcomeOf(child)
}
