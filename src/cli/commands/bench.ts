/** `trialscan bench`: the kernels on this machine beside other engines, or the parts of a scan's time. */

import { cpus } from 'node:os'
import {
  caseCount,
  type KernelResult,
  measureKernels,
  OURS,
  type Peers,
  startPeers,
  WrongAnswer,
} from '../bench/kernels.js'
import { measureTrial, PARTS, type TrialResult } from '../bench/trial.js'
import { EXIT } from '../exit.js'
import { bytesText, counted, countText } from '../format/number.js'
import { defined } from '../options/given.js'
import { expectS3, onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { Output } from '../output.js'
import { Progress } from '../progress.js'
import { type Colors, colorsFor, columns, note, safe, safeJson } from '../terminal.js'
import { VERSION } from '../version.js'

export interface BenchFlags extends S3Flags {
  readonly quick?: boolean
  readonly json?: boolean
  readonly threads?: number
}

/** The machine and the versions of a measurement. */
interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly platform: string
  readonly node: string
  readonly trialscan: string
}

/** @returns the exit code */
export async function bench(path: string | undefined, flags: BenchFlags, signal: AbortSignal): Promise<number> {
  const [cpu] = cpus()
  const machine: Machine = {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: cpus().length,
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    trialscan: VERSION,
  }
  const progress = new Progress(false, path === undefined ? 'measurements' : 'rows')
  try {
    return path === undefined
      ? await benchKernels(machine, flags, progress, signal)
      : await benchTrial(path, machine, flags, progress, signal)
  } catch (error) {
    if (!(error instanceof WrongAnswer)) throw error
    progress.stop()
    note(`an answer is wrong, so its time would mean nothing: ${error.message}`)
    return EXIT.bug
  }
}

async function benchKernels(
  machine: Machine,
  flags: BenchFlags,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  const { quick = false, json = false } = flags
  expectS3(flags, [])
  const peers = await startPeers()
  try {
    const results: KernelResult[] = []
    const totalRows = caseCount(quick)
    for await (const result of measureKernels(peers, quick, signal)) {
      results.push(result)
      progress.update({ doneRows: results.length, totalRows })
    }
    progress.stop()
    const { numpy, tfjs } = peers
    const versions = { numpy: numpy?.version ?? null, tfjs: tfjs?.version ?? null }
    await print(json ? { machine: { ...machine, ...versions }, kernels: results } : kernelText(machine, peers, results))
    return EXIT.ok
  } finally {
    peers.numpy?.end()
  }
}

async function benchTrial(
  path: string,
  machine: Machine,
  flags: BenchFlags,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  const { threads, json = false } = flags
  const open = { ...onlyPlaceOptions(path, flags), ...defined({ threads }) }
  const onProgress = (doneRows: number, totalRows: number): void => progress.update({ doneRows, totalRows })
  const result = await measureTrial(path, open, { threads, signal, onProgress })
  progress.stop()
  await print(json ? { machine, ...result } : trialText(machine, result))
  if (result.failedRows === 0) return EXIT.ok
  note(`${counted(result.failedRows, 'row')} could not be had: trialscan verify tells why`)
  return EXIT.format
}

async function print(data: object | string): Promise<void> {
  const output = await Output.open()
  const json = typeof data === 'string' ? data : `${JSON.stringify(data)}\n`
  await output.write(process.stdout.isTTY && typeof data !== 'string' ? safeJson(json) : json)
  await output.end()
}

function machineText({ cpu, cores, node, trialscan }: Machine, more: readonly string[] = []): string {
  return `${[`${safe(cpu)}, ${counted(cores, 'core')}`, `Node.js ${node}`, `trialscan ${trialscan}`, ...more].join('; ')}\n`
}

/** A table of rates in GB/s, with each engine's time as a multiple of trialscan's. */
function kernelText(machine: Machine, { numpy, tfjs }: Peers, results: readonly KernelResult[]): string {
  const colors = colorsFor(process.stdout)
  const peerTexts = [
    numpy ? `numpy ${safe(numpy.version)}` : 'numpy: not found',
    tfjs ? `tfjs ${safe(tfjs.version)}` : 'tfjs: not found',
  ]
  const others = [...new Set(results.flatMap(({ contenders }) => contenders.map(({ engine }) => engine)))].slice(1)
  const head = ['GB/s', '', '', OURS, ...others.flatMap(engine => [engine, ''])]
  const rows = results.map(({ kernel, dtype, bytes, contenders }) => {
    const cells = others.flatMap(engine => {
      const contender = contenders.find(contender => contender.engine === engine)
      return contender === undefined
        ? ['-', '']
        : [significant(contender.gbPerSecond), ratioText(contender.ratio, colors)]
    })
    return [kernel, dtype, sizeText(bytes), significant(contenders[0]?.gbPerSecond ?? 0), ...cells]
  })
  const numeric = head.map((_, i) => i).slice(2)
  const legend = 'Beside each: how many times as long it takes as trialscan (below 1: it is faster).'
  return `${machineText(machine, peerTexts)}\n${columns([head, ...rows], numeric)}\n${legend}\n`
}

function ratioText(ratio: number, colors: Colors): string {
  const text = `${significant(ratio)}×`
  return ratio < 1 ? colors.red(text) : text
}

/** A number with three significant digits. */
function significant(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)
}

function sizeText(bytes: number): string {
  return bytes >= 1 << 20 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 10} KiB`
}

function trialText(machine: Machine, result: TrialResult): string {
  const { trial, tensors, records, bytes, threads, openSeconds, scanSeconds, spentSeconds } = result
  const rate = (bytesPerSecond: number): string => `${significant(bytesPerSecond / 1e9)} GB/s`
  const all = PARTS.reduce((sum, part) => sum + spentSeconds[part], 0)
  const whose = threads === 0 ? 'the main thread' : counted(threads, 'thread')
  const parts = PARTS.map(part => {
    const seconds = spentSeconds[part]
    const share = all > 0 ? Math.round((100 * seconds) / all) : 0
    return [
      `  ${part}`,
      `${seconds.toFixed(3)} s`,
      `${share} %`,
      seconds > 0 && part !== 'text' ? rate(bytes / seconds) : '',
    ]
  })
  const rates = [
    ['page cache', result.pageCacheRate],
    ['disk', result.diskRate],
  ] as const
  return [
    machineText(machine),
    `${safe(trial)}: ${counted(tensors, 'tensor')}, ${countText(records)} records, ${bytesText(bytes)}\n\n`,
    columns(
      [
        ['open', `${openSeconds.toFixed(3)} s`, '', ''],
        ['scan', `${scanSeconds.toFixed(3)} s`, '', rate(bytes / Math.max(scanSeconds, 1e-9))],
        [`of the time of ${whose}`, '', '', ''],
        ...parts,
        ['reading alone, on one thread', '', '', ''],
        ...rates.map(([name, value]) => [`  ${name}`, '', '', value === null ? 'not measured' : rate(value)]),
      ],
      [1, 2, 3],
    ),
    result.notMeasured === null ? '' : `Not measured: ${result.notMeasured}.\n`,
    `\n${verdict(result)}\n`,
  ].join('')
}

function verdict({ boundBy, uncachedBoundBy, bytes, diskRate, spentSeconds }: TrialResult): string {
  const all = PARTS.reduce((sum, part) => sum + spentSeconds[part], 0)
  const share = all > 0 ? Math.round((100 * spentSeconds[boundBy]) / all) : 0
  const cached = `Bound by ${boundBy}: ${share} % of the threads' time.`
  if (uncachedBoundBy !== 'disk' || diskRate === null) return cached
  return `${cached}\nBound by the disk when the files are not in the page cache: it needs ${(bytes / diskRate).toFixed(3)} s.`
}
