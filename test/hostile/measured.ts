/** The command line as a child process: what it prints, and its peak of memory. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { CLI } from '../cli/run.js'

const MAX_TOLD = 64 * 2 ** 20

export interface Measured {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Of all that was printed, also of what was not kept. */
  readonly byteLength: number
  /** Of resident memory, in bytes. */
  readonly peak: number
}

/** More than any command needs on a slow machine: it is ended then, which no test takes for an answer. */
const MAX_MS = 300_000

/** Runs a command; of its output no more than some MB is kept. */
export function measured(...args: readonly string[]): Promise<Measured> {
  return started(...args).ended
}

/** Starts a command that others talk to meanwhile. */
export function started(...args: readonly string[]): {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<Measured>
} {
  const tell = "process.on('exit',()=>process.stderr.write('\\npeak '+process.resourceUsage().maxRSS))"
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(tell)}`, CLI, ...args],
    {
      timeout: MAX_MS,
    },
  )
  const told = { stdout: '', stderr: '' }
  let byteLength = 0
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      byteLength += text.length
      if (told[name].length < MAX_TOLD) told[name] += text
    })
  }
  const ended = new Promise<Measured>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      const [, peak] = /\npeak (\d+)$/.exec(told.stderr) ?? []
      resolve({ code, ...told, byteLength, peak: Number(peak) * 1024 })
    })
  })
  return { child, ended }
}
