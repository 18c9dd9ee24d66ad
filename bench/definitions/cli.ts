/** Whole processes, from start to exit. */

import { readFileSync, rmSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { REDUCTIONS } from '#dist/base/types.js'
import {
  type Case,
  type Contender,
  type Definition,
  expectSame,
  type Judge,
  type LateJudge,
  type Options,
  selfTimed,
} from '../definition.js'
import * as native from '../engines/native.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import { COMMAND, LIBRARY } from '../package.js'
import { type Command, type Run, runProcess } from '../processes.js'
import { expectReductions, expectReductionsOfFloat32 } from '../reductions.js'
import { scratchPath } from '../scratch.js'
import { expectedOf, type Trial, type TrialName, trial } from '../trials.js'

const NODE = process.execPath

export const cli: Definition = {
  name: 'cli',
  measures: 'whole processes from start to exit; files in the page cache, output to a file',
  *cases({ quick }: Options): Generator<Case> {
    for (const name of ['large', 'many'] satisfies TrialName[]) yield scanCase(name, trial(name, quick))
    yield smallCase(trial('small', quick))
    yield helpCase()
    for (const name of ['large', 'tenfold'] satisfies TrialName[]) yield memoryCase(trial(name, quick))
  },
}

export function scanCommand(dir: string, out: string, ...more: string[]): Command {
  return [NODE, COMMAND, 'scan', dir, '--reductions', 'all', '--format', 'csv', '--out', out, ...more]
}

/** The table of a whole trial, beside an expert's script and beside nothing but reading. */
function scanCase(name: TrialName, trial: Trial): Case {
  const { dir, title, tensorCount, byteLength } = trial
  const out = (who: string) => scratchPath(`${name}-${who}.csv`)
  const scanning = (label: string, ...more: string[]) =>
    processContender(`${ours.NAME}${label}`, scanCommand(dir, out('ours'), ...more), () =>
      wrongTable(out('ours'), trial),
    )
  const script = (processes: number) => {
    const command = numpy.script(dir, out('numpy'), processes)
    const label = `${numpy.NAME}, a script of ${processes} process${processes === 1 ? '' : 'es'}`
    const wrong = () => wrongTable(out('numpy'), trial, expectReductionsOfFloat32)
    return command === undefined ? [] : [processContender(label, command, wrong)]
  }
  const reading = (threads: number) => {
    const command = native.reader(`${dir}/events`, threads)
    const wrong = expectSame(`${byteLength}\n`)
    return command === undefined
      ? []
      : [processContender(`${native.NAME}, only reading, threads ${threads}`, command, ({ stdout }) => wrong(stdout))]
  }
  return {
    size: `scan of ${title}`,
    byteLength,
    rounds: 5,
    ...(name === 'many' && { records: tensorCount }),
    contenders: [scanning(''), scanning(', threads 1', '--threads', '1'), ...script(1), ...script(2), ...reading(2)],
  }
}

function smallCase(trial: Trial): Case {
  const out = scratchPath('small.csv')
  return {
    size: `scan of ${trial.title}`,
    contenders: [
      processContender(ours.NAME, scanCommand(trial.dir, out), () => wrongTable(out, trial)),
      nothing(),
      loading(),
    ],
  }
}

function helpCase(): Case {
  const toFirstByte = ({ firstByteMs }: Run) => firstByteMs
  return {
    size: '--help, first byte',
    contenders: [processContender(ours.NAME, [NODE, COMMAND, '--help'], wrongHelp, toFirstByte), nothing(toFirstByte)],
  }
}

const wrongHelp: Judge<Run> = ({ stdout }) =>
  stdout.includes('Usage: trialscan') ? undefined : `expected help, got ${JSON.stringify(stdout.slice(0, 80))}`

/** Node.js starting and saying one word: nobody who runs on it can be faster. */
function nothing(value?: (run: Run) => number): Contender {
  return processContender(
    'Node.js alone',
    [NODE, '-e', 'console.log(1)'],
    ({ stdout }) => expectSame('1\n')(stdout),
    value,
  )
}

/** Node.js loading the package and saying a word: what starts a process of ours, before it has anything to do. */
function loading(): Contender {
  const code = `await import(${JSON.stringify(LIBRARY)})\nconsole.log(1)`
  return processContender('the package loaded', [NODE, '--input-type=module', '-e', code], ({ stdout }) =>
    expectSame('1\n')(stdout),
  )
}

function memoryCase(trial: Trial): Case {
  const out = scratchPath('memory.csv')
  const command = scanCommand(trial.dir, out, '--threads', '2')
  const wrong = () => expectSame(trial.tensorCount)(countRows(out))
  return {
    size: `peak memory, scan of ${trial.title}`,
    unit: 'MB',
    rounds: 3,
    contenders: [memoryContender(`${ours.NAME}, threads 2`, command, wrong)],
  }
}

/** A program of Node.js, by the memory that it holds at most. */
export function memoryContender(
  engine: string,
  [node, ...rest]: Command,
  wrong: LateJudge<Run>,
  exitCode?: number,
): Contender {
  const preload = fileURLToPath(new URL('../children/peak-memory.mjs', import.meta.url))
  const peakMB = ({ stderr }: Run) => {
    const peak = /peak memory: (\d+) KiB/.exec(stderr)
    if (peak === null) throw new Error(`expected the peak of memory, got ${stderr}`)
    return (Number(peak[1]) * 1024) / 1e6
  }
  return processContender(engine, [node, '--import', preload, ...rest], wrong, peakMB, exitCode)
}

/** A program that reads trials; files of this run that it names are what it writes. */
export function processContender(
  engine: string,
  command: Command,
  wrong: LateJudge<Run>,
  value: (run: Run) => number = ({ elapsedMs }) => elapsedMs,
  exitCode = 0,
): Contender {
  const turn = async () => {
    // A file that takes the place of another waits for the disk (ext4), and most are new.
    for (const word of command.slice(1)) {
      if (word.startsWith(scratchPath('')) && statSync(word, { throwIfNoEntry: false })?.isFile()) rmSync(word)
    }
    const answer = await runProcess(command, exitCode)
    return { median: value(answer), answer }
  }
  return selfTimed(engine, turn, wrong)
}

function countRows(path: string): number {
  return readFileSync(path).reduce((lines, byte) => lines + (byte === 10 ? 1 : 0), 0) - 1
}

/** The fault of a table: its rows are the trial's, in order, and its numbers those expected. */
export function wrongTable(path: string, trial: Trial, expectAlike = expectReductions): string | undefined {
  const { steps, tensors } = trial
  const [head, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n')
  const first = head!.split(',').indexOf(REDUCTIONS[0]!)
  if (lines.length !== trial.tensorCount) return `expected ${trial.tensorCount} rows, got ${lines.length}`
  const all = expectedOf(trial)
  for (const [row, line] of lines.entries()) {
    const cells = line.split(',')
    const step = steps[Math.floor(row / (tensors.length * trial.workers))]!
    const { name } = tensors[row % tensors.length]!
    if (cells[0] !== name || Number(cells[1]) !== step)
      return `row ${row}: expected ${name} at step ${step}, got ${line}`
    const expected = all.subarray(row * REDUCTIONS.length, (row + 1) * REDUCTIONS.length)
    const got = Float64Array.from(cells.slice(first, first + REDUCTIONS.length), Number)
    const fault = expectAlike(expected, REDUCTIONS)(got)
    if (fault !== undefined) return `${name} at step ${step}: ${fault}`
  }
  return undefined
}
