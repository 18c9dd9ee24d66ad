/** Other processes: whole runs of a program, and children that answer requests. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'

export type Command = readonly [string, ...string[]]

/** The outcome of a process. */
export interface Run {
  /** The time from the start to the end of the process. */
  readonly elapsedMs: number
  /** The time from the start to the first byte on its standard output. */
  readonly firstByteMs: number
  readonly stdout: string
  readonly stderr: string
}

let launcher: Answerer | undefined

/** Runs a program, from a small process; a failure is an error. @param expectedCode the exit code that says that something was found */
export async function runProcess(command: Command, expectedCode = 0): Promise<Run> {
  launcher ??= new Answerer([process.execPath, fileURLToPath(new URL('children/launcher.mjs', import.meta.url))])
  const { code, ...run } = JSON.parse(await launcher.askLine(JSON.stringify(command))) as Run & { code: number | null }
  if (code !== 0 && code !== expectedCode)
    throw new Error(`${command.join(' ')}: expected exit code 0, got ${code}: ${run.stderr}`)
  return run
}

/** A program that says in the end, on standard error, what it took of CPUs. */
export function timed(command: Command): Command {
  return ['sh', '-c', '"$@"; code=$?; times >&2; exit $code', 'sh', ...command]
}

/** Milliseconds of CPU of one that was timed, user and system, of all threads; a shell knows them to about 10 ms. */
export function cpuMs({ stderr }: Run): number {
  const times = /(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*$/.exec(stderr)
  if (times === null) throw new Error(`expected times of CPUs, got ${stderr}`)
  const [minutes, seconds, minutesOfSystem, secondsOfSystem] = times.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
  ]
  return 1000 * (60 * (minutes + minutesOfSystem) + seconds + secondsOfSystem)
}

/** A child that answers one line for a line. */
export class Answerer {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  /** @param env beside this process's own @param greets true if the child begins with a line of its own */
  constructor([command, ...args]: Command, env: Readonly<{ [name: string]: string }> = {}, { greets = false } = {}) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } })
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
    // Lines come in their order.
    if (greets) void this.#lines.next()
    running.push(this)
  }

  /** The words of the answer. */
  async ask(...words: readonly (string | number)[]): Promise<string[]> {
    const answer = (await this.askLine(words.join('\t'))).split('\t')
    if (answer[0] === 'error') throw new Error(`${words.join(' ')}: ${answer[1]}`)
    return answer
  }

  /** One request at a time. */
  async askLine(line: string): Promise<string> {
    this.#child.stdin.write(`${line}\n`)
    const { done, value } = await this.#lines.next()
    if (done) throw new Error(`${line}: expected an answer, but the process is gone`)
    return value as string
  }

  end(): void {
    this.#child.stdin.end()
  }
}

const running: Answerer[] = []

export function endAnswerers(): void {
  for (const answerer of running.splice(0)) answerer.end()
}
