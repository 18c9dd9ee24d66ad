/** Commands that are interrupted, or that nobody listens to any more, at any moment: a quick and quiet end, whole lines. */

import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { constants as os } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { CLI, outcomeOf } from '../cli/run.js'
import { part } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'
import { shell } from '../support/shell.js'

const scratch = scratchDirectory('signals')
const trial = join(scratch, 'trial')
const bare = join(scratch, 'bare')
const isUnix = process.platform !== 'win32'

const STEPS = 150
const TENSORS = 100
/** Generous, on a machine that does other things as well: a second is what is promised. */
const SOON_MS = 5000

beforeAll(() => {
  for (const directory of [trial, bare]) {
    const writer = new TrialWriter(directory, { collections: { all: { includeRegex: ['.*'] } } })
    const data = new Uint8Array(1024)
    for (let step = 0; step < STEPS; step++) {
      const tensors: StepTensor[] = Array.from({ length: TENSORS }, (_, i) => {
        return { name: `layer${i}`, dtype: 'float32', shape: [256], data }
      })
      if (step === 0) {
        tensors.push({ name: 'large', dtype: 'float32', shape: [8 << 20], data: new Uint8Array(32 << 20) })
      }
      writer.step({ step, mode: 'TRAIN', tensors })
    }
    writer.end()
  }
  rmSync(join(bare, 'index'), { recursive: true })
})

type End = Awaited<ReturnType<typeof outcomeOf>> & { readonly tookMs: number }

type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
const SIGNALS: readonly SignalName[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Runs a command and sends it signals. */
async function interrupted(args: readonly string[], signal: SignalName, afterMs: readonly number[]): Promise<End> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = outcomeOf(child)
  let sentAt = Number.POSITIVE_INFINITY
  const timers = afterMs.map(ms =>
    setTimeout(() => {
      sentAt = Math.min(sentAt, performance.now())
      child.kill(signal)
    }, ms),
  )
  const outcome = await ended
  for (const timer of timers) clearTimeout(timer)
  return { ...outcome, tookMs: Math.max(0, performance.now() - sentAt) }
}

/** @param whole What the command prints if nothing disturbs it. */
function expectGoodEnd(
  { code, signal: by, stdout, stderr, tookMs }: End,
  signal: SignalName,
  done: readonly number[],
  whole: string,
) {
  expect(tookMs).toBeLessThan(SOON_MS)
  // Before there is a handler, and in the 10 ms after the last line in which Node.js takes itself apart, the signal ends
  // it by itself: with nothing said, or all.
  if (by !== null) {
    expect(by).toBe(signal)
    if (stdout !== '') expect(stdout).toBe(whole)
  } else expect([...done, 128 + os.signals[signal]]).toContain(code)
  expect(stdout === '' || stdout.endsWith('\n')).toBe(true)
  // Nothing but what the command has to say: that it wrote a file, or which data were missing.
  expect(stderr).not.toMatch(/ {4}at |Error|bug/)
}

/** Lines of jsonl and csv are whole if they can be read. */
function expectWholeLines(stdout: string, format: string | undefined): void {
  const lines = stdout.split('\n').slice(0, -1)
  if (format === 'jsonl') for (const line of lines) JSON.parse(line)
  if (format === 'csv') expect(new Set(lines.map(line => line.split(',').length)).size).toBeLessThan(2)
}

const RULES = ['--rule', 'AllZero,tensor_regex=layer']
const COMMANDS: readonly [name: string, args: readonly string[], out?: string][] = [
  ['scan, jsonl', ['scan', trial, '--threads', '0', '--format', 'jsonl']],
  ['scan, csv, on threads', ['scan', trial, '--threads', '2', '--format', 'csv', '--check-level', 'full']],
  ['scan, table', ['scan', trial, '--format', 'table']],
  ['scan without an index', ['scan', bare, '--format', 'jsonl']],
  ['scan into a file', ['scan', trial, '--threads', '2', '--out'], 'rows'],
  ['check, jsonl', ['check', trial, ...RULES, '--format', 'jsonl']],
  ['check, all rules', ['check', trial, '--threads', '2', '--format', 'jsonl']],
  ['check into a file', ['check', trial, ...RULES, '--threads', '2', '--out'], 'rows'],
  ['show', ['show', trial, 'large', '--step', '0']],
  ['show into a file', ['show', trial, 'large', '--step', '0', '--npy'], 'large.npy'],
  ['ls', ['ls', trial, '--json']],
  ['reindex', ['reindex', bare, '--out'], 'rebuilt'],
]
const MOMENTS = [0, 60, 110, 170, 240, 400]

/** Waits until something has come through a pipe. */
async function firstByte(reader: number, buffer: Buffer): Promise<Buffer> {
  for (;;) {
    try {
      if (readSync(reader, buffer, 0, 1, null) === 1) return buffer.subarray(0, 1)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

describe.runIf(isUnix)('a signal', () => {
  const isQuick = ([name]: (typeof COMMANDS)[number]) => ['scan, jsonl', 'check into a file'].includes(name)
  it.each(part(COMMANDS, isQuick))('at any moment ends %s', async (name, args, out) => {
    const sizes = new Set<number>()
    // With --out nothing is printed.
    const whole = out ? '' : (await interrupted(args, 'SIGINT', [])).stdout
    await Promise.all(
      MOMENTS.map(async (ms, i) => {
        const directory = join(scratch, `${name}-${ms}`)
        mkdirSync(directory)
        const signal = SIGNALS[i % 3]!
        const end = await interrupted(out ? [...args, join(directory, out)] : args, signal, [ms])
        expectGoodEnd(end, signal, name.startsWith('check') ? [0, 1] : [0], whole)
        expectWholeLines(end.stdout, args[args.indexOf('--format') + 1])
        // The file is there as a whole, or not at all; of many files, those that are there are whole.
        const left = readdirSync(directory, { recursive: true, encoding: 'utf8' })
        expect(left.filter(path => path.endsWith('.tmp'))).toEqual([])
        if (out === undefined || out === 'rebuilt') return
        // It is there before the command ends: a signal can come in between.
        if (end.code === 0 || end.code === 1 || left.length > 0) {
          expect(left).toEqual([out])
          sizes.add(statSync(join(directory, out)).size)
        }
      }),
    )
    expect(sizes.size).toBeLessThan(2)
  })

  it('that is sent again ends a command at once, and leaves no file either', async () => {
    const directory = join(scratch, 'twice')
    mkdirSync(directory)
    for (const ms of [100, 180, 260]) {
      const args = ['scan', trial, '--threads', '2', '--check-level', 'full', '--out', join(directory, 'rows')]
      const end = await interrupted(args, 'SIGINT', [ms, ms + 2, ms + 4])
      expectGoodEnd(end, 'SIGINT', [0], '')
      expect(readdirSync(directory).filter(file => file !== 'rows')).toEqual([])
      rmSync(join(directory, 'rows'), { force: true })
    }
  })

  const stalled = ['jsonl', 'csv', 'table'].flatMap(format => [0, 2].map(threads => ({ format, threads })))
  it.each(part(stalled, ({ format, threads }) => format === 'jsonl' && threads === 2))(
    'while nobody reads the pipe: $format, threads $threads',
    async ({ format, threads }) => {
      const pipe = join(scratch, `pipe-${format}-${threads}`)
      execFileSync('mkfifo', [pipe])
      const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
      const writer = openSync(pipe, constants.O_WRONLY)
      const args = ['scan', trial, '--format', format, '--threads', `${threads}`]
      const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', writer, 'ignore'] })
      closeSync(writer)
      const ended = new Promise<number | null>(resolve => child.on('exit', code => resolve(code)))
      const buffer = Buffer.alloc(1 << 20)
      let text = (await firstByte(reader, buffer)).toString()
      // As much as goes in: on most machines the pipe is full by then.
      await new Promise(resolve => setTimeout(resolve, 500))
      const sentAt = performance.now()
      child.kill('SIGINT')
      expect(await ended).toBe(130)
      expect(performance.now() - sentAt).toBeLessThan(SOON_MS)
      for (let read = readSync(reader, buffer); read > 0; read = readSync(reader, buffer)) {
        text += buffer.toString('utf8', 0, read)
      }
      closeSync(reader)
      expect(text.length).toBeGreaterThan(1)
      expect(text.endsWith('\n')).toBe(true)
      expectWholeLines(text, format)
    },
  )

  it('whose reader goes on after a while: not a row is lost, nor twice', async () => {
    const { stdout } = await shell('trialscan scan "$1" --format jsonl --reductions max | { sleep 1; cat; }', [trial])
    const lines = stdout.split('\n').slice(0, -1)
    expect(lines.length).toBe(STEPS * TENSORS + 1)
    expect(new Set(lines).size).toBe(lines.length)
  })
})

describe.runIf(isUnix)('a reader that leaves', () => {
  const commands = {
    'scan, jsonl': 'scan "$1" --format jsonl',
    'scan, csv, on threads': 'scan "$1" --format csv --threads 2',
    'scan, table': 'scan "$1" --format table',
    ls: 'ls "$1"',
    'ls, json': 'ls "$1" --json',
    show: 'show "$1" layer1 --step 1',
    check: `check "$1" ${RULES.join(' ')} --format table`,
    'check, jsonl': `check "$1" ${RULES.join(' ')} --format jsonl`,
    'rule-invoker': 'rule-invoker --trial-dir "$1" --rule-name AllZero --tensor_regex layer',
    help: '--help',
  }
  const readers = { 'after a line': 'head -n 1', 'after a byte': 'head -c 1', 'at once': 'true' }
  const isQuick = ([name]: readonly [string, string]) => ['scan, csv, on threads', 'help'].includes(name)
  it.each(part(Object.entries(commands), isQuick))('does not disturb %s', async (name, command) => {
    await Promise.all(
      Object.values(readers).map(async reader => {
        const line = `trialscan ${command} | ${reader}; exit "\${PIPESTATUS[0]}"`
        const { code, stderr } = await shell(line, [trial])
        // With what the rules found, if all of it was written before the reader left.
        expect(/check|invoker/.test(name) ? [0, 1] : [0]).toContain(code)
        expect(stderr).not.toMatch(/EPIPE|Error| {4}at /)
      }),
    )
  })
})
