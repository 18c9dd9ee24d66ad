/** Checkpoints, by the CPU time of whole processes. */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REDUCTIONS, type ReductionName } from '#dist/base/types.js'
import { setFor } from '#dist/core/moments.js'
import { createTrial } from '#dist/index.js'
import { distributedMetadata } from '../../test/support/pickles.js'
import {
  type Checkpoint,
  dump,
  expectedOf,
  makeCheckpoint,
  sparse70B,
  sparseRun,
  sparseZeros,
  tileBytes,
} from '../checkpoints.js'
import { type Case, type Contender, type Definition, expectSame, type Options, selfTimed } from '../definition.js'
import * as native from '../engines/native.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import { COMMAND } from '../package.js'
import { type Command, cpuMs, type Run, runProcess, timed } from '../processes.js'
import { expectReductions, expectReductionsOfFloat32 } from '../reductions.js'
import { scratchPath } from '../scratch.js'
import { memoryContender, processContender } from './cli.js'
import { momentsMs } from './floor.js'

const NODE = process.execPath
const THREADS = 2
const ROUNDS = 3
/** The rounds of cases in which a peer takes half a minute. */
const FEW_ROUNDS = 2

/** Two columns that answer whether a checkpoint is spoilt. */
const FEW = ['nan_count', 'abs_max'] as readonly string[] as readonly ReductionName[]

export const checkpoint: Definition = {
  name: 'checkpoint',
  measures:
    'CPU time of whole processes, for each element where ns are counted; files in the page cache, output to a file',
  *cases({ quick }: Options): Generator<Case> {
    const base = makeCheckpoint('bfloat16', quick)
    yield scanCase(base, 'all 18', REDUCTIONS)
    yield scanCase(base, 'nan_count and abs_max', FEW)
    yield dtypesCase([base, makeCheckpoint('float32', quick)])
    yield* torchCases(base)
    yield dumpCase(quick ? 1000 : 10_000)
    yield* listCases(base)
    yield* runCases()
    yield* sparseCases(quick ? 2 : 20)
  },
}

function scanCommand(dir: string, out: string, names: readonly ReductionName[]): Command {
  const option = names === REDUCTIONS ? 'all' : names.join()
  return [NODE, COMMAND, 'scan', dir, '--reductions', option, '--threads', `${THREADS}`, '--out', csv(out)]
}

function csv(name: string): string {
  return scratchPath(`${name}.csv`)
}

/** By nanoseconds of CPU an element. */
function perElement(engine: string, command: Command, elements: number, wrong: () => string | undefined): Contender {
  return processContender(engine, timed(command), wrong, run => (cpuMs(run) * 1e6) / elements)
}

/** @param dir where the same tensors lie in other files */
function oursOf(label: string, input: Checkpoint, names: readonly ReductionName[], dir = input.dir): Contender {
  const wrong = () => wrongTable('ours', input, names)
  return perElement(`${ours.NAME}${label}`, scanCommand(dir, 'ours', names), input.elements, wrong)
}

function peer(
  module: 'numpy' | 'torch',
  input: Checkpoint,
  names: readonly ReductionName[],
  dir = input.dir,
): Contender[] {
  const script = numpy.checkpoints(module, names === REDUCTIONS ? 'all' : 'few', dir, csv(module))
  if (script === undefined) return []
  const wrong = () => wrongTable(module, input, names, expectReductionsOfFloat32)
  return [perElement(script.engine, script.command, input.elements, wrong)]
}

/** The fault of a table: of every tensor a row, its numbers those expected. */
function wrongTable(
  out: string,
  { dtype, tensors }: Checkpoint,
  names: readonly ReductionName[],
  expectAlike = expectReductions,
): string | undefined {
  const rows = new Map(rowsIn(csv(out)).map(row => [row.tensor, row]))
  const byCount = new Map<number, Float64Array>()
  for (const { name, count } of tensors) {
    if (!byCount.has(count)) byCount.set(count, expectedOf(dtype, count))
    const all = byCount.get(count)!
    // There is no NaN.
    const expected = Float64Array.from(names, name => all[REDUCTIONS.indexOf(name)] ?? 0)
    const row = rows.get(name)
    const fault = row === undefined ? 'no row' : expectAlike(expected, names)(names.map(name => Number(row[name])))
    if (fault !== undefined) return `${name}: ${fault}`
  }
  return rows.size === tensors.length ? undefined : `expected ${tensors.length} rows, got ${rows.size}`
}

/** Cells by the names of their columns. */
function rowsIn(path: string): { readonly [column: string]: string }[] {
  const [head, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n')
  const columns = head!.split(',')
  return lines.map(line => Object.fromEntries(line.split(',').map((cell, i) => [columns[i]!, cell])))
}

function scanCase(input: Checkpoint, what: string, names: readonly ReductionName[]): Case {
  return {
    size: `${what} of ${input.title}`,
    unit: 'ns',
    rounds: FEW_ROUNDS,
    contenders: [
      oursOf('', input, names),
      ...theFloor(input, names),
      ...peer('numpy', input, names),
      ...peer('torch', input, names),
    ],
  }
}

/** Node.js alone, reading in C on two threads, and our kernels in the cache: their CPU time. */
function theFloor({ dir, dtype, elements, byteLength }: Checkpoint, names: readonly ReductionName[]): Contender[] {
  const reading = native.reader(dir, THREADS)
  if (reading === undefined) return []
  const kernels = momentsMs(setFor(names), dtype, tileBytes(dtype))
  const turn = async () => {
    const bare = cpuMs(await runProcess(timed([NODE, '-e', '0'])))
    const read = await runProcess(timed(reading))
    return { median: ((bare + cpuMs(read) + kernels() * byteLength) * 1e6) / elements, answer: Number(read.stdout) }
  }
  const wrong = (bytes: number) => (bytes > byteLength ? undefined : `expected all ${byteLength} B, got ${bytes}`)
  return [selfTimed('the floor', turn, wrong)]
}

/** A byte of bfloat16 holds twice the elements. */
function dtypesCase(all: readonly Checkpoint[]): Case {
  return {
    size: 'all 18, by dtype',
    unit: 'ns',
    rounds: ROUNDS,
    contenders: all.map(input => oursOf(`, ${input.dtype}`, input, REDUCTIONS)),
  }
}

/** Cases of the same tensors in torch's own containers. */
function* torchCases(input: Checkpoint): Generator<Case> {
  const out = scratchPath('torch')
  const saving = numpy.checkpoints('torch', 'save', input.dir, out)
  if (saving === undefined) return
  const [pt, dcp] = [join(out, 'pt'), join(out, 'dcp')]
  const saved = execFileSync(saving.command[0], saving.command.slice(1), { encoding: 'utf8' })
  writeFileSync(join(dcp, '.metadata'), distributedMetadata(chunksOf(input, JSON.parse(saved))))
  yield {
    size: `all 18 of ${input.title} in other files`,
    unit: 'ns',
    rounds: FEW_ROUNDS,
    contenders: [
      oursOf(', .pt', input, REDUCTIONS, pt),
      oursOf(', .safetensors', input, REDUCTIONS),
      oursOf(', .distcp of two ranks', input, REDUCTIONS, dcp),
      ...peer('torch', input, REDUCTIONS, pt),
    ],
  }
  yield memoryCase(
    `scan of ${input.title} in a .pt`,
    scanCommand(pt, 'ours', REDUCTIONS),
    rowsOf('ours', input.tensors.length),
  )
}

interface SavedChunk {
  readonly first: number
  readonly rows: number
  readonly place: { readonly file: string; readonly start: number; readonly length: number }
}

function chunksOf(
  { tensors, dtype }: Checkpoint,
  saved: Readonly<Record<string, readonly SavedChunk[]>>,
): Parameters<typeof distributedMetadata>[0] {
  const pieces = tensors.map(({ name, shape: [, ...rest], shape }) => {
    const chunks = saved[name]!.map(({ first, rows, place }) => ({
      offsets: [first, ...rest.map(() => 0)],
      sizes: [rows, ...rest],
      place,
    }))
    return [name, { size: shape, chunks, dtype }] as const
  })
  return Object.fromEntries(pieces)
}

const READ_ALL = `
const { readdirSync, readFileSync } = require('node:fs')
const [dir] = process.argv.slice(1)
let bytes = 0
for (const name of readdirSync(dir)) bytes += readFileSync(dir + '/' + name).length
console.log(bytes)
`

/** Very many files of a few kilobytes. */
function dumpCase(files: number): Case {
  const { dir, count, byteLength } = dump(files)
  const expected = expectedOf('float32', count)
  const wrong = () => {
    const rows = rowsIn(csv('dump'))
    if (rows.length !== files) return `expected ${files} rows, got ${rows.length}`
    for (const row of rows) {
      const fault = expectReductions(expected, REDUCTIONS)(REDUCTIONS.map(name => Number(row[name])))
      if (fault !== undefined) return `${row.tensor}: ${fault}`
    }
    return undefined
  }
  return {
    size: `all 18 of a dump, ${files.toLocaleString('en-GB')} .pt of 4 KB`,
    rounds: ROUNDS,
    contenders: [
      processContender(ours.NAME, timed(scanCommand(dir, 'dump', REDUCTIONS)), wrong, cpuMs),
      processContender(
        'plain JS, reading alone',
        timed([NODE, '-e', READ_ALL, dir]),
        ({ stdout }) => expectSame(`${byteLength}\n`)(stdout),
        cpuMs,
      ),
    ],
  }
}

/** More than memory holds, of a file without data: the time goes into the numbers, not into the disk. */
function* sparseCases(gigabytes: number): Generator<Case> {
  const zeros = sparseZeros(gigabytes)
  const command = scanCommand(zeros, 'zeros', FEW)
  const script = numpy.checkpoints('numpy', 'few', zeros, csv('numpy-zeros'))
  const elements = gigabytes * 5e8
  yield {
    size: `nan_count and abs_max of ${gigabytes} GB of zeros`,
    unit: 'ns',
    rounds: 1,
    contenders: [
      perElement(ours.NAME, command, elements, rowsOf('zeros', gigabytes)),
      ...(script ? [perElement(script.engine, script.command, elements, rowsOf('numpy-zeros', gigabytes))] : []),
    ],
  }
  yield memoryCase(`scan of ${gigabytes} GB of zeros`, command, rowsOf('zeros', gigabytes), 1)
}

function* listCases({ dir, tensors, title }: Checkpoint): Generator<Case> {
  const list = (path: string): Command => [NODE, COMMAND, 'ls', path, '--format', 'table']
  const says =
    (words: string) =>
    ({ stdout }: Run) =>
      stdout.includes(words) ? undefined : `expected ${words}, got ${stdout.slice(0, 200)}`
  const all = sparse70B()
  for (const [path, what, count] of [
    [dir, title, tensors.length],
    [all, '70B, 723 tensors in 30 shards', 723],
  ] as const) {
    const contender = processContender(ours.NAME, timed(list(path)), says(`in ${count} tensors`), cpuMs)
    yield { size: `ls of ${what}`, rounds: ROUNDS, contenders: [contender] }
  }
  yield memoryCase('ls of 70B, 723 tensors in 30 shards', list(all), says('in 723 tensors'))
}

const READ_HEADERS = `
const { openSync, readdirSync, readSync } = require('node:fs')
const [dir] = process.argv.slice(1)
let tensors = 0
for (const name of readdirSync(dir)) {
  const file = openSync(dir + '/' + name + '/model.safetensors')
  const length = Buffer.alloc(8)
  readSync(file, length, 0, 8, 0)
  const header = Buffer.alloc(Number(length.readBigUInt64LE()))
  readSync(file, header, 0, header.length, 8)
  tensors += Object.keys(JSON.parse(header.toString())).length - 1
}
console.log(tensors)
`

/** A run of 100 checkpoints opens at the cost of its headers. */
function* runCases(): Generator<Case> {
  const count = 100
  const { dir, headerBytes, tensors } = sparseRun(count)
  const wrong = (opened: number) => expectSame(count)(opened)
  const reading = async () => {
    const before = readIo()
    const trial = await createTrial(dir, { refresh: 'manual' })
    const answer = trial.steps().length
    await trial.close()
    const after = readIo()
    return { calls: after.calls - before.calls, bytes: after.bytes - before.bytes, answer }
  }
  const bytes = async () => {
    const { bytes, answer } = await reading()
    return { median: bytes / 1e3 / count, answer }
  }
  const calls = async () => {
    const { calls, answer } = await reading()
    return { median: calls / count, answer }
  }
  if (process.platform === 'linux') {
    yield {
      size: `a run of ${count} checkpoints opened, kB read for each`,
      unit: 'kB',
      rounds: 3,
      contenders: [
        selfTimed(ours.NAME, bytes, wrong),
        selfTimed('the headers', async () => ({ median: headerBytes / 1e3 / count, answer: count }), wrong),
      ],
    }
    yield {
      size: `a run of ${count} checkpoints opened, reads for each`,
      unit: 'reads',
      rounds: 3,
      contenders: [selfTimed(ours.NAME, calls, wrong)],
    }
  }
  yield {
    size: `a run of ${count} checkpoints opened, CPU`,
    rounds: ROUNDS,
    contenders: [
      processContender(
        ours.NAME,
        timed([NODE, COMMAND, 'ls', dir, '--format', 'json']),
        ({ stdout }) => expectSame(count)(JSON.parse(stdout).steps.GLOBAL.count),
        cpuMs,
      ),
      processContender(
        'plain JS, headers alone',
        timed([NODE, '-e', READ_HEADERS, dir]),
        ({ stdout }) => expectSame(`${tensors}\n`)(stdout),
        cpuMs,
      ),
    ],
  }
}

/** The bytes and calls that this process has read so far, from /proc. */
function readIo(): { readonly calls: number; readonly bytes: number } {
  const text = readFileSync('/proc/self/io', 'utf8')
  const numberOf = (name: string) => Number(RegExp(`^${name}: (\\d+)$`, 'm').exec(text)![1])
  return { calls: numberOf('syscr'), bytes: numberOf('rchar') }
}

function memoryCase(what: string, command: Command, wrong: (run: Run) => string | undefined, rounds = 3): Case {
  return {
    size: `peak memory, ${what}`,
    unit: 'MB',
    rounds,
    contenders: [memoryContender(`${ours.NAME}, threads ${THREADS}`, command, wrong)],
  }
}

function rowsOf(out: string, count: number): () => string | undefined {
  return () => expectSame(count)(rowsIn(csv(out)).length)
}
