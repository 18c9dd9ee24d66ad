/** Processes that are to end by themselves, or by a signal at any moment, do: many of them, four at a time. */

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CLI } from '../cli/run.js'
import { ROOT } from '../support/golden.js'

const RUNS = 60
const AT_ONCE = 4
/** What hangs never ends: this is much longer than any machine takes. */
const HUNG_MS = 60_000
const THREADS: readonly (readonly string[])[] = [['--threads', '0'], ['--threads', '1'], [], ['--threads', '2']]
const TRIALS = ['trials/dtypes', 'trials/mlp-vanishing', 'trials/workers-4', 'checkpoints/run', 'checkpoints/torch']

/** @returns how it ended; null: it did not, and was killed */
function ended(args: readonly string[], signalAfterMs: number | null): Promise<string | null> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.resume()
    let hangs = false
    const kill = setTimeout(() => {
      hangs = true
      child.kill('SIGKILL')
    }, HUNG_MS)
    const signal = signalAfterMs === null ? undefined : setTimeout(() => child.kill('SIGTERM'), signalAfterMs)
    child.on('exit', (code, by) => {
      clearTimeout(kill)
      clearTimeout(signal)
      resolve(hangs ? null : `${by ?? code}`)
    })
  })
}

it.runIf(process.platform !== 'win32')(
  'what keeps a process after its work does not make it deaf',
  async () => {
    // The command sets the exit code when its work is done.
    const endless = "setInterval(() => process.exitCode !== undefined && console.error('done'), 100)"
    const preload = `data:text/javascript,${encodeURIComponent(endless)}`
    const args = ['--import', preload, CLI, 'verify', join(ROOT, 'fixtures', TRIALS[0]!), '--threads', '0']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    const ended = new Promise(resolve => child.on('exit', resolve))
    const done = new Promise<void>(resolve => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => text.includes('done') && resolve())
    })
    await Promise.race([done, ended])
    child.kill('SIGTERM')
    expect(await ended).toBe(128 + constants.signals.SIGTERM)
  },
  HUNG_MS * 2,
)

it.runIf(process.platform !== 'win32')(
  'verify and scan end, on any number of threads, with a signal or without',
  async () => {
    const ends: string[] = []
    let next = 0
    const runOn = async (): Promise<void> => {
      for (let run = next++; run < RUNS; run = next++) {
        const trial = join(ROOT, 'fixtures', TRIALS[run % TRIALS.length]!)
        const command = run % 4 === 3 ? 'scan' : 'verify'
        const args = [command, trial, ...THREADS[(run >> 1) % THREADS.length]!]
        // At other moments of its life each time.
        const signalAfterMs = run % 3 === 2 ? (run * 37) % 400 : null
        ends.push(`${args.join(' ')}: ${await ended(args, signalAfterMs)}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, runOn))
    const allowed = `(?:0|4|SIGTERM|${128 + constants.signals.SIGTERM})`
    expect(ends.filter(end => !new RegExp(`: ${allowed}$`).test(end))).toEqual([])
    expect(ends.length).toBe(RUNS)
  },
  600_000,
)
