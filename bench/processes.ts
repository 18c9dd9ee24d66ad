/** Other processes: whole runs of a program, and children that answer requests. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

export interface Run {
  /** From the start to the end of the process. */
  readonly elapsedMs: number
  /** From the start to the first byte on its standard output. */
  readonly firstByteMs: number
  readonly stdout: string
}

/** Runs a program; a failure is an error. */
export function runProcess([command, ...args]: readonly [string, ...string[]]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const pieces: Buffer[] = []
    let firstByteMs = Number.NaN
    let elapsedMs = Number.NaN
    child.stdout.once('data', () => {
      firstByteMs = performance.now() - start
    })
    child.stdout.on('data', piece => pieces.push(piece))
    child.once('error', reject)
    child.once('exit', () => {
      elapsedMs = performance.now() - start
    })
    child.once('close', code => {
      if (code === 0) resolve({ elapsedMs, firstByteMs, stdout: Buffer.concat(pieces).toString() })
      else reject(new Error(`${[command, ...args].join(' ')}: expected exit code 0, got ${code}`))
    })
  })
}

/** A child that answers one line for a line. */
export class Answerer {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  constructor([command, ...args]: readonly [string, ...string[]], env: Readonly<Record<string, string>> = {}) {
    const options = { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } } as const
    this.#child = spawn(command, args, options)
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
    running.push(this)
  }

  /** The words of the answer. One request at a time. */
  async ask(...words: readonly (string | number)[]): Promise<string[]> {
    this.#child.stdin.write(`${words.join('\t')}\n`)
    const { done, value } = await this.#lines.next()
    if (done) throw new Error(`${words.join(' ')}: expected an answer, but the process is gone`)
    const answer = (value as string).split('\t')
    if (answer[0] === 'error') throw new Error(`${words.join(' ')}: ${answer[1]}`)
    return answer
  }

  end(): void {
    this.#child.stdin.end()
  }
}

const running: Answerer[] = []

export function endAnswerers(): void {
  for (const answerer of running.splice(0)) answerer.end()
}
