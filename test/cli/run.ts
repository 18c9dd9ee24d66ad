/** The command line as a child process. */

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from '../support/golden.js'

export const CLI = join(ROOT, 'dist/bundle/main.js')
export const PLAIN = join(ROOT, 'fixtures/generated/plain')
export const DTYPES = join(ROOT, 'fixtures/trials/dtypes')

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The outcome of a process, once it has ended and its pipes are closed. */
export function outcomeOf(child: ChildProcess): Promise<Outcome & { readonly signal: NodeJS.Signals | null }> {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

export async function trialscan(...args: readonly string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const { code, stdout, stderr } = await outcomeOf(child)
  return { code, stdout, stderr }
}

/** The objects of a scan in jsonl. */
export function objects(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as Record<string, unknown>)
}

/** A `check --follow` that runs: its texts so far, a wait for one of them, and its end. */
export function following(...args: readonly string[]) {
  const child = spawn(process.execPath, [CLI, 'check', ...args, '--follow'])
  const texts = { stdout: '', stderr: '' }
  let heard = () => {}
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      texts[stream] += text
      heard()
    })
  }
  const until = async (stream: 'stdout' | 'stderr', pattern: RegExp): Promise<void> => {
    while (!pattern.test(texts[stream])) await new Promise<void>(resolve => (heard = resolve))
  }
  const code = new Promise(resolve => child.on('close', resolve))
  return { child, texts, until, code }
}
