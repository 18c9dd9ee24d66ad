/** The command line under a shell: with limits, redirections and pipes. */

import { spawn } from 'node:child_process'
import { CLI } from '../cli/run.js'

export interface ShellOutcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a line of bash in which `trialscan` is the built command. Its arguments are `$1`, `$2`, …
 */
export function shell(line: string, args: readonly string[] = [], cwd?: string): Promise<ShellOutcome> {
  const script = `trialscan() { ${JSON.stringify(process.execPath)} ${JSON.stringify(CLI)} "$@"; }; ${line}`
  const child = spawn('bash', ['-c', script, 'bash', ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => resolve({ code, stdout, stderr }))
  })
}
