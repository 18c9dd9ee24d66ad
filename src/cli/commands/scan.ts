/** `trialscan scan`: prints rows as they come. */

import {
  type CheckLevel,
  createTrial,
  type Mode,
  parseReductions,
  REDUCTIONS,
  type RowFormatName,
  type Scan,
  type ScanStats,
  type StatisticName,
  selectSteps,
  type TableFormatName,
  TensorUnavailable,
  type Traffic,
  type Trial,
  tableBytes,
  UsageError,
} from '../../index.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { type RowWriter, rowLines } from '../format/lines.js'
import { bytesText, counted, countText, shortList } from '../format/number.js'
import { tableFormat } from '../format/table.js'
import type { StepsText } from '../options/arguments.js'
import { settle } from '../options/given.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import { absentSteps, globalStepsOf, modeSpans, spanText } from '../step-texts.js'
import { colorsFor, note } from '../terminal.js'
import { VERSION } from '../version.js'

export interface ScanFlags extends S3Flags {
  readonly tensor?: readonly string[]
  readonly collection?: readonly string[]
  readonly steps?: StepsText
  readonly modeSteps?: StepsText
  readonly mode?: Mode
  readonly worker?: readonly string[]
  readonly reductions?: readonly string[]
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  readonly memory?: number
  readonly format?: FormatOf<'scan'>
  readonly out?: string
  readonly stats?: boolean
}

const TABLE_REDUCTIONS: readonly StatisticName[] = ['min', 'max', 'mean', 'std', 'l2']

/** @returns the exit code */
export async function runScan(path: string, given: ScanFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('scan', path, given)
  const { tensor, collection, steps, modeSteps, mode, worker, checkLevel, threads, memory, out, onTerminal } = flags
  if (onTerminal && (flags.format === 'parquet' || flags.format === 'arrow')) {
    throw new UsageError(`--format ${flags.format} is not for terminals: write to a file with --out, or into a pipe`)
  }
  const openedAt = performance.now()
  if (out !== undefined) await expectReplaceable(path, out)
  const trial = await createTrial(path, {
    requireCollections: false,
    refresh: 'manual',
    ...s3OptionsFor(path, flags),
    ...(threads !== undefined && { threads }),
  })
  const openMs = performance.now() - openedAt
  const progress = new Progress(onTerminal)
  const rows = trial.scan({
    ...(tensor && { regex: tensor }),
    ...(collection && { collection }),
    ...(steps && { steps: steps.selection }),
    ...(modeSteps && { modeSteps: modeSteps.selection }),
    ...(mode && { mode }),
    ...(worker && { workers: worker }),
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memory: memory * 2 ** 20 }),
    reductions: asked(flags.reductions) ?? 'all',
    ...(checkLevel && { checkLevel }),
    timed: flags.stats === true,
    signal,
    onProgress: progress.update,
  })
  try {
    const { format } = flags
    if (format === 'parquet' || format === 'arrow') {
      await writeTo(out, output => writeTable(rows, format, path, flags, output))
    } else await writeTo(out, output => writeRows(rows, rowWriterFor(trial, flags, format, onTerminal), output))
    const firstError = rows.firstError?.message ?? null
    progress.stop()
    if (rows.stats.rows === 0) note(nothingSelected(trial, flags))
    for (const message of unscannedSteps(trial, flags, rows.stats.rows > 0)) note(message)
    if (firstError !== null) {
      const { failedRows, rows: all } = rows.stats
      note(`${countText(failedRows)} of ${counted(all, 'row')} could not be had; the first: ${firstError}`)
    }
    // Problems that are not in a row. A file without a readable record is in both.
    const problems = rows.problems.map(({ message }) => message).filter(message => message !== firstError)
    for (const message of problems) note(message)
    if (firstError !== null || problems.length > 0) return EXIT.format
    const isAsked = tensor ?? collection ?? steps ?? modeSteps ?? mode ?? worker
    return rows.stats.rows === 0 && isAsked !== undefined ? EXIT.query : EXIT.ok
  } finally {
    progress.stop()
    if (flags.stats) process.stderr.write(`${statsText(rows.stats, openMs, trial.traffic)}\n`)
    await trial.close()
  }
}

/** Tables, and rows for a terminal, become text here. Other rows come as text from the threads that made them. */
async function writeRows(rows: Scan, format: RowWriter | RowFormatName, output: Output): Promise<void> {
  if (typeof format === 'string') {
    for await (const lines of rows.lines(format)) await output.writeBytes(lines)
    return
  }
  await output.write(format.head)
  for await (const row of rows) {
    const written = output.write(format.line(row))
    if (written) await written
  }
}

async function writeTable(
  rows: Scan,
  format: TableFormatName,
  trial: string,
  { checkLevel = 'minimal' }: ScanFlags,
  output: Output,
): Promise<void> {
  const metadata = {
    'trialscan.version': VERSION,
    'trialscan.trial': trial,
    'trialscan.arguments': JSON.stringify(process.argv.slice(2)),
    'trialscan.check_level': checkLevel,
  }
  for await (const bytes of tableBytes(rows, format, { trial, metadata })) await output.writeBytes(bytes)
}

function rowWriterFor(
  trial: Trial,
  flags: ScanFlags,
  format: Exclude<FormatOf<'scan'>, TableFormatName>,
  onTerminal: boolean,
): RowWriter | RowFormatName {
  if (format === 'table') {
    const scope = {
      names: trial.tensorNames(flags.tensor && { regex: flags.tensor }),
      workers: flags.worker ?? trial.workers(),
      modes: trial.modes(),
      lastStep: trial.steps({ showIncompleteSteps: true }).at(-1) ?? 0,
    }
    return tableFormat(
      flags.reductions === undefined ? TABLE_REDUCTIONS : (asked(flags.reductions) ?? REDUCTIONS),
      scope,
      colorsFor(onTerminal ? process.stdout : null),
    )
  }
  if (!onTerminal) return format
  return rowLines(format, asked(flags.reductions) ?? REDUCTIONS, onTerminal)
}

/** The names, where `all` may be one of them; alone, it is the default: those of the eighteen that a dtype has. */
function asked(names: readonly string[] | undefined): readonly StatisticName[] | undefined {
  if (names === undefined || (names.length === 1 && names[0] === 'all')) return undefined
  return parseReductions(names.flatMap((name): readonly string[] => (name === 'all' ? REDUCTIONS : [name])))
}

function statsText(stats: ScanStats, openMs: number, traffic: Readonly<Traffic>): string {
  const { records, readBytes, reads, jobs, threads, elapsedMs, failedRows, spent } = stats
  const seconds = elapsedMs / 1000
  const speed = seconds > 0 ? readBytes / 1e9 / seconds : 0
  return [
    `records ${countText(records)}`,
    `bytes read ${countText(readBytes)} (${bytesText(readBytes)})`,
    `reads ${countText(reads)}`,
    `jobs ${countText(jobs)}`,
    `threads ${threads}`,
    `seconds ${seconds.toFixed(3)}`,
    `GB/s ${speed.toFixed(3)}`,
    `failed rows ${countText(failedRows)}`,
    `open ${secondsText(openMs)}`,
    // Summed over all threads, except for the waiting, which is the main thread's.
    ...(spent
      ? [
          `read ${secondsText(spent.readMs)}`,
          `decode ${secondsText(spent.decodeMs)}`,
          `reduce ${secondsText(spent.reduceMs)}`,
          `write ${secondsText(spent.writeMs)}`,
          `wait ${secondsText(spent.waitMs)}`,
        ]
      : []),
    // Includes the requests for opening the trial.
    ...trafficTexts(traffic),
  ].join(', ')
}

/** Empty if no request was made. */
function trafficTexts({ listRequests, getRequests, receivedBytes, retries }: Readonly<Traffic>): readonly string[] {
  if (listRequests + getRequests === 0) return []
  return [
    `list requests ${countText(listRequests)}`,
    `get requests ${countText(getRequests)}`,
    `retries ${countText(retries)}`,
    `bytes received ${countText(receivedBytes)} (${bytesText(receivedBytes)})`,
  ]
}

function secondsText(ms: number): string {
  return (ms / 1000).toFixed(3)
}

/** For a scan without rows: what was asked for, and what the trial has. */
function nothingSelected(trial: Trial, flags: ScanFlags): string {
  const { tensor, collection, steps, modeSteps, mode, worker } = flags
  const asked = [
    ...(tensor ?? []).map(pattern => `tensors that match ${JSON.stringify(pattern)}`),
    ...(collection ?? []).map(name => `collection ${JSON.stringify(name)}`),
    ...(steps ? [`global steps ${steps.text}`] : []),
    ...(modeSteps ? [`mode steps ${modeSteps.text}`] : []),
    ...(mode ? [`mode ${mode}`] : []),
    ...(worker ?? []).map(name => `worker ${JSON.stringify(name)}`),
  ]
  const names = trial.tensorNames()
  const numbers = trial.steps({ showIncompleteSteps: true })
  const nearest = (tensor ?? []).flatMap(pattern => nearestTo(trial, pattern))
  const near =
    nearest.length > 0 ? ` (nearest: ${[...new Set(nearest)].map(name => JSON.stringify(name)).join(', ')})` : ''
  const saved = [
    `${counted(names.length, 'tensor')}${near}`,
    numbers.length > 0 ? `global steps ${spanText(numbers)}` : 'no steps',
    ...modeSpans(trial),
    `workers ${trial.workers().join(', ') || 'none'}`,
  ]
  return `nothing is there for ${asked.join(', ') || 'a scan of all'}; the trial has ${saved.join('; ')}`
}

/** Notes on steps that were not scanned although the options may seem to include them. */
function unscannedSteps(
  trial: Trial,
  { steps, modeSteps, mode, worker }: ScanFlags,
  hasRows: boolean,
): readonly string[] {
  const notes: string[] = []
  if (steps && mode && mode !== 'GLOBAL') {
    const globals = globalStepsOf(trial, mode, worker)
    const selected = (numbers: Iterable<number>) =>
      new Set(
        selectSteps(
          [...new Set(numbers)].sort((a, b) => a - b),
          steps.selection,
        ),
      )
    const [isMeant, isTaken] = [selected(globals.keys()), selected([...globals.values()].flat())]
    const left = [...globals].filter(([step, theirs]) => isMeant.has(step) && !theirs.every(step => isTaken.has(step)))
    if (left.length > 0) {
      const leftOut = left.map(([step]) => step).sort((a, b) => a - b)
      const theirs = left.flatMap(([, theirs]) => theirs.filter(step => !isTaken.has(step)))
      notes.push(
        `--steps ${steps.text} are global steps, which leaves out ${counted(leftOut.length, 'step')} of ${mode}: ` +
          `mode steps ${shortList(leftOut)} are global steps ${shortList(theirs)}; for steps of ${mode} write --mode-steps ${steps.text}`,
      )
    }
  }
  return hasRows ? [...notes, ...absentSteps(trial, { steps, modeSteps, mode })] : notes
}

/** Names similar to a pattern that matches none. */
function nearestTo(trial: Trial, pattern: string): readonly string[] {
  try {
    trial.tensor(pattern.replace(/[\^$.*+?()[\]{}|\\]+/g, ''))
    return []
  } catch (error) {
    return error instanceof TensorUnavailable ? (error.fields.nearest as readonly string[]) : []
  }
}
